"""Files of profiles: found by name or path, checked as a whole, every problem with its place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.device_profiles.figures import GIB, Ram
from edgebench.harness.device_profiles.model import (
    SCHEMA_VERSION,
    Accelerator,
    Cores,
    DeviceProfile,
    Memory,
    PowerLimits,
    Storage,
)
from edgebench.harness.errors import ProfileError
from edgebench.harness.scenario.problems import (
    Finding,
    Position,
    Problem,
    fold,
    format_path,
    quote,
    suggestion,
)
from edgebench.harness.scenario.text_file import UnreadableFileError, read_text_file
from edgebench.harness.scenario.wording import Layout, reword
from edgebench.harness.scenario.yaml_reader import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUFFIXES: Final = (".yaml", ".yml")
_PACKAGE: Final = "edgebench.devices.profiles"
_LIST_REMEDY: Final = "`edgebench devices list` shows all; a file is named by its path."

_OTHERS: Final = frozenset({"variants", "workloads", "limits"})
_ASKS: Final = frozenset({"soc", "cores", "memory", "ram_bytes"})
"""Keys by which a scenario or a policy is told from a profile."""

_LAYOUT: Final[Layout] = {
    (): DeviceProfile,
    ("cores", "*"): Cores,
    ("memory",): Memory,
    ("power",): PowerLimits,
    ("storage",): Storage,
    ("accelerators", "*"): Accelerator,
}


def builtin_profiles() -> list[str]:
    """The keys of the profiles that edgebench ships, in order."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files(_PACKAGE).iterdir()
        if entry.name.endswith(".yaml")
    )


def list_profiles() -> list[DeviceProfile]:
    """All that edgebench ships, in the order of their keys."""
    return [_builtin(key) for key in builtin_profiles()]


def find_profile(name: str, *, base: Path | None = None) -> DeviceProfile:
    """The profile of a device.

    Args:
        name: the key of one that edgebench ships, such as ``raspberry-pi-5``, with the size of
            its memory after a colon where it is sold with several (``raspberry-pi-5:4GiB``); or
            a file: a path that ends with ``.yaml`` or has a folder in it.
        base: the folder that a relative path is relative to; the working directory where it is
            not given.

    Raises:
        ProfileError: there is none, the file is wrong, or it is not sold with so much memory.
    """
    if is_file_name(name):
        return load_profile((base or Path()) / Path(name).expanduser())
    key, colon, size = name.partition(":")
    known = builtin_profiles()
    if key not in known:
        hint = _meant(key, known)
        message = f"there is no device profile {quote(name)}"
        raise ProfileError(message, remedy=f"{hint}{_LIST_REMEDY}")
    profile = _builtin(key)
    return _with_ram(profile, size) if colon else profile


def _meant(key: str, known: list[str]) -> str:
    """What was probably meant: all that begin so, or the one that is most alike."""
    near = [each for each in known if key and fold(each).startswith(fold(key))]
    if not near and (alike := suggestion(key, known)):
        near = [alike]
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def is_file_name(name: str) -> bool:
    """Whether a profile's name means a file."""
    return "/" in name or "\\" in name or name.lower().endswith(_SUFFIXES)


def load_profile(path: Path) -> DeviceProfile:
    """Read a profile's file.

    Raises:
        ProfileError: the file can't be read or is wrong, or has the key of a shipped profile; one
            line for each problem, as ``file:line:column: path: what is wrong, what is allowed``.
    """
    try:
        text = read_text_file(path, "device profile")
    except UnreadableFileError as error:
        problem = Problem(error.position, "profile", error.message)
        raise ProfileError(problem.line(str(path))) from error
    profile = parse_profile(text, filename=str(path))
    if profile.key in builtin_profiles() and not path.samefile(_builtin_path(profile.key)):
        # In results and reports the two could not be told apart.
        message = (
            f"{profile.key} is the key of a profile that edgebench ships; take another one, such "
            f"as my-{profile.key}"
        )
        placed = read_yaml(text).place(Finding(("key",), message))
        problem = placed or Problem(Position(1, 1), "key", message)
        raise ProfileError(problem.line(str(path)))
    return profile


def parse_profile(text: str, *, filename: str) -> DeviceProfile:
    """Read a profile from its text.

    Args:
        text: the whole file.
        filename: how the messages name it.

    Raises:
        ProfileError: the text is wrong.
    """
    document = read_yaml(text)
    problems = set(document.problems)
    plain = document.plain()
    if isinstance(plain, dict) and plain.keys() & _OTHERS and not plain.keys() & _ASKS:
        message = "this is no device profile: it has neither cores nor memory"
        raise ProfileError(Problem(Position(1, 1), "profile", message).line(filename))
    profile: DeviceProfile | None = None
    if document.root is not None:
        profile, findings = _validate(plain)
        problems.update(filter(None, map(document.place, findings)))
    if problems or profile is None:
        lines = (_of_a_profile(problem).line(filename) for problem in sorted(problems))
        raise ProfileError("\n".join(dict.fromkeys(lines)))
    return profile


def _validate(plain: object) -> tuple[DeviceProfile | None, list[Finding]]:
    if not isinstance(plain, dict):
        message = "must be a group of keys such as 'schema_version: 1', one a line"
        return None, [Finding((), message)]
    try:
        return DeviceProfile.model_validate(plain), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if _is_newer(plain):
        # Its other keys may well be right in that format.
        details = [detail for detail in details if detail["loc"] == ("schema_version",)]
    return None, reword([(detail, detail["loc"]) for detail in details], _LAYOUT)


def _is_newer(plain: Mapping[str, object]) -> bool:
    version = plain.get("schema_version")
    return type(version) is int and version > SCHEMA_VERSION


def _of_a_profile(problem: Problem) -> Problem:
    return replace(problem, path="profile") if problem.path == format_path(()) else problem


def _builtin_path(key: str) -> Path:
    return Path(str(files(_PACKAGE) / f"{key}.yaml"))


@cache
def _builtin(key: str) -> DeviceProfile:
    path = _builtin_path(key)
    profile = load_profile(path)
    if profile.key != key:
        problem = Problem(Position(1, 1), "key", f"must be {key}, as the file is called")
        raise ProfileError(problem.line(str(path)))
    return profile


def _digits(size: str) -> str:
    """The number that a size begins with: ``4`` of ``4gib``, ``4 GB`` and ``4GiB``."""
    size = size.strip()
    return size[: len(size) - len(size.lstrip("0123456789."))]


def _with_ram(profile: DeviceProfile, size: str) -> DeviceProfile:
    """The same with the memory that was asked for."""
    ram = profile.ram_bytes
    sold = ram.choices or ([] if ram.value is None else [ram.value])
    sizes = ", ".join(f"{each / GIB:g}GiB" for each in sold)
    wanted = Ram.parse(size)
    if wanted is None or not Ram.least <= wanted <= Ram.most:
        message = f"{quote(size)} is no size of a memory"
        meant = [each for each in sizes.split(", ") if each and _digits(each) == _digits(size)]
        if meant:
            raise ProfileError(message, remedy=f"Did you mean {profile.key}:{meant[0]}?")
        raise ProfileError(message, remedy=f"Write it as in {profile.key}:{Ram.example}.")
    # Where the size was only assumed, its user knows better.
    if wanted not in sold and ram.basis != "assumed":
        message = f"{profile.name} is not sold with {quote(size)} of memory"
        remedy = f"Name one of {sizes}, as in {profile.key}:{sizes.partition(',')[0]}."
        if len(sold) == 1:
            # Another size may well be sold, as another device.
            message = f"the profile {profile.key} is of a device with {sizes}, not {quote(size)}"
            remedy = " ".join(
                [f"Leave out the size, or write a profile of your own for {quote(size)}."]
                + [note for note in profile.notes if "GB" in note]
            )
        raise ProfileError(message, remedy=remedy)
    chosen = ram.model_copy(update={"value": wanted})
    # Whoever reads the key in results finds the same device by it.
    key = f"{profile.key}:{wanted / GIB:g}GiB"
    return profile.model_copy(update={"key": key, "ram_bytes": chosen})
