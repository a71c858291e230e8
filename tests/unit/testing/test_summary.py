"""What the terminal says at the end of a session."""

from __future__ import annotations

from edgebench.testing.summary import summary_lines


def test_each_test_is_named_once_above_its_sentences() -> None:
    """Two comparisons of one test, one of another."""
    told = [("t.py::a", "pass: x"), ("t.py::a", "undecided: y"), ("t.py::b", "pass: z")]
    assert summary_lines(told) == ["t.py::a", "  pass: x", "  undecided: y", "t.py::b", "  pass: z"]


def test_lines_fit_80_columns() -> None:
    """A long sentence goes on below, set in; nothing of it is lost."""
    sentence = "pass: " + " ".join(f"word{index}" for index in range(60))
    lines = summary_lines([("t.py::a", sentence)])
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines[1:]).split()) == sentence
