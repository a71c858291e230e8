"""What to take, in a sentence or two: who says so, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.failures import LOADING
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.sentences import Name, Sentence, fill, joined
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.view import Evidence, Measured, Walk

TESTING: Final = "fake"
"""The runner that is there for tests, and is no framework."""

_AGREED: Final = {
    "sure": N_(
        "Take {framework}: the decision tree {tree} leads there, and the measurements agree."
    ),
    "tie": N_(
        "Take {framework}: the decision tree {tree} leads there, and it comes first in the "
        "measurements too, though these can't tell it apart from all others."
    ),
    "unsure": N_(
        "The decision tree {tree} leads to {framework}, and it comes first in the measurements "
        "too; these are too few to be sure."
    ),
    "alone": N_(
        "The decision tree {tree} leads to {framework}; the measurements hold nothing else that "
        "meets the needs."
    ),
}
_DIFFERENT: Final = {
    "sure": N_(
        "The decision tree {tree} leads to {framework}, but the measurements favour {measured} "
        "({variant})."
    ),
    "tie": N_(
        "The decision tree {tree} leads to {framework}; in the measurements {measured} "
        "({variant}) comes first, though not beyond doubt."
    ),
    "unsure": N_(
        "The decision tree {tree} leads to {framework}; in the measurements {measured} "
        "({variant}) comes first, but these are too few to be sure."
    ),
    "alone": N_(
        "The decision tree {tree} leads to {framework}; the only one measured that meets the "
        "needs is {measured} ({variant})."
    ),
}
_UNDECIDED: Final = {
    "sure": N_("The measurements favour {measured} ({variant})."),
    "tie": N_("In the measurements {measured} ({variant}) comes first, though not beyond doubt."),
    "unsure": N_(
        "In the measurements {measured} ({variant}) comes first, but these are too few to be sure."
    ),
    "alone": N_("The only one measured that meets the needs is {measured} ({variant})."),
}


def headline(
    data: ReportData | None,
    walks: Sequence[Walk],
    measured: Measured | None,
    found: Sequence[Evidence],
) -> Sentence:
    """What to take.

    Args:
        data: the run; None where nothing was measured.
        walks: the trees, those with a recommendation first.
        measured: the answer of the measurements.
        found: what is known of each framework.
    """
    first = next((each for each in walks if each.recommendation), None)
    if first is None:
        return joined(filter(None, (_open(walks), _of_measurements(measured))))
    parts = [_of_tree(data, first, measured, found)]
    parts += [
        fill(
            "The decision tree {tree} leads to {framework}.",
            tree=Name(each.name),
            framework=framework_name(each.recommendation),
        )
        for each in walks
        if each.recommendation and each.recommendation != first.recommendation
    ]
    return joined(parts)


def _of_tree(
    data: ReportData | None, first: Walk, measured: Measured | None, found: Sequence[Evidence]
) -> Sentence:
    runner = first.recommendation
    fields = {"tree": Name(first.name), "framework": framework_name(runner)}
    if data is None:
        if not first.document:
            message = N_(
                "The decision tree {tree} leads to {framework}; no measurements were given."
            )
            return fill(message, **fields)
        message = N_(
            "The decision tree {tree} leads to {framework}. No measurements were given, so that "
            "this is its document's judgement alone."
        )
        return fill(message, **fields)
    # A runner may have driven two engines, of which one failed.
    of_it = [each for each in found if each.runner == runner]
    own = next((each for each in of_it if each.ran), None)
    if own is None:
        return joined(filter(None, (_absent(data, runner, fields), _of_measurements(measured))))
    stand_in = _stand_in(own, runner)
    if failed := _failed_somewhere(data, runner, fields):
        return joined(filter(None, (failed, stand_in, _of_measurements(measured))))
    if own.meets_limits is False:
        fails = fill(
            "The decision tree {tree} leads to {framework}, but no variant of it that was "
            "measured meets the limits.",
            **fields,
        )
        return joined(filter(None, (fails, stand_in, _of_measurements(measured))))
    return joined(filter(None, (_compared(runner, measured, own, fields), stand_in)))


def _compared(
    runner: str, measured: Measured | None, own: Evidence, fields: dict[str, object]
) -> Sentence:
    if measured is None or not measured.recommendation:
        message = N_(
            "The decision tree {tree} leads to {framework}; the measurements name nothing that is "
            "known to meet the needs."
        )
        return fill(message, **fields)
    if measured.recommendation == runner:
        # What is not known to meet the limits is not to be taken without a second look.
        if own.meets_limits is None and measured.certainty == "sure":
            message = N_(
                "The decision tree {tree} leads to {framework}, and it comes first in the "
                "measurements too; whether it meets all limits is not known."
            )
            return fill(message, **fields)
        return fill(_AGREED[measured.certainty], **fields)
    if measured.recommendation == TESTING:
        message = N_(
            "The decision tree {tree} leads to {framework}; besides it only the testing runner "
            "was measured, which is no framework."
        )
        return fill(message, **fields)
    return fill(_DIFFERENT[measured.certainty], **fields, **_measured(measured))


def _absent(data: ReportData, runner: str, fields: dict[str, object]) -> Sentence:
    """That a recommended framework has no values here, and why."""
    variants = {each.id for each in data.record.variants if each.runner == runner}
    if not variants:
        message = N_("The decision tree {tree} leads to {framework}, which was not measured here.")
        return fill(message, **fields)
    failure = next((each for each in data.failures if each.variant in variants), None)
    if failure is None:
        message = N_(
            "The decision tree {tree} leads to {framework}, but nothing was measured of it here."
        )
        return fill(message, **fields)
    if LOADING in failure.where:
        message = N_(
            "The decision tree {tree} leads to {framework}, but {framework} failed to run here, "
            "while loading the model: {reason}"
        )
    else:
        message = N_(
            "The decision tree {tree} leads to {framework}, but {framework} failed to run here: "
            "{reason}"
        )
    return fill(message, **fields, reason=_full_stop(failure.message))


def _failed_somewhere(data: ReportData, runner: str, fields: dict[str, object]) -> Sentence:
    """That no variant of a framework came through all workloads; empty where one did."""
    failures = []
    for variant in data.record.variants:
        if variant.runner != runner:
            continue
        cells = (data.cell(workload.name, variant.id) for workload in data.record.workloads)
        failed = [each for each in cells if each.failure is not None and not each.n]
        if not failed:
            return ()
        failures += failed
    if not failures or failures[0].failure is None:
        return ()
    message = N_(
        "The decision tree {tree} leads to {framework}, but {framework} failed here on "
        "{workload}: {reason}"
    )
    reason = _full_stop(failures[0].failure.message)
    return fill(message, **fields, workload=Name(failures[0].workload), reason=reason)


def _stand_in(own: Evidence, runner: str) -> Sentence:
    """That what was measured under a framework's runner is not that framework's own engine."""
    if own.framework == framework_name(runner):
        return ()
    return fill(
        "What was measured for it here is {measured}, whose figures are not those of {framework}.",
        measured=Name(own.framework),
        framework=framework_name(runner),
    )


def _of_measurements(measured: Measured | None) -> Sentence:
    if measured is None or not measured.recommendation:
        return fill("The measurements name nothing that meets the needs.") if measured else ()
    if measured.recommendation == TESTING:
        return fill("Only the testing runner was measured, which is no framework.")
    return fill(_UNDECIDED[measured.certainty], **_measured(measured))


def _measured(measured: Measured) -> dict[str, object]:
    return {"measured": Name(measured.framework), "variant": Name(measured.variant)}


def _open(walks: Sequence[Walk]) -> Sentence:
    asked = next((each for each in walks if each.open is not None), None)
    if asked is None or asked.open is None:
        return ()
    return fill(
        "The decision tree {tree} is open at its question “{question}”.",
        tree=Name(asked.name),
        question=asked.open.question,
    )


def _full_stop(text: str) -> str:
    """A failure's message as the end of a sentence, in the language of the report where known."""
    ended = recorded(text).rstrip()
    return one_line(ended if ended.endswith((".", "!", "?", "。")) else f"{ended}.")
