"""Writing reports: a run's own beside it, that of several into a folder of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.errors import OutputError, UsageError
from edgebench.harness.results.writer import write_atomically
from edgebench.reports import languages
from edgebench.reports.languages import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from edgebench.harness.predict.device import DeviceFacts
    from edgebench.reports.data import ReportData

FORMATS = ("md", "html", "csv", "json", "latex")
"""All that a report can be written as."""

DEFAULT_FORMATS = ("md", "html")

COMBINED = Path("combined-report")
"""Where the report of several runs goes."""

_ENDINGS = {"latex": "tex"}


def write_reports(
    *run_dirs: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    formats: Sequence[str] = DEFAULT_FORMATS,
    language: str = ENGLISH,
    predict: Sequence[DeviceFacts] = (),
) -> tuple[Path, ...]:
    """Write a report, in place of older ones: of one run, or one report of several.

    All forms are made before any is written.

    Args:
        run_dirs: the runs' folders, at least one.
        out: the folder to write to, made where it does not exist; the run's own by default, of
            several runs `COMBINED`.
        formats: some of `FORMATS`.
        language: one of `LANGUAGES`. Its tag stands in the file's name where it is not English.
        predict: devices that are not at hand, which the table of platforms predicts.

    Returns:
        The files, in the order of `formats`.

    Raises:
        ResultError: a folder holds no run that can be read, or the runs must not be mixed.
        UsageError: there is no such format or language.
        OutputError: a report can't be written; an older one is as it was.
    """
    formats = checked_formats(formats)
    if language not in LANGUAGES:
        msg = f"there is no language {language!r}"
        raise UsageError(msg, remedy=f"Languages: {', '.join(LANGUAGES)}.")
    folder = Path(out) if out is not None else _own_folder(run_dirs)
    made = _rendered(run_dirs, formats, language, folder, predict)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} can't be made ({error.strerror or error})."
        raise OutputError(msg, remedy="Name another folder by --out.") from error
    paths = tuple(folder / file_name(each, language) for each in formats)
    for path, text in zip(paths, made, strict=True):
        write_atomically(path, text.encode())
    return paths


def checked_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """The formats, each once.

    Raises:
        UsageError: one is not known, or there is none.
    """
    unknown = [each for each in formats if each not in FORMATS]
    if unknown or not formats:
        msg = f"there is no format {unknown[0]!r}" if unknown else "no format is named"
        raise UsageError(msg, remedy=f"Formats: {', '.join(FORMATS)}.")
    return tuple(dict.fromkeys(formats))


def file_name(form: str, tag: str = ENGLISH) -> str:
    """The name of a report's file, such as ``report.html`` or ``report.zh.html``."""
    middle = "" if tag == ENGLISH else f".{tag}"
    return f"report{middle}.{_ENDINGS.get(form, form)}"


def _own_folder(run_dirs: Sequence[str | os.PathLike[str]]) -> Path:
    return Path(run_dirs[0]) if len(run_dirs) == 1 else COMBINED


def _rendered(
    run_dirs: Sequence[str | os.PathLike[str]],
    formats: Sequence[str],
    tag: str,
    folder: Path,
    predict: Sequence[DeviceFacts],
) -> list[str]:
    # Imported late: drawing needs matplotlib, which the command line must not wait for.
    from edgebench.reports.combine import combined  # noqa: PLC0415
    from edgebench.reports.data import collected_before  # noqa: PLC0415

    renderers = [_renderer(each, folder) for each in formats]
    with languages.language(tag):
        data = replace(combined(run_dirs), predicted=tuple(predict))
        with collected_before():
            return [render(data) for render in renderers]


def _renderer(form: str, folder: Path) -> Callable[[ReportData], str]:
    """What makes a form, imported only where it is asked for."""
    if form == "html":
        from edgebench.reports.html import render_page  # noqa: PLC0415

        # Alone it leads to other files, so it must know where it will lie.
        return partial(render_page, folder=folder)
    if form == "md":
        from edgebench.reports.markdown import render_text  # noqa: PLC0415

        return render_text
    if form == "csv":
        from edgebench.reports.export_csv import render_csv  # noqa: PLC0415

        return render_csv
    if form == "json":
        from edgebench.reports.export_json import render_json  # noqa: PLC0415

        return render_json
    from edgebench.reports.export_latex import render_latex  # noqa: PLC0415

    return render_latex
