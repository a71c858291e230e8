"""MLC's own package, mlc_llm: whether it is installed, and what to say where it is not.

It comes from MLC's own wheel index. What PyPI has under these names (``mlc-llm-cpu`` and its
like) is empty. Nothing is imported to find that out: ``mlc_llm`` takes seconds to import.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_settings import INSTALL_MLC_LLM

MODULE = "mlc_llm"
ENGINE_FILE = "serve/engine.py"
"""Where MLC's engine is, in its package."""

OWN_ENVIRONMENT = (
    "install mlc_llm into an environment of its own, and name its interpreter with `python:`"
)


def installed() -> str | None:
    """The version of mlc_llm, ``unknown`` where it does not tell; None where it is not there."""
    folder = _folder()
    if folder is None or not (folder / ENGINE_FILE).is_file():
        return None
    return _version(folder)


def why_not() -> str:
    """Where mlc_llm is not installed: one sentence that says so and how to install it."""
    folder = _folder()
    if folder is not None:
        return f"{folder} is not MLC's package: it has no {ENGINE_FILE}; {_advice()}"
    for found in _distributions():
        if _name(found).startswith("mlc-llm"):
            return f"{_name(found)} {found.version} is an empty placeholder; {_advice()}"
    return f"mlc_llm is not installed; {_advice()}"


def conflict() -> str | None:
    """One sentence where two installed packages bring a ``tvm``: one overwrote files of the other.

    MLC's wheels have a TVM of their own, ``mlc-ai-…``, beside which ``apache-tvm`` can't be.
    """
    rivals = [each for each in _distributions() if _name(each).startswith(("apache-tvm", "mlc-ai"))]
    if len(rivals) < 2:  # noqa: PLR2004 - a conflict takes two
        return None
    having = [f"{_name(each)} {each.version}" for each in rivals if _has(each, "tvm/__init__.py")]
    if len(having) < 2:  # noqa: PLR2004 - the others are placeholders, or tvm-ffi
        return None
    return f"{' and '.join(sorted(having))} overwrite each other's module tvm; {OWN_ENVIRONMENT}"


def require() -> str:
    """The version of mlc_llm, where it is installed and can work.

    Raises:
        RunnerFailure: it is not (unavailable), with what to do.
    """
    version = installed()
    wrong = why_not() if version is None else conflict()
    if version is None or wrong:
        raise RunnerFailure(wrong or why_not(), reason="unavailable")
    return version


def import_package() -> Any:  # noqa: ANN401 - a module that edgebench does not install
    """Import mlc_llm, which takes seconds.

    Raises:
        RunnerFailure: it is not installed, can't be imported, or has no engine (unavailable).
    """
    version = require()
    try:
        package = importlib.import_module(MODULE)
    except Exception as error:
        # Its libraries are loaded as it is imported, so that much may fail besides an import.
        first = next(iter(str(error).strip().splitlines()), "")
        msg = (
            f"mlc_llm {version} can't be imported ({type(error).__name__}: {first}); choose "
            f"engine: tvm, or {_advice()}"
        )
        raise RunnerFailure(msg, reason="unavailable") from error
    if not hasattr(package, "MLCEngine"):
        msg = f"mlc_llm {version} has no MLCEngine; {_advice()}"
        raise RunnerFailure(msg, reason="unavailable")
    return package


def _advice() -> str:
    return (
        f"install MLC's own into an environment without apache-tvm, and name that Python in "
        f"python: {INSTALL_MLC_LLM}"
    )


def _folder() -> Path | None:
    """Where mlc_llm is, importing nothing; None where there is nothing of that name."""
    try:
        spec = importlib.util.find_spec(MODULE)
    except ValueError:  # something without a spec was put into sys.modules
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _version(folder: Path) -> str:
    for found in _distributions():
        if _name(found).startswith("mlc-llm") and _has(found, f"{MODULE}/__init__.py"):
            return found.version
    # Built from source: its own file says so, and says that it may be read alone.
    try:
        text = (folder / "libinfo.py").read_text("utf-8")
    except OSError:
        return "unknown"
    told = re.search(r"^__version__\s*=\s*[\"']([^\"']+)[\"']", text, re.MULTILINE)
    return told[1] if told else "unknown"


@cache
def _distributions() -> tuple[metadata.Distribution, ...]:
    """What is installed; of two of the same name the one that is imported."""
    found: dict[str, metadata.Distribution] = {}
    for each in metadata.distributions():
        found.setdefault(_name(each), each)
    return tuple(found.values())


def _name(found: metadata.Distribution) -> str:
    """A distribution's name as pip compares them; empty for a broken one."""
    name: str | None = found.metadata["Name"]
    return re.sub(r"[-_.]+", "-", name or "").lower()


def _has(found: metadata.Distribution, path: str) -> bool:
    return any(str(file) == path for file in found.files or ())
