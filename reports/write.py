"""Writing a run's reports beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.results.writer import write_atomically

if TYPE_CHECKING:
    import os

MARKDOWN_FILE = "report.md"
HTML_FILE = "report.html"


def write_reports(run_dir: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Make ``report.md`` and ``report.html`` in a run's folder, in place of older ones.

    Args:
        run_dir: the run's folder.

    Returns:
        The paths of the Markdown and of the HTML report.

    Raises:
        ResultError: the folder holds no run that can be read.
        OutputError: the reports can't be written; older ones are as they were.
    """
    # Imported late: drawing needs matplotlib, which the command line must not wait for.
    from edgebench.reports.data import load_report_data  # noqa: PLC0415
    from edgebench.reports.html import render_page  # noqa: PLC0415
    from edgebench.reports.markdown import render_text  # noqa: PLC0415

    folder = Path(run_dir)
    data = load_report_data(folder)
    markdown, html = folder / MARKDOWN_FILE, folder / HTML_FILE
    write_atomically(markdown, render_text(data).encode())
    write_atomically(html, render_page(data).encode())
    return markdown, html
