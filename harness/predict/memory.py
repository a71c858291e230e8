"""The memory wall: what a model needs, what a device leaves it, and whether the one fits."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.predict.decoder import Decoder
    from edgebench.harness.predict.device import DeviceFacts

MIB: Final = 1024**2
GIB: Final = 1024**3

BATCH: Final = 512
"""Tokens of a prompt that are computed together; llama.cpp's default."""

FLOAT: Final = 4

RUNTIME: Final = 64 * MIB
"""Assumed for the process itself: the framework's code, the tokenizer, thread stacks."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """What the operating system and other programs keep, as assumed of a kind of device.

    Attributes:
        least: in bytes.
        share: of the memory, where that is more.
        why: what the assumption is.
    """

    least: int
    share: float
    why: str


RESERVES: Final[Mapping[str, Reserve]] = MappingProxyType(
    {
        "phone": Reserve(2 * GIB, 0.4, "Android, its services and what keeps apps in memory"),
        "board": Reserve(600 * MIB, 0.0, "Linux without a desktop; a desktop takes 1 GiB more"),
        "laptop": Reserve(3 * GIB, 0.2, "a desktop with a browser closed"),
        "desktop": Reserve(3 * GIB, 0.0, "a desktop with a browser closed"),
        "server": Reserve(1 * GIB, 0.0, "Linux without a desktop"),
        "vm": Reserve(600 * MIB, 0.0, "Linux without a desktop"),
    }
)


@dataclass(frozen=True, slots=True)
class MemoryWall:
    """What is needed and what there is, in bytes.

    Attributes:
        weights: all of them; mapped from a file, they can be dropped and read again, but each
            token needs them all.
        kv_cache: keys and values of the whole context.
        activations: intermediate results, as llama.cpp sets them aside.
        runtime: of the process itself.
        ram: of the device; None where its profile does not say.
        reserved: assumed to be taken by others.
        fits: None where the memory is not known.
        reason: why that is so.
    """

    weights: int
    kv_cache: int
    activations: int
    runtime: int
    ram: int | None
    reserved: int
    fits: bool | None
    reason: str = ""

    @property
    def needed(self) -> int:
        """All together."""
        return self.weights + self.kv_cache + self.activations + self.runtime

    @property
    def available(self) -> int | None:
        """What others leave."""
        return None if self.ram is None else max(0, self.ram - self.reserved)

    @property
    def spare(self) -> int | None:
        """How much is left over; below 0, how much too little there is."""
        return None if self.available is None else self.available - self.needed


def kv_cache_bytes(model: Decoder, tokens: int, number_bytes: float) -> int:
    """Of keys and values: 2 x layers x heads of keys x their size x tokens x bytes a number."""
    numbers = 2 * model.layers * model.kv_heads * model.head_size * tokens
    return round(numbers * number_bytes)


def kv_read_bytes(model: Decoder, tokens: int, number_bytes: float) -> int:
    """Keys and values that decoding a token reads: layers with a window read no more than that."""
    seen = model.layers * tokens
    if model.window is not None and tokens > model.window:
        seen -= model.windowed_layers * (tokens - model.window)
    return round(2 * model.kv_heads * model.head_size * seen * number_bytes)


def activation_bytes(model: Decoder, context: int) -> int:
    """What llama.cpp's CPU backend sets aside for intermediate results.

    The larger of two: the logits of a batch; or the attention's scores of a batch against the
    whole context, without fused attention, and the hidden states beside them.
    """
    batch = min(BATCH, context)
    logits = model.vocabulary + model.hidden
    scores = (model.heads + 1) * context + 4 * model.hidden
    return FLOAT * batch * max(logits, scores, 2 * model.intermediate + model.hidden)


def reserved_bytes(kind: str, ram: float) -> int:
    """What others are assumed to take on a device of this kind."""
    reserve = RESERVES[kind]
    return round(max(reserve.least, reserve.share * ram))


def memory_wall(
    model: Decoder,
    weights: int,
    device: DeviceFacts,
    context: int,
    kv_number_bytes: float,
    reserved: float | None = None,
) -> MemoryWall:
    """Whether a model fits.

    Args:
        model: its sizes.
        weights: bytes of all its weights.
        device: what it is to run on.
        context: tokens that the KV cache holds.
        kv_number_bytes: of a number in the cache.
        reserved: bytes that others take; assumed of the kind of device where None.
    """
    kv_cache = kv_cache_bytes(model, context, kv_number_bytes)
    activations = activation_bytes(model, context)
    ram = device.ram.value
    taken = 0
    if reserved is not None:
        taken = round(reserved)
    elif ram is not None:
        taken = reserved_bytes(device.kind, ram)
    needed = weights + kv_cache + activations + RUNTIME
    return MemoryWall(
        weights=weights,
        kv_cache=kv_cache,
        activations=activations,
        runtime=RUNTIME,
        ram=None if ram is None else round(ram),
        reserved=taken,
        fits=None if ram is None else needed <= max(0, round(ram) - taken),
        reason=device.ram.said if ram is None else "",
    )
