"""The policy of one assertion."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgebench.harness.errors import UsageError
from edgebench.harness.gate.conflicts import is_pattern
from edgebench.harness.gate.policy import Policy, default_policy
from edgebench.harness.gate.policy_file import load_policy
from edgebench.harness.metrics.definitions import ENGINE_PREFIX, METRICS
from edgebench.harness.scenario.problems import one_line, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.gate.policy import Limit
    from edgebench.testing.marker import Share

DEFAULT = "the default policy"


def read_policy(path: Path | None) -> tuple[Policy, str]:
    """A policy's file, or the default policy; and what it is called.

    Raises:
        PolicyError: the file can't be read, or is wrong.
    """
    return (default_policy(), DEFAULT) if path is None else (load_policy(path), path.name)


def narrowed(
    policy: Policy,
    name: str,
    metrics: Sequence[str],
    worse_by: Share | None,
    confidence: Share | None,
) -> Policy:
    """The policy with what an assertion says itself in place of what the policy says.

    Args:
        policy: what holds otherwise.
        name: what it is called.
        metrics: the only ones that are asked about; none for all that the policy limits.
        worse_by: of all of these metrics.
        confidence: of all of them together.

    Raises:
        UsageError: a value is wrong, or nothing says how much worse a metric may be.
    """
    limits, cells = policy.limits, policy.cells
    if metrics and worse_by is None:
        for key in metrics:
            if not any(_only(each, [key]) for each in _all_limits(policy)):
                raise _unlimited(name, key)
        limits = _only(limits, metrics)
        cells = [each.model_copy(update={"limits": _only(each.limits, metrics)}) for each in cells]
    changed: dict[str, object] = policy.model_dump() | {
        "limits": _written(limits, confidence),
        "cells": [
            {"match": each.match.model_dump(), "limits": _written(each.limits, confidence)}
            for each in cells
        ],
    }
    if worse_by is not None:
        changed["limits"] = {key: {"worse_by": worse_by} for key in metrics or policy.limits}
        changed["cells"] = []
    if confidence is not None:
        changed["confidence"] = confidence
    try:
        return Policy.model_validate(changed)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        where = [str(part) for part in problems[0]["loc"] if part != "limits"]
        msg = one_line(f"assert_not_worse: {': '.join((*where, problems[0]['msg']))}")
        raise UsageError(msg) from error


def _all_limits(policy: Policy) -> list[Mapping[str, Limit | None]]:
    return [policy.limits, *(each.limits for each in policy.cells)]


def _unlimited(name: str, key: str) -> UsageError:
    if key.removeprefix(ENGINE_PREFIX) not in METRICS and not is_pattern(key):
        return UsageError(unknown(f"there is no metric {one_line(key)!r}", key, METRICS))
    msg = f"{name} has no limit for {one_line(key)!r}"
    return UsageError(msg, remedy=f'Say how much: assert_not_worse("{key}", worse_by="5%").')


def _written(limits: Mapping[str, Limit | None], confidence: Share | None) -> dict[str, object]:
    """As a policy's file has them; without their own confidence where another one is given."""
    left_out = set() if confidence is None else {"confidence"}
    return {
        key: "off" if limit is None else limit.model_dump(exclude_none=True, exclude=left_out)
        for key, limit in limits.items()
    }


def _only(limits: Mapping[str, Limit | None], metrics: Sequence[str]) -> dict[str, Limit | None]:
    """What is said of these metrics, pattern by pattern written out, later ones above."""
    found: dict[str, Limit | None] = {}
    for pattern, limit in limits.items():
        for key in metrics:
            if fnmatchcase(key, pattern):
                before = found.get(key)
                both = limit
                if limit is not None and before is not None:
                    given = limit.model_dump(exclude_none=True)
                    both = before.model_copy(update=given)
                found[key] = both
    return found
