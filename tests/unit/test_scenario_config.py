"""The user's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.errors import ExitStatus, UsageError
from edgebench.harness.scenario.config import config_path, load_config


def message(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_config(path)
    assert caught.value.exit_status is ExitStatus.USAGE
    return caught.value.message.replace(str(path), "FILE")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a configuration may be written."""
    return tmp_path / "config.toml"


def test_runners_have_their_interpreters(path: Path) -> None:
    """A runner's interpreter is read, its home folder written out."""
    path.write_text('[runners."llama.cpp"]\npython = "/opt/py"\n[runners.mlc]\n')
    config = load_config(path)
    assert {name: runner.python for name, runner in config.runners.items()} == {
        "llama.cpp": "/opt/py",
        "mlc": None,
    }


def test_a_leading_tilde_is_the_home_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter in the home folder may be written as in a shell."""
    monkeypatch.setenv("HOME", "/home/someone")
    path.write_text('[runners.mlc]\npython = "~/mlc/bin/python"\n')
    assert load_config(path).runners["mlc"].python == "/home/someone/mlc/bin/python"


def test_every_problem_is_one_line(path: Path) -> None:
    """Unknown keys and wrong types are reported together, in plain words."""
    text = (
        '[runner]\n[runners."llama.cpp"]\npyhton = "x"\n'
        '[runners.mnn]\npython = 3\n[runners.b]\npython = ""\n'
    )
    assert sorted(message(path, text).split("\n")) == [
        "FILE: runner: unknown key; did you mean 'runners'?",
        "FILE: runners.'llama.cpp'.pyhton: unknown key; did you mean 'python'?",
        "FILE: runners.b.python: must not be empty; leave the key out where it has no value",
        "FILE: runners.mnn.python: must be text, got 3 (a whole number)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runners = 3", "FILE: runners: must be a group of keys, got 3 (a whole number)"),
        ("[runners]\na = 3", "FILE: runners.a: must be a group of keys, got 3 (a whole number)"),
        ("runners.a = 2024-01-01", "FILE: runners.a: must be a group of keys, got a date or time"),
        ("a = ", "FILE: syntax: Invalid value (at end of document)"),
        ("a = " + "[" * 5000, "FILE: syntax: nests too deep"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_a_usage_error(path: Path, text: str, expected: str) -> None:
    """No configuration gives a traceback."""
    assert message(path, text) == expected


def test_bytes_that_are_no_text_are_a_usage_error(path: Path) -> None:
    """A file in another encoding is told to be saved as UTF-8."""
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_config(path)


def test_no_configuration_is_an_empty_one(tmp_path: Path) -> None:
    """The default file need not exist; one that was named must."""
    home = {"HOME": str(tmp_path)}
    assert load_config(environ=home).runners == {}
    with pytest.raises(UsageError, match="there is no such file"):
        load_config(environ={**home, "EDGEBENCH_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(UsageError, match="there is no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="can't be read"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("environ", "expected", "named"),
    [
        ({"HOME": "/h"}, "/h/.config/edgebench/config.toml", False),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/edgebench/config.toml", False),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/edgebench/config.toml", False),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x", "EDGEBENCH_CONFIG": "c.toml"}, "c.toml", True),
    ],
)
def test_where_the_configuration_is(environ: dict[str, str], expected: str, named: bool) -> None:
    """EDGEBENCH_CONFIG, then XDG_CONFIG_HOME where absolute, then the home folder."""
    assert config_path(environ) == (Path(expected), named)
