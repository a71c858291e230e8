"""Where a scenario is: a file of the user, or one that edgebench ships."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Final

from edgebench.harness.errors import ScenarioError
from edgebench.harness.scenario.problems import quote, suggestion

_SUFFIX: Final = ".yaml"
_FOLDER: Final = "scenarios"


def builtin_scenarios() -> list[str]:
    """The names of the scenarios that edgebench ships."""
    return sorted(
        entry.name.removesuffix(_SUFFIX)
        for entry in files("edgebench.scenarios").iterdir()
        if entry.name.endswith(_SUFFIX)
    )


def find_scenario(name: str) -> Path:
    """The file of a scenario.

    Args:
        name: a path; or, where there is no such file, the name of a scenario that edgebench
            ships, with or without ``.yaml``, also as it stands in edgebench's own folder
            (``scenarios/smollm2-135m.yaml``).

    Raises:
        ScenarioError: there is neither; the message lists the names there are.
    """
    path = Path(name)
    if _exists(path, folder=False):
        return path
    known = builtin_scenarios()
    builtin = _builtin_name(name)
    if builtin in known:
        return Path(str(files("edgebench.scenarios") / f"{builtin}{_SUFFIX}"))
    if _exists(path, folder=True):
        message = f"{quote(name)} is a folder; name a scenario's file in it"
        raise ScenarioError(message)
    near = suggestion(builtin, known)
    hint = f"did you mean {near!r}? " if near else ""
    message = f"there is no scenario {quote(name)}: no such file, and none that edgebench ships"
    raise ScenarioError(message, remedy=f"{hint}edgebench ships {', '.join(known)}.")


def _builtin_name(name: str) -> str:
    path = PurePosixPath(name)
    base = path.name if str(path.parent) in {".", _FOLDER} else name
    return base.removesuffix(_SUFFIX)


def _exists(path: Path, *, folder: bool) -> bool:
    """Whether there is such a folder, or else anything that can be read as a file."""
    try:
        return path.is_dir() if folder else path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False  # a name that no file can have, such as a too long one
