"""What the measurements say of a choice, in a sentence or two for the headline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.colours import framework_key
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import commas
from edgebench.reports.selection.goals import shared_workloads
from edgebench.reports.selection.naming import named
from edgebench.reports.sentences import Name, fill, joined, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.view import Evidence, Measured
    from edgebench.reports.sentences import Sentence

TESTING: Final = "fake"
"""The runner that is there for tests, and is no framework."""

_POSSIBLE: Final = 0.025
"""Share of resamples above which a variant may be the best one."""

_FAVOURED: Final = {
    "sure": N_("The measurements favour {named}."),
    "framework": N_(
        "The measurements favour {measured}; which of its variants comes first is not certain, "
        "here {variant} does."
    ),
    "tie": N_("In the measurements {named} comes first, though not beyond doubt."),
    "unsure": N_("In the measurements {named} comes first, but these are too few to be sure."),
}
_OF_VARIANTS: Final = {
    "sure": N_("{lead}; of its variants {variant} comes first."),
    "tie": N_("{lead}; of its variants {variant} comes first, though not beyond doubt."),
    "unsure": N_(
        "{lead}; of its variants {variant} comes first, but these measurements are too few to be "
        "sure."
    ),
}


def of_measurements(
    data: ReportData,
    measured: Measured,
    found: Sequence[Evidence],
    requirements: Requirements,
    *,
    told: str = "",
) -> Sentence:
    """What the measurements recommend and how sure that is, or why they recommend nothing.

    Args:
        data: the run, or several combined.
        measured: the answer of the measurements.
        found: what is known of each framework.
        requirements: the user's limits and weights.
        told: a framework of which the headline says already that it failed.
    """
    if only_testing(data):
        return fill("Only the testing runner was measured, which is no framework.")
    if not measured.recommendation:
        return _nothing(data, measured)
    if is_alone(measured):
        said = _of_one(data, measured, found, told)
    else:
        message = _FAVOURED[certainty(measured)]
        variant = Name(measured.variant)
        framework = Name(measured.framework)
        said = fill(message, measured=framework, variant=variant, named=named(measured))
    return joined(filter(None, (said, *reservations(measured, requirements))))


def only_testing(data: ReportData) -> bool:
    """Whether nothing but the testing runner ran."""
    return all(each.runner == TESTING for each in data.record.variants)


def is_alone(measured: Measured) -> bool:
    """Whether all that is left to choose from is of one framework."""
    return len({each.framework for each in measured.candidates}) < 2  # noqa: PLR2004 - two to compare


def certainty(measured: Measured) -> str:
    """How sure the first place is: ``sure``, ``tie``, ``unsure``, or ``framework``.

    The last is a tie between variants of one framework: no doubt which framework to take.
    """
    if measured.certainty != "tie":
        return measured.certainty if measured.certainty in _FAVOURED else "unsure"
    rivals = [each for each in measured.candidates if each.variant != measured.variant]
    rivals.sort(key=lambda each: -(each.wins or 0.0))
    possible = [each for each in rivals if (each.wins or 0.0) > _POSSIBLE] or rivals[:1]
    same = all(each.framework == measured.framework for each in possible)
    return "framework" if same else "tie"


def reservations(measured: Measured, requirements: Requirements) -> tuple[Sentence, ...]:
    """What the first place leaves out, though it was asked for."""
    asked = [goal for goal, weight in requirements.weights.items() if weight]
    missing = [each for each in asked if each not in measured.weights]
    if not missing or not measured.recommendation:
        return ()
    # Imported late: trees alone need no numpy, which is slow to import.
    from edgebench.reports.selection.goals import GOAL_NAMES  # noqa: PLC0415

    goals = commas(_(GOAL_NAMES[each]) for each in missing)
    return (fill("Not weighed, though asked for: {goals}.", goals=goals),)


def _nothing(data: ReportData, measured: Measured) -> Sentence:
    if len(data.parts) > 1 and data.workload_names and not shared_workloads(data):
        return fill("The runs have no workload in common, so their speeds can't be compared.")
    states = {each.state for each in measured.excluded}
    if "broken" in states and not states - {"broken", "failed"}:
        return fill("Nothing is left to choose from: all that did not fail is broken.")
    return _nothing_left(data, measured)


def _nothing_left(data: ReportData, measured: Measured) -> Sentence:
    states = {each.state for each in measured.excluded}
    if states == {"failed"}:
        if data.failures:
            return fill("Every variant failed, so there is nothing to choose from.")
        return fill("No variant was run to its end, so there is nothing to choose from.")
    if not measured.limits_given and "fails" in states:
        return fill("Nothing that was measured fits the memory of the machine.")
    if states == {"failed", "fails"}:
        return fill("Nothing is left to choose from: what did not fail does not meet the needs.")
    if states == {"fails"}:
        return fill("No variant that was measured meets the needs.")
    return fill("The measurements name nothing that is known to meet the needs.")


def _of_one(data: ReportData, measured: Measured, found: Sequence[Evidence], told: str) -> Sentence:
    """Where one framework is left: why the others are not, and its best variant."""
    name: Sentence = (Name(measured.framework),)
    variant = Name(measured.variant)
    own = [each for each in data.record.variants if _framework(data, each.id) == measured.framework]
    if len(own) == 1:
        return fill("{lead}.", lead=_lead(data, measured, found, told, named(measured)))
    lead = _lead(data, measured, found, told, name)
    if len(measured.candidates) == 1:
        return fill("{lead}; of its variants only {variant} is left.", lead=lead, variant=variant)
    kind = certainty(measured)
    message = _OF_VARIANTS["tie" if kind == "framework" else kind]
    return fill(message, lead=lead, variant=variant)


def _lead(
    data: ReportData, measured: Measured, found: Sequence[Evidence], told: str, name: Sentence
) -> Sentence:
    others = [
        each.framework
        for each in found
        if each.state != "absent" and each.framework != measured.framework
    ]
    if not others:
        return fill("Only {measured} was measured", measured=name)
    states = {_state(data, measured, each) for each in others}
    if states == {"failed"} and others != [told]:
        return fill(
            "{others} failed, so that only {measured} is left", others=listed(others), measured=name
        )
    if states == {"failed"}:
        message = N_("Only {measured} is left")
    elif "unknown" in states:
        message = N_("Only of {measured} is all known that was asked for")
    elif "broken" in states:
        message = N_("Only {measured} is left")
    elif not measured.limits_given:
        message = N_("Only {measured} fits the memory of the machine")
    elif "failed" in states:
        message = N_("Only {measured} is left: the others failed or do not meet the needs")
    else:
        message = N_("Of all that were measured only {measured} meets the needs")
    return fill(message, measured=name)


def _state(data: ReportData, measured: Measured, framework: str) -> str:
    """Why a framework is not left: as that of its variants that came nearest."""
    own = [each for each in measured.excluded if _framework(data, each.variant) == framework]
    states = {each.state for each in own}
    return next((each for each in ("unknown", "broken", "fails") if each in states), "failed")


def _framework(data: ReportData, variant: str) -> str:
    record = next(each for each in data.record.variants if each.id == variant)
    return framework_name(framework_key(record))
