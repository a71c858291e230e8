"""The scenario's model: its rules by themselves, and its sweeps written out."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from edgebench.harness.scenario.model import (
    ExpandedVariant,
    Scenario,
    Variant,
    Warmup,
    Workload,
    expand,
)


def scenario(*variants: dict[str, object]) -> Scenario:
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "s",
            "model": {"name": "m", "source": "path:m.gguf"},
            "variants": variants,
            "workloads": [{"name": "w", "prompt_tokens": 4, "generate_tokens": 2}],
        }
    )


def ids(*variants: dict[str, object]) -> list[str]:
    return [variant.id for variant in expand(scenario(*variants))]


def test_an_unnamed_variant_is_named_by_all_that_is_set() -> None:
    """The id is the runner, the quantization and every option that is set, as YAML writes it."""
    expanded = expand(
        scenario({"runner": "llama.cpp", "quantization": "Q8_0", "threads": 2, "mmap": False})
    )
    assert expanded == [
        ExpandedVariant(
            id="llama.cpp Q8_0 threads=2 mmap=false",
            runner="llama.cpp",
            quantization="Q8_0",
            options={"threads": 2, "mmap": False},
        )
    ]


def test_the_quantization_is_the_source_where_none_is_given() -> None:
    """A variant without a quantization runs the weights as published."""
    assert ids({"runner": "r"}) == ["r source"]


def test_sweeps_are_products_with_the_last_changing_fastest() -> None:
    """Every combination is one variant; a sweep of a quantization is one like any other."""
    expanded = expand(
        scenario({"runner": "r", "quantization": ["A", "B"], "x": 1.5, "t": [1, 2]}),
    )
    assert [variant.id for variant in expanded] == [
        "r A x=1.5 t=1",
        "r A x=1.5 t=2",
        "r B x=1.5 t=1",
        "r B x=1.5 t=2",
    ]
    assert expanded[3].options == {"x": 1.5, "t": 2}
    assert {variant.sweep for variant in expanded} == {"r x=1.5"}


def test_a_named_variant_keeps_its_name_and_appends_what_is_swept() -> None:
    """A name replaces what is fixed, never what tells the variants of a sweep apart."""
    assert ids({"runner": "r", "name": "fast", "t": 2, "m": True}) == ["fast"]
    swept = expand(scenario({"runner": "r", "name": "fast", "t": [2, 4], "m": True}))
    assert [variant.id for variant in swept] == ["fast t=2", "fast t=4"]
    assert [variant.sweep for variant in swept] == ["fast", "fast"]
    both = ids({"runner": "r", "name": "fast", "quantization": ["A"], "t": [2, 4]})
    assert both == ["fast A t=2", "fast A t=4"]


def test_a_variant_that_does_not_sweep_has_no_sweep() -> None:
    """Only variants made from a list belong to a sweep."""
    assert expand(scenario({"runner": "r", "t": 1}))[0].sweep is None


def test_the_home_folder_of_an_interpreter_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading ``~`` means the home folder, as it does in a shell."""
    monkeypatch.setenv("HOME", "/home/someone")
    variant = expand(scenario({"runner": "r", "python": "~/mlc/bin/python"}))[0]
    assert variant.python == "/home/someone/mlc/bin/python"


def test_options_may_be_given_beside_the_runner_or_by_name() -> None:
    """Both forms make the same variant, so that a saved scenario can be read again."""
    beside = Variant.model_validate({"runner": "r", "t": [1, 2]})
    by_name = Variant(runner="r", options={"t": (1, 2)})
    assert beside == by_name
    assert beside.options == {"t": (1, 2)}


@pytest.mark.parametrize("mode", ["python", "json"])
def test_a_saved_scenario_reads_back_the_same(mode: str) -> None:
    """What `model_dump` writes, in either mode, is the same scenario again."""
    first = scenario(
        {"runner": "r", "quantization": ["A", "source"], "t": [1, 2], "mmap": True, "x": 0.5},
        {"runner": "r", "name": "n", "python": "/p"},
    )
    assert Scenario.model_validate(first.model_dump(mode=mode)) == first
    assert Scenario.model_validate_json(first.model_dump_json()) == first


def test_values_are_frozen() -> None:
    """A scenario can't be changed after it is read."""
    variant = scenario({"runner": "r"}).variants[0]
    with pytest.raises(ValidationError, match="frozen"):
        variant.runner = "other"


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Warmup, {"min": 6}, r"min must not be|must not be above max"),
        (Workload, {"name": "w", "generate_tokens": 2}, "give a prompt"),
        (
            Workload,
            {"name": "w", "generate_tokens": 2, "prompt": "x", "prompt_tokens": 1},
            "not both",
        ),
    ],
)
def test_the_model_keeps_its_own_rules(
    kind: type[Warmup | Workload], values: dict[str, object], message: str
) -> None:
    """What does not go together is refused without the loader too."""
    with pytest.raises(ValidationError, match=message):
        kind.model_validate(values)


@pytest.mark.parametrize(
    "variants",
    [
        [{"runner": "r", "t": 1}, {"runner": "r", "t": 1}],
        [{"runner": "r", "name": "n"}, {"runner": "q", "name": "n"}],
        [{"runner": "r", "t": [1, 2]}, {"runner": "r", "t": 2}],
        # One sweep whose texts read the same when they are joined.
        [{"runner": "r", "a": ["1", "1 b=2"], "b": ["2 b=3", "3"]}],
    ],
)
def test_ids_are_unique(variants: list[dict[str, object]]) -> None:
    """Two variants of one id are refused, wherever they come from."""
    with pytest.raises(ValidationError, match="already"):
        scenario(*variants)


def test_two_workloads_of_one_name_are_refused() -> None:
    """A workload's name tells it from the others."""
    tree = scenario({"runner": "r"}).model_dump()
    tree["workloads"] = [*tree["workloads"], *tree["workloads"]]
    with pytest.raises(ValidationError, match=r"workloads\[0\] has the name 'w' already"):
        Scenario.model_validate(tree)
