"""What to take, in a sentence or two: who says so, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from edgebench.reports.failures import LOADING
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.selection.headline_measured import (
    certainty,
    is_alone,
    of_measurements,
    reservations,
)
from edgebench.reports.selection.naming import named
from edgebench.reports.sentences import Name, fill, joined
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.view import Evidence, Measured, Walk
    from edgebench.reports.sentences import Sentence

Fields: TypeAlias = dict[str, object]

_LEADS: Final = N_("The decision tree {tree} leads to {framework}.")
_AGREED: Final = {
    "sure": N_(
        "Take {framework}: the decision tree {tree} leads there, and the measurements agree."
    ),
    "framework": N_(
        "Take {framework}: the decision tree {tree} leads there, and the measurements agree; which "
        "of its variants comes first is not certain."
    ),
    "tie": N_(
        "Take {framework}: the decision tree {tree} leads there, and it comes first in the "
        "measurements too, though these can't tell it apart from all others."
    ),
    "unsure": N_(
        "The decision tree {tree} leads to {framework}, and it comes first in the measurements "
        "too; these are too few to be sure."
    ),
}
_DIFFERENT: Final = {
    "sure": N_(
        "The decision tree {tree} leads to {framework}, but the measurements favour {named}."
    ),
    "tie": N_(
        "The decision tree {tree} leads to {framework}; in the measurements {named} comes "
        "first, though not beyond doubt."
    ),
    "unsure": N_(
        "The decision tree {tree} leads to {framework}; in the measurements {named} comes "
        "first, but these are too few to be sure."
    ),
}


def headline(
    data: ReportData | None,
    walks: Sequence[Walk],
    measured: Measured | None,
    found: Sequence[Evidence],
    requirements: Requirements,
) -> Sentence:
    """What to take.

    Args:
        data: the run; None where nothing was measured.
        walks: the trees, those with a recommendation first.
        measured: the answer of the measurements; None where there are none.
        found: what is known of each framework.
        requirements: what was asked for.
    """
    first = next((each for each in walks if each.recommendation), None)
    answer: Sentence = ()
    if data is not None and measured is not None:
        told = framework_name(first.recommendation) if first else ""
        answer = of_measurements(data, measured, found, requirements, told=told)
    if first is None:
        return joined(filter(None, (_open(walks), answer)))
    if data is None or measured is None:
        parts = [_of_document(first)]
    else:
        parts = [_of_tree(data, first, measured, found, requirements, answer)]
    parts += [
        fill(_LEADS, tree=Name(each.name), framework=framework_name(each.recommendation))
        for each in walks
        if each.recommendation and each.recommendation != first.recommendation
    ]
    return joined(parts)


def _of_document(first: Walk) -> Sentence:
    fields = {"tree": Name(first.name), "framework": framework_name(first.recommendation)}
    if not first.document:
        message = N_("The decision tree {tree} leads to {framework}; no measurements were given.")
        return fill(message, **fields)
    message = N_(
        "The decision tree {tree} leads to {framework}. No measurements were given, so that "
        "this is its document's judgement alone."
    )
    return fill(message, **fields)


def _of_tree(
    data: ReportData,
    first: Walk,
    measured: Measured,
    found: Sequence[Evidence],
    requirements: Requirements,
    answer: Sentence,
) -> Sentence:
    runner = first.recommendation
    fields = {"tree": Name(first.name), "framework": framework_name(runner)}
    # A runner may have driven two engines, of which one failed.
    of_it = [each for each in found if each.runner == runner]
    own = next((each for each in of_it if each.ran), None)
    if own is None:
        return joined((_absent(data, runner, fields), answer))
    stand_in = _stand_in(own, runner)
    if failed := _partly(data, runner, of_it, fields):
        return joined(filter(None, (failed, stand_in, answer)))
    if own.meets_limits is False:
        fails = fill(
            "The decision tree {tree} leads to {framework}, but no variant of it that was "
            "measured meets the limits.",
            **fields,
        )
        return joined(filter(None, (fails, stand_in, answer)))
    # Of one framework alone no measurement agrees or differs; and no figure of another engine's.
    agrees = measured.recommendation == runner
    if not measured.recommendation or is_alone(measured) or (agrees and stand_in):
        return joined(filter(None, (fill(_LEADS, **fields), stand_in, answer)))
    return joined(
        filter(
            None,
            (
                _compared(measured, fields, agrees=agrees),
                stand_in,
                *reservations(measured, requirements),
            ),
        )
    )


def _compared(measured: Measured, fields: Fields, *, agrees: bool) -> Sentence:
    kind = certainty(measured)
    if agrees:
        return fill(_AGREED[kind], **fields)
    message = _DIFFERENT["sure" if kind == "framework" else kind]
    names = {"named": named(measured)}
    return fill(message, **fields, **names)


def _absent(data: ReportData, runner: str, fields: Fields) -> Sentence:
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


def _partly(data: ReportData, runner: str, of_it: Sequence[Evidence], fields: Fields) -> Sentence:
    """That no variant of a framework came through all workloads; empty where one did."""
    if any(each.state == "measured" for each in of_it):
        return ()
    cells = (
        data.cell(workload.name, variant.id)
        for variant in data.record.variants
        if variant.runner == runner
        for workload in data.record.workloads
    )
    for cell in cells:
        if cell.failure is not None and not cell.n:
            message = N_(
                "The decision tree {tree} leads to {framework}, but {framework} failed here on "
                "{workload}: {reason}"
            )
            reason = _full_stop(cell.failure.message)
            return fill(message, **fields, workload=Name(cell.workload), reason=reason)
    return fill(
        "The decision tree {tree} leads to {framework}, of which not every workload was run here.",
        **fields,
    )


def _stand_in(own: Evidence, runner: str) -> Sentence:
    """That what was measured under a framework's runner is not that framework's own engine."""
    if own.framework == framework_name(runner):
        return ()
    return fill(
        "What was measured for it here is {measured}, whose figures are not those of {framework}.",
        measured=Name(own.framework),
        framework=framework_name(runner),
    )


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
    return one_line(ended if ended.endswith((".", "!", "?", "。")) else ended + _("."))
