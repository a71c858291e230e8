"""What predictions take from a device's profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from edgebench.harness.device_profiles import DeviceProfile
    from edgebench.harness.device_profiles.figures import Figure

Processor = Literal["cpu", "gpu"]


@dataclass(frozen=True, slots=True)
class Known:
    """A figure of a device.

    Attributes:
        value: None where it is not known.
        said: its source; or why it is not known.
        measured: the machine itself was measured, so that it is no theoretical peak.
    """

    value: float | None
    said: str
    measured: bool = False


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What is known of a device.

    Attributes:
        key, name: of its profile.
        kind: phone, board, laptop, desktop, server or vm.
        processor: what computes.
        bandwidth: of its memory, bytes/s: in theory, or as it was measured.
        ram: in bytes.
        fp32, int8: what the processor computes a second, in operations.
        tdp_w, sustained_w: its power.
    """

    key: str
    name: str
    kind: str
    processor: Processor
    bandwidth: Known
    ram: Known
    fp32: Known
    int8: Known
    tdp_w: Known
    sustained_w: Known

    @property
    def share_once_hot(self) -> float:
        """What is left of a rate by the documents' formula, min(1, sustained power / TDP).

        1 where either is not known.
        """
        sustained, tdp = self.sustained_w.value, self.tdp_w.value
        return 1.0 if sustained is None or tdp is None else min(1.0, sustained / tdp)


def facts_of(profile: DeviceProfile, processor: Processor = "cpu") -> DeviceFacts:
    """What a profile says.

    Raises:
        UsageError: the GPU is asked for and the profile has none.
    """
    fp32, int8 = profile.compute.fp32_flops, profile.compute.int8_ops
    bandwidth = _known(profile.memory.bandwidth_bytes_per_s)
    if processor == "gpu":
        found = next((each for each in profile.accelerators if each.kind == "gpu"), None)
        if found is None:
            msg = f"the profile {profile.key} has no GPU"
            raise UsageError(msg, remedy="Leave out --processor, for a prediction of the CPU.")
        fp32, int8 = found.fp32_flops, found.int8_ops
        if bandwidth.measured:
            # A GPU may read faster than the cores that read it for the probe.
            bandwidth = Known(None, "only the CPU's threads measured it")
    return DeviceFacts(
        key=profile.key,
        name=profile.name,
        kind=profile.kind,
        processor=processor,
        bandwidth=bandwidth,
        ram=_known(profile.ram_bytes),
        fp32=_known(fp32),
        int8=_known(int8),
        tdp_w=_known(profile.power.tdp_w),
        sustained_w=_known(profile.power.sustained_w),
    )


def _known(figure: Figure) -> Known:
    said = figure.source if figure.value is not None else figure.reason
    measured = figure.value is not None and figure.basis == "measured"
    return Known(figure.value, said or "the profile does not say", measured)
