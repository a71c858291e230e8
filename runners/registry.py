"""Which runners there are: the entry points of installed packages, and edgebench's own.

A runner's module is light (its framework is imported late), so that reading its options here
costs nothing. Where edgebench runs from a zip file in somebody else's interpreter, its own
entry points are not installed there; `BUILTIN` names them all the same.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from edgebench.runners.base import Runner

GROUP = "edgebench.runners"

BUILTIN = {
    "llama.cpp": "edgebench.runners.llama_cpp:LlamaCppRunner",
    "mnn": "edgebench.runners.mnn:MnnRunner",
    "mediapipe": "edgebench.runners.mediapipe:MediaPipeRunner",
    "mlc": "edgebench.runners.mlc:MlcRunner",
    "fake": "edgebench.runners.fake:FakeRunner",
}


def runner_names() -> list[str]:
    """The names of all runners, edgebench's own first."""
    others = sorted({point.name for point in entry_points(group=GROUP)} - set(BUILTIN))
    return [*BUILTIN, *others]


def runner_class(name: str) -> type[Runner]:
    """The class of the runner `name`.

    Raises:
        RunnerFailure: there is none of that name (unavailable), or its module can't be imported.
    """
    points: dict[str, EntryPoint] = {
        own: EntryPoint(own, value, GROUP) for own, value in BUILTIN.items()
    }
    if name not in points:  # only then, since it reads the metadata of every package
        points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(runner_names())
        msg = f"there is no runner named {name!r} in this interpreter; there are {known}"
        raise RunnerFailure(msg, reason="unavailable")
    try:
        return cast("type[Runner]", points[name].load())
    except Exception as error:
        msg = f"the runner {name!r} ({points[name].value}) can't be imported: {error}"
        raise RunnerFailure(msg, reason="unavailable") from error


def runner_classes() -> dict[str, type[Runner]]:
    """Every runner whose class can be imported, by name."""
    classes = {}
    for name in runner_names():
        try:
            classes[name] = runner_class(name)
        except RunnerFailure:
            continue  # `edgebench runners` names it with the reason
    return classes
