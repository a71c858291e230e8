"""How the figures were made, in words: the protocol, the statistics, the definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import METRICS, metric
from edgebench.harness.metrics.statistics import MIN_BLOCKS, RESAMPLES
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.quality.figures import RESAMPLES as QUALITY_RESAMPLES
from edgebench.reports.data import MEMORY_PARTS
from edgebench.reports.format import counted, duration, percent, scale_for
from edgebench.reports.quality import QUALITY_KEYS
from edgebench.reports.table import ALWAYS, WHERE_MEASURED
from edgebench.reports.tasks import TASK_KEYS

if TYPE_CHECKING:
    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import ReportData

QUALITY = frozenset((*QUALITY_KEYS, "bits_per_weight", "weight_bytes_per_token"))
COMPARED = frozenset((*ALWAYS, *WHERE_MEASURED, *MEMORY_PARTS, *TASK_KEYS))

SOURCES = (
    ("observed", "our own clock, or the kernel's own accounting"),
    ("engine", "the framework reported it"),
    ("derived", "computed from other values"),
    ("estimated", "from a model, not from a measurement"),
)


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric of the report.

    Attributes:
        key: the metric's key in the result files.
        label: its name for people.
        unit: the unit it is stored in, written out.
        sources: who said its values in this run; empty where it has none.
        definition: what exactly was measured.
        compared: whether the comparison or a picture shows it.
    """

    key: str
    label: str
    unit: str
    sources: tuple[str, ...]
    definition: str
    compared: bool


def method(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """The protocol of the run, as (subject, sentences)."""
    protocol = record.protocol
    order = (
        f"The variants are interleaved in blocks, in an order drawn at random (seed {record.seed}),"
        " so that drift of the machine meets all of them alike."
        if protocol.interleave
        else f"One variant after the other, not interleaved (seed {record.seed}): drift of the "
        "machine meets the later ones only."
    )
    pause = f", {duration(protocol.cooldown_s)} apart" if protocol.cooldown_s else ""
    repetitions = counted(protocol.per_block, "measured repetition")
    rates = any(workload.quality for workload in record.workloads)
    timed = not rates or any(workload.quality is None for workload in record.workloads)
    texts = {
        "Prompts": (
            "Every variant gets the same token ids, of exactly the stated length, and makes "
            "exactly the stated number of tokens, greedily, past any end of text. Each "
            "generation starts from an empty KV cache, filled to the workload's depth."
        ),
        "Processes": (
            "Each framework runs in a process of its own, started fresh for each block"
            f"{pause}. A block holds {repetitions} of each workload. Time stamps are taken "
            "inside of that process."
        ),
        "Order": order,
        "Warm-up": (
            f"At least {protocol.warmup_min} and at most {protocol.warmup_max} in each process, "
            f"until two in a row differ by at most {percent(protocol.warmup_stable_within)}. "
            "Warm-ups are kept in the files and count in no figure."
        ),
        "Repetitions": (
            f"At least {protocol.min_repetitions} and at most {protocol.max_repetitions}, until "
            f"half of the 95 % interval is at most {percent(protocol.ci_half_width)} of the "
            f"median, or until the time budget of {duration(protocol.time_budget_s)} ends."
        ),
        "Median and interval": (
            "A value is the median over the measured repetitions. The brackets hold its 95 % "
            f"interval: a percentile bootstrap over blocks, {RESAMPLES} resamples, from "
            f"{MIN_BLOCKS} blocks on. The interval also decides how many digits are shown."
        ),
        "Comparing": (
            "Two variants whose intervals overlap are reported as not told apart. Ratios are "
            "the median of the ratios within blocks. A cell whose standard deviation is more "
            f"than {percent(protocol.max_cv)} of its mean is marked noisy."
        ),
        "Not measured": "A dash, with the reason below the table; never 0.",
        "Time limit": (
            f"A call that takes longer than {duration(protocol.timeout_s)} is stopped and "
            "counts as a failure, which is a row of its own."
        ),
    }
    if any(workload.task for workload in record.workloads):
        texts["Tasks"] = (
            "A whole task gets its text as it is and ends by itself. It runs in processes that do "
            "nothing else, with the same warm-up and repetitions, judged by its latency."
        )
    if not timed:
        texts = {subject: texts[subject] for subject in ("Not measured", "Time limit")}
    if rates:
        texts["Quality"] = (
            f"{'Before anything is timed, each' if timed else 'Each'} framework rates the windows "
            "of a text, in a process of its own: the same token ids at the same positions, cut to "
            "the same number of windows where the time budget of "
            f"{duration(protocol.time_budget_s)} is short. Intervals resample windows "
            f"({QUALITY_RESAMPLES} times, from {MIN_WINDOWS} windows on) and are widened where "
            "there are few. Two variants are compared window by window."
        )
    return tuple(texts.items())


def definitions(data: ReportData) -> tuple[Definition, ...]:
    """Every metric that the run says something about, in the usual order, unknown ones last."""
    sources: dict[str, dict[str, None]] = {key: {} for key in data.metric_keys}
    units: dict[str, str] = {}
    summaries = [cell.metrics for cell in data.cells.values()] + list(data.by_variant.values())
    for metrics in summaries:
        for key, summary in metrics.items():
            units.setdefault(key, summary.unit)
            if summary.median is not None:
                sources[key][summary.source] = None
    known = [key for key in METRICS if key in sources]
    others = sorted(key for key in sources if key not in METRICS)
    compared = COMPARED | QUALITY if data.quality_names else COMPARED
    return tuple(
        Definition(
            key=key,
            label=metric(key).label,
            unit=scale_for(units[key], [1.0]).unit,
            sources=tuple(sources[key]),
            definition=metric(key).definition,
            compared=key in compared,
        )
        for key in (*known, *others)
    )


def where_the_time_went(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """The run's wall time in its parts; empty where the run did not finish."""
    spent = record.accounting
    if spent is None:
        return ()
    rates = any(workload.quality for workload in record.workloads)
    return (
        ("All of it", duration(spent.wall_s)),
        ("Preparing models", duration(spent.prepare_s)),
        *((("Rating texts", duration(spent.quality_s)),) if rates else ()),
        ("Starting processes", duration(spent.start_s)),
        ("Loading", duration(spent.load_s)),
        ("Warming up", duration(spent.warmup_s)),
        ("Measuring", duration(spent.measured_s)),
        ("Cooling down", duration(spent.cooldown_s)),
        ("Everything else", duration(spent.overhead_s)),
    )
