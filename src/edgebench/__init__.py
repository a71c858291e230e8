"""edgebench runs one model through several edge LLM frameworks and compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from edgebench.harness.results.run import Run

__version__ = "0.1.0"

__all__ = ["__version__", "read_run"]


def read_run(path: str | PathLike[str]) -> Run:
    """Read a run's folder.

    Args:
        path: the folder that holds ``run.json`` and ``trials.jsonl``.

    Returns:
        The run, typed; ``.to_frame()`` makes a pandas DataFrame of it.

    Raises:
        edgebench.harness.errors.ResultError: the folder holds no run, or one that was
            written by a newer edgebench.
    """
    # Imported late: the worker process imports this package and needs none of that.
    from edgebench.harness.results.run import read_run as read  # noqa: PLC0415

    return read(path)
