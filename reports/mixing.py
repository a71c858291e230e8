"""What must not stand in one report, and why: the runs are refused by name."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from edgebench.harness.compare.identity import (
    HASH_DIGITS,
    TESTING_RUNNER,
    differing_workload,
    hashes_of,
    model_text,
)
from edgebench.harness.errors import ResultError
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import ReportData

_APART = "Make a report of each: `edgebench report --each RUN_DIR…`."


def refuse_mixing(runs: Sequence[ReportData]) -> None:
    """Raise where figures of these runs can't stand in one table.

    Raises:
        ResultError: two of them are one run, or differ in the model, in the prompt behind a
            workload's name, in how a text is rated, in the reference, in being a quick look, or in
            being of real frameworks. It names the two, what differs, and what to do.
    """
    _refuse_twice(runs)
    _refuse_fake(runs)
    first, *others = runs
    for other in others:
        if first.record.quick != other.record.quick:
            _refuse(
                "one is a quick look, which is no measurement, and the other is not",
                (first, "quick" if first.record.quick else "in full"),
                (other, "quick" if other.record.quick else "in full"),
                "Run the quick one again without --quick.",
            )
    for one, other in _pairs(runs):
        _refuse_other_model(one, other)
        _refuse_other_reference(one, other)
        _refuse_other_workload(one, other)


def known_by_name_only(records: Sequence[RunRecord]) -> bool:
    """Whether nothing but the same `path:` says that the weights of the runs are the same."""
    return any(
        model_text(one, "source").startswith("path:")
        and not hashes_of(one).keys() & hashes_of(other).keys()
        for one, other in pairwise(records)
    )


def _pairs(runs: Sequence[ReportData]) -> Iterator[tuple[ReportData, ReportData]]:
    for place, one in enumerate(runs):
        for other in runs[place + 1 :]:
            yield one, other


def _refuse_twice(runs: Sequence[ReportData]) -> None:
    for one, other in _pairs(runs):
        same_folder = one.run.path.resolve() == other.run.path.resolve()
        record, others = one.record, other.record
        if same_folder or (record.id, record.created_at) == (others.id, others.created_at):
            what = "they are the same run, whose repetitions would count twice"
            remedy = "Name each run once."
            _refuse(what, (one, record.id), (other, others.id), remedy)


def _refuse_fake(runs: Sequence[ReportData]) -> None:
    def fake(data: ReportData) -> bool:
        return any(each.runner == TESTING_RUNNER for each in data.record.variants)

    made_up = [each for each in runs if fake(each)]
    real = [
        each
        for each in runs
        if any(variant.runner != TESTING_RUNNER for variant in each.record.variants)
    ]
    for one in made_up:
        for other in real:
            if other is not one:
                _refuse(
                    f"the runner '{TESTING_RUNNER}' makes its figures up, and the other run is of "
                    "real frameworks",
                    (one, _runners(one.record)),
                    (other, _runners(other.record)),
                    _APART,
                )


def _refuse_other_model(one: ReportData, other: ReportData) -> None:
    mine, theirs = hashes_of(one.record), hashes_of(other.record)
    common = [each for each in mine if each in theirs]
    for each in common:
        if mine[each] != theirs[each]:
            name = one_line(each)
            _refuse(
                "they are of different models",
                (one, f"{_model(one)}, sha256 {mine[each][:HASH_DIGITS]} of {name}"),
                (other, f"{_model(other)}, sha256 {theirs[each][:HASH_DIGITS]} of {name}"),
                f"Figures of different weights don't compare. {_APART}",
            )
    sources = [model_text(each.record, "source") for each in (one, other)]
    if not common and sources[0] != sources[1]:
        _refuse(
            "they are of different models, as far as their records tell",
            (one, _model(one)),
            (other, _model(other)),
            "If the weights are the same all the same, write their `sha256:` in both scenarios "
            f"and run them again. {_APART}",
        )


def _refuse_other_reference(one: ReportData, other: ReportData) -> None:
    mine, theirs = one.record.reference, other.record.reference
    if mine is None or theirs is None:
        return
    if (mine.lossy_types, mine.parameters, mine.limits) != (
        theirs.lossy_types,
        theirs.parameters,
        theirs.limits,
    ):
        _refuse(
            "their variants were verified against different references, or by different limits",
            (one, f"{mine.name}, {mine.parameters} weights, limits {_limits(mine.limits)}"),
            (other, f"{theirs.name}, {theirs.parameters} weights, limits {_limits(theirs.limits)}"),
            "Verify both by the same edgebench: `edgebench verify`, or run them again.",
        )


def _refuse_other_workload(one: ReportData, other: ReportData) -> None:
    others = {each.name: each for each in other.record.workloads}
    for mine in one.record.workloads:
        theirs = others.get(mine.name)
        if theirs is None:
            continue
        for what, own, else_ in differing_workload(mine, theirs):
            remedy = (
                "Give one of the workloads another name, or run one of them again as the other is."
            )
            _refuse(
                f"the workload '{one_line(mine.name)}' is another one in each: "
                f"the two differ in {what}",
                (one, one_line(own)),
                (other, one_line(else_)),
                remedy,
            )


def _model(data: ReportData) -> str:
    name = one_line(model_text(data.record, "name"))
    source = one_line(model_text(data.record, "source"))
    return f"{name} ({source})" if name and source else name or source or "no model named"


def _runners(record: RunRecord) -> str:
    return ", ".join(dict.fromkeys(one_line(each.runner) for each in record.variants))


def _limits(limits: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in sorted(limits.items())) or "none"


def _refuse(
    what: str, one: tuple[ReportData, str], other: tuple[ReportData, str], remedy: str
) -> NoReturn:
    lines = [f"  {data.run.path}: {value}" for data, value in (one, other)]
    msg = "\n".join((f"These runs can't stand in one report: {what}.", *lines))
    raise ResultError(msg, remedy=remedy)
