"""Whether a model can fit into a device's memory at all, asked before it is made or copied.

Only what is certain is refused: the weights alone must be smaller than the memory. What a KV cache
and a framework take on top is for `edgebench.harness.predict` to estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.artifacts import BITS, expected_bytes
from edgebench.harness.store.space import human_bytes

if TYPE_CHECKING:
    from edgebench.harness.artifacts import Conversion
    from edgebench.harness.device_profiles import DeviceProfile
    from edgebench.harness.store.sizes import ToldSize
    from edgebench.harness.store.store import StoredFile

GIB: Final = 1 << 30

SYSTEM_BYTES: Final = 0.3 * GIB
"""What the system itself keeps, at the least."""

REMEDY: Final = "Choose a smaller model or quantization, or another device."

_MISTAKEN_BY: Final = 2
"""What `edgebench.harness.artifacts.expected_bytes` may be too large by, at most, as tests say."""

_FLOATS_OF_FOLDERS: Final = 2
"""It takes a folder's weights for 16 bits each. Of float32 it expects twice as much."""

_MORE, _LESS = 1.02, 0.75
"""A machine's own count of its memory, as a share of what is built in: never more than all of it,
and firmware, graphics and crash kernels seldom keep a quarter."""


@dataclass(frozen=True, slots=True)
class Room:
    """The memory of the device that a run is on.

    Attributes:
        profile: the device's, where the scenario names one.
        machine_memory_bytes: what the machine says itself, where it was asked.
    """

    profile: DeviceProfile | None = None
    machine_memory_bytes: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything is known of it, so that a size can be compared."""
        claimed = self.profile is not None and self.profile.ram_bytes.value is not None
        return claimed or self.machine_memory_bytes is not None

    def why_not(self, needed_bytes: int | None) -> str | None:
        """Why a model of this size can't fit; None where it may, or its size is not known."""
        if needed_bytes is None:
            return None
        return refuse_if_too_large(needed_bytes, self.profile, self.machine_memory_bytes)

    def contradiction(self) -> str | None:
        """What to say where the profile and the machine differ; or None."""
        if self.machine_memory_bytes is None:
            return None
        return contradiction(self.profile, self.machine_memory_bytes)


def refuse_if_too_large(
    needed_bytes: int, profile: DeviceProfile | None, machine_memory_bytes: int | None
) -> str | None:
    """Why a model can't fit, in a sentence with the numbers; None where it may.

    Args:
        needed_bytes: the size of what the framework loads.
        profile: the device's, where the scenario names one.
        machine_memory_bytes: what the machine says itself, where it was asked.
    """
    known = []
    if profile is not None and profile.ram_bytes.value is not None:
        known.append((profile.ram_bytes.value, f"by the profile {profile.key}"))
    if machine_memory_bytes is not None:
        known.append((float(machine_memory_bytes), "as it says itself"))
    if not known:
        return None
    memory, says = min(known)
    if needed_bytes < memory - SYSTEM_BYTES:
        return None
    keeps = f"{SYSTEM_BYTES / GIB:.1f} GiB of it for the system"
    if memory <= SYSTEM_BYTES:
        keeps = f"no more than the {_size(SYSTEM_BYTES)} that a system keeps"
    return (
        f"the model's {_size(needed_bytes)} do not fit into the device's memory, which is "
        f"{_size(memory)} {says}, {keeps}"
    )


def contradiction(profile: DeviceProfile | None, machine_memory_bytes: int) -> str | None:
    """What to say where a profile and the machine itself differ about its memory; or None."""
    if profile is None or profile.ram_bytes.value is None:
        return None
    claimed = profile.ram_bytes.value
    if _LESS * claimed <= machine_memory_bytes <= _MORE * claimed:
        return None
    return (
        f"the profile {profile.key} says {_size(claimed)} of memory, and the machine says "
        f"{_size(machine_memory_bytes)}: is it the right profile? The smaller one is believed"
    )


def least_bytes(source: StoredFile, wanted: Conversion) -> int | None:
    """The least that a conversion's artifact can take; None where that can't be told before.

    The expected size errs to the large side, by up to twice, where the source's name tells its
    format, and by more where it does not. Of a folder, it does not know the width of the floats.
    """
    if source.path.is_dir():
        return wanted.needed_bytes // (_MISTAKEN_BY * _FLOATS_OF_FOLDERS)
    return None if BITS.search(source.name) is None else wanted.needed_bytes // _MISTAKEN_BY


def least_of(told: ToldSize, quantization: str) -> int | None:
    """The least that a source takes in a quantisation, before it is read; None where not known."""
    if quantization == "source":
        return told.bytes
    expected = expected_bytes(told.name, told.bytes, quantization, is_folder=told.is_folder)
    if told.is_folder:
        return expected // (_MISTAKEN_BY * _FLOATS_OF_FOLDERS)
    return None if BITS.search(told.name) is None else expected // _MISTAKEN_BY


def _size(number: float) -> str:
    return human_bytes(int(number))
