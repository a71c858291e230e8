"""What `edgebench select --json` prints. docs/selection.md says what each key holds.

History of the format (``schema_version``):

1. the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.selection.walk import answers_of, put_over, with_implied
from edgebench.reports.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.view import (
        Candidate,
        Evidence,
        Figures,
        Measured,
        Selection,
        Walk,
    )
    from edgebench.reports.selection.walk import Given

SCHEMA_VERSION: Final = 1


def selection_as_json(
    selection: Selection,
    requirements: Requirements,
    given: Mapping[str, Given],
    data: ReportData | None,
) -> dict[str, object]:
    """A selection as plain values, ready for `json.dumps`.

    Args:
        selection: what was found.
        requirements: what it was found by.
        given: all answers, by key.
        data: the run, or several combined; None where nothing was measured.
    """
    first = next((each for each in selection.walks if each.recommendation), None)
    answers = with_implied(put_over(given, answers_of(requirements)))
    return {
        "schema_version": SCHEMA_VERSION,
        "recommendation": first.recommendation if first else None,
        "headline": plain(selection.headline),
        "answers": {key: each.value for key, each in answers.items()},
        "requirements": requirements.model_dump(mode="json", exclude_defaults=True),
        "trees": [_walk(each) for each in selection.walks],
        "measured": _measured(selection.measured) if selection.measured else None,
        "evidence": [_evidence(each) for each in selection.evidence],
        "disagreements": [plain(each) for each in selection.disagreements],
        "warnings": [plain(each) for each in selection.warnings],
        "runs": [{"id": each.record.id, "path": str(each.path)} for each in data.parts]
        if data
        else [],
    }


def _walk(walk: Walk) -> dict[str, object]:
    return {
        "name": walk.name,
        "version": walk.version,
        "document": walk.document or None,
        "path": [
            {
                "key": step.key,
                "question": step.question,
                "answer": step.answer,
                "given_by": step.given_by,
            }
            for step in walk.steps
        ],
        "open": {
            "key": walk.open.key,
            "question": walk.open.question,
            "choices": [key for key, _words in walk.open.choices],
        }
        if walk.open
        else None,
        "recommendation": walk.recommendation or None,
        "because": walk.because or None,
        "fits": list(walk.fits),
    }


def _measured(measured: Measured) -> dict[str, object]:
    return {
        "recommendation": measured.recommendation or None,
        "framework": measured.framework or None,
        "variant": measured.variant or None,
        "certainty": measured.certainty,
        "weights": dict(measured.weights),
        "weights_given": measured.weights_given,
        "front": list(measured.front),
        "by_documents": measured.by_documents,
        "limits_given": measured.limits_given,
        "candidates": [_candidate(each) for each in measured.candidates],
        "excluded": [
            {"variant": each.variant, "state": each.state, "reasons": list(each.reasons)}
            for each in measured.excluded
        ],
        "sentences": [plain(each) for each in measured.sentences],
    }


def _candidate(candidate: Candidate) -> dict[str, object]:
    return {
        "variant": candidate.variant,
        "framework": candidate.framework,
        "runner": candidate.runner,
        "score": candidate.score,
        "score_low": candidate.score_low,
        "score_high": candidate.score_high,
        "score_source": None if candidate.score is None else candidate.score_source,
        "wins": candidate.wins,
        "on_front": candidate.on_front,
        "dominated_by": candidate.dominated_by or None,
        "values": {
            goal: {"value": value, "low": low, "high": high, "unit": unit or None}
            for goal, (value, low, high, unit) in candidate.values.items()
        },
    }


def _evidence(evidence: Evidence) -> dict[str, object]:
    return {
        "framework": evidence.framework,
        "runner": evidence.runner,
        "ran": evidence.ran,
        "state": evidence.state,
        "variant": evidence.variant or None,
        "meets_limits": evidence.meets_limits,
        "findings": [
            {
                "kind": each.kind,
                "sentence": plain(each.sentence),
                "quoted": each.quoted,
                "figures": _figures(each.figures) if each.figures else None,
            }
            for each in evidence.findings
        ],
    }


def _figures(figures: Figures) -> dict[str, object]:
    return {
        "goal": figures.goal,
        "workload": figures.workload or None,
        "value": figures.value,
        "low": figures.low,
        "high": figures.high,
        "unit": figures.unit or None,
        "other": figures.other or None,
        "ratio": figures.ratio,
        "ratio_low": figures.ratio_low,
        "ratio_high": figures.ratio_high,
    }
