"""Whether published figures can be: decode rates against bandwidth, and columns against columns.

To decode one token of one sequence, every weight of the model is read once, out of a memory that
caches of tens of megabytes do not help with. So decode rate x bytes of weights a token can't be
above the memory's bandwidth; what the KV cache takes comes on top and is left out, in favour of
the figure. Source of the bound: Williams, Waterman and Patterson, Roofline, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.reports.published.load import published_formats, published_platforms

if TYPE_CHECKING:
    from edgebench.reports.published.model import Architecture, Figure, PlatformRow

BITS = 8
MATRICES_OF_HIDDEN = 2  # queries and output of the attention
MATRICES_OF_KEYS = 2  # keys and values
MATRICES_OF_FEED_FORWARD = 3  # gate, up, down
NORMS = 2  # of a layer

Verdict = Literal["impossible", "impossible by its own size", "possible"]


@dataclass(frozen=True, slots=True)
class PlatformCheck:
    """A published rate against the device's memory.

    Attributes:
        row: what was published.
        bytes_per_s: the bandwidth that the rate takes, of bytes counted from the architecture.
        share: of the theoretical peak.
        share_by_size: the same with the model size that the document itself gives.
        verdict: whether it can be.
    """

    row: PlatformRow
    bytes_per_s: float
    share: float
    share_by_size: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SpeedupCheck:
    """A format's published speed-up against what its size allows.

    Attributes:
        format: its name.
        size_ratio: its size, of that of the base.
        read: the bandwidth column's value.
        speedup: as published.
        bound: the most that reading fewer bytes gives: 1 / size ratio.
    """

    format: str
    size_ratio: float
    read: float
    speedup: float
    bound: float


def weight_bytes_per_token(model: Architecture) -> float:
    """Bytes of weights that decoding one token reads.

    Every matrix of every layer and the output layer once, one row of the embedding, the norms.
    """
    in_layer = (
        MATRICES_OF_HIDDEN * model.hidden**2
        + MATRICES_OF_KEYS * model.hidden * model.key_value
        + MATRICES_OF_FEED_FORWARD * model.hidden * model.feed_forward
    )
    bits = (
        model.layers * in_layer * model.weight_bits
        + model.vocabulary * model.hidden * model.output_bits
        + model.hidden * model.weight_bits
        + (NORMS * model.layers + 1) * model.hidden * model.norm_bits
    )
    return bits / BITS


def published_bytes_per_token() -> float:
    """Those of the published platforms' model, counted from its architecture."""
    return weight_bytes_per_token(published_platforms().architecture)


def published_size() -> float:
    """Bytes of the same model as the document's own table of formats gives them."""
    wanted = published_platforms().quantization
    return next(
        each.model_size.middle for each in published_formats().rows if each.format == wanted
    )


def platform_checks() -> tuple[PlatformCheck, ...]:
    """Every published platform, checked."""
    read, size = published_bytes_per_token(), published_size()
    found = []
    for row in published_platforms().rows:
        rate, peak = row.decode_rate.middle, row.memory.bytes_per_s
        share, by_size = rate * read / peak, rate * size / peak
        verdict: Verdict = "possible"
        if share > 1:
            verdict = "impossible"
        elif by_size > 1:
            verdict = "impossible by its own size"
        found.append(PlatformCheck(row, rate * read, share, by_size, verdict))
    return tuple(found)


def speedup_checks() -> tuple[SpeedupCheck, ...]:
    """Every published format but the base, checked."""
    table = published_formats()
    base = next(each for each in table.rows if each.format == table.base)
    found = []
    for row in table.rows:
        if row is base:
            continue
        ratio = row.model_size.middle / base.model_size.middle
        found.append(
            SpeedupCheck(
                format=row.format,
                size_ratio=ratio,
                read=row.relative_read.middle,
                speedup=row.relative_speed.middle,
                bound=1 / ratio,
            )
        )
    return tuple(found)


def agrees(figure: Figure, computed: float) -> bool:
    """Whether a computed number, rounded as the document prints the figure, is that figure."""
    printed = figure.text.strip("x%").rpartition(".")
    decimals = len(printed[2]) if printed[1] else 0
    factor = 100 if figure.text.endswith("%") else 1
    half: float = 0.5 * 10.0**-decimals
    return abs(computed - figure.middle) * factor <= half * (1 + 1e-9)


def power_column_agrees() -> bool:
    """Whether every published tokens/s/W is the row's rate over its power, as rounded there."""
    return all(
        agrees(row.rate_per_watt, row.decode_rate.middle / row.power.middle)
        for row in published_platforms().rows
    )


def read_column_agrees() -> bool:
    """Whether every published bandwidth need is the ratio of the model sizes, as rounded there."""
    by_format = {row.format: row.relative_read for row in published_formats().rows}
    return all(agrees(by_format[each.format], each.size_ratio) for each in speedup_checks())
