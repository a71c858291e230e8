"""How the figures of an Android device were made, in words: by frameworks' own benchmark tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import N_, _

if TYPE_CHECKING:
    from edgebench.harness.results.model import ProtocolRecord, RunRecord
    from edgebench.reports.data import ReportData

_TOLD = {
    "decode_rate": N_(
        "As the framework's own tool counts it: the tokens that it was asked for, the first one "
        "included, divided by the time that it gives for them, after the prompt."
    ),
    "tpot_s": N_("One divided by the decode rate that the framework's own tool tells."),
    "prefill_rate": N_(
        "As the framework's own tool counts it: the prompt's tokens divided by the time that it "
        "gives for them."
    ),
    "prefill_s": N_("The time that the framework's own tool gives for the prompt."),
    "ttft_s": N_(
        "As the framework's own tool tells it: LiteRT-LM's adds the time of the prefill and a "
        "mean step of decoding."
    ),
    "load_s": N_("The time that the framework's own tool gives for loading."),
}
"""What tools mean by metrics, by key."""

_PEAK = "peak_rss_bytes"
_PEAK_THERE = N_(
    "The most physical memory that the kernel counted for the tool's process (ru_maxrss, read by "
    "time -v on the device), mapped weights that were touched included."
)


def by_tools(record: RunRecord) -> bool:
    """Whether frameworks' own tools made all figures of a run."""
    return record.device is not None and record.device.reach == "adb"


def told_by_tools(data: ReportData) -> tuple[str, ...]:
    """Variants whose speed a framework's own tool told, and nobody checked."""
    return tuple(
        variant
        for variant in data.variant_ids
        if any(
            summary.source == "engine" and summary.median is not None
            for workload in data.workload_names
            for key in ("decode_rate", "prefill_rate")
            if (summary := data.summary(workload, variant, key)) is not None
        )
    )


def tool_definition(key: str, *, told: bool) -> str:
    """What a metric of an Android device is; empty where it is as everywhere.

    Args:
        key: the metric's.
        told: whether a tool told its values.
    """
    if told and key in _TOLD:
        return _(_TOLD[key])
    if told:
        return _("As the framework's own tool tells it.")
    return _(_PEAK_THERE) if key == _PEAK else ""


def tool_prompts() -> str:
    """What tools take for prompts."""
    return _(
        "Each framework's own tool makes up a prompt of exactly the stated length, and is asked "
        "for the stated number of tokens after it. Which tokens they are is not told, and they are "
        "not the same for all."
    )


def tool_processes() -> str:
    """How tools are started."""
    return _(
        "The tools run on the device, started anew in each block: llama-bench once for the prompt "
        "and once for the generation, with all repetitions of the block; llm_bench and "
        "litert_lm_main once for each repetition. They time themselves: edgebench takes no time "
        "stamps there, and keeps what they print as the source “engine”."
    )


def tool_warmup(protocol: ProtocolRecord) -> str:
    """How often tools warm up."""
    return _(
        "{count} of each workload in each block, whether or not they differ, beside what a tool "
        "does by itself. Warm-ups are kept in the files and count in no figure.",
        count=protocol.warmup_min,
    )
