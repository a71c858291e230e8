"""Tokenizers rebuilt from GGUF files against llama.cpp's and SentencePiece's own."""

from __future__ import annotations

import ctypes
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.models.gguf_header import read_header
from edgebench.models.gguf_tokenizer import read_tokenizer
from edgebench.models.pre_tokenizers import PRE_TOKENIZERS

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.tokenizer import Tokenizer

pytestmark = [pytest.mark.llama_cpp, pytest.mark.transformers]

TEXTS = (
    "",
    " ",
    "  ",
    "\n",
    "Hello world",
    " blanks on both sides  ",
    "12345 67 8 3.14159 $1,234.56",
    "I'll say we're sure; DON'T! It's 'S x'",
    "tabs\tand\r\nlines\n\n\n  indented",
    "def f(x):\n    return x**2  # <=> [x]{y}|z^~ `code`\n",
    "漢字かな交じり文。中文也有１２３",
    "Ünïcödé naïve café",
    "мир Ελλάδα שלום مرحبا हिन्दी ไทย",
    "🙂 👩‍👩‍👧 🇩🇪",
    "\u00a0no break\u2003em\u200bnothing",
    "ǅ Ⅷ ½ ² CamelCaseXMLHttp2",
    "a" * 50 + " " * 20 + "b",
    "\u0000\u0001x",
    "▁ literal ▁",
)
CHAT = "<|im_start|>user\nhi 12<|im_end|>\na<|im_end|><|im_end|> b <|endoftext|>"


def native(lib: Any, path: Path, texts: list[str]) -> tuple[list[list[int]], set[int]]:
    """llama.cpp's ids of each text, special tokens parsed, and the tokens that end a text."""
    parameters = lib.llama_model_default_params()
    parameters.vocab_only = True
    model = lib.llama_model_load_from_file(str(path).encode(), parameters)
    assert model
    vocab = lib.llama_model_get_vocab(model)
    ids = []
    for text in texts:
        data = text.encode()
        room = len(data) + 16
        buffer = (lib.llama_token * room)()
        count = lib.llama_tokenize(vocab, data, len(data), buffer, room, True, True)
        ids.append(list(buffer[:count]))
    count = lib.llama_vocab_n_tokens(vocab)
    ends = {token for token in range(count) if lib.llama_vocab_is_eog(vocab, token)}
    lib.llama_model_free(model)
    return ids, ends


def native_text(
    lib: Any, path: Path, texts: list[str], before: int = 0
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """llama.cpp's ids of each text, special tokens not parsed, and where each token ends.

    Args:
        before: bytes that its pieces have before the text's own.
    """
    parameters = lib.llama_model_default_params()
    parameters.vocab_only = True
    model = lib.llama_model_load_from_file(str(path).encode(), parameters)
    assert model
    vocab = lib.llama_model_get_vocab(model)
    found = []
    for text in texts:
        data = text.encode()
        room = len(data) + 16
        buffer = (lib.llama_token * room)()
        count = lib.llama_tokenize(vocab, data, len(data), buffer, room, False, False)
        place, ends = -before, []
        piece = ctypes.create_string_buffer(512)
        for token in buffer[:count]:
            place += lib.llama_token_to_piece(vocab, token, piece, 512, 0, True)
            ends.append(place)
        found.append((tuple(buffer[:count]), tuple(ends)))
    lib.llama_model_free(model)
    return found


def agree(text: str, ends: tuple[int, ...], exact: tuple[int, ...]) -> bool:
    """Whether tokens end where their bytes do; one that ends within a character, within that."""
    data = text.encode()

    def may_end(place: int) -> range:
        first = last = max(place, 0)
        while 0 < first < len(data) and data[first] & 0xC0 == 0x80:
            first -= 1
        while 0 < last < len(data) and data[last] & 0xC0 == 0x80:
            last += 1
        return range(first, last + 1)

    pairs = zip(ends, exact, strict=True)
    return sorted(ends) == list(ends) and all(ours in may_end(theirs) for ours, theirs in pairs)


def rebuilt(path: Path) -> Tokenizer:
    header = read_header(path)
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    return read_tokenizer(header, len(tokens))


def write_vocabulary(path: Path, tokens: list[str], kinds: list[int], **more: Any) -> Path:
    """A file with a vocabulary and no weights, which llama.cpp reads all the same."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    for name, value in more.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def byte_level() -> tuple[list[str], list[str]]:
    """Tokens and merges of a byte-level BPE trained on the texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator([text for text in TEXTS for _ in range(3)], trainer)
    model = json.loads(engine.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(merge) for merge in model["merges"]]


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_byte_level_ids_are_llama_cpps(
    name: str, byte_level: Any, llama_cpp: Any, tmp_path: Path
) -> None:
    """Every way of cutting texts up gives the ids that llama.cpp gives, special tokens too."""
    tokens, merges = byte_level
    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    path = write_vocabulary(
        tmp_path / "vocabulary.gguf",
        tokens + special,
        [1] * len(tokens) + [3, 3, 3],
        tokenizer_model="gpt2",
        tokenizer_pre=name,
        token_merges=merges,
        bos_token_id=len(tokens),
        eos_token_id=len(tokens) + 1,
    )
    texts = [*TEXTS, CHAT]

    tokenizer = rebuilt(path)

    ids, ends = native(llama_cpp, path, texts)
    assert [tokenizer.encode(text) for text in texts] == ids
    assert set(tokenizer.end_ids) == ends
    assert [tokenizer.decode(numbers) for numbers in ids] == texts
    made = [tokenizer.encode_text(text) for text in texts]
    expected = native_text(llama_cpp, path, texts)
    assert [each.ids for each in made] == [ids for ids, _ in expected]
    for text, each, (_, exact) in zip(texts, made, expected, strict=True):
        assert agree(text, each.ends, exact)
    assert len(made[-1].ids) > len(ids[-1]), "special tokens are text"


def test_merges_are_passed_over_where_the_way_says_so(
    byte_level: Any, llama_cpp: Any, tmp_path: Path
) -> None:
    """Llama 3 takes a piece that is a token whole, even where no merge leads to it."""
    tokens, merges = byte_level
    kept = [merge for merge in merges if merge.replace(" ", "") != "Hello"]
    ids = {}
    for name in ("llama-bpe", "smaug-bpe"):
        path = write_vocabulary(
            tmp_path / f"{name}.gguf",
            [*tokens, "<s>"],
            [1] * len(tokens) + [3],
            tokenizer_model="gpt2",
            tokenizer_pre=name,
            token_merges=kept,
            bos_token_id=len(tokens),
            add_bos_token=False,
        )
        ids[name] = rebuilt(path).encode("Hello")
        assert ids[name] == native(llama_cpp, path, ["Hello"])[0][0]
    assert ids["llama-bpe"] == [tokens.index("Hello")]
    assert len(ids["smaug-bpe"]) > 1


@pytest.mark.parametrize("prefix", [True, False], ids=["space prefix", "no prefix"])
def test_sentencepiece_ids_are_its_own_and_llama_cpps(
    prefix: bool, llama_cpp: Any, tmp_path: Path
) -> None:
    """A vocabulary with scores and no merges gives SentencePiece's ids, and llama.cpp's."""
    import sentencepiece

    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(  # as Llama 2's was, but small
        sentence_iterator=iter(TEXTS * 3),
        model_writer=stream,
        model_type="bpe",
        vocab_size=600,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=prefix,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        character_coverage=0.98,
        minloglevel=2,
    )
    piece = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    numbers = range(piece.get_piece_size())
    kinds = [
        2 if piece.is_unknown(n) else 3 if piece.is_control(n) else 6 if piece.is_byte(n) else 1
        for n in numbers
    ]
    path = write_vocabulary(
        tmp_path / "vocabulary.gguf",
        [piece.id_to_piece(number) for number in numbers],
        kinds,
        tokenizer_model="llama",
        token_scores=[piece.get_score(number) for number in numbers],
        add_space_prefix=prefix,
    )

    tokenizer = rebuilt(path)

    assert (tokenizer.start_id, tokenizer.end_ids) == (1, (2,))
    assert (tokenizer.start_text, tokenizer.end_text) == ("<s>", "</s>")
    # Special tokens in a text are text to SentencePiece, so only llama.cpp is asked.
    special = ["</s><s> and <unk> x", "a</s>b"]
    ids, _ = native(llama_cpp, path, [*TEXTS, *special])
    assert [tokenizer.encode(text) for text in [*TEXTS, *special]] == ids
    assert ids[: len(TEXTS)] == [[1, *piece.encode(text)] for text in TEXTS]
    written = [text for text in TEXTS if "▁" not in text]  # which stands for a blank
    assert [tokenizer.decode(tokenizer.encode(text)) for text in written] == written
    filled = [text for text in [*TEXTS, *special] if text]
    made = [tokenizer.encode_text(text) for text in filled]
    expected = native_text(llama_cpp, path, filled, before=int(prefix))
    assert [each.ids for each in made] == [ids for ids, _ in expected]
    # "▁" is a blank to it, which has fewer bytes.
    for text, each, (_, exact) in zip(filled, made, expected, strict=True):
        assert each.ends[-1] == len(text.encode())
        if "▁" not in text:
            assert agree(text, each.ends, exact)


def test_user_defined_tokens_are_found_first(
    byte_level: Any, llama_cpp: Any, tmp_path: Path
) -> None:
    """A token that users defined is found in a text before merges, and written out again."""
    tokens, merges = byte_level
    path = write_vocabulary(
        tmp_path / "vocabulary.gguf",
        [*tokens, "<think>", "[PAD1]"],
        [1] * len(tokens) + [4, 5],
        tokenizer_model="gpt2",
        tokenizer_pre="qwen2",
        token_merges=merges,
        eos_token_id=0,
    )
    text = "so <think>hm</think> [PAD1]"

    tokenizer = rebuilt(path)

    ids, _ = native(llama_cpp, path, [text])
    assert tokenizer.encode(text) == ids[0]
    assert len(tokens) in ids[0]
    assert tokenizer.decode(ids[0]) == text
