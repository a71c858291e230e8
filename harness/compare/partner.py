"""The run that a run was interleaved with, found from its folder."""

from __future__ import annotations

from pathlib import Path

from edgebench.harness.errors import BaselineError
from edgebench.harness.results.run import RUN_FILE, read_record

_MOST_NAMED = 4
_REMEDY = "Name the two runs, the baseline first."


def partner_of(candidate: Path) -> Path:
    """The folder of the baseline that a candidate was interleaved with.

    Raises:
        BaselineError: it was not interleaved, or is itself the baseline; or its partner is gone.
        ResultError: it can't be read.
    """
    baseline, found = interleaved_pair(candidate)
    if found != candidate:
        msg = f"{candidate} is the baseline side of an interleaved run."
        raise BaselineError(msg, remedy=f"Name its candidate: {found}")
    return baseline


def interleaved_pair(folder: Path) -> tuple[Path, Path]:
    """The two sides of an interleaved run, the baseline first, from the folder of either.

    Raises:
        BaselineError: it was not interleaved, or its partner is gone.
        ResultError: it can't be read.
    """
    inside = sorted(each.parent.name for each in folder.glob(f"*/{RUN_FILE}"))
    if inside and not (folder / RUN_FILE).exists():
        msg = f"{folder} holds runs, and is none itself: {', '.join(inside[:_MOST_NAMED])}."
        candidates = [each for each in inside if each.endswith("-candidate")]
        one = f"Name {folder / candidates[0]}." if len(candidates) == 1 else _REMEDY
        raise BaselineError(msg, remedy=one)
    interleaved = read_record(folder).interleaved
    if interleaved is None:
        msg = f"{folder} was not interleaved with another run."
        raise BaselineError(msg, remedy=f"{_REMEDY} `edgebench run --against` makes such a run.")
    # A name alone: a file must not lead anywhere else.
    name = Path(interleaved.partner).name
    partner = folder.parent / name if folder.name else folder.resolve().parent / name
    if not partner.is_dir():
        msg = f"{folder} was interleaved with {partner}, which is not there."
        raise BaselineError(msg, remedy=f"Put it back beside the other. {_REMEDY}")
    return (folder, partner) if interleaved.side == "baseline" else (partner, folder)
