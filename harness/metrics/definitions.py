"""What each metric is called, its unit, which direction is better, and how it is defined.

The keys are the ones in ``run.json``, ``trials.jsonl`` and the data frame. The definitions are
printed in every report, beside the figures they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Better = Literal["higher", "lower"]

ENGINE_PREFIX = "engine_"
"""A key that starts with it is the framework's own figure for the metric after it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        key: the name in the result files.
        label: the name for people.
        short: a name for a narrow column.
        unit: the unit that results are stored in, such as ``s``, ``token/s``, ``byte``.
        better: which direction is better, or None where neither is.
        definition: one or two sentences that say exactly what was measured.
    """

    key: str
    label: str
    short: str
    unit: str
    better: Better | None
    definition: str


_ALL = (
    Metric(
        "load_s",
        "Load time",
        "load",
        "s",
        "lower",
        "From the call that loads the model to a model ready for its first prompt, with the file "
        "already in the page cache or not as the system had it.",
    ),
    Metric(
        "load_cold_s",
        "Load time, cold",
        "cold load",
        "s",
        "lower",
        "Load time after the model's file was dropped from the page cache.",
    ),
    Metric(
        "ttft_s",
        "Time to first token",
        "TTFT",
        "s",
        "lower",
        "From handing the prompt to the framework to the first generated token being available, "
        "tokenizing included where the prompt was handed over as text.",
    ),
    Metric(
        "tokenize_s",
        "Tokenizing",
        "tokenize",
        "s",
        "lower",
        "From handing the prompt over as text to its token ids being known.",
    ),
    Metric(
        "prefill_s",
        "Prefill time",
        "prefill",
        "s",
        "lower",
        "From the prompt's token ids being known to the whole prompt having been processed; "
        "tokenizing included where a framework does it as a part of that.",
    ),
    Metric(
        "first_token_s",
        "First token after prefill",
        "1st token",
        "s",
        "lower",
        "From the prompt having been processed to the first generated token being available.",
    ),
    Metric(
        "prefill_rate",
        "Prefill rate",
        "prefill",
        "token/s",
        "higher",
        "Prompt tokens divided by the time of the prefill alone (often called pp).",
    ),
    Metric(
        "tpot_s",
        "Time per output token",
        "TPOT",
        "s",
        "lower",
        "(last token's time - first token's time) / (n - 1), over the n tokens really produced.",
    ),
    Metric(
        "decode_rate",
        "Decode rate",
        "decode",
        "token/s",
        "higher",
        "One divided by the time per output token (often called tg): tokens really produced, "
        "the first one and the prefill left out.",
    ),
    Metric(
        "burst_rate",
        "Burst rate",
        "burst",
        "token/s",
        "higher",
        "Decode rate over the first minute of sustained work; over its first tenth where it lasts "
        "less than ten minutes.",
    ),
    Metric(
        "sustained_rate",
        "Sustained rate",
        "sustained",
        "token/s",
        "higher",
        "Decode rate over the last minute of sustained work, or its last tenth, as for the burst "
        "rate.",
    ),
    Metric(
        "sustained_ratio",
        "Sustained / burst rate",
        "ratio",
        "1",
        "higher",
        "Sustained rate divided by burst rate: 1 where the device keeps its speed.",
    ),
    Metric(
        "itl_p50_s",
        "Token gap, median",
        "gap p50",
        "s",
        "lower",
        "The median of the gaps between successive tokens of one generation.",
    ),
    Metric(
        "itl_p95_s",
        "Token gap, p95",
        "gap p95",
        "s",
        "lower",
        "95 % of the gaps between successive tokens of one generation are at most this long.",
    ),
    Metric(
        "itl_p99_s",
        "Token gap, p99",
        "gap p99",
        "s",
        "lower",
        "99 % of the gaps between successive tokens of one generation are at most this long.",
    ),
    Metric(
        "itl_max_s",
        "Token gap, longest",
        "gap max",
        "s",
        "lower",
        "The longest gap between two successive tokens of one generation.",
    ),
    Metric(
        "e2e_rate",
        "End-to-end rate",
        "end-to-end",
        "token/s",
        "higher",
        "Tokens produced divided by the time from handing the prompt over to the last token.",
    ),
    Metric(
        "task_latency_s",
        "Task latency",
        "latency",
        "s",
        "lower",
        "From handing the text over to the whole result of the task. The task decides how much it "
        "writes, so this is no speed: compare it beside the length of the result.",
    ),
    Metric(
        "task_output_characters",
        "Length of the task's result",
        "result",
        "character",
        None,
        "Characters (Unicode code points) of the whole result.",
    ),
    Metric(
        "task_load_s",
        "Load time of the task",
        "load",
        "s",
        "lower",
        "From creating the task to its being ready for its first text, in a process that runs "
        "nothing but tasks; importing the framework is no part of it.",
    ),
    Metric(
        "duration_s",
        "Time of a call",
        "time",
        "s",
        "lower",
        "Of a benchmark that another tool made: how long one call took; where a round held several "
        "calls, their mean in that round.",
    ),
    Metric(
        "peak_rss_bytes",
        "Peak memory",
        "peak mem",
        "byte",
        "lower",
        "The most physical memory that the system counted for the runner's process (VmHWM), "
        "mapped weights that were touched included.",
    ),
    Metric(
        "peak_anon_bytes",
        "Peak memory, anonymous",
        "anonymous",
        "byte",
        "lower",
        "The anonymous part at the peak: what the process allocated, and can't be dropped.",
    ),
    Metric(
        "peak_file_bytes",
        "Peak memory, file-backed",
        "file-backed",
        "byte",
        "lower",
        "The file-backed part at the peak: mapped weights and libraries, which the system may "
        "drop and read again.",
    ),
    Metric(
        "peak_shared_bytes",
        "Peak memory, shared",
        "shared",
        "byte",
        "lower",
        "The shared-memory part at the peak (tmpfs and shared anonymous pages).",
    ),
    Metric(
        "peak_pss_bytes",
        "Peak memory, proportional",
        "PSS",
        "byte",
        "lower",
        "Proportional set size: pages shared by n processes count for one n-th.",
    ),
    Metric(
        "baseline_rss_bytes",
        "Memory before loading",
        "baseline",
        "byte",
        "lower",
        "Physical memory of the runner's process before it loaded the model: the interpreter and "
        "the framework's libraries.",
    ),
    Metric(
        "model_bytes",
        "Model size",
        "model",
        "byte",
        "lower",
        "Bytes on disk of everything that the framework reads to run the model.",
    ),
    Metric(
        "bits_per_weight",
        "Bits per weight",
        "bits/weight",
        "bit",
        "lower",
        "8 x model size / number of parameters.",
    ),
    Metric(
        "weight_bytes_per_token",
        "Weights read per token",
        "read/token",
        "byte",
        "lower",
        "Bytes of weights that decoding one token reads, each once, as the runner counts them in "
        "its artifact: an embedding of which one row is read counts with that row.",
    ),
    Metric(
        "kv_bytes_per_token",
        "KV cache read per token",
        "KV/token",
        "byte",
        "lower",
        "Bytes of cached keys and values that decoding one token reads, the mean over the tokens "
        "generated: 2 x layers x KV heads x head size x bytes of the cache's type x tokens in the "
        "cache.",
    ),
    Metric(
        "mbu",
        "Memory bandwidth utilization",
        "MBU",
        "1",
        None,
        "(Weights + KV cache read per token) x decode rate / the bandwidth measured on the same "
        "machine with as many threads. Where the KV cache is not known, of the weights alone: the "
        "true share is higher then.",
    ),
    Metric(
        "perplexity",
        "Perplexity",
        "PPL",
        "1",
        "lower",
        "exp(- mean log-likelihood of the scored tokens), with the same token ids at the same "
        "positions for every framework. Comparable only where text, tokens and protocol are the "
        "same. The interval is that of resampled windows.",
    ),
    Metric(
        "perplexity_ratio",
        "Perplexity / that of the reference",
        "PPL ratio",
        "1",
        "lower",
        "Perplexity divided by that of the source's weights in float32, on the same windows. The "
        "interval resamples pairs of windows.",
    ),
    Metric(
        "bits_per_byte",
        "Bits per byte",
        "bits/byte",
        "bit/byte",
        "lower",
        "- sum of the scored tokens' log2-likelihoods / UTF-8 bytes of the text that they stand "
        "for: comparable across tokenizers, on the same text.",
    ),
    Metric(
        "kl_divergence",
        "KL divergence",
        "KL",
        "nat",
        "lower",
        "Mean of KL(reference || variant) over the scored positions, in nat; the reference is the "
        "source's weights in float32. Over the reference's likeliest tokens it is exact, over all "
        "others estimated without bias from samples of them, the same for all variants.",
    ),
    Metric(
        "kl_divergence_p99",
        "KL divergence, p99",
        "KL p99",
        "nat",
        "lower",
        "The value that 99 % of the scored positions stay below.",
    ),
    Metric(
        "top1_agreement",
        "Top-1 agreement",
        "top-1",
        "1",
        "higher",
        "Share of the scored positions where the likeliest token is the reference's.",
    ),
    Metric(
        "scoring_rate",
        "Scoring rate",
        "scored",
        "token/s",
        None,
        "Tokens of the windows taken in, scored or not, / time from asking for scores to having "
        "them. No measure of a framework: many score in ways that nobody runs a model.",
    ),
    Metric(
        "energy_per_token_j",
        "Energy per token",
        "J/token",
        "J/token",
        "lower",
        "Energy of the decode window divided by the tokens produced in it: a cumulative counter, "
        "interpolated at the window's edges. Idle power is not taken off.",
    ),
    Metric(
        "prefill_energy_j",
        "Prefill energy",
        "prefill J",
        "J",
        "lower",
        "Energy from handing the prompt over to the first token.",
    ),
    Metric(
        "decode_energy_j",
        "Decode energy",
        "decode J",
        "J",
        "lower",
        "Energy from the first token to the last.",
    ),
    Metric(
        "idle_power_w",
        "Idle power",
        "idle W",
        "W",
        "lower",
        "Mean power of the same meter before each block, with nothing of ours running.",
    ),
    Metric(
        "mean_power_w",
        "Mean power",
        "power",
        "W",
        "lower",
        "Energy divided by time over the same window, idle power included.",
    ),
    Metric(
        "power_above_idle_w",
        "Power above idle",
        "above idle",
        "W",
        "lower",
        "Mean power less the idle power that the same meter showed before the block.",
    ),
    Metric(
        "sustained_power_w",
        "Sustained power",
        "last power",
        "W",
        "lower",
        "Mean power over the last minute of sustained work, or its last tenth, prefills included.",
    ),
    Metric(
        "rate_per_watt",
        "Decode rate per watt",
        "tokens/s/W",
        "token/s/W",
        "higher",
        "Decode rate divided by mean power over the same window.",
    ),
    Metric(
        "cpu_time_s",
        "CPU time",
        "CPU time",
        "s",
        "lower",
        "User and system time of the runner's process tree over the generation.",
    ),
    Metric(
        "minor_faults",
        "Minor page faults",
        "minor faults",
        "1",
        "lower",
        "Page faults served without reading from disk.",
    ),
    Metric(
        "major_faults",
        "Major page faults",
        "major faults",
        "1",
        "lower",
        "Page faults that had to read from disk: more than a few mean that the weights did not "
        "stay in memory.",
    ),
    Metric(
        "voluntary_switches",
        "Voluntary context switches",
        "vol. switches",
        "1",
        None,
        "How often a thread of the runner gave up the CPU by itself, to wait.",
    ),
    Metric(
        "involuntary_switches",
        "Involuntary context switches",
        "invol. switches",
        "1",
        "lower",
        "How often a thread of the runner was taken off the CPU: many mean that something else "
        "wanted it.",
    ),
    Metric(
        "others_cpus",
        "CPUs busy with other processes",
        "others' CPUs",
        "1",
        "lower",
        "How many of the CPUs that the runner may use all other processes kept busy meanwhile, the "
        "harness itself among them: 1 is one whole CPU. From the kernel's account of these CPUs, "
        "over half a second and more.",
    ),
    Metric(
        "cpu_clock_hz",
        "CPU clock",
        "clock",
        "Hz",
        None,
        "Mean clock of the CPUs that the runner may use, over the generation.",
    ),
    Metric(
        "cpu_temperature_celsius",
        "CPU temperature",
        "temp.",
        "°C",
        None,
        "The hottest reading of the CPU's sensors during the generation.",
    ),
    Metric(
        "start_temperature_celsius",
        "Temperature at the start",
        "start temp.",
        "°C",
        None,
        "The hottest reading of the CPU's sensors when the block began, after cooling down.",
    ),
    Metric(
        "cooldown_wait_s",
        "Time of cooling down",
        "cool-down",
        "s",
        None,
        "How long it was waited before the block, until the device was cool or a limit of time.",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({each.key: each for each in _ALL})
"""Every metric by its key, in the order in which reports list them."""


def metric(key: str) -> Metric:
    """Look a metric up; never fails.

    Args:
        key: a key of `METRICS`, one with ``engine_`` before it, or any other name.

    Returns:
        The metric. A key that nobody knows gets a readable label, no unit and no direction.
    """
    known = METRICS.get(key)
    if known is not None:
        return known
    own = METRICS.get(key.removeprefix(ENGINE_PREFIX)) if key.startswith(ENGINE_PREFIX) else None
    if own is not None:
        return replace(
            own,
            key=key,
            label=f"{own.label}, by the engine",
            short=f"{own.short} (engine)",
            definition=f"As the framework itself reports it. Our own definition: {own.definition}",
        )
    readable = key.replace("_", " ").strip() or key
    return Metric(key, readable, readable, "", None, "A metric that this edgebench does not know.")
