"""Bundles for LiteRT-LM that several tests share, and a session with one of them loaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from loaded_model import SMOLLM2, Tiny, loaded
from tiny_models import TEXT, byte_level_tokenizer, tiny_folder

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest
from edgebench.runners.litert_score import CHECKED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SMALL = {"cache_length": 256, "prefill_lengths": "16,64"}


def text_ids(text: str = TEXT) -> list[int]:
    """Ids of a text by Hugging Face's tokenizers."""
    from tokenizers import Tokenizer

    ids: list[int] = Tokenizer.from_str(byte_level_tokenizer()).encode(text).ids
    return ids


def plain_ids() -> list[int]:
    """Tokens that are printable ASCII: of others a stream of text does not always tell which."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(byte_level_tokenizer())
    texts = {number: tokenizer.decode([number]) for number in range(tokenizer.get_vocab_size())}
    return [number for number, text in texts.items() if text.isascii() and text.isprintable()]


def spaced_tokenizer() -> str:
    """A tokenizer.json as Llama 2 has it: a space before each text, and a token for each byte."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    trained = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    trained.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=110, special_tokens=special, show_progress=False)
    trained.train_from_iterator([*TEXT.split(), *CHECKED.split()], trainer)
    told: dict[str, Any] = json.loads(trained.to_str())
    pieces = [piece for piece in told["model"]["vocab"] if piece not in special]
    pieces = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    told["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    return json.dumps(told)


@pytest.fixture(scope="session")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Load a bundle in a process of its own: ``open_model(path, threads=1)``."""

    def opened(path: Path, context: int = 200, **options: Any) -> Any:
        log = tmp_path_factory.mktemp("logs") / "litert.log"
        options = {"threads": 1, "cache": "none", **options}
        return loaded("mediapipe", log, path, context, options)

    return opened


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """Make a random Llama and its bundle.

    ``options`` are the converter's, ``said`` the tokens that the model makes (those of printable
    ASCII otherwise) and ``files`` of its folder; other keywords change the model's configuration.
    """
    import torch

    from edgebench.runners.litert_convert import convert

    def made(
        options: dict[str, Any] | None = None,
        said: Sequence[int] | None = None,
        files: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> Tiny:
        folder = tmp_path_factory.mktemp("tiny")
        source, bundle = folder / "source", folder / "tiny.litertlm"
        model = tiny_folder(source, "llama", **changes)
        weight = model.lm_head.weight
        unsaid = torch.ones(len(weight), dtype=torch.bool)
        if said is None:
            said = [number for number in plain_ids() if number not in (0, 1)]
        unsaid[list(said)] = False
        with torch.no_grad():
            weight[unsaid] = 0.0  # a logit of 0 is below the greatest of many
        model.save_pretrained(source)
        for name, content in (files or {}).items():
            (source / name).write_text(content, encoding="utf-8")
        convert(ConvertRequest(str(source), "fp32", str(bundle), {**SMALL, **(options or {})}))
        return Tiny(source, bundle, model)

    return made


@pytest.fixture(scope="session")
def tiny(make_tiny: Callable[..., Tiny]) -> Tiny:
    """One that nobody changes."""
    return make_tiny()


@pytest.fixture(scope="session")
def spaced(make_tiny: Callable[..., Tiny]) -> Tiny:
    """One with a start token and the tokenizer of `spaced_tokenizer`, that makes no bytes."""
    tokenizer = spaced_tokenizer()
    vocabulary = json.loads(tokenizer)["model"]["vocab"]
    plain = [n for piece, n in vocabulary.items() if n > 258 and piece.strip("▁").isascii()]
    settings = '{"add_bos_token": true, "bos_token": "<s>", "eos_token": "</s>"}'
    return make_tiny(
        said=plain,
        files={"tokenizer.json": tokenizer, "tokenizer_config.json": settings},
        vocab_size=len(vocabulary),
        bos_token_id=1,
        eos_token_id=2,
    )


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 with int8 weights, as a bundle."""
    from edgebench.runners.litert_convert import convert

    folder = tmp_path_factory.mktemp("smollm2")
    source = ModelStore(folder / "cache").fetch(parse_source(SMOLLM2)).path
    options = {"cache_length": 256, "prefill_lengths": "32"}
    convert(ConvertRequest(str(source), "int8", str(folder / "int8.litertlm"), options))
    return folder / "int8.litertlm"
