"""The user's configuration: which Python interpreter has which framework."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field, ValidationError

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.model import Written
from edgebench.harness.scenario.problems import format_path, one_line
from edgebench.harness.scenario.wording import Layout, reword

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES: Final = 1 << 20


class RunnerConfig(Written):
    """What the user set for one runner."""

    python: str | None = Field(
        default=None, min_length=1, description="The Python interpreter that has the framework."
    )


class Config(Written):
    """The user's configuration."""

    runners: dict[str, RunnerConfig] = Field(default={}, description="By the runner's name.")


def config_path(environ: Mapping[str, str] = os.environ) -> tuple[Path, bool]:
    """Where the configuration is, and whether the user said so and it must therefore exist."""
    if named := environ.get("EDGEBENCH_CONFIG"):
        return Path(named), True
    base = environ.get("XDG_CONFIG_HOME")
    # The XDG specification: a relative path is invalid and to be ignored.
    if base and Path(base).is_absolute():
        return Path(base, "edgebench", "config.toml"), False
    home = environ.get("HOME") or str(Path.home())
    return Path(home, ".config", "edgebench", "config.toml"), False


def load_config(path: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Config:
    """Read the user's configuration.

    Args:
        path: the file; None for the one that `config_path` names, which may be absent.
        environ: the environment.

    Raises:
        UsageError: the file can't be read or is wrong; one line for each problem, as
            ``file: key: what is wrong, what is allowed``.
    """
    must_exist = path is not None
    if path is None:
        path, must_exist = config_path(environ)
    text = _read(path, must_exist=must_exist)
    if text is None:
        return Config()
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, "syntax", str(error)) from error
    except RecursionError as error:
        raise _wrong(path, "syntax", "nests too deep") from error
    try:
        return _resolved(Config.model_validate(tree))
    except ValidationError as error:
        layout: Layout = {(): Config}
        layout |= {("runners", name): RunnerConfig for name in _names(tree)}
        details = error.errors(include_url=False)
        findings = reword(((detail, detail["loc"]) for detail in details), layout)
    lines = [
        f"{one_line(str(path))}: {format_path(finding.path, 'configuration')}: {finding.message}"
        for finding in findings
    ]
    raise UsageError("\n".join(lines))


def _names(tree: Mapping[str, object]) -> list[str]:
    runners = tree.get("runners")
    return list(runners) if isinstance(runners, dict) else []


def _resolved(config: Config) -> Config:
    """Interpreters with a leading ``~`` replaced by the home folder, as a shell would."""
    runners = {
        # Path.expanduser raises where there is no home folder; this leaves the text alone.
        name: RunnerConfig(python=runner.python and os.path.expanduser(runner.python))  # noqa: PTH111
        for name, runner in config.runners.items()
    }
    return Config(runners=runners)


def _read(path: Path, *, must_exist: bool) -> str | None:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        if not must_exist:
            return None
        raise _wrong(path, "configuration", "there is no such file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _wrong(path, "configuration", f"can't be read: {reason}") from error
    if len(content) > MAX_FILE_BYTES:
        raise _wrong(path, "configuration", f"larger than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, "syntax", "not UTF-8; save the file as UTF-8") from error


def _wrong(path: Path, key: str, message: str) -> UsageError:
    return UsageError(one_line(f"{path}: {key}: {message}"))
