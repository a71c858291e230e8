"""A comparison on the terminal: what stands where, and that it fits and does nothing else."""

from __future__ import annotations

from dataclasses import replace

import gate_sample as made

from edgebench.harness.compare.model import Differing
from edgebench.harness.results.measured import Failure
from edgebench.reports.comparing.terminal import comparison_text, headline


def _line(text: str, beginning: str) -> str:
    (line,) = (each for each in text.splitlines() if each.startswith(beginning))
    return line


def test_a_row_says_both_values_the_change_and_the_verdict() -> None:
    """100 and 90 tokens a second: 10 % less, within 1 % either way; the unit stands once."""
    text = comparison_text(made.comparison([made.row()]))
    assert _line(text, "  decode").split() == [
        "decode", "100.0", "90.0", "tokens/s", "-10", "%", "[-11,", "-9]", "worse",
    ]  # fmt: skip
    assert "llama.cpp Q4_0 / chat\n" in text
    assert _line(text, "measured") == "measured   in the same blocks, in random order"


def test_sides_that_were_made_at_different_times_say_so() -> None:
    """Pairs are what tells most, and their absence must be seen."""
    text = comparison_text(made.comparison([made.row()], interleaved=False))
    assert _line(text, "measured") == "measured   at different times"


def test_what_differs_everywhere_stands_once_and_what_differs_here_at_its_cell() -> None:
    """Options and versions, each as `what: baseline → candidate`."""
    here = made.pair(differing=(Differing("threads", "2", "1", "option"),))
    everywhere = (Differing("llama.cpp's version", "b1", "b2", "version"),)
    text = comparison_text(made.comparison([made.row(here)], differing=everywhere))
    assert _line(text, "differs") == "differs    llama.cpp's version: b1 → b2"
    assert "llama.cpp Q4_0 / chat\n  differs: threads: 2 → 1\n" in text


def test_a_cell_of_another_name_is_told() -> None:
    """The candidate's name heads the table; the baseline's stands below it."""
    pair = replace(made.pair(), baseline=made.cell("llama.cpp Q8_0"))
    text = comparison_text(made.comparison([made.row(pair)]))
    assert "llama.cpp Q4_0 / chat\n  against llama.cpp Q8_0 / chat\n" in text


def test_what_can_not_be_told_says_what_would_settle_it() -> None:
    """Below the table, by cell and metric; of one metric in its own words."""
    why = "a change of 6.1 % would have been noticed; 34 repetitions on each side would settle 2 %"
    text = comparison_text(made.comparison([made.row(verdict="cant_tell", why=why)]))
    _, below = text.split("can't tell\n  llama.cpp Q4_0 / chat\n")
    said = " ".join(below.split("\n\n")[0].split())
    assert said == f"decode: {why}"


def test_a_cell_of_which_nothing_compares_for_one_reason_is_one_line() -> None:
    """A failure is not repeated for each metric."""
    rows = [
        made.row(metric=each, candidate=None, verdict="not_compared", why="the candidate failed")
        for each in ("decode_rate", "ttft_s")
    ]
    pair = rows[0].pair
    text = comparison_text(made.comparison([replace(each, pair=pair) for each in rows]))
    assert "not compared\n  llama.cpp Q4_0 / chat: the candidate failed\n" in text
    assert "decode" not in text


def test_cells_without_a_counterpart_are_named() -> None:
    """Vanished and added ones, and those that failed on both sides."""
    failure = Failure(kind="crash", message="It ended.\nlog")
    both = made.pair(
        "mnn",
        baseline=made.cell("mnn"),
        candidate=made.cell("mnn", status="failed", failure=failure),
    )
    text = comparison_text(
        made.comparison(
            [made.row()],
            pairs=(both,),
            vanished=(made.cell("old"),),
            added=(made.cell("new", status="not_run"),),
        )
    )
    assert "only in the baseline\n  old / chat\n" in text
    assert "only in the candidate\n  new / chat: not run\n" in text
    assert "no result on either side\n  mnn / chat: failed: It ended." in text


def test_across_machines_everything_is_labelled() -> None:
    """In the first lines and in the head."""
    label = "across machines: A (1) → B (2)"
    text = comparison_text(made.comparison([made.row()], across_machines=label))
    assert _line(text, "machines") == "machines   A (1) → B (2)"
    assert label in " ".join(text.split("\n\n")[0].split())


def test_the_headline_counts_by_verdict() -> None:
    """Worst first; nothing at all is said in words."""
    rows = [
        made.row(made.pair(str(place)), verdict=verdict)  # type: ignore[arg-type]
        for place, verdict in enumerate(("same", "worse", "better", "worse", "cant_tell"))
    ]
    assert headline(made.comparison(rows)) == (
        "2 worse, 1 better, 1 same, 1 can't tell (99 % certain, over all of them together; a "
        "change within 2 % counts as the same)."
    )
    assert headline(made.comparison()).startswith("Nothing was compared")


def test_the_count_of_verdicts_comes_first() -> None:
    """Whoever reads one line reads this one."""
    text = comparison_text(made.comparison([made.row()]))
    assert text.startswith("1 worse (99 % certain, over all of them together;")


def test_what_could_not_be_told_of_a_cell_is_one_sentence() -> None:
    """With what would have been noticed of each metric, and what settles all of them."""
    pair = made.pair()
    rows = [
        made.row(
            pair,
            metric=metric,
            verdict="cant_tell",
            why=f"of {metric}",
            repetitions=count,
            noticeable=noticeable,
        )
        for metric, noticeable, count in (
            ("decode_rate", 0.061, 34), ("ttft_s", 0.12, 120), ("load_s", 18.02, 5000)
        )
    ]  # fmt: skip
    text = " ".join(comparison_text(made.comparison(rows)).split())
    assert (
        "changes of 6.1 % (decode), 12 % (TTFT) would have been noticed; 120 repetitions on each "
        "side would settle 2 % in all of them load: of load_s"
    ) in text
    assert "of decode_rate" not in text


def test_medians_that_point_the_other_way_are_explained_once() -> None:
    """Rates of 100 and 101, and pairs that fell by 1 %."""
    row = made.row(baseline=100.0, candidate=101.0, ratio=0.99)
    text = comparison_text(made.comparison([row, row]))
    assert text.count("which may point the other way") == 1
    assert "may point" not in comparison_text(made.comparison([made.row()]))


def test_a_path_is_not_broken() -> None:
    """However long it is, it can be copied."""
    path = "results/" + "long-" * 20 + "20250101T101500Z-abc123"
    text = comparison_text(replace(made.comparison([made.row()]), notes=(path,)))
    assert path in text


def test_names_do_nothing_and_lines_fit() -> None:
    """Escape sequences go; of a long or wide name no table becomes wider than the screen."""
    odd = made.pair(made.ODD)
    wide = made.pair("模型" * 20)
    rows = [
        made.row(pair, metric=metric, baseline=each, candidate=0.9 * each)
        for pair in (odd, wide)
        for metric, each in (("peak_rss_bytes", 123456789.0), ("energy_per_token_j", 0.00123))
    ]
    text = comparison_text(made.comparison(rows))
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "\N{NO-BREAK SPACE}%" not in text
