"""The reference's ratings of windows, kept in the store: a tiny model on disk, no mocks."""

from __future__ import annotations

import json
import os
import struct
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgebench.harness.quality.reference import CachedReference
from edgebench.harness.store.sources import PathSource
from edgebench.harness.store.store import ModelStore
from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.reference import Reference, Window

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.store.store import StoredFile
    from edgebench.models.ratings import Ratings

VOCABULARY = 97
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY,
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": True,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LAYER = "model.layers.0."
SHAPES = {
    "model.embed_tokens.weight": (VOCABULARY, 16),
    "model.norm.weight": (16,),
    f"{LAYER}input_layernorm.weight": (16,),
    f"{LAYER}post_attention_layernorm.weight": (16,),
    f"{LAYER}self_attn.q_proj.weight": (16, 16),
    f"{LAYER}self_attn.k_proj.weight": (8, 16),
    f"{LAYER}self_attn.v_proj.weight": (8, 16),
    f"{LAYER}self_attn.o_proj.weight": (16, 16),
    f"{LAYER}mlp.gate_proj.weight": (24, 16),
    f"{LAYER}mlp.up_proj.weight": (24, 16),
    f"{LAYER}mlp.down_proj.weight": (16, 24),
}


def write_model(folder: Path, seed: int = 0, **config: object) -> Path:
    folder.mkdir()
    chance = np.random.default_rng(seed)
    header: dict[str, object] = {}
    data = b""
    for name, shape in SHAPES.items():
        raw = chance.standard_normal(shape).astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path, store: ModelStore) -> StoredFile:
    return store.fetch(PathSource(write_model(tmp_path / "model")))


def window(seed: int, start: int = 8, length: int = 20) -> Window:
    ids = np.random.default_rng(seed).integers(0, VOCABULARY, length)
    return Window(tuple(ids.tolist()), start)


def silent(_: str) -> None:
    pass


def bits(ratings: Ratings) -> tuple[bytes, ...]:
    parts = (ratings.log_likelihoods, ratings.offsets, ratings.ids, ratings.samples)
    return tuple(part.tobytes() for part in (*parts, ratings.candidate_log_likelihoods))


def kept_files(store: ModelStore) -> list[Path]:
    return sorted((store.root / "v1/references").glob("*/*.npz"))


def test_what_was_rated_is_read_the_next_time(store: ModelStore, source: StoredFile) -> None:
    """To the bit the same, in the order asked for; only what is new is rated."""
    first = CachedReference(source, store, silent)
    assert first.missing([window(1), window(2)]) == 2
    made = first.rate([window(1), window(2)])
    assert (first.cached, first.computed, len(kept_files(store))) == (0, 2, 2)
    (plain,) = Reference(open_model(source.path)).rate_windows([window(1), window(2)])
    assert [bits(each) for each in made] == [bits(each) for each in plain]

    again = CachedReference(source, store, silent)
    assert again.missing([window(3), window(2), window(1)]) == 1
    new, second, one = again.rate([window(3), window(2), window(1)])
    assert (again.cached, again.computed) == (2, 1)
    assert [bits(one), bits(second)] == [bits(each) for each in made]
    assert len(new) == 12
    assert len(kept_files(store)) == 3


def test_ratings_are_of_one_model_one_text_and_one_start(
    store: ModelStore, source: StoredFile, tmp_path: Path
) -> None:
    """Nothing else that was rated before is taken for it."""
    CachedReference(source, store, silent).rate([window(1, start=8)])
    other = store.fetch(PathSource(write_model(tmp_path / "other", seed=1)))
    for model, asked in (
        (other, window(1, start=8)),
        (source, window(1, start=9)),
        (source, window(2, start=8)),
        (source, Window((1, *window(1).ids[1:]), 8)),
    ):
        reference = CachedReference(model, store, silent)
        reference.rate([asked])
        assert (reference.cached, reference.computed) == (0, 1)


def test_a_window_that_is_asked_for_twice_is_rated_once(
    store: ModelStore, source: StoredFile
) -> None:
    """And both are there."""
    reference = CachedReference(source, store, silent)
    one, other = reference.rate([window(1), window(1)])
    assert bits(one) == bits(other)
    assert reference.computed == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda path, other: path.write_bytes(path.read_bytes()[:-30]),
        lambda path, other: path.write_bytes(b""),
        lambda path, other: path.write_bytes(b"no zip"),
        lambda path, other: path.write_bytes(other.read_bytes()),
    ],
    ids=["cut off", "empty", "something else", "another window's"],
)
def test_a_damaged_file_is_made_anew(store: ModelStore, source: StoredFile, damage: object) -> None:
    """What it should hold is in its place afterwards."""
    reference = CachedReference(source, store, silent)
    (made,) = reference.rate([window(1)])
    (path,) = kept_files(store)
    reference.rate([window(2, length=33)])
    (longer,) = set(kept_files(store)) - {path}
    sound = path.read_bytes()
    path.chmod(0o644)
    damage(path, longer)  # type: ignore[operator]
    assert path.read_bytes() != sound

    again = CachedReference(source, store, silent)
    (found,) = again.rate([window(1)])
    assert (again.cached, again.computed) == (0, 1)
    assert bits(found) == bits(made)
    assert CachedReference(source, store, silent).rate([window(1)])[0].ids.tolist()
    third = CachedReference(source, store, silent)
    third.rate([window(1)])
    assert third.cached == 1


def test_each_pass_is_kept_as_soon_as_it_is_done(
    store: ModelStore, source: StoredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is interrupted in the second pass has the first one's ratings the next time."""
    monkeypatch.setattr("edgebench.models.reference_plan.PASS_TOKENS", 45)
    monkeypatch.setattr("edgebench.harness.quality.reference.Seldom", lambda tell: tell)
    windows = [window(seed) for seed in range(5)]
    layers = 0

    def interrupt(step: str) -> None:
        nonlocal layers
        layers += step.startswith("layer 1 of 1")
        if layers == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CachedReference(source, store, interrupt).rate(windows)
    again = CachedReference(source, store, silent)
    again.rate(windows)
    assert (again.cached, again.computed) == (2, 3)


def test_a_store_that_cannot_be_written_to_is_told_of_once(
    store: ModelStore, source: StoredFile, tmp_path: Path
) -> None:
    """The ratings are there all the same."""
    blocked = ModelStore(tmp_path / "file")
    (tmp_path / "file").write_text("in the way")
    told: list[str] = []
    reference = CachedReference(source, blocked, told.append)
    made = [*reference.rate([window(1)]), *reference.rate([window(2)])]
    sound = CachedReference(source, store, silent)
    expected = [*sound.rate([window(1)]), *sound.rate([window(2)])]
    assert [bits(each) for each in made] == [bits(each) for each in expected]
    (said,) = [each for each in told if "kept" in each]
    assert str(tmp_path / "file") in said


def test_several_at_once_do_not_disturb_each_other(store: ModelStore, source: StoredFile) -> None:
    """Four that rate and keep the same windows at the same time all have them."""
    windows = [window(seed) for seed in range(6)]
    found: list[list[Ratings]] = []

    def rate() -> None:
        found.append(CachedReference(source, store, silent).rate(windows))

    threads = [threading.Thread(target=rate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    (plain,) = Reference(open_model(source.path)).rate_windows(windows)
    for each in found:
        # Not to the bit: how many are rated together depends on what the others have kept.
        for one, other in zip(each, plain, strict=True):
            assert one.log_likelihoods == pytest.approx(other.log_likelihoods, abs=1e-4)
    assert len(kept_files(store)) == 6
    assert list((store.root / "v1/tmp").iterdir()) == []


def test_the_pace_is_known_before_anything_is_rated(store: ModelStore, source: StoredFile) -> None:
    """What a window takes is told from the last time where this one's were all in the store."""
    first = CachedReference(source, store, silent)
    assert first.seconds_a_window == 0
    first.rate([window(1), window(2)])
    # Both in one pass, in which the weights were read once.
    assert first.reading_s > 0
    assert first.seconds_a_window == pytest.approx((first.duration_s - first.reading_s) / 2)
    again = CachedReference(source, store, silent)
    again.rate([window(1)])
    assert again.duration_s == pytest.approx(0, abs=first.duration_s)
    assert again.computed == 0
    assert again.seconds_a_window == pytest.approx(first.seconds_a_window, rel=1e-4)
    # A window of half the tokens takes half of that.
    assert again.rate([window(3, start=1, length=2)])
    (pace,) = (store.root / "v1/references").glob("*/seconds_a_token")
    pace.chmod(0o644)
    pace.write_text("nonsense")
    third = CachedReference(source, store, silent)
    third.rate([window(1)])
    assert third.seconds_a_window == 0


def test_what_the_model_is(store: ModelStore, source: StoredFile) -> None:
    """Its name, hash, vocabulary and types are those of the source."""
    reference = CachedReference(source, store, silent)
    assert (reference.name, reference.sha256) == ("model", source.sha256)
    assert (reference.vocabulary_size, reference.lossy_types) == (VOCABULARY, ())


def test_a_model_without_reference_says_so_when_it_is_asked(
    store: ModelStore, tmp_path: Path
) -> None:
    """Not before: a run may have all else. The two kinds of errors are told apart."""
    (tmp_path / "weights.bin").write_bytes(b"weights")
    unread = CachedReference(store.fetch(PathSource(tmp_path / "weights.bin")), store, silent)
    with pytest.raises(ModelFormatError, match="neither a GGUF file nor a folder"):
        unread.rate([window(1)])
    odd = write_model(tmp_path / "odd", model_type="gemma9")
    strange = CachedReference(store.fetch(PathSource(odd)), store, silent)
    with pytest.raises(UnsupportedModelError, match="gemma9"):
        strange.rate([window(1)])
    assert not (store.root / "v1/references").exists()


def test_an_old_folder_of_ratings_is_used_again(store: ModelStore, source: StoredFile) -> None:
    """Asking for ratings makes their folder young, so that it is not pruned."""
    CachedReference(source, store, silent).rate([window(1)])
    (entry,) = store.references()
    os.utime(entry.path, (1, 1))
    CachedReference(source, store, silent).rate([window(1)])
    assert store.prune(older_than_days=1).files == ()
    assert entry.path.exists()
