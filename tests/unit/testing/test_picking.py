"""Which cells a test's patterns meet, and which of them one run measures together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.scenario.model import expand
from edgebench.testing.marker import Asked
from edgebench.testing.picking import Picked, joined, only, pick

if TYPE_CHECKING:
    from edgebench.harness.scenario.model import Scenario

TEXT = """\
schema_version: 1
name: swept
verify: true
model: {name: tiny, source: "path:model.bin", sha256: "%s"}
variants:
  - {runner: fake, threads: [1, 2]}
  - {runner: fake, name: odd, quantization: [source, copy], token_s: 0.5}
  - {runner: fake, name: "x[1]"}
workloads:
  - {name: short, prompt: hello, generate_tokens: 4}
  - {name: long, prompt: hello, generate_tokens: 9}
""" % ("0" * 64)


@pytest.fixture(name="scenario")
def swept(tmp_path: object) -> Scenario:
    return parse_scenario(TEXT, filename="swept.yaml")


@pytest.mark.parametrize(
    ("variant", "workload", "met"),
    [
        ("*", "*", 10),
        ("fake source threads=*", "*", 4),
        ("fake source threads=2", "short", 1),
        ("odd *", "l*", 2),
        ("x[1]", "short", 1),  # itself, though as a pattern it means x1
    ],
)
def test_patterns_pick_what_they_meet(
    scenario: Scenario, variant: str, workload: str, met: int
) -> None:
    """Counted by hand in the scenario above."""
    picked = pick(Asked("s", variant=variant, workload=workload), scenario)
    assert len(picked.cells) == met


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked("s", variant="llama*"), "variant='llama*' meets none of the scenario's variants"),
        (Asked("s", variant="llama*"), "\n  odd source\n  odd copy\n  x[1]"),
        (Asked("s", workload="chat"), "There are:\n  short\n  long"),
    ],
)
def test_a_pattern_that_meets_nothing_lists_what_there_is(
    scenario: Scenario, asked: Asked, words: str
) -> None:
    """Names one a line, as they are to be written."""
    with pytest.raises(UsageError) as caught:
        pick(asked, scenario)
    assert words in str(caught.value)


def test_every_cell_keeps_its_name_and_its_options_alone(scenario: Scenario) -> None:
    """A value of a sweep is called as the sweep called it, and runs with the same options."""
    whole = {each.id: each for each in expand(scenario)}
    for name, before in whole.items():
        alone = only(scenario, Picked((name,), ("long",)), Asked("s", repetitions=3))
        (variant,) = expand(alone)
        assert variant.id == name
        assert variant.options == before.options
        assert variant.quantization == before.quantization
        assert [each.name for each in alone.workloads] == ["long"]
        assert not alone.verify
        assert (alone.measure.repetitions.min, alone.measure.repetitions.max) == (3, 3)


def test_the_scenarios_order_stays(scenario: Scenario) -> None:
    """Whatever order tests ask in."""
    picked = Picked(("x[1]", "fake source threads=2"), ("long", "short"))
    fewer = only(scenario, picked, Asked("s"))
    assert [each.id for each in expand(fewer)] == ["fake source threads=2", "x[1]"]
    assert [each.name for each in fewer.workloads] == ["short", "long"]


def test_cells_of_several_tests_are_measured_in_one_run() -> None:
    """Four tests of one cell each, which together are two variants on two workloads."""
    single = [Picked((v,), (w,)) for v, w in itertools.product("ab", "xy")]
    for own in single:
        assert joined(own, single).cells == {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")}


def test_no_cell_is_measured_in_vain() -> None:
    """a on x and b on y are two runs: one would measure a on y and b on x as well."""
    assert joined(Picked(("a",), ("x",)), [Picked(("b",), ("y",))]) == Picked(("a",), ("x",))


def test_what_does_not_fit_does_not_keep_others_out() -> None:
    """b on y is left; b on x and c on x go with a on x."""
    others = [Picked(("b",), ("y",)), Picked(("b", "c"), ("x",))]
    found = joined(Picked(("a",), ("x",)), others)
    assert found.cells == {("a", "x"), ("b", "x"), ("c", "x")}
