"""Words of the HTML page that are no template's: of its script, and of values with few cases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from edgebench.reports.languages import N_, _, plural

if TYPE_CHECKING:
    from edgebench.harness.results.model import WorkloadRecord

_FINDINGS = {
    "supports": N_("✓ for"),
    "contradicts": N_("✗ against"),
    "fails": N_("✗ limit missed"),
    "lacks": N_("✗ lacks"),
    "failed": N_("✗ failed"),
    "unknown": N_("? unknown"),
    "note": N_("· note"),
}
_GIVEN_BY = {
    "scenario": N_("(says the scenario)"),
    "command line": N_("(says the command line)"),
    "terminal": N_("(answered at the terminal)"),
}
_MESSAGES = {
    "filter": N_("Filter rows"),
    "rows": N_("{shown} of {all} rows"),
    "first": N_("The first {shown} of {all} rows are shown."),
    "all_rows": N_("Show all"),
    "columns": N_("Columns"),
    "shown_columns": N_("Columns that are shown"),
    "copy": N_("Copy"),
    "copy_as": N_("Copy {table} as {form}"),
    "copied": N_("Copied {count} rows as {form}."),
    "not_copied": N_("The browser refused to copy."),
    "interval": N_("95 % interval"),
    "labelled": N_("{label}, {unit}"),
    "with_unit": N_("{label} ({unit})"),
    "in_brackets": N_("({text})"),
    "comma": N_(", "),
    "semicolon": N_("; "),
    "colon": N_(": "),
    "engine": N_("Engine"),
    "remarks": N_("Remarks"),
    "notes": N_("Notes"),
    "low": N_("low"),
    "high": N_("high"),
    "close": N_("Close"),
    "workload": N_("Workload"),
    "metric": N_("Metric"),
    "median": N_("Median"),
    "least": N_("Min"),
    "most": N_("Max"),
    "variation": N_("SD / mean"),
    "why": N_("Source, or why not"),
    "all_metrics": N_("All metrics on {workload}"),
    "samples": N_("Samples: {metric}"),
    "samples_1": N_("Loads of the model: {metric}"),
    "samples_2": N_("Windows of the text: {metric}"),
    "no_samples": N_("{metric}: no samples of single repetitions."),
    "no_samples_1": N_("{metric}: no samples of single loads."),
    "no_samples_2": N_("{metric}: no values of single windows in this page."),
    "same_samples": N_("All {count} repetitions: {value}."),
    "same_samples_1": N_("All {count} loads: {value}."),
    "same_samples_2": N_("All {count} windows: {value}."),
    "picture": N_("{count} samples in the order of the run, from {least} to {most}."),
    "picture_2": N_("{count} values in the order of the text, from {least} to {most}."),
    "by_block": N_("Samples by block"),
    "by_block_2": N_("Values by window"),
    "block": N_("Block"),
    "block_2": N_("Windows"),
    "values": N_("Values, in the order of the repetitions"),
    "values_1": N_("Values, in the order of the loads"),
    "values_2": N_("Values, in the order of the text"),
    "order": N_("repetitions, block by block"),
    "order_1": N_("loads, block by block"),
    "order_2": N_("windows, in the order of the text"),
    "failure": N_("It {what}."),
    "log": N_("The end of its log"),
    "options": N_("Options in effect"),
    "no_options": N_("As every variant; see Options in effect."),
    "file": N_("Model file"),
}


def messages_json() -> str:
    """What the page's script says, by key, as JSON for a script element."""
    texts = {key: _(text) for key, text in _MESSAGES.items()}
    return json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")


def quoted() -> dict[str, str]:
    """Origins of values that nobody measured here, in words."""
    return {"published": _("published"), "judgement": _("judgement")}


def given_by(who: str) -> str:
    """Who answered a question of a decision tree."""
    return _(_GIVEN_BY[who]) if who in _GIVEN_BY else _("({text})", text=_(who))


def finding_words(kind: str) -> str:
    """What a finding does to a framework's case, with a sign."""
    return _(_FINDINGS[kind]) if kind in _FINDINGS else kind


def workload_text(workload: WorkloadRecord) -> str:
    """What a workload asks of a variant, as a sentence."""
    if workload.task:
        return _("The task {task}.", task=workload.task)
    if workload.quality:
        return _("The text {text}, which is rated.", text=workload.quality.text)
    made = plural(
        "{count} token generated", "{count} tokens generated", workload.generate_tokens or 0
    )
    given = workload.prompt_tokens
    if given is not None:
        prompt = plural("{count} prompt token", "{count} prompt tokens", given)
        made = _("{prompt}, {made}", prompt=prompt, made=made)
    if workload.depth:
        return _(
            "{made}, after {count} tokens already in the cache.", made=made, count=workload.depth
        )
    return _("{made}.", made=made)
