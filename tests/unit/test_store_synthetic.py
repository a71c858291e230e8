"""Synthetic weights in the model store."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from edgebench.harness.errors import ModelError, StoreError
from edgebench.harness.store.sources import SyntheticSource, parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.models.shapes import ModelShape

if TYPE_CHECKING:
    from pathlib import Path

TINY = ModelShape(
    "tiny", "Tiny", "llama", "spm", 1, 64, 64, 2, 2, 32, 600, 128, 1e-5, 10_000.0
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store", shapes={"tiny": TINY, "small": TINY})


def test_a_source_says_architecture_and_quantisation() -> None:
    """Without one, 4 bits are meant; both ways of writing it are the same source."""
    assert parse_source("synthetic:tiny") == parse_source("synthetic:tiny@Q4_0")
    assert parse_source("synthetic:tiny@Q8_0") == SyntheticSource("tiny", "Q8_0")
    assert str(parse_source("synthetic:tiny")) == "synthetic:tiny@Q4_0"
    with pytest.raises(ValueError, match="the quantization must be letters"):
        parse_source("synthetic:tiny@")


def test_it_is_made_once(store: ModelStore) -> None:
    """The second time it is there, with the hash of its bytes, and it is listed."""
    told: list[str] = []
    first = store.fetch(parse_source("synthetic:tiny"), progress=lambda what, *_: told.append(what))
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
    assert (first.name, first.bytes) == ("tiny-synthetic.Q4_0.gguf", first.path.stat().st_size)
    assert first.note is not None
    assert "synthetic weights" in first.note
    again: list[str] = []
    second = store.fetch(
        parse_source("synthetic:tiny"), progress=lambda what, *_: again.append(what)
    )
    assert second == first
    assert "making tiny-synthetic.Q4_0.gguf" in told
    assert again == []
    (entry,) = store.entries()
    assert entry.request["source"] == "synthetic:tiny@Q4_0"


def test_quantisations_are_different_files(store: ModelStore) -> None:
    """8 bits take 34 bytes for 32 weights, 4 bits take 18."""
    eight = store.fetch(parse_source("synthetic:tiny@Q8_0"))
    four = store.fetch(parse_source("synthetic:tiny@Q4_0"))
    # 600 x 64 of the embedding, and 7 matrices of 64 x 64; the output has 8 bits in both.
    assert eight.bytes - four.bytes == (600 * 64 + 7 * 64 * 64) // 32 * 16


@pytest.mark.parametrize(
    ("source", "message", "remedy"),
    [
        ("synthetic:gpt-5", "no architecture 'gpt-5' is known", "Known are: tiny, small."),
        ("synthetic:tiny@Q2_K", "not made as 'Q2_K'", "Known are: Q4_0, Q8_0, F16."),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(
    store: ModelStore, source: str, message: str, remedy: str
) -> None:
    """Both the architecture and the quantisation."""
    with pytest.raises(ModelError, match=message) as caught:
        store.fetch(parse_source(source))
    assert caught.value.remedy == remedy


def test_another_hash_is_refused(store: ModelStore) -> None:
    """As of any source."""
    with pytest.raises(ModelError, match="SHA-256"):
        store.fetch(parse_source("synthetic:tiny"), sha256="0" * 64)


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_space_is_checked_before(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written to a disk that it does not fit on."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(1000, 1000, 0))
    with pytest.raises(StoreError, match="making synthetic:tiny@Q4_0 needs"):
        store.fetch(parse_source("synthetic:tiny"))
    assert store.entries() == []
