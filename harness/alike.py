"""Whether two scenarios would run the same, in whatever words each says it."""

from __future__ import annotations

import filecmp
import os
import sys
from typing import TYPE_CHECKING

from edgebench.harness.store.sources import PathSource, parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.harness.scenario.model import Scenario, Variant
    from edgebench.harness.scenario.options import RunnerOptions


def run_alike(
    one: Scenario,
    other: Scenario,
    *,
    bases: tuple[Path | None, Path | None],
    runners: Mapping[str, RunnerOptions],
    pythons: Mapping[str, str],
) -> bool:
    """Whether nothing that is run differs, as far as that is seen before anything is fetched.

    Args:
        one: a scenario.
        other: another.
        bases: what a relative ``path:`` of each is relative to; None for the working folder.
        runners: the installed runners by name.
        pythons: interpreters by runner from the user's configuration.
    """
    first, second = (_as_run(each, runners, pythons) for each in (one, other))
    return first == second and _same_model(one, bases[0], other, bases[1])


def interpreter_of(variant: Variant, pythons: Mapping[str, str]) -> str:
    """The interpreter that a variant's runner is started with, as an absolute path."""
    python = variant.python or pythons.get(variant.runner) or sys.executable
    return os.path.abspath(os.path.expanduser(python))  # noqa: PTH100, PTH111


def _as_run(
    scenario: Scenario, runners: Mapping[str, RunnerOptions], pythons: Mapping[str, str]
) -> list[object]:
    """What is run, with what is left to defaults filled in."""
    variants = [
        each.model_copy(
            update={
                "python": interpreter_of(each, pythons),
                "options": {**_defaults(each, runners), **each.options},
            }
        )
        for each in scenario.variants
    ]
    return [scenario.workloads, variants]


def _defaults(variant: Variant, runners: Mapping[str, RunnerOptions]) -> dict[str, object]:
    """What the runner does where nothing is set, as far as it is the runner that decides."""
    runner = runners.get(variant.runner)
    options = {} if runner is None else runner.OPTIONS
    return {key: option.default for key, option in options.items() if option.default is not None}


def _same_model(one: Scenario, base: Path | None, other: Scenario, other_base: Path | None) -> bool:
    """Whether both run the same weights, as far as that is seen before any are fetched."""
    first = parse_source(one.model.source, base=base)
    second = parse_source(other.model.source, base=other_base)
    if first == second:
        return True
    if not (isinstance(first, PathSource) and isinstance(second, PathSource)):
        return False
    try:
        # The same file by another name or through a link, or a copy of it.
        return first.path.samefile(second.path) or (
            first.path.is_file()
            and second.path.is_file()
            and filecmp.cmp(first.path, second.path, shallow=False)
        )
    except OSError:
        return False  # what can't be read is told when it is prepared
