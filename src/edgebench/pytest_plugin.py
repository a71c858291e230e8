"""The pytest plugin: a fixture and a marker that measure a cell and hold it against a baseline.

It is loaded into every pytest session of an environment that has edgebench, so it imports nothing
of edgebench's own before a test asks for the fixture. See ``docs/pytest.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from edgebench.testing.fixture import Edgebench

NAME = "edgebench"
"""Of the fixture and of the marker."""

SKIPPED = "edgebench's measurements are skipped (--edgebench-skip)"

MARKER = (
    "edgebench(scenario, variant='*', workload='*', repetitions=None, time_budget_s=None, "
    "baseline=None, against=None, worse_by=None, confidence=None, policy=None): "
    "the cell of a scenario that the fixture `edgebench` measures."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line, and those of the configuration file."""
    group = parser.getgroup(NAME, "measurements of language models")
    group.addoption(
        "--edgebench-baseline",
        metavar="DIR",
        help="folder of saved baselines, a baseline's file or a run's folder, in place of what "
        "markers name",
    )
    group.addoption(
        "--edgebench-out",
        metavar="DIR",
        help="where results are written (default: results/pytest below the root folder)",
    )
    group.addoption(
        "--edgebench-save",
        action="store_true",
        help="save what is measured as baselines, and compare nothing",
    )
    group.addoption(
        "--edgebench-skip", action="store_true", help="skip the tests that measure something"
    )
    parser.addini("edgebench_baseline", "folder of saved baselines", default="baselines")
    parser.addini("edgebench_out", "where results are written", default="results/pytest")
    parser.addini("edgebench_skip", "skip the tests that measure something", "bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what measures where that is asked for."""
    if config.getoption("edgebench_skip") or config.getini("edgebench_skip"):
        for item in items:
            if NAME in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture
def edgebench(request: pytest.FixtureRequest) -> Edgebench:
    """Measures the marked cell of a scenario and holds it against a baseline."""
    from edgebench.testing.fixture import make_fixture  # noqa: PLC0415 - see above

    return make_fixture(request)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say what came of each comparison, of those above all that could not be decided."""
    told = [
        (report.nodeid, str(value))
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for key, value in report.user_properties
        if key == "edgebench"
    ]
    if told:
        from edgebench.testing.summary import summary_lines  # noqa: PLC0415 - see above

        terminalreporter.section(NAME)
        for line in summary_lines(told):
            terminalreporter.write_line(line)
