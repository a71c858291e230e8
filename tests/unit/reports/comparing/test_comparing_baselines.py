"""A baseline on the terminal: figures that say what was measured."""

from __future__ import annotations

import gate_sample as made
from rich.console import Console

from edgebench.harness.compare.model import Samples
from edgebench.harness.compare.wanted import by_default
from edgebench.reports.comparing.baselines import baseline_view, fewest_and_most


def _cell(workload: str, values: tuple[float, ...]) -> object:
    blocks = tuple(("s", place) for place in range(len(values)))
    return made.cell(
        workload=workload, metrics={"load_s": Samples(values, blocks, "s", "observed")}
    )


def test_an_interval_of_something_does_not_begin_at_nothing() -> None:
    """Loads from 0.3 to 4.2 ms: the lower end is above 0, and is written so."""
    values = (0.0003,) * 4 + (0.0042,) * 4
    side = made.side("x", [_cell("chat", values)])  # type: ignore[list-item]
    console = Console(width=80, color_system=None)
    with console.capture() as said:
        console.print(baseline_view(side, "x.json", by_default))
    (line,) = (each for each in said.get().splitlines() if each.startswith("  load"))
    assert "[0," not in line
    assert "[0.3, " in line


def test_repetitions_are_counted_over_cells() -> None:
    """Two and five; a cell without any says nothing."""
    cells = [_cell("a", (1.0, 1.0)), _cell("b", (1.0,) * 5), made.cell(workload="c")]
    assert fewest_and_most(made.side("x", cells)) == (2, 5)  # type: ignore[arg-type]
    assert fewest_and_most(made.side("x", [made.cell()])) is None
