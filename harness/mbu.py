"""Model bandwidth utilisation: how much of the memory's measured bandwidth a decode rate takes.

Decoding a token reads every weight once, and the keys and values of all tokens before it. So
(bytes of weights + bytes of the KV cache) x decode rate is what the memory delivered, and its share
of the bandwidth that was measured on the same machine, with as many threads, says how near a
framework comes to what the memory allows. Source: Databricks, "LLM Inference Performance
Engineering: Best Practices", 2023, which names the measure so; docs/bandwidth.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.harness.bandwidth import DISTURBED, NOT_WANTED, for_threads
from edgebench.harness.metrics import statistics
from edgebench.harness.results.measured import Measured
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.results.device import BandwidthRecord
    from edgebench.harness.results.measured import Scalar
    from edgebench.harness.results.model import RunRecord, VariantRecord
    from edgebench.harness.results.trial import Trial

MBU: Final = "mbu"
KV_BYTES: Final = "kv_bytes_per_token"

CACHE_TYPE_BYTES: Final[Mapping[str, float]] = MappingProxyType(
    {
        "f32": 4,
        "float32": 4,
        "f16": 2,
        "float16": 2,
        "bf16": 2,
        # ggml's blocks of 32 numbers (ggml-common.h): their bits, a scale and for some a minimum.
        "q8_0": 34 / 32,
        "q5_1": 24 / 32,
        "q5_0": 22 / 32,
        "q4_1": 20 / 32,
        "q4_0": 18 / 32,
        "iq4_nl": 18 / 32,
    }
)
"""Bytes a number, by the names that frameworks give their caches' types."""

UNTOLD_WEIGHTS: Final = "the runner does not tell how many bytes of weights a token reads"
UNTOLD_CACHE: Final = "the framework does not tell in which type it caches keys and values"
UNKNOWN_MODEL: Final = "the model's layers and heads are not known"
NOT_COUNTED: Final = "over sustained work the KV cache is not counted"

RATES: Final = ("decode_rate", "burst_rate", "sustained_rate")
"""Of a generation, and of both ends of sustained work."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a token leaves in the KV cache.

    Attributes:
        numbers: of keys, over all layers; there are as many of values.
        windowed: how many of them are of layers that look back to `window` tokens only.
        window: in tokens; None where all layers see all.
    """

    numbers: int
    windowed: int = 0
    window: int | None = None

    def read(self, tokens: float) -> float:
        """Numbers that a token reads, of keys alone, with so many tokens before it."""
        beyond = max(0.0, tokens - self.window) if self.window is not None else 0.0
        return tokens * self.numbers - beyond * self.windowed


def cache_shape(path: Path | None, synthetic: str | None = None) -> CacheShape | None:
    """Of the model in a file or folder, or of a well-known shape; None where it is not understood.

    Args:
        path: the source that every artifact is made from.
        synthetic: a key of `SHAPES`, of a model whose weights are made up.
    """
    if synthetic is not None and synthetic in SHAPES:
        shape = SHAPES[synthetic]
        each = shape.kv_heads * shape.head_size
        return CacheShape(shape.layers * each, shape.windowed_layers * each, shape.window)
    if path is None:
        return None
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - as needed

    try:
        known = open_model(path).architecture
    except (ModelFormatError, UnsupportedModelError, OSError):
        return None
    return CacheShape(known.layers * known.kv_heads * known.head_size)


class Utilization:
    """Adds to each generation how much of the memory's bandwidth it took.

    Args:
        records: what was measured of the machine.
        cache: what a token leaves in the KV cache; None where that is not known.
        why_none: why `records` is empty.
    """

    def __init__(
        self,
        records: Sequence[BandwidthRecord] = (),
        cache: CacheShape | None = None,
        why_none: str = NOT_WANTED,
    ) -> None:
        self._records = records
        self._cache = cache
        self._why_none = why_none
        self._loads: dict[str, Trial] = {}

    def judged(self, trial: Trial) -> Trial:
        """The trial, with both metrics where it generates and has a decode rate.

        Of sustained work the faster end is judged: what the memory can't give it can't be.

        Loads are remembered: what the framework told then is what its generations are judged by.
        """
        if trial.status != "ok":
            return trial
        if trial.kind == "load":
            self._loads[trial.variant] = trial
        load = self._loads.get(trial.variant)
        if trial.kind not in ("generate", "sustained") or load is None:
            return trial
        rate = fastest_rate(trial)
        if rate is None:
            return trial
        cached = self._cached(trial, load)
        found = {KV_BYTES: cached, MBU: self._mbu(rate, load, cached.value or 0.0)}
        return trial.model_copy(update={"metrics": {**trial.metrics, **found}})

    def _cached(self, trial: Trial, load: Trial) -> Measured:
        """Bytes of keys and values that a token read, the mean over the tokens of the decoding."""
        if trial.kind == "sustained":
            return Measured.missing("byte", NOT_COUNTED, "derived")
        if self._cache is None:
            return Measured.missing("byte", UNKNOWN_MODEL, "derived")
        options, tokens = load.effective_options, trial.tokens
        keys, values = (_cache_type(options, each) for each in "kv")
        if keys is None or values is None or tokens is None:
            return Measured.missing("byte", UNTOLD_CACHE, "derived")
        before = tokens.depth_tokens + tokens.prompt_tokens
        context = before + len(tokens.generated_ids) / 2
        size = self._cache.read(context) * (keys + values)
        return Measured(value=size, unit="byte", source="derived")

    def _mbu(self, rate: Measured, load: Trial, cached: float) -> Measured:
        elsewhere = _elsewhere(load.effective_options)
        why = None
        roof = None
        if load.weight_bytes_per_token is None:
            why = UNTOLD_WEIGHTS
        elif elsewhere is not None:
            why = elsewhere
        elif rate.value is None:
            why = rate.reason
        elif not self._records:
            why = self._why_none
        else:
            threads = threads_of(load.effective_options)
            roof = for_threads(self._records, threads)
            if roof is None:
                why = f"the memory's bandwidth was not measured with {threads} threads"
                if any(threads is None or each.threads >= threads for each in self._records):
                    why = DISTURBED
        if roof is None or rate.value is None or load.weight_bytes_per_token is None:
            return Measured.missing("1", why or NOT_WANTED, "derived")
        read = load.weight_bytes_per_token + cached
        return Measured(value=read * rate.value / roof.bytes_per_s, unit="1", source="derived")


def fastest_rate(trial: Trial) -> Measured | None:
    """The decode rate of a generation, or of the faster end of sustained work; None of others."""
    found = [trial.metrics[key] for key in RATES if key in trial.metrics]
    known = [each for each in found if each.value is not None]
    return max(known, key=lambda each: each.value or 0.0) if known else next(iter(found), None)


def threads_of(options: Mapping[str, Scalar]) -> int | None:
    """How many threads a framework says that it decodes with."""
    threads = options.get("threads")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        return None
    return threads


def roof_of(record: RunRecord, variant: VariantRecord) -> BandwidthRecord | None:
    """The measured bandwidth that a variant is held against; None where there is none."""
    if _elsewhere(variant.effective_options) is not None:
        return None
    return for_threads(record.bandwidth, threads_of(variant.effective_options))


def is_above(
    record: RunRecord, variant: str, measured: Sequence[Trial], loads: Sequence[Trial] = ()
) -> bool:
    """Whether a cell takes more than its machine's memory can deliver, so that it can't be right.

    The whole interval of its utilisation has to be above the fastest repetition of the reading:
    a memory is not slower than it was ever seen, and other tenants of a machine come and go. Where
    the reading was disturbed, the rate is held against what it could have been at most.

    Args:
        record: of the run, with its bandwidths.
        variant: the cell's.
        measured: its repetitions.
        loads: what its framework told, among it how many bytes of weights a token reads.
    """
    known = next((each for each in record.variants if each.id == variant), None)
    if known is None:
        return False
    if _is_impossible(record, known, measured, loads):
        return True
    pairs = [
        (found.value, trial.block)
        for trial in measured
        if (found := trial.metrics.get(MBU)) is not None and found.value is not None
    ]
    if not pairs:
        return False
    values = [value for value, _block in pairs]
    low = statistics.median_interval(values, [block for _value, block in pairs]).low
    roof = roof_of(record, known)
    fastest = max(roof.samples, default=roof.bytes_per_s) / roof.bytes_per_s if roof else 1.0
    return (min(values) if low is None else low) > max(fastest, 1.0)


def _is_impossible(
    record: RunRecord, variant: VariantRecord, measured: Sequence[Trial], loads: Sequence[Trial]
) -> bool:
    """Whether all rates are above what even a disturbed reading leaves possible."""
    told = [each.weight_bytes_per_token for each in loads if each.weight_bytes_per_token]
    options = variant.effective_options
    if not told or _elsewhere(options) is not None or roof_of(record, variant) is not None:
        return False
    threads = threads_of(options)
    most = [
        each.at_most_bytes_per_s
        for each in record.bandwidth
        if each.at_most_bytes_per_s is not None and (threads is None or each.threads >= threads)
    ]
    rates = [found.value for trial in measured if (found := fastest_rate(trial)) and found.value]
    return bool(most and rates) and told[0] * min(rates) > max(most)


def _cache_type(options: Mapping[str, Scalar], part: str) -> float | None:
    name = options.get(f"kv_cache_type_{part}", options.get("kv_cache_type"))
    return CACHE_TYPE_BYTES.get(str(name).lower()) if name is not None else None


def _elsewhere(options: Mapping[str, Scalar]) -> str | None:
    """Why the processors' bandwidth is no roof: the weights are read by something else."""
    layers = options.get("gpu_layers")
    if layers:
        return f"{layers} layers run on a GPU, whose memory's bandwidth was not measured"
    for key in ("backend", "device"):
        place = options.get(key)
        if isinstance(place, str) and not place.lower().startswith("cpu"):
            return f"it runs on {place}, whose memory's bandwidth was not measured"
    return None
