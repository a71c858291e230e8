"""What the loader says about a scenario that is wrong, and what it makes of one that is right."""

# ruff: noqa: E501 - a message is one line, and so is the one expected

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import ExitStatus, ScenarioError
from edgebench.harness.scenario.loader import load_scenario, parse_scenario
from edgebench.harness.scenario.text_file import MAX_FILE_BYTES
from edgebench.runners.base import Option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VALID = """\
schema_version: 1
name: small
model: {name: tiny, source: "path:tiny.gguf"}
variants:
  - {runner: engine, threads: 2}
workloads:
  - {name: chat, prompt: Hello., generate_tokens: 8}
"""


@dataclass(frozen=True)
class Declared:
    """What a runner's class declares."""

    OPTIONS: Mapping[str, Option] = field(
        default_factory=lambda: {
            "threads": Option("int", "Threads.", minimum=1),
            "rate": Option("float", "A rate.", minimum=0.5),
            "flash_attention": Option("str", "Which.", choices=("auto", "on", "off")),
            "mmap": Option("bool", "Map the file."),
            "batch": Option("int", "A batch.", choices=(1, 8, 16)),
            "block": Option("int", "A block.", minimum=8, stage="convert"),
        }
    )
    QUANTIZATIONS: tuple[str, ...] = ("F16", "Q8_0")


RUNNERS = {"engine": Declared(), "other": Declared()}


def lines(text: str, *, checked: bool = True, configured: tuple[str, ...] = ()) -> list[str]:
    """The problems of a text, one a line."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(
            text, filename="f", runners=RUNNERS if checked else None, configured=configured
        )
    assert caught.value.exit_status is ExitStatus.USAGE
    return caught.value.message.split("\n")


def with_variants(*variants: str) -> str:
    return VALID.replace(
        "  - {runner: engine, threads: 2}", "\n".join(f"  - {v}" for v in variants)
    )


def with_workload(workload: str) -> str:
    return VALID.replace("{name: chat, prompt: Hello., generate_tokens: 8}", workload)


def test_a_right_scenario_is_returned_with_its_defaults() -> None:
    """What is not written has the documented default."""
    scenario = parse_scenario(VALID, filename="f", runners=RUNNERS)
    assert scenario.name == "small"
    assert scenario.variants[0].options == {"threads": 2}
    assert scenario.variants[0].quantization == "source"
    measure = scenario.measure
    assert (measure.warmup.min, measure.warmup.max, measure.warmup.stable_within) == (1, 5, 0.05)
    repetitions = measure.repetitions
    assert (repetitions.min, repetitions.max, repetitions.ci_half_width) == (5, 20, 0.02)
    assert (measure.per_block, measure.interleave, measure.seed) == (1, True, 1)
    assert (measure.cooldown_s, measure.time_budget_s, measure.timeout_s) == (0, 600, 120)
    assert (measure.max_cv, measure.cold_load) == (0.05, False)


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    """Text, types, unknown keys, conflicts, options and sources: one line each, top to bottom."""
    text = textwrap.dedent("""\
        schema_version: 1
        name: not a slug
        model: {name: m, source: "ftp:x", lisense: MIT}
        variants:
          - {runner: engine, quantization: q8_0, threads: [1, 0]}
          - {runner: engin}
        workloads:
          - {name: a, prompt: x, prompt_tokens: 4, generate_tokens: 1}
          - {name: a, generate_tokns: 4}
        measure:
          warmup: {min: 9}
          seed: .inf
          seed: 3
        """)
    assert lines(text) == [
        "f:2:7: name: must be letters, digits, '.', '_' and '-', a letter or digit first, got 'not a slug'",
        "f:3:26: model.source: unknown kind of source 'ftp'; allowed are pypi:PACKAGE==VERSION/FILE, hf:ORG/NAME[@REVISION][/FILE], path:FILE_OR_FOLDER and synthetic:ARCHITECTURE[@QUANTIZATION]",
        "f:3:35: model.lisense: unknown key; did you mean 'license'?",
        "f:5:36: variants[0].quantization: engine can't make the quantization 'q8_0'; did you mean 'Q8_0'?",
        "f:5:55: variants[0].threads[1]: must be at least 1, got 0",
        "f:6:14: variants[1].runner: there is no runner 'engin'; did you mean 'engine'? installed: engine, other; for one of another interpreter, write that beside it as python",
        "f:8:26: workloads[0].prompt_tokens: give either prompt or prompt_tokens, not both",
        "f:8:61: workloads[0].generate_tokens: must be at least 2, got 1",
        "f:9:5: workloads[1]: give a prompt, or its length as prompt_tokens, or a text to rate as quality",
        "f:9:12: workloads[1].name: workloads[0] has the name 'a' already",
        "f:9:15: workloads[1].generate_tokns: unknown key; did you mean 'generate_tokens'?",
        "f:11:17: measure.warmup.min: must not be above max (5, the default), got 9",
        "f:12:9: measure.seed: must be a finite number, got .inf",
        "f:13:3: measure.seed: this key is there already, at line 12; remove one of them",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("schema_version: 1\n", "", "f:1:1: schema_version: this key is missing: version of this format"),
        ("version: 1", "version: '1'", "f:1:17: schema_version: must be 1, got '1' (text)"),
        ("version: 1", "version: true", "f:1:17: schema_version: must be 1, got true (true or false)"),
        ("version: 1", "version: 0", "f:1:17: schema_version: must be 1, got 0 (a whole number)"),
        ("name: small", "name: [a]", "f:2:7: name: must be text, got a list"),
        ("name: small", "name: ../up", "f:2:7: name: must be letters, digits, '.', '_' and '-', a letter or digit first, got '../up'"),
        ("name: small", "name: no", None),
        ("name: small", "name: 2024-01-31", None),
        ("name: small", "name: 7", "f:2:7: name: must be text, got 7 (a whole number)"),
        ("name: small", "name:", "f:2:1: name: must be text, got nothing"),
        ("name: small", f"name: {'n' * 81}", "f:2:7: name: must be at most 80 characters, got 81"),
        ("name: tiny,", "name: ' tiny',", "f:3:15: model.name: must be one line of text without control characters, and without spaces at its ends, got ' tiny'"),
        ("tiny.gguf\"", "tiny.gguf\", sha256: abc", "f:3:55: model.sha256: must be 64 digits out of 0-9 and a-f, got 'abc'"),
        ("model: {", "model: [{", None),
        ("workloads:\n  -", "workloads:\n ", "f:7:3: workloads: must be a list, got a group of keys"),
        ("  - {runner: engine, threads: 2}", "  []", "f:5:3: variants: must hold at least one item, got none"),
        ("  - {runner: engine, threads: 2}", "  - engine", "f:5:5: variants[0]: must be a group of keys, got 'engine' (text)"),
        ("generate_tokens: 8", "generate_tokens: two", "f:7:51: workloads[0].generate_tokens: must be a whole number, got 'two' (text)"),
        ("generate_tokens: 8", "generate_tokens: 8.0", "f:7:51: workloads[0].generate_tokens: must be a whole number, got 8.0 (a number)"),
        ("generate_tokens: 8", "generate_tokens: true", "f:7:51: workloads[0].generate_tokens: must be a whole number, got true (true or false)"),
        ("generate_tokens: 8", "generate_tokens: 99999999", "f:7:51: workloads[0].generate_tokens: must be at most 16777216, got 99999999"),
        ("generate_tokens: 8", "chat_template: yes, generate_tokens: 8", "f:7:49: workloads[0].chat_template: must be true or false, got 'yes' (text)"),
        (", generate_tokens: 8", "", "f:7:5: workloads[0].generate_tokens: this key is missing: how many tokens to generate, exactly"),
        ("prompt: Hello.", "prompt: ''", "f:7:26: workloads[0].prompt: must not be empty; leave the key out where it has no value"),
        ("prompt: Hello.", "prompt: Hello., text: synthetic", "f:7:34: workloads[0].text: only a prompt of a given length can be synthetic; give prompt_tokens"),
        ("prompt: Hello.", "prompt_tokens: 3, chat_template: true", "f:7:36: workloads[0].chat_template: only a prompt can be put in the chat template; give prompt, or leave this out"),
        ("prompt: Hello.", "prompt_tokens: 3, text: random", "f:7:42: workloads[0].text: must be 'natural' or 'synthetic', got 'random' (text)"),
        ("workloads:", "timeout_s: 3\nworkloads:", "f:6:1: timeout_s: unknown key; it belongs under measure"),
        ("workloads:", "ci_half_width: 3\nworkloads:", "f:6:1: ci_half_width: unknown key; it belongs under measure.repetitions"),
        ("workloads:", "x: 3\nworkloads:", "f:6:1: x: unknown key; allowed: description, device, measure, model, name, power, requirements, schema_version, variants, verify, workloads"),
        ("workloads:", "measure: {max_cv: 0}\nworkloads:", "f:6:19: measure.max_cv: must be more than 0, got 0"),
        ("workloads:", "measure: {max_cv: false}\nworkloads:", "f:6:19: measure.max_cv: must be a number, got false (true or false)"),
        ("workloads:", "measure: {warmup: {min: 0, max: 0}, cooldown_s: 1, max_cv: 1}\nworkloads:", None),
        ("workloads:", "measure: {repetitions: {max: 3}}\nworkloads:", "f:6:30: measure.repetitions.max: must not be below min (5, the default), got 3"),
        ("workloads:", "measure: {repetitions: {min: 4, max: 3}}\nworkloads:", "f:6:30: measure.repetitions.min: must not be above max (3), got 4"),
        ("workloads:", "measure: {interleave: 1}\nworkloads:", "f:6:23: measure.interleave: must be true or false, got 1 (a whole number)"),
        ("workloads:", "measure:\nworkloads:", "f:6:1: measure: must be a group of keys, got nothing"),
    ],
)  # fmt: skip
def test_each_wrong_value_has_its_place_and_says_what_is_allowed(
    old: str, new: str, line: str | None
) -> None:
    """One change to a valid file gives one line, in plain words, or none where it is right."""
    text = VALID.replace(old, new, 1)
    assert text != VALID
    if line is not None:
        assert lines(text) == [line]
    elif old == "model: {":  # a bracket opened and never closed
        assert len(lines(text)) == 1
    else:
        parse_scenario(text, filename="f", runners=RUNNERS)


@pytest.mark.parametrize(
    ("variant", "line"),
    [
        ("{runner: engine, threads: true}", "f:5:31: variants[0].threads: must be a whole number, got true (true or false)"),
        ("{runner: engine, threads: 2.0}", "f:5:31: variants[0].threads: must be a whole number, got 2.0 (a number)"),
        ("{runner: engine, threads: }", "f:5:22: variants[0].threads: must be a number, text, true or false, or a list of such, got nothing"),
        ("{runner: engine, threads: {a: 1}}", "f:5:31: variants[0].threads: must be a number, text, true or false, or a list of such, got a group of keys"),
        ("{runner: engine, threads: [1, [2]]}", "f:5:31: variants[0].threads: every value of a sweep must be a number, text, true or false, got a list"),
        ("{runner: engine, threads: []}", "f:5:31: variants[0].threads: a sweep must hold at least one value, got none"),
        ("{runner: engine, threads: [2, 1, 2]}", "f:5:31: variants[0].threads: the sweep holds '2' twice; remove one of them"),
        ("{runner: engine, rate: 1}", None),
        ("{runner: engine, rate: 0.4}", "f:5:28: variants[0].rate: must be at least 0.5, got 0.4"),
        ("{runner: engine, rate: fast}", "f:5:28: variants[0].rate: must be a number, got 'fast' (text)"),
        ("{runner: engine, mmap: no}", "f:5:28: variants[0].mmap: must be true or false, got 'no' (text)"),
        ("{runner: engine, mmap: [true, false]}", None),
        ("{runner: engine, flash_attention: on}", None),
        ("{runner: engine, flash_attention: true}", "f:5:39: variants[0].flash_attention: must be auto or on or off, got true (true or false)"),
        ("{runner: engine, flash_attention: of}", "f:5:39: variants[0].flash_attention: 'of' is not possible; did you mean 'off'?"),
        ("{runner: engine, batch: 3}", "f:5:29: variants[0].batch: '3' is not possible; allowed: 1, 16, 8"),
        ("{runner: engine, thread: 3}", "f:5:22: variants[0].thread: engine has no such option; did you mean 'threads'?"),
        ("{runner: engine, quantisation: F16}", "f:5:22: variants[0].quantisation: engine has no such option; did you mean 'quantization'?"),
        ("{runner: engine, gpu: 3}", "f:5:22: variants[0].gpu: engine has no such option; allowed: batch, block, flash_attention, mmap, rate, threads"),
        ("{runner: engine, 'a b': 3}", "f:5:22: variants[0].'a b': an option's name must be letters, digits, '.', '_' and '-', a letter first, got 'a b'"),
        ("{runner: engine, quantization: [F16, source]}", None),
        ("{runner: engine, quantization: Q8_0, block: [32, 64]}", None),
        ("{runner: engine, quantization: Q8_0, block: 4}", "f:5:49: variants[0].block: must be at least 8, got 4"),
        ("{runner: engine, block: 32}", "f:5:22: variants[0].block: shapes what engine makes of the source, and the quantization 'source' is loaded as it is; name what to make (F16, Q8_0), or leave this out"),
        ("{runner: engine, quantization: [F16, source], block: 32}", "f:5:51: variants[0].block: shapes what engine makes of the source, and the quantization 'source' is loaded as it is; name what to make (F16, Q8_0), or leave this out"),
        ("{runner: engine, quantization: [F16, Q2]}", "f:5:42: variants[0].quantization[1]: engine can't make the quantization 'Q2'; allowed: F16, Q8_0, source"),
        ("{runner: engine, quantization: 8}", "f:5:36: variants[0].quantization: must be text such as Q8_0, or a list of such, got 8 (a whole number)"),
        ("{runner: engine, options: {threads: 2}}", "f:5:22: variants[0].options: unknown key; write the options themselves beside runner"),
        ("{runner: engine, options: 2}", "f:5:22: variants[0].options: unknown key; write the options themselves beside runner"),
        ("{threads: 2}", "f:5:5: variants[0].runner: this key is missing: which framework runs it"),
        ("{runner: mine, python: /opt/mine/bin/python, anything: 3}", None),
        ("{runner: mine}", "f:5:14: variants[0].runner: there is no runner 'mine'; installed: engine, other; for one of another interpreter, write that beside it as python"),
    ],
)  # fmt: skip
def test_a_variant_is_checked_against_its_runner(variant: str, line: str | None) -> None:
    """Kind, choices and minimum of options, quantizations and the runner's name are checked."""
    text = with_variants(variant)
    if line is None:
        parse_scenario(text, filename="f", runners=RUNNERS)
        return
    # An option that the pattern refuses is unknown as well; both may be said.
    assert line in lines(text)
    if "'a b'" not in variant:
        assert lines(text) == [line]


def test_a_runner_of_the_configuration_need_not_be_installed() -> None:
    """A runner that the user's configuration gives an interpreter is taken as it is."""
    text = with_variants("{runner: mine, anything: [1, 2]}")
    parse_scenario(text, filename="f", runners=RUNNERS, configured=["mine"])
    assert len(lines(text)) == 1


def test_runners_are_left_unchecked_without_their_classes() -> None:
    """Where no runners are given, any runner and option is taken."""
    scenario = parse_scenario(with_variants("{runner: any, x: [a, b]}"), filename="f")
    assert scenario.variants[0].options == {"x": ("a", "b")}


def test_the_same_variant_twice_is_an_error_at_the_second() -> None:
    """A variant that is the same as an earlier one is reported where it stands again."""
    text = with_variants("{runner: engine, threads: [1, 2]}", "{runner: engine, threads: 2}")
    assert lines(text) == [
        "f:6:5: variants[1]: variants[0] is 'engine source threads=2' already; change an option, or give one of them a name of its own"
    ]


def test_sweeps_that_multiply_beyond_all_bounds_are_refused() -> None:
    """A product of sweeps is counted, not written out."""
    many = f"[{', '.join(map(str, range(1, 1001)))}]"
    options = ", ".join(f"o{n}: {many}" for n in range(9))
    assert lines(with_variants(f"{{runner: any, {options}}}"), checked=False) == [
        "f:5:5: variants[0]: the sweeps make more than 500 variants up to here; sweep less"
    ]


def test_an_unset_variable_of_a_path_is_a_problem_of_the_source() -> None:
    """A variable that is not set is named, at the source's place."""
    text = VALID.replace("path:tiny.gguf", "path:${MODELS}/tiny.gguf")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, filename="f", environ={})
    assert caught.value.message == (
        "f:3:29: model.source: the environment variable MODELS is not set; the path needs it"
    )
    scenario = parse_scenario(text, filename="f", environ={"MODELS": "/m"})
    assert scenario.model.source == "path:${MODELS}/tiny.gguf"


def test_a_newer_format_is_refused_without_guessing_at_its_keys() -> None:
    """A file for a newer edgebench gets one line that says so, whatever else it holds."""
    text = VALID.replace("version: 1", "version: 2") + "new_key: {a: 1}\n"
    assert lines(text) == [
        "f:1:17: schema_version: written for a newer edgebench, format 2; this one reads up to format 1: upgrade edgebench"
    ]


@pytest.mark.parametrize("text", ["5", "[1]", "just text", "~"])
def test_a_file_that_is_no_group_of_keys_says_so(text: str) -> None:
    """YAML that is not a scenario at all is one problem, not many missing keys."""
    assert lines(text) == ["f:1:1: scenario: must be a group of keys such as 'name: …', one a line"]


def test_a_file_is_read_as_its_text(tmp_path: Path) -> None:
    """A file with a byte order mark gives the same scenario as its text."""
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + VALID.encode())
    assert load_scenario(path, runners=RUNNERS) == parse_scenario(VALID, filename="f")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "1:1: scenario: the file is empty; start with 'schema_version: 1'"),
        ("näme: \xe4\n".encode() + b"x: \xc3\xa4 \xff", "2:6: scenario: not UTF-8 (byte 0xff); save the file as UTF-8"),
        ("a: b".encode("utf-16"), "1:1: scenario: not UTF-8 (byte 0xff); save the file as UTF-8"),
        (b"#" * (MAX_FILE_BYTES + 1), "1:1: scenario: larger than 1048576 bytes, which no scenario is"),
        (None, "1:1: scenario: there is no such file"),
    ],
    ids=["empty", "latin", "utf-16", "large", "absent"],
)  # fmt: skip
def test_a_file_that_is_no_text_says_so(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    """A file that can't be a scenario is one line with the file's name."""
    path = tmp_path / "s.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert caught.value.message == f"{path}:{problem}"


def test_a_folder_says_so(tmp_path: Path) -> None:
    """A folder in place of a file is said to be one."""
    with pytest.raises(ScenarioError, match=r":1:1: scenario: this is a folder; name a scenario's"):
        load_scenario(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as another user")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    """A file that may not be read gives the system's own reason."""
    path = tmp_path / "s.yaml"
    path.write_text(VALID)
    path.chmod(0)
    # Imports come first: the other user may not be allowed to read the installation.
    code = (
        "import os, pathlib, sys\n"
        "from edgebench.harness.scenario.loader import load_scenario\n"
        "import edgebench.harness.store.sources\n"
        "os.setuid(65534)\n"
        "try:\n"
        "    load_scenario(pathlib.Path(sys.argv[1]))\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        f"ScenarioError {path}:1:1: scenario: can't be read: Permission denied\n"
    )


def test_names_from_outside_stay_on_their_line() -> None:
    """Line breaks and escapes in a file's name or a key can't forge a line of the message."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(VALID + '"a\\nb\\e": 1\n', filename="f\n1:1: x: y\x1b[31m")
    assert caught.value.message == (
        "f\\n1:1: x: y\\x1b[31m:8:1: 'a\\nb\\x1b': unknown key; "
        "allowed: description, device, measure, model, name, power, requirements, schema_version, variants, verify, workloads"
    )


@pytest.mark.parametrize("address", ["user@-x", "a;b", "b -v", "$(id)"])
def test_an_address_that_ssh_would_take_for_something_else_is_refused(address: str) -> None:
    """With its place, before anything is connected."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(VALID + f"device: {{ssh: '{address}'}}\n", filename="f")
    assert caught.value.message.startswith(f"f:8:15: device.ssh: '{address}' is no address for ssh")
