"""Writing a run's reports beside it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from edgebench.harness.errors import ResultError

MARKDOWN_FILE = "report.md"
HTML_FILE = "report.html"


def write_reports(run_dir: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Make ``report.md`` and ``report.html`` in a run's folder, in place of older ones.

    Args:
        run_dir: the run's folder.

    Returns:
        The paths of the Markdown and of the HTML report.

    Raises:
        ResultError: the folder holds no run that can be read, or can't be written.
    """
    # Imported late: drawing needs matplotlib, which the command line must not wait for.
    from edgebench.reports.data import load_report_data  # noqa: PLC0415
    from edgebench.reports.html import render_page  # noqa: PLC0415
    from edgebench.reports.markdown import render_text  # noqa: PLC0415

    folder = Path(run_dir)
    data = load_report_data(folder)
    markdown, html = folder / MARKDOWN_FILE, folder / HTML_FILE
    _replace(markdown, render_text(data))
    _replace(html, render_page(data))
    return markdown, html


def _replace(file: Path, text: str) -> None:
    """Write all of the text or leave the file as it was."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        temporary.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        msg = f"{file} can't be written ({error.strerror or error})."
        remedy = "Make room on the disk or the folder writable, then run `edgebench report` on it."
        raise ResultError(msg, remedy=remedy) from error
