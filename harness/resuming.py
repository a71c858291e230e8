"""Whether a run can go on with what an earlier part of it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.errors import ResultError
from edgebench.harness.records import with_loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.results.run import Run
    from edgebench.harness.results.trial import Trial


def taken_up(record: RunRecord, resumed: Run) -> RunRecord:
    """The record of a run that goes on with an earlier part, if it was the same run.

    Args:
        record: of now, prepared.
        resumed: the earlier part.

    Raises:
        ResultError: something changed in between; the earlier part is as it was.
    """
    old = resumed.record
    changes = [
        name
        for name, before, after in (
            ("the machine", old.machine.fingerprint, record.machine.fingerprint),
            ("edgebench's version", old.edgebench_version, record.edgebench_version),
            ("the scenario", old.scenario_sha256, record.scenario_sha256),
            (
                "the frameworks or models",
                identity(old, resumed.trials),
                identity(record, resumed.trials),
            ),
            ("a text to rate, or its tokens", _texts(old), _texts(record)),
        )
        # A run that was killed while preparing has nothing to differ from.
        if before != after and resumed.trials
    ]
    if changes:
        msg = f"the run can't be resumed: {' and '.join(changes)} changed since it began"
        raise ResultError(msg, remedy="Start a new run: results of both would not compare.")
    same = {each.id: each.sameness for each in old.variants} if resumed.trials else {}
    return record.model_copy(
        update={
            "created_at": old.created_at,
            # What was measured was measured of that one, from its first trial on.
            "commit": old.commit if resumed.trials else record.commit,
            # The same models were compared: once is enough.
            "reference": old.reference if same else None,
            "variants": [
                each.model_copy(update={"sameness": same.get(each.id)}) for each in record.variants
            ],
            "proofs": old.proofs if same else record.proofs,
        }
    )


def identity(record: RunRecord, trials: Sequence[Trial]) -> list[object]:
    """What makes trials comparable; `trials` tell what was loaded, which no new record knows."""
    loaded = [with_loads(variant, trials) for variant in record.variants]
    return [
        *((v.id, v.engine_version, v.artifact and v.artifact.sha256) for v in loaded),
        *((name, d.get("engine"), d.get("engine_version")) for name, d in record.runners.items()),
        *((w.name, w.prompt_sha256) for w in record.workloads),
    ]


def _texts(record: RunRecord) -> list[object]:
    """What makes ratings comparable, as far as it is known before any."""
    return [
        (each.name, each.quality.text_sha256, each.quality.ids_sha256, each.quality.bos_id)
        for each in record.workloads
        if each.quality
    ]
