"""A gate on a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import replace

import gate_sample
import pytest

from edgebench.reports.comparing.gate_terminal import gate_text


def lines(width: int = 80, **changes: object) -> list[str]:
    return gate_text(replace(gate_sample.every_status(), **changes), width=width).splitlines()  # type: ignore[arg-type]


def test_the_outcome_comes_first() -> None:
    """Whoever reads one line of a CI's log reads this one."""
    assert lines()[0] == "FAILED     4 limits are broken"
    kept = {"outcome": "passed", "headline": "No limit is broken"}
    assert lines(**kept)[0] == "passed     No limit is broken"
    open_ = {"outcome": "undecided", "headline": "Too few", "remedy": "Measure again: `x`"}
    assert lines(**open_)[:2] == ["UNDECIDED  Too few", "           Measure again: `x`"]


def test_what_is_broken_stands_above_what_is_not() -> None:
    """Broken, warnings, allowed, undecided, then what was compared."""
    text = lines()
    heads = [text.index(each) for each in ("broken", "warnings", "allowed", "undecided")]
    assert heads == sorted(heads)
    assert text.index("kept       1 of 9 limits") > heads[-1]


def test_each_section_says_what_its_reader_wants() -> None:
    """The failure's log, the allowance's reason and day, the repetitions that would settle it."""
    text = "\n".join(lines())
    assert "      GGML_ASSERT(buffer) failed" in text
    assert "allowed up to 10 % until 2027-01-31: the new tokenizer is slower" in text
    assert "34 repetitions on each side would settle it" in text
    assert "new        mnn int8 block_size=32 / chat: not in the baseline" in text
    assert "(threads: 2 → 1)" in text


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("make", [gate_sample.every_status, gate_sample.odd, gate_sample.large])
def test_no_line_is_wider_than_the_terminal(width: int, make: object) -> None:
    """Whatever is in it."""
    text = gate_text(make(), width=width)  # type: ignore[operator]
    assert max(map(len, text.splitlines())) <= width


def test_names_from_outside_do_nothing_to_a_terminal() -> None:
    """Escape sequences and line ends in names are gone."""
    text = gate_text(gate_sample.odd())
    assert "\x1b" not in text
    assert "::error::" in text
    assert not any(line.startswith(("::", "@all")) for line in text.splitlines())


def test_a_gate_of_hundreds_is_cut_and_says_where_the_rest_is() -> None:
    """A screen is no place for 600 broken limits."""
    text = gate_text(gate_sample.large())
    assert "  and 560 more; --json and --markdown hold them all" in text


def test_a_number_stays_with_its_unit() -> None:
    """No line ends between 1 and %, at any width."""
    sample = gate_sample.every_status()
    checks = [replace(each, message="it grew by 10 % of 3 s " * 5) for each in sample.checks]
    for width in range(40, 90):
        for line in gate_text(replace(sample, checks=tuple(checks)), width=width).splitlines():
            assert not line.strip().startswith(("%", "s "))


def test_other_machines_are_labelled() -> None:
    """Nothing across machines looks like a gate on one."""
    sample = gate_sample.gate([gate_sample.check()], across_machines="A against B")
    assert "machines   A against B" in gate_text(sample)


def test_what_fails_for_being_undecided_is_not_called_broken() -> None:
    """Under a heading that says whose wish that is."""
    row = gate_sample.row(candidate=110.0, verdict="better", repetitions=2000)
    sample = gate_sample.gate([gate_sample.check(row, "fail", undecided=True)])
    text = gate_text(sample)
    assert "\nundecided, which fails here\n" in text
    assert "\nbroken\n" not in text
    assert "more than 1000 repetitions on each side would settle it" in text


def test_limits_of_their_own_confidence_are_told() -> None:
    """How certain is a range then, and not the gate's."""
    rows = [gate_sample.row(), gate_sample.row(metric="ttft_s")]
    checks = [
        gate_sample.check(row, confidence=level)
        for row, level in zip(rows, (0.95, 0.999), strict=True)
    ]
    text = " ".join(gate_text(gate_sample.gate(checks)).split())
    assert "certain at 95 % to 99.9 %, as the limit says" in text
