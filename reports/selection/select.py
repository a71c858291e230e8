"""Everything there is to say about a choice: the trees' advice, the measurements', and both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgebench.harness.errors import ResultError
from edgebench.harness.scenario.problems import format_path
from edgebench.harness.scenario.requirements import Requirements
from edgebench.harness.scenario.wording import reword
from edgebench.reports.selection.headline import headline
from edgebench.reports.selection.tree import load_trees
from edgebench.reports.selection.view import Selection
from edgebench.reports.selection.walk import answers_of, put_over, walk, with_implied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.tree import Tree
    from edgebench.reports.selection.walk import Given


def selection_of(data: ReportData) -> Selection:
    """What the trees that edgebench comes with, and the measurements, say to a run's own needs.

    Raises:
        ResultError: the run's requirements can't be read.
    """
    return select(data, requirements_of(data))


def select(
    data: ReportData | None,
    requirements: Requirements,
    *,
    trees: Sequence[Tree] | None = None,
    given: Mapping[str, Given] | None = None,
) -> Selection:
    """Walk the trees, ask the measurements, and compare.

    Args:
        data: the run, or several combined; None where nothing was measured.
        requirements: answers and limits.
        trees: what is walked, the one that decides first; those that edgebench comes with where it
            is not given.
        given: answers that stand above those of the requirements, or the same with who gave them.

    Raises:
        UsageError: an answer is none that its question allows.
    """
    answers = with_implied(put_over(given or {}, answers_of(requirements)))
    if requirements.vision:
        requirements = requirements.model_copy(update={"multimodal": True})
    walks = tuple(
        walk(tree, answers, name=f"tree-{place}")
        for place, tree in enumerate(load_trees() if trees is None else trees)
    )
    walks = tuple(sorted(walks, key=lambda each: not each.recommendation))
    recommended = tuple(dict.fromkeys(each.recommendation for each in walks if each.recommendation))
    if data is None:
        return Selection(headline(None, walks, None, (), requirements), walks, (), (), None, ())
    # Imported late: trees alone need no numpy, which is slow to import.
    from edgebench.reports.selection.disagreement import disagreements  # noqa: PLC0415
    from edgebench.reports.selection.evidence import evidence  # noqa: PLC0415
    from edgebench.reports.selection.measured import measured_answer  # noqa: PLC0415
    from edgebench.reports.selection.warned import warnings  # noqa: PLC0415

    measured = measured_answer(data, requirements)
    found = evidence(data, requirements, recommended)
    named = dict.fromkeys((*recommended, measured.recommendation))
    return Selection(
        headline=headline(data, walks, measured, found, requirements),
        walks=walks,
        warnings=warnings(data, tuple(filter(None, named)), requirements),
        evidence=found,
        measured=measured,
        disagreements=disagreements(data, walks, measured, found),
    )


def requirements_of(data: ReportData) -> Requirements:
    """What a run's scenario asks for; nothing where it doesn't say.

    Of several runs combined, what they all say; where they differ, nothing is taken.

    Raises:
        ResultError: a run's requirements can't be read.
    """
    found = [_of_record(part.record, str(part.path)) for part in data.parts]
    return found[0] if all(each == found[0] for each in found) else Requirements()


def differing_requirements(data: ReportData) -> tuple[str, ...]:
    """The keys in which combined runs ask for different things; where any does, none is taken."""
    asked = [_of_record(part.record, str(part.path)) for part in data.parts]
    return tuple(
        key
        for key in Requirements.model_fields
        if any(getattr(each, key) != getattr(asked[0], key) for each in asked)
    )


def _of_record(record: RunRecord, path: str) -> Requirements:
    written = record.scenario.get("requirements")
    if written is None:
        return Requirements()
    try:
        return Requirements.model_validate(written)
    except ValidationError as error:
        details = [(each, each["loc"]) for each in error.errors(include_url=False)]
    wrong = "; ".join(
        f"{format_path(each.path, 'requirements')}: {each.message}"
        for each in reword(details, {(): Requirements})
    )
    message = f"{path}: the scenario's requirements in run.json can't be read: {wrong}"
    remedy = "Correct them there, under scenario.requirements; or remove them and give --answer."
    raise ResultError(message, remedy=remedy)
