"""MNN's own tokenizer, from the file that the conversion writes, against `tokenizers`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from mnn_engine import ask
from tiny_models import tiny_folder

from edgebench.models.canonical import open_model
from edgebench.models.tokenizer import Tokenizer
from edgebench.runners.mnn_convert import make_folder
from edgebench.runners.mnn_tokenizer import write_tokenizer
from edgebench.runners.mnn_weights import Format

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

PROSE = Path(__file__).parents[3] / "harness" / "texts" / "prose.txt"

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

NASTY = [
    "Hello world",
    "  leading and   trailing  ",
    "The year 2024, 1234567 and 3.14159!",
    "tabs\tand\nnewlines\n\n\n x\r\n",
    "naïve café Ünïcödé ß",
    "中文字符测试，你好。",
    "😀 emoji 👩‍👩‍👧‍👦 joined",
    "def f(x):\n    return x**2  # comment",
    "it's we'll I'd YOU'VE they're",
    "٣٤٥ ½ Ⅷ x²",
    "مرحبا हिन्दी",
    "\u00a0wide\u2003blanks",
    "<|start|>a special token<|end|> inside",
    "x" * 40,
]


def trained(splitter: Any, *, decoder: Any = None, normalizer: Any = None) -> str:
    """A tokenizer.json of byte-level BPE, trained on the text that is shipped."""
    from tokenizers import Tokenizer as Engine
    from tokenizers import decoders, models, pre_tokenizers, trainers

    engine = Engine(models.BPE())
    engine.pre_tokenizer = splitter
    engine.decoder = decoder or decoders.ByteLevel()
    if normalizer:
        engine.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(PROSE.read_text("utf-8")[:20_000].splitlines(), trainer)
    return engine.to_str()


def llama2() -> str:
    """As Llama 2's: blanks as marks, a mark in front, bytes for what is not in the vocabulary."""
    from tokenizers import Tokenizer as Engine
    from tokenizers import decoders, models, normalizers

    pieces = ["<unk>", "<|start|>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    pieces += [*"abcdefghilmnoprstuvwxyH.,!é"]
    merges = [("▁", "a"), ("t", "h"), ("th", "e"), ("▁", "the"), ("i", "n"), ("o", "r"), ("l", "d")]
    pieces += [left + right for left, right in merges]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = models.BPE(vocabulary, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    engine = Engine(model)
    engine.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    engine.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    engine.add_special_tokens(["<|start|>", "<|end|>"])
    return engine.to_str()


def kinds() -> dict[str, str]:
    from tokenizers import Regex, normalizers, pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def split(pattern: str) -> Any:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        return pre_tokenizers.Sequence([cut, plain])

    digits = pre_tokenizers.Digits(individual_digits=True)
    return {
        "gpt2": trained(level),
        "smollm": trained(pre_tokenizers.Sequence([digits, level])),
        "llama3": trained(split(LLAMA3)),
        "qwen2": trained(split(QWEN2), normalizer=normalizers.NFC()),
        "llama2": llama2(),
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizers") / "source"
    tiny_folder(folder, "llama")
    return folder


@pytest.mark.parametrize("start_id", [None, 1], ids=["no start", "a start token"])
@pytest.mark.parametrize("kind", ["gpt2", "smollm", "llama3", "qwen2", "llama2"])
def test_mnns_ids_are_those_of_tokenizers(
    kind: str, start_id: int | None, source: Path, tmp_path: Path
) -> None:
    """For nasty texts and long prose, special tokens and a start token included."""
    tokenizer = Tokenizer(json=kinds()[kind], start_id=start_id, end_ids=(2,))
    model = dataclasses.replace(open_model(source), read_tokenizer=lambda: tokenizer)
    form = Format("fp16")
    make_folder(model, form, form, tmp_path / "made")
    texts = [*NASTY, PROSE.read_text("utf-8")[:5000]]
    answers = ask(tmp_path / "made", texts=texts)
    wrong = {
        text[:40]: ids
        for text, ids in zip(texts, answers["texts"], strict=True)
        if ids != tokenizer.encode(text)
    }
    assert not wrong


def test_the_chat_template_stands_where_mnn_looks(source: Path, tmp_path: Path) -> None:
    """MNN's own tools render the same prompt as the template's own language does."""
    import jinja2

    template = (
        "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}"
        "<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    model = open_model(source)
    tokenizer = dataclasses.replace(model.tokenizer, chat_template=template, end_text="<|end|>")
    model = dataclasses.replace(model, read_tokenizer=lambda: tokenizer)
    form = Format("fp16")
    make_folder(model, form, form, tmp_path / "made")
    messages = [{"role": "user", "content": "Hi there"}]
    rendered = jinja2.Template(template).render(messages=messages, add_generation_prompt=True)
    assert ask(tmp_path / "made", chat="Hi there")["chat"] == rendered


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("normalizer", {"type": "NFC"}, "composed form"),
        ("normalizer", {"type": "NFKC"}, "the normalizer NFKC is left out"),
        ("pre_tokenizer", {"type": "UnicodeScripts"}, "the pre-tokenizer UnicodeScripts"),
        ("decoder", {"type": "CTC"}, "the decoder CTC is left out"),
    ],
)
def test_what_mnn_lacks_is_named(part: str, value: Any, words: str, tmp_path: Path) -> None:
    """Rather than left out without a word."""
    parts = json.loads(llama2()) | {part: value}
    lacks = write_tokenizer(Tokenizer(json=json.dumps(parts)), tmp_path / "tokenizer.mtok")
    assert any(words in lack for lack in lacks)


def test_nothing_is_lacking_of_the_usual_kinds(tmp_path: Path) -> None:
    """But for Qwen's normalizer."""
    found = {
        name: write_tokenizer(Tokenizer(json=text), tmp_path / name)
        for name, text in kinds().items()
    }
    assert [name for name, lacks in found.items() if lacks] == ["qwen2"]
