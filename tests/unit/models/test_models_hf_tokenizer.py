"""The tokenizer's files of a Hugging Face folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.hf_tokenizer import read_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.tokenizer import Tokenizer

VOCABULARY = {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4}
START = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
}
BOTH = START | {"single": [*START["single"], {"SpecialToken": {"id": "<s>", "type_id": 0}}]}
ENDED = START | {"single": list(reversed(START["single"]))}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}


def write(
    folder: Path,
    *,
    processor: object = None,
    config: object = None,
    generation: object = None,
    vocabulary: dict[str, int] | None = None,
) -> Path:
    special = [
        {"id": number, "content": text, "special": True, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for text, number in (("<s>", 0), ("</s>", 1))
    ]  # fmt: skip
    model = {"type": "BPE", "vocab": vocabulary or VOCABULARY, "merges": [["a", "b"]]}
    content = {
        "version": "1.0", "added_tokens": special, "normalizer": None, "pre_tokenizer": None,
        "post_processor": processor, "decoder": None, "model": model,
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))
    for name, part in (("tokenizer_config", config), ("generation_config", generation)):
        if part is not None:
            (folder / f"{name}.json").write_text(json.dumps(part))
    return folder


def read(folder: Path, ends: tuple[int, ...] = ()) -> Tokenizer:
    return read_tokenizer(folder, 5, ends)


@pytest.mark.parametrize(
    ("processor", "config", "start"),
    [
        (None, {}, None),
        (START, {}, 0),
        (BYTES, {}, None),
        ({"type": "Sequence", "processors": [BYTES, START]}, {}, 0),
        (START, {"add_bos_token": False, "bos_token": "<s>"}, None),
        (None, {"add_bos_token": True, "bos_token": "<s>"}, 0),
        (None, {"add_bos_token": True, "bos_token": {"content": "<s>"}}, 0),
        (None, {"add_bos_token": True, "bos_token": None}, None),
    ],
)
def test_a_start_token_is_due_where_one_is_asked_for(
    processor: Any, config: Any, start: int | None, tmp_path: Path
) -> None:
    """tokenizer_config.json decides, and where it says nothing, the post-processor."""
    tokenizer = read(write(tmp_path, processor=processor, config=config))

    assert tokenizer.start_id == start
    assert tokenizer.encode("ab</s>") == [*([] if start is None else [start]), 4, 1]
    assert tokenizer.decode(tokenizer.encode("ab")) == "ab"


@pytest.mark.parametrize(
    ("processor", "config", "token"),
    [
        (None, {}, None),
        (START, {}, 0),
        (None, {"bos_token": "<s>"}, 0),
        (START, {"add_bos_token": False, "bos_token": "<s>"}, 0),
        (None, {"bos_token": "<unheard>"}, None),
    ],
)
def test_a_start_token_is_known_where_none_is_due(
    processor: Any, config: Any, token: int | None, tmp_path: Path
) -> None:
    """The file's own, whether prompts get it or not."""
    assert read(write(tmp_path, processor=processor, config=config)).start_token_id == token


def test_end_tokens_come_from_every_file_once(tmp_path: Path) -> None:
    """generation_config.json's are first, then config.json's, then the tokenizer's own."""
    write(tmp_path, config={"eos_token": "</s>"}, generation={"eos_token_id": [3, 2]})

    tokenizer = read(tmp_path, ends=(2, 4))

    assert tokenizer.end_ids == (3, 2, 4, 1)
    assert tokenizer.end_text == "</s>"


def test_a_template_file_counts_before_the_configuration(tmp_path: Path) -> None:
    """chat_template.jinja wins; of named templates the default is taken."""
    named = [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}]
    write(tmp_path, config={"chat_template": named})
    assert read(tmp_path).chat_template == "D"

    (tmp_path / "chat_template.jinja").write_text("J")
    assert read(tmp_path).chat_template == "J"


def test_a_folder_without_tokenizer_says_how_to_make_it(tmp_path: Path) -> None:
    """The way to a tokenizer.json is in the message."""
    with pytest.raises(ModelFormatError, match="save_pretrained"):
        read(tmp_path)


def test_a_tokenizer_of_a_larger_model_is_refused(tmp_path: Path) -> None:
    """A token beyond the model's vocabulary would be an id out of range later."""
    write(tmp_path, vocabulary=VOCABULARY | {"far": 5})

    with pytest.raises(ModelFormatError, match='the token "far" has the id 5, but the model has 5'):
        read(tmp_path)


@pytest.mark.parametrize(
    ("processor", "config", "named"),
    [
        (BOTH, {}, "one start token or none"),
        (ENDED, {}, "one start token or none"),
        ({"type": "BertProcessing"}, {}, "BertProcessing"),
        (None, {"add_eos_token": True}, "add_eos_token"),
    ],
)
def test_texts_that_would_be_ended_are_refused(
    processor: Any, config: Any, named: str, tmp_path: Path
) -> None:
    """A prompt with an end token after it asks a model to go on after the end."""
    with pytest.raises(UnsupportedModelError, match=named):
        read(write(tmp_path, processor=processor, config=config))


def test_damage_within_the_tokenizer_is_told(tmp_path: Path) -> None:
    """What the package can't make a tokenizer of is an error of the model."""
    write(tmp_path, vocabulary={"<s>": 0, "</s>": 1, "a": 2})  # a merge of what is no token

    with pytest.raises(ModelFormatError, match="can't make the model's tokenizer"):
        read(tmp_path).encode("a")
