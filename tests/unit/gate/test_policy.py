"""A gate's policy as people write it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import jsonschema
import pytest
from gate_sides import cell
from ruamel.yaml import YAML

from edgebench.harness.compare import decide
from edgebench.harness.errors import PolicyError
from edgebench.harness.gate.policy import MOST_CONFIDENCE, Match, Policy, default_policy
from edgebench.harness.gate.policy_file import load_policy, parse_policy
from edgebench.harness.gate.schema import policy_schema

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
schema_version: 1
confidence: 99.5 %
noise_floor: 0.02
undecided: warn
failures: warn
limits:
  decode_rate: {worse_by: 2%, at_least: 10}
  ttft_s: {worse_by: 5 %, confidence: 99.9%, at_most: 2s}
  peak_rss_bytes: {worse_by: 0.02, at_most: 1GiB, severity: warn}
  "itl_*": {worse_by: 150%}
  load_s: off
cells:
  - match: "mnn* / long-*"
    limits: {ttft_s: {worse_by: 15%}, load_s: off}
  - match: {runner: mnn, workload: long}
    limits: {ttft_s: off}
allow:
  - {cell: "mnn*", metric: decode_rate, worse_by: 10%, until: 2027-01-31, reason: a known fault}
  - {cell: "*", until: 2027-02-28, reason: moving}
"""


def policy(*lines: str) -> Policy:
    return parse_policy("\n".join(("schema_version: 1", *lines)) + "\n", filename="p")


def problem(*lines: str) -> str:
    with pytest.raises(PolicyError) as caught:
        policy(*lines)
    return str(caught.value)


def test_every_key_is_read() -> None:
    """Shares become fractions, days days, and off nothing."""
    read = parse_policy(WHOLE, filename="gate.yaml")
    assert (read.confidence, read.noise_floor) == (0.995, 0.02)
    assert (read.undecided, read.failures) == ("warn", "warn")
    limits = read.limits
    decode, ttft, memory = limits["decode_rate"], limits["ttft_s"], limits["peak_rss_bytes"]
    assert decode is not None
    assert ttft is not None
    assert memory is not None
    assert (decode.worse_by, decode.at_least, decode.severity) == (0.02, 10, None)
    assert (ttft.worse_by, ttft.confidence, ttft.at_most) == (0.05, 0.999, "2s")
    assert (memory.worse_by, memory.severity) == (0.02, "warn")
    assert limits["load_s"] is None
    assert read.allow[0].until == dt.date(2027, 1, 31)
    assert (read.allow[1].metric, read.allow[1].worse_by) == ("*", None)


@pytest.mark.parametrize(
    ("written", "share"),
    [("5%", 0.05), ("5 %", 0.05), ("0.05", 0.05), ("7%", 0.07), ("0", 0.0), ("'.5 %'", 0.005)],
)
def test_a_share_is_written_in_percent_or_not(written: str, share: float) -> None:
    """5%, 5 % and 0.05 are the same, to the last digit."""
    limit = policy(f"limits: {{ttft_s: {{worse_by: {written}}}}}").limits["ttft_s"]
    assert limit is not None
    assert limit.worse_by == share


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("ttft_s: {worse_by: 5}", "write 5% or 0.05, got 5"),
        ("ttft_s: {worse_by: -1%}", "must be a share such as 5% or 0.05, 0 or more"),
        ("ttft_s: {worse_by: true}", "must be a share such as"),
        ("ttft_s: {worse_by: 5%, confidence: 40%}", "more than 50% and at most 99.9%"),
        ("ttft_s: {worse_by: 5%, confidence: 99.95%}", "the draws of the test can't tell more"),
        ("ttft_s: {worse_by: 5%, confidence: 100%}", "more than 50% and at most 99.9%"),
        ("ttft_s: {worse_by: 5%, severity: error}", "must be 'fail' or 'warn'"),
        ("ttft_s: {worse: 5%}", "unknown key; did you mean 'worse_by'?"),
        ("ttft: {worse_by: 5%}", "unknown metric; did you mean 'ttft_s'?"),
        ("speed: {worse_by: 5%}", "unknown metric; `docs/metrics.md` lists them"),
        ("'x*': {worse_by: 5%}", "no metric fits the pattern 'x*'"),
        ("ttft_s: {}", "must say worse_by, at_most or at_least, or off"),
        ("ttft_s: 5%", "must be a group of keys such as {worse_by: 5%}, or off"),
        ("ttft_s:", "must be a group of keys such as {worse_by: 5%}, or off"),
        ("decode_rate: {at_most: 5}", "more of decode_rate is better"),
        ("ttft_s: {at_least: 1s}", "at_most may be meant"),
        ("ttft_s: {at_most: 1GiB}", "ttft_s is in s, ms"),
        ("ttft_s: {at_most: fast}", "such as 2s or 1GiB"),
        ("ttft_s: {at_most: -1}", "must be a number, or one with its unit"),
        ("peak_rss_bytes: {at_most: 2s}", "peak_rss_bytes is in B, KiB"),
        ("perplexity: {at_most: 3GiB}", "perplexity is in %, got '3GiB'"),
        ("cpu_clock_hz: {worse_by: 5%}", "so nothing is worse; use at_most or at_least"),
        ("decode_rate: {worse_by: 100%}", "can't fall by 100% or more"),
        ("'*rate*': {at_least: 5}", "metrics in token/s, token/s/W"),
    ],
)
def test_a_limit_that_is_wrong_is_told_with_its_place(limit: str, said: str) -> None:
    """Each problem has its line, and says what is allowed."""
    found = problem("limits:", f"  {limit}")
    assert found.startswith("p:3:")
    assert said in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("confidence: 99", "limits: {ttft_s: {worse_by: 5%}}"), "write 99% or 0.99, got 99"),
        (("limits: {}",), "must hold at least one metric, got none"),
        (("undecided: pass",), "limits: this key is missing"),
        (("limit: {}",), "unknown key; did you mean 'limits'?"),
        (("limits: {a: off}", "cells: [{match: {}, limits: {a: off}}]"), "must name a variant"),
        (("limits: {a: off}", "cells: [{match: 3, limits: {a: off}}]"), "must be a pattern of"),
        (("limits: {a: off}", "cells: [{match: {model: x}, limits: {}}]"), "unknown key; allowed"),
        (("limits: {a: off}", "allow: [{cell: x, until: 2027-02-30, reason: x}]"), "no such day"),
        (("limits: {a: off}", "allow: [{cell: x, until: soon, reason: x}]"), "such as 2027-01-31"),
        (("limits: {a: off}", "allow: [{cell: x, until: 2027-02-01}]"), "why it is borne"),
        (("limits: {a: off}", "allow: [{cell: x, metric: ttft}]"), "did you mean 'ttft_s'?"),
    ],
)
def test_what_is_wrong_elsewhere_is_told_too(lines: tuple[str, ...], said: str) -> None:
    """Missing, unknown and impossible keys are named with what is allowed."""
    assert said in problem(*lines)


def test_all_problems_are_told_at_once() -> None:
    """Three mistakes make three lines, in the order of the file."""
    found = problem("limits:", "  ttf_s: {worse_by: 5%}", "  load_s: {at_least: 1}", "x: 1")
    assert [line.split(":")[1] for line in found.splitlines()] == ["3", "4", "5"]


def test_a_newer_format_is_refused_and_nothing_else_is_blamed() -> None:
    """A policy for a later edgebench says to upgrade."""
    with pytest.raises(PolicyError) as caught:
        parse_policy("schema_version: 2\nlimits: {new_metric: {}}\n", filename="p")
    (line,) = str(caught.value).splitlines()
    assert "p:1:17: schema_version: written for a newer edgebench, format 2" in line


def test_another_kind_of_file_is_no_policy() -> None:
    """A scenario given as a policy is not blamed key by key."""
    found = problem("name: x", "variants: []", "model: {}")
    assert found == "p:1:1: policy: this is no policy: it has no limits"


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is no text each have their message."""
    with pytest.raises(PolicyError, match="there is no such file"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(PolicyError, match="this is a folder"):
        load_policy(tmp_path)
    (tmp_path / "bad.yaml").write_bytes(b"schema_version: \xff\n")
    with pytest.raises(PolicyError, match=r"bad.yaml:1:17: policy: not UTF-8"):
        load_policy(tmp_path / "bad.yaml")


def test_a_policy_made_by_program_is_checked_too() -> None:
    """What the file's reader refuses, the model refuses."""
    with pytest.raises(ValueError, match="did you mean 'ttft_s'"):
        Policy.model_validate({"schema_version": 1, "limits": {"ttft": {"worse_by": 0.05}}})


def test_the_default_asks_few_things() -> None:
    """What users wait for, what must fit, and whether it is as good; no absolute bound."""
    policy = default_policy()
    assert policy.confidence == 0.99
    assert {"decode_rate", "ttft_s", "peak_rss_bytes", "perplexity"} <= policy.limits.keys()
    assert len(policy.limits) <= 8
    for limit in policy.limits.values():
        assert limit is not None
        assert 0 < (limit.worse_by or 0) <= 0.05
        assert limit.at_most is limit.at_least is None


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"cell": "mnn* / long*"}, True),
        ({"cell": "mnn*"}, True),
        ({"cell": "mnn int4"}, False),
        ({"variant": "mnn int?"}, True),
        ({"workload": "long-*", "runner": "mnn"}, True),
        ({"workload": "long-*", "runner": "llama.cpp"}, False),
        ({"variant": "MNN*"}, False),
    ],
)
def test_patterns_are_of_the_whole_name(match: dict[str, str], fits: bool) -> None:
    """A pattern fits from the first character to the last, in the same case."""
    of = cell("mnn int4 / long-answer")
    assert Match.model_validate(match).fits(of.variant, of.workload) is fits


def test_the_schema_takes_what_the_reader_takes() -> None:
    """An editor that knows the schema marks no line of a right policy."""
    text = WHOLE.replace("2027-01-31", "'2027-01-31'").replace("2027-02-28", "'2027-02-28'")
    tree = YAML(typ="safe", pure=True).load(text)
    jsonschema.Draft202012Validator(policy_schema()).validate(tree)


@pytest.mark.parametrize(
    "limits", [{"ttft_s": {"worse": 1}}, {"ttft_s": {"worse_by": 5}}, {}, {"ttft_s": "5%"}]
)
def test_the_schema_refuses_what_the_reader_refuses(limits: dict[str, object]) -> None:
    """Unknown keys, shares above 1 and groups that are none are marked."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema_version": 1, "limits": limits}, policy_schema())


def test_the_greatest_confidence_is_the_one_that_the_test_has_draws_for() -> None:
    """A policy asks for no more than can be told, and runs that differ by half tell nothing."""
    assert decide.MOST_CONFIDENCE == MOST_CONFIDENCE
    with pytest.raises(PolicyError, match="must be less than 50%, got '50%'"):
        parse_policy(
            "schema_version: 1\nnoise_floor: 50%\nlimits: {decode_rate: {worse_by: 2%}}\n",
            filename="p",
        )
