"""A scenario with those variants and workloads that a test picked, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError
from edgebench.harness.overrides import Overrides, apply_overrides
from edgebench.harness.scenario.config import load_config
from edgebench.harness.scenario.expand import expand_variant
from edgebench.harness.scenario.find import find_scenario
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.scenario.model import expand
from edgebench.harness.scenario.problems import one_line, quote
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.scenario.model import Scenario, Variant
    from edgebench.testing.marker import Asked


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario's file, read.

    Attributes:
        path: the file.
        pythons: interpreters by runner, from the user's configuration.
    """

    path: Path
    scenario: Scenario
    pythons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Picked:
    """Cells of a scenario: each of these variants on each of these workloads.

    Attributes:
        variants, workloads: names, at least one of each, in the scenario's order.
    """

    variants: tuple[str, ...]
    workloads: tuple[str, ...]

    @property
    def cells(self) -> frozenset[tuple[str, str]]:
        """Their keys, as results have them."""
        return frozenset((variant, name) for variant in self.variants for name in self.workloads)


def load(asked: Asked, folders: Sequence[Path]) -> Loaded:
    """Read the scenario that a test asks for.

    Args:
        asked: what the test asks for.
        folders: what a relative path may be relative to, in this order; a name of no file there
            is one of edgebench's own scenarios.

    Raises:
        ScenarioError: there is none, or it is wrong.
    """
    found = next((each for each in folders if (each / asked.scenario).is_file()), None)
    path = found / asked.scenario if found else find_scenario(asked.scenario)
    pythons = {name: item.python for name, item in load_config().runners.items() if item.python}
    scenario = load_scenario(path, runners=runner_classes(), configured=pythons)
    return Loaded(path.resolve(), scenario, pythons)


def pick(asked: Asked, scenario: Scenario) -> Picked:
    """The cells that a test's patterns meet.

    Raises:
        UsageError: one of them meets nothing; the message lists what there is.
    """
    variants = [each.id for each in expand(scenario)]
    workloads = [each.name for each in scenario.workloads]
    return Picked(
        _met("variant", asked.variant, variants), _met("workload", asked.workload, workloads)
    )


def _met(what: str, pattern: str, names: Sequence[str]) -> tuple[str, ...]:
    # A name may hold what a pattern means otherwise, such as [; itself it always meets.
    met = tuple(name for name in names if name == pattern or fnmatchcase(name, pattern))
    if not met:
        msg = f"{what}={quote(pattern)} meets none of the scenario's {what}s"
        listed = "".join(f"\n  {one_line(name)}" for name in names)
        raise UsageError(msg, remedy=f"There {'is' if len(names) == 1 else 'are'}:{listed}")
    return met


def joined(own: Picked, others: Collection[Picked]) -> Picked:
    """As many of the cells of all tests as one run can measure that measures no cell in vain.

    A run measures each of its variants on each of its workloads.

    Args:
        own: what the test that is to be served picked; it is in the result.
        others: what other tests of the same scenario picked.
    """
    asked = own.cells.union(*(each.cells for each in others))
    result, left = own, list(others)
    while True:
        for other in left:
            more = Picked(
                tuple(dict.fromkeys((*result.variants, *other.variants))),
                tuple(dict.fromkeys((*result.workloads, *other.workloads))),
            )
            if more.cells <= asked:
                result = more
                left.remove(other)
                break
        else:
            return result


def only(scenario: Scenario, picked: Picked, asked: Asked) -> Scenario:
    """The scenario with those cells, and with the repetitions and the time that a test asks for.

    Nothing is compared with the reference: that takes minutes, and is `edgebench verify`'s work.
    """
    variants = tuple(
        single
        for variant in scenario.variants
        for single in _singles(variant)
        if next(expand_variant(single)).id in picked.variants
    )
    workloads = tuple(each for each in scenario.workloads if each.name in picked.workloads)
    fewer = scenario.model_copy(
        update={"variants": variants, "workloads": workloads, "verify": False}
    )
    return apply_overrides(
        fewer,
        Overrides(repetitions=asked.repetitions, time_budget_s=asked.time_budget_s),
    )


def _singles(variant: Variant) -> list[Variant]:
    """A sweep as variants of one value each, which keep the names that the sweep gave them."""
    return [
        variant.model_copy(
            update={
                "quantization": each.quantization,
                "options": dict(each.options),
                "name": variant.name and each.id,
            }
        )
        for each in expand_variant(variant)
    ]
