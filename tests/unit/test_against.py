"""What an interleaved run's baseline is, which variants are side by side, and who comes first."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from scipy import stats

from edgebench.harness.against import changed, is_change, other_scenario
from edgebench.harness.errors import UsageError
from edgebench.harness.prepared import PreparedVariant
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.seats import Seat, baseline_last, seat_pairs
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.scenario.model import Scenario

PYTHONS = {"elsewhere": "/usr/bin/python3"}


def scenario(
    *variants: str, workload: str = "down", source: str = "path:model.bin", max_: int = 5
) -> Scenario:
    listed = ", ".join(f"{{{each}}}" for each in variants or ["runner: fake"])
    return parse_scenario(
        f"""\
schema_version: 1
name: test
model: {{name: tiny, source: '{source}', license: MIT, sha256: '{"0" * 64}'}}
variants: [{listed}]
workloads: [{{name: {workload}, prompt: Hello, generate_tokens: 5}}]
measure: {{repetitions: {{min: 2, max: {max_}}}}}
""",
        filename="test.yaml",
        runners=runner_classes(),
        configured=PYTHONS,
    )


def against(given: Scenario, *changes: str, **options: object) -> Scenario:
    return changed(given, changes, runners=runner_classes(), pythons=PYTHONS, **options).baseline  # type: ignore[arg-type]


def test_an_option_is_set_in_the_kind_that_the_runner_declares() -> None:
    """threads is a number, virtual_clock true or false, says_engine text though it looks like 7."""
    made = against(
        scenario("runner: fake, threads: 4"), "threads=2", "virtual_clock=true",
        "token_s=0.5", "says_engine=7",
    )  # fmt: skip
    assert made.variants[0].options == {
        "threads": 2, "virtual_clock": True, "token_s": 0.5, "says_engine": "7",
    }  # fmt: skip


def test_an_option_goes_to_every_variant_whose_runner_has_it() -> None:
    """A runner of another interpreter is not known here: it gets what it sets already."""
    made = against(
        scenario(
            "runner: fake", "runner: fake, jitter: 0.1", "runner: elsewhere, threads: 8",
            "runner: elsewhere",
        ),
        "threads=2",
    )  # fmt: skip
    assert [each.options.get("threads") for each in made.variants] == [2, 2, 2, None]


def test_another_model_file_is_relative_to_the_working_folder(tmp_path: Path) -> None:
    """Its hash and its license are its own, and so are not those of the scenario."""
    (tmp_path / "old.gguf").write_bytes(b"weights")
    made = against(scenario(), "model=path:old.gguf", folder=tmp_path)
    assert made.model.source == f"path:{tmp_path / 'old.gguf'}"
    assert (made.model.sha256, made.model.license) == (None, None)


@pytest.mark.parametrize("source", ["path:model.bin", "path:sub/copy.bin", "path:sub/link.bin"])
def test_the_same_weights_in_other_words_are_no_change(tmp_path: Path, source: str) -> None:
    """The scenario's own file by its whole path, a copy of it, a link to it."""
    (tmp_path / "sub").mkdir()
    for file in ("model.bin", "sub/copy.bin"):
        (tmp_path / file).write_bytes(b"weights")
    (tmp_path / "sub" / "link.bin").symlink_to(tmp_path / "model.bin")
    with pytest.raises(UsageError, match="both sides are the same"):
        against(scenario(), f"model={source}", folder=tmp_path, base=tmp_path)


def test_an_options_default_is_no_change(tmp_path: Path) -> None:
    """What the runner does anyway, set in so many words."""
    default = runner_classes()["fake"].OPTIONS["virtual_clock"].default
    with pytest.raises(UsageError, match="both sides are the same"):
        against(scenario(), f"virtual_clock={str(default).lower()}", base=tmp_path)


def test_the_interpreter_of_one_runner_goes_before_that_of_all(tmp_path: Path) -> None:
    """A virtual environment's folder stands for its interpreter; a link is left a link."""
    for name in ("one", "all"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
    sides = changed(
        scenario("runner: fake", "runner: elsewhere"),
        [f"python={tmp_path / 'all'}", f"python.fake={tmp_path / 'one' / 'bin' / 'python'}"],
        runners=runner_classes(),
        pythons=PYTHONS,
    )
    assert [each.python for each in sides.baseline.variants] == [
        str(tmp_path / "one" / "bin" / "python"),
        str(tmp_path / "all" / "bin" / "python"),
    ]
    # Named as well, so that both are started in one way.
    assert [each.python for each in sides.candidate.variants] == [
        os.path.abspath(sys.executable),  # noqa: PTH100 - without following links
        "/usr/bin/python3",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("treads=2", "did you mean 'threads'"),
        ("threads=", "no value behind '='"),
        ("threads=two", "must be a whole number, got 'two'"),
        ("threads=2.5", "must be a whole number"),
        ("threads=0", "must be at least 1"),
        ("threads=null", "must be a whole number"),
        ("fail=sometimes", "is not possible"),
        ("quantization=Q9", "can't make the quantization 'Q9'"),
        ("python=/no/such/python", "no such interpreter"),
        ("python=a\x00b", "no such interpreter"),
        ("python.fak=/usr/bin/python3", "did you mean 'python.fake'"),
        ("model=old.gguf", "a source must say of which kind it is"),
        ("model=path:nothing.gguf", "there is no file or folder"),
        ("model=path:", "must name a file or a folder"),
        ("threads=4", "both sides are the same"),
        (f"python={sys.executable}", "both sides are the same"),
    ],
)
def test_what_is_not_possible_is_refused_before_anything_runs(change: str, message: str) -> None:
    """Each with the change that is wrong, on one line that a terminal can bear."""
    with pytest.raises(UsageError, match=message) as refused:
        against(scenario("runner: fake, threads: 4"), change)
    assert refused.value.message.isprintable()


def test_a_sweep_has_no_one_value_to_stand_against() -> None:
    """threads: [1, 2] against threads=2 would compare one with itself, and the other not."""
    with pytest.raises(UsageError, match=r"sweeps it \(1, 2\)"):
        against(scenario("runner: fake, threads: [1, 2]"), "threads=2")


def test_variants_that_become_the_same_are_refused() -> None:
    """Nothing would tell which of them is the candidate's counterpart."""
    with pytest.raises(UsageError, match="already"):
        against(scenario("runner: fake, threads: 1", "runner: fake, threads: 2"), "threads=3")


def test_a_key_is_given_once() -> None:
    """The last one would win silently."""
    with pytest.raises(UsageError, match="threads is given twice"):
        against(scenario(), "threads=2", "threads=3")


def test_another_scenario_is_measured_by_the_protocol_of_the_first() -> None:
    """Two sides that repeat differently could not be interleaved."""
    sides = other_scenario(
        scenario(max_=9),
        scenario("runner: fake, threads: 2"),
        "old.yaml",
        runners=runner_classes(),
        pythons=PYTHONS,
    )
    assert sides.baseline.measure.repetitions.max == 9
    assert sides.baseline.variants[0].options == {"threads": 2}
    assert sides.difference == "the scenario old.yaml"
    with pytest.raises(UsageError, match="no workload in common"):
        other_scenario(
            scenario(),
            scenario(workload="up"),
            "old.yaml",
            runners=runner_classes(),
            pythons=PYTHONS,
        )
    with pytest.raises(UsageError, match="both sides are the same"):
        other_scenario(
            scenario(), scenario(), "old.yaml", runners=runner_classes(), pythons=PYTHONS
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("threads=2", True),
        ("python.llama.cpp=/x/python", True),
        ("model=path:a=b.gguf", True),
        ("old.yaml", False),
        ("runs/a=b.yaml", False),
        ("=2", False),
    ],
)
def test_a_change_is_told_from_a_file(text: str, expected: bool) -> None:
    """A path may hold an equals sign; a key holds no slash."""
    assert is_change(text) is expected


# Side by side, and in which order -----------------------------------------------------------------


def seats(*names: str) -> list[Seat]:
    """Of variants that are named RUNNER OPTIONS."""
    return [
        Seat(None, PreparedVariant(ExpandedVariant(each, each.split()[0], "source", {}), None))  # type: ignore[arg-type]
        for each in names
    ]


def beside(baseline: list[str], candidate: list[str]) -> list[tuple[str, ...]]:
    places = seat_pairs(seats(*baseline), seats(*candidate))
    return [tuple(seat.name for seat in place.seats) for place in places]


def test_equal_names_are_side_by_side_and_then_equal_runners_in_their_order() -> None:
    """An option that differs is in the name; what has nobody beside it is measured alone."""
    assert beside(["x a", "x b", "y a"], ["y a", "x a", "x b"]) == [
        ("y a", "y a"), ("x a", "x a"), ("x b", "x b"),
    ]  # fmt: skip
    assert beside(["x t=2", "x t=3"], ["x t=4", "x t=5"]) == [
        ("x t=2", "x t=4"), ("x t=3", "x t=5"),
    ]  # fmt: skip
    assert beside(["x a", "z a"], ["x b", "x a", "y a"]) == [
        ("x b",), ("x a", "x a"), ("y a",), ("z a",),
    ]  # fmt: skip


def test_who_comes_first_is_a_fair_coin_in_each_block_and_of_each_variant() -> None:
    """Over 4,000 tosses: as many of each, and a toss tells nothing of the next or of another's."""
    tosses = {
        variant: [baseline_last("5d41402abc4b2a76", block, variant) for block in range(2000)]
        for variant in ("fake source", "other source")
    }
    for thrown in tosses.values():
        assert stats.binomtest(sum(thrown), len(thrown)).pvalue > 1e-3
        repeated = sum(one == other for one, other in pairwise(thrown))
        assert stats.binomtest(repeated, len(thrown) - 1).pvalue > 1e-3
    alike = sum(one == other for one, other in zip(*tosses.values(), strict=True))
    assert stats.binomtest(alike, 2000).pvalue > 1e-3


def test_every_session_has_coins_of_its_own() -> None:
    """With a scenario's seed all runs of it would favour the same side in the same blocks."""
    firsts = [baseline_last(f"session {number}", 0, "fake source") for number in range(2000)]
    assert stats.binomtest(sum(firsts), 2000).pvalue > 1e-3
