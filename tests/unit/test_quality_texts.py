"""The texts that are rated: those that are shipped, and files of the user."""

from __future__ import annotations

import hashlib
import os
from importlib import resources
from pathlib import Path

import pytest

from edgebench.harness.errors import ModelError
from edgebench.harness.quality.texts import BUILTIN, MOST_BYTES, check_spec, read_text

FOLDER = resources.files("edgebench.harness").joinpath("texts")

SIZES = {"prose": 70_085, "chinese": 104_676, "code": 100_414}
"""In bytes, as ``wc -c`` counts them."""


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_shipped_text_is_plain_utf_8(name: str) -> None:
    """No mark, control character or sign of damage is rated along with the text."""
    content = FOLDER.joinpath(BUILTIN[name].file).read_bytes()
    assert len(content) == SIZES[name]
    text = content.decode("utf-8")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for unwanted in "\ufeff\r\0\t\ufffd\u00a0\u3000":
        assert unwanted not in text
    assert not [char for char in text if "\ue000" <= char <= "\uf8ff"]  # nobody's characters
    assert not [line for line in text.splitlines() if line != line.rstrip(" ")]


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_shipped_text_is_what_the_registry_says(name: str) -> None:
    """The hash, the README's line, and what a user gets are those of one file."""
    known = BUILTIN[name]
    content = FOLDER.joinpath(known.file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == known.sha256
    text = read_text(f"builtin:{name}", base=None)
    assert text.text.encode() == content
    assert text.sha256 == known.sha256
    assert text.name == f"builtin:{name}"
    assert text.origin == f"{known.origin}; public domain"
    readme = FOLDER.joinpath("README.md").read_text("utf-8")
    assert f"`{known.file}` ({known.language.replace(', ', ' in ')}, " in readme
    assert f"{round(SIZES[name] / 1000)} kB)" in readme


def test_every_text_that_is_shipped_has_a_name() -> None:
    """No file lies in the folder that nobody can use."""
    files = {entry.name for entry in FOLDER.iterdir()}
    assert files == {known.file for known in BUILTIN.values()} | {"README.md"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "of which kind"),
        ("prose", "did you mean 'builtin:prose'?"),
        ("wiki.test.raw", "of which kind it is, got 'wiki.test.raw'"),
        ("https://example.org/a.txt", "unknown kind of text 'https'"),
        ("hf:a/b", "unknown kind of text 'hf'; allowed are builtin:NAME and path:FILE"),
        ("builtin:", "must name a text"),
        ("builtin:Prosa", "did you mean 'prose'? there are chinese, code, prose"),
        ("builtin:zzz", "no text named 'zzz' is built in; there are chinese, code, prose"),
        ("builtin:prose.txt", "did you mean 'prose'?"),
        ("path:", "must name a file"),
        ("path:  ", "must name a file"),
        ("path:${NOPE}", "NOPE is not set"),
        ("path:${EMPTY}/a", "EMPTY is empty"),
        ("path:${A-b}", "'${A-b}' is not a variable"),
        ("path:a\nb", "control characters"),
        ("path:a\0b", "control characters"),
    ],
)
def test_a_wrong_name_is_refused_with_what_is_allowed(spec: str, said: str) -> None:
    """Every refusal says what is wrong in one line, when checked and when read."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check_spec(spec, base=None, environ={"EMPTY": ""})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError) as failed:
        read_text(spec, base=None, environ={"EMPTY": ""})
    assert said in failed.value.message


def test_checking_opens_no_file() -> None:
    """A scenario can be written where the text is not."""
    environ = {"TEXTS": "/nowhere", "HOME": "/home/ada"}
    for spec, expected in (
        ("path:${TEXTS}/a.txt", "/nowhere/a.txt"),
        ("path:~/a.txt", "/home/ada/a.txt"),
        ("path:a.txt", "/scenarios/a.txt"),
    ):
        assert check_spec(spec, base=Path("/scenarios"), environ=environ) == Path(expected)


def test_a_text_of_the_user_is_its_bytes(tmp_path: Path) -> None:
    """Line ends and blanks stay, and the hash is the one that sha256sum prints."""
    content = " Ein Käse\r\n\r\n漢字 🙂 \t\n\n".encode()
    tmp_path.joinpath("own.txt").write_bytes(content)
    text = read_text("path:${NAME}.txt", base=tmp_path, environ={"NAME": "own"})
    assert text.text.encode() == content
    assert text.sha256 == hashlib.sha256(content).hexdigest()
    assert (text.name, text.origin) == ("path:${NAME}.txt", "own.txt")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbfText", "begins with a byte order mark"),
        ("Käse".encode("latin-1"), "is not UTF-8: byte 0xe4 at offset 1"),
        ("Käse".encode()[:2], "is not UTF-8: byte 0xc3 at offset 1"),
        ("Text".encode("utf-16-le"), "holds a null character at offset 1"),
        ("Text".encode("utf-16"), "is not UTF-8: byte 0xff at offset 0"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """The message names the file and the place, and there is something to do."""
    path = tmp_path / "own.txt"
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        read_text("path:own.txt", base=tmp_path)
    assert said in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.remedy


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and a pipe are told apart, and none of them is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for spec, said in (
        ("path:none.txt", f"there is no text '{tmp_path}/none.txt'"),
        ("path:.", "is a folder"),
        ("path:pipe", "is no plain file"),
        ("path:" + "x" * 5000, "can't be read"),
    ):
        with pytest.raises(ModelError) as caught:
            read_text(spec, base=tmp_path)
        assert said in caught.value.message
        assert caught.value.remedy


def test_a_text_of_the_size_of_a_library_is_refused(tmp_path: Path) -> None:
    """It is not read to its end to find that out."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)  # a file with a hole, which takes no space
    with pytest.raises(ModelError, match="larger than 64 MB"):
        read_text("path:huge.txt", base=tmp_path)
