"""The marker ``edgebench``: what a test asks for, checked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, TypeAlias

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.problems import one_line, shown, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

MARKER = "edgebench"

Share: TypeAlias = float | str
"""A share of the baseline: 0.05, or "5%"."""

Against: TypeAlias = tuple[tuple[str, str], ...]
"""What the baseline is run with in place of the scenario's: keys and values as text, sorted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a test asks for.

    Attributes:
        scenario: a file, or the name of a scenario that edgebench ships; empty where not said.
        variant, workload: fnmatch patterns of the scenario's own names.
        repetitions: exactly so many, in place of the scenario's; None for those.
        time_budget_s: in place of the scenario's; None for that.
        baseline: a folder of baselines, a baseline's file or a run's folder; None for the folder
            that the command line or the configuration names.
        against: what to interleave with, in place of a baseline; empty for a baseline.
        worse_by: up to which worsening is borne; None for the policy's limits.
        confidence: of an assertion; None for the policy's.
        policy: a gate's policy file; None for the default policy.
    """

    scenario: str = ""
    variant: str = "*"
    workload: str = "*"
    repetitions: int | None = None
    time_budget_s: float | None = None
    baseline: str | None = None
    against: Against = field(default=())
    worse_by: Share | None = None
    confidence: Share | None = None
    policy: str | None = None


NAMES = tuple(each.name for each in fields(Asked))

EXAMPLE = '@pytest.mark.edgebench(scenario="smollm2-135m", variant="llama.cpp *")'


def read_marks(marks: Iterable[pytest.Mark]) -> Asked:
    """What the markers of a test ask for together.

    Args:
        marks: the nearest first, as ``Item.iter_markers`` gives them: a test's own argument wins
            over that of its class, and that over its module's.

    Raises:
        UsageError: an argument is unknown or wrong, or none names a scenario.
    """
    given: dict[str, object] = {}
    for mark in reversed(list(marks)):
        if mark.args:
            msg = f"the marker {MARKER} takes arguments by name, not {shown(mark.args[0])}"
            raise UsageError(msg, remedy=f"Write {EXAMPLE}.")
        given.update(mark.kwargs)
    asked = changed(Asked(), given)
    if not asked.scenario:
        msg = f"the fixture {MARKER} does not know which scenario to run"
        raise UsageError(msg, remedy=f"Mark the test: {EXAMPLE}.")
    return asked


def changed(asked: Asked, given: Mapping[str, object]) -> Asked:
    """`asked` with some of it replaced.

    Raises:
        UsageError: an argument is unknown or wrong.
    """
    checked: dict[str, object] = {}
    for name, value in given.items():
        if name not in NAMES:
            msg = unknown(f"{MARKER} has no argument {one_line(name)!r}", name, NAMES)
            raise UsageError(msg)
        checked[name] = _checked(name, value)
    # Every value was checked by its name.
    return replace(asked, **checked)  # type: ignore[arg-type]


def _checked(name: str, value: object) -> object:
    if name in {"scenario", "baseline", "policy"}:
        return _path(name, value)
    if name in {"variant", "workload"}:
        if isinstance(value, str) and value:
            return value
        raise _wrong(name, value, "a pattern such as 'llama.cpp *'")
    if name == "repetitions":
        if value is None or (isinstance(value, int) and type(value) is not bool and value >= 1):
            return value
        raise _wrong(name, value, "a whole number of at least 1")
    if name == "time_budget_s":
        if value is None or (_is_number(value) and 0 < float(value) < float("inf")):  # type: ignore[arg-type]
            return value
        raise _wrong(name, value, "a number of seconds above 0")
    if name == "against":
        return _against(name, value)
    # Shares are read where policies are.
    if value is None or _is_number(value) or isinstance(value, str):
        return value
    raise _wrong(name, value, "a share such as 0.05 or '5%'")


def _path(name: str, value: object) -> str | None:
    if value is None and name != "scenario":
        return None
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str) and text:
            return text
    kind = "a scenario's file or name" if name == "scenario" else "a path"
    raise _wrong(name, value, kind)


def _against(name: str, value: object) -> Against:
    """What `value` says as ``edgebench run --against`` would be told it."""
    if value is None:
        return ()
    if isinstance(value, dict) and value:
        keys = [key for key in value if isinstance(key, str)]
        if len(keys) == len(value) and all(_is_option(each) for each in value.values()):
            return tuple(sorted((key, _written(each)) for key, each in value.items()))
    expected = "what differs, such as {'threads': 1} or {'python': '…'}"
    raise _wrong(name, value, expected)


def _is_option(value: object) -> bool:
    return isinstance(value, str | os.PathLike | bool) or _is_number(value)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(name: str, value: object, expected: str) -> UsageError:
    given = shown(value) if isinstance(value, _SHOWABLE) or value is None else type(value).__name__
    return UsageError(f"{MARKER}({name}=…) must be {expected}, not {given}")


_SHOWABLE = (bool, int, float, str, list, tuple, dict)
