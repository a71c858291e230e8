"""No text gives a traceback or a hang: it is a scenario, or every line says where it is wrong."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edgebench.harness.errors import ScenarioError
from edgebench.harness.scenario.find import find_scenario
from edgebench.harness.scenario.loader import load_scenario, parse_scenario
from edgebench.harness.scenario.model import Scenario, expand
from edgebench.runners.fake import FakeRunner
from edgebench.runners.llama_cpp import LlamaCppRunner

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.scenario.options import RunnerOptions

RUNNERS: dict[str, RunnerOptions] = {"llama.cpp": LlamaCppRunner, "fake": FakeRunner}
LINE = re.compile(r"f:[1-9][0-9]*:[1-9][0-9]*: [^:]+.*: .+")
JARGON = re.compile(
    r"Input should|valid (integer|string|dictionary|tuple)|pydantic|Traceback|got None"
)

SHIPPED = find_scenario("smollm2-135m").read_text(encoding="utf-8")
DENSE = """\
schema_version: 1
name: dense
model: &m {name: tiny, source: "path:tiny.gguf", sha256: null}
variants:
  - {runner: llama.cpp, quantization: [source, Q8_0], threads: [1, 2], mmap: true}
  - {runner: fake, name: "a fake", load_s: 0.5}
workloads:
  - {name: chat, prompt: 'Hello, "you"', chat_template: true, generate_tokens: 8}
  - name: long
    prompt_tokens: 0x20
    generate_tokens: 0o10
measure: {warmup: {min: 1}, repetitions: {max: 7}, cooldown_s: 1.5}
"""
KEYS = [*sorted(set(re.findall(r"[a-z_0-9]+(?=:)", DENSE))), "options", "<<", "x", "", "python"]
# What means something in YAML, and so breaks it most.
TOKENS = [
    *"{}[]:,-?&*!|>'\"%@`#~\t\n\r\\ ",
    *(": ", "- ", "? ", "---\n", "...\n", "<<: ", "*m", "&m ", "!!str ", "!!binary ", "!x "),
    *("%YAML 1.1\n", "null", "true", "no", "0o10", "1e400", ".inf", ".nan", "1_0", "-1"),
    *("\ufeff", "\x85", "\u2028", "\x00", "\\ud800", "\\UFFFFFFFF", "😀"),
    *("${HOME}", "9" * 30, "9" * 5000, "[" * 40, "Q8_0", "llama.cpp"),
]


def check(text: str) -> None:
    """The promise of this file."""
    try:
        scenario = parse_scenario(text, filename="f", runners=RUNNERS, environ={})
    except ScenarioError as error:
        lines = error.message.split("\n")
        for line in lines:
            assert LINE.fullmatch(line), line
            assert line.isprintable(), line
            assert not JARGON.search(re.sub(r"'.*?'|\".*?\"", "", line)), line
        places = [tuple(map(int, line.split(":")[1:3])) for line in lines]
        assert places == sorted(places)
    else:
        assert isinstance(scenario, Scenario)
        ids = [variant.id for variant in expand(scenario)]
        assert len(ids) == len(set(ids)) > 0
        assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=200))
@example('a: "\\UFFFFFFFF"')
@example("? ")
@example("!")
@example("&a")
@example("%TAG ! x\n--- !y z")
def test_any_text(text: str) -> None:
    """Arbitrary text is refused in lines of the promised form."""
    check(text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*TOKENS, *KEYS]), max_size=40).map("".join))
def test_any_soup_of_yaml(text: str) -> None:
    """Pieces of YAML in any order are refused, or read, in the same way."""
    check(text)


@settings(max_examples=400, deadline=None)
@given(data=st.data(), original=st.sampled_from([SHIPPED, DENSE]))
def test_any_mutation_of_a_valid_file(data: st.DataObject, original: str) -> None:
    """A valid file with a few pieces put in, taken out or doubled keeps the promise."""
    text = original
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        piece = data.draw(st.one_of(st.sampled_from(TOKENS), st.just(text[start:end] * 2)))
        text = text[:start] + piece + text[end:]
    check(text)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-2, 20),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["fake", "llama.cpp", "Q8_0", "source", "path:x", "natural", "on"]),
)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=6)), inner, max_size=5),
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees)
def test_any_tree(tree: object) -> None:
    """Any tree of values, written as JSON, which is YAML, keeps the promise."""
    check(json.dumps(tree))
    check(json.dumps(tree, ensure_ascii=False, indent=1))


@settings(max_examples=400, deadline=None)
@given(data=st.data(), value=trees)
def test_any_value_in_a_valid_tree(data: st.DataObject, value: object) -> None:
    """A valid scenario with any value in any place keeps the promise."""
    tree: Any = parse_scenario(DENSE, filename="f").model_dump(mode="json", exclude_unset=True)
    for variant in tree["variants"]:
        variant.update(variant.pop("options"))
    node = tree
    while True:
        key = data.draw(
            st.sampled_from([*node, "x", "seed"])
            if isinstance(node, dict)
            else st.integers(0, len(node) - 1)
        )
        inner = node[key] if not isinstance(node, dict) or key in node else None
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            node[key] = value
            break
        node = inner
    check(json.dumps(tree))


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.binary(max_size=100))
@example(SHIPPED.encode("utf-16"))
@example(b"\xef\xbb\xbf")
def test_any_bytes_in_a_file(tmp_path: Path, content: bytes) -> None:
    """Whatever a file holds is a scenario's error, with the file's name in each line."""
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    for line in caught.value.message.split("\n"):
        assert line.startswith(f"{path}:")
        assert LINE.fullmatch(line.removeprefix(f"{path.parent}/")), line
