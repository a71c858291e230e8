"""The tokenizer of a Hugging Face folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields, as_fields, read_json, shown
from edgebench.models.hf_config import token_ids
from edgebench.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def read_tokenizer(path: Path, vocabulary_size: int, config_end_ids: tuple[int, ...]) -> Tokenizer:
    """Read tokenizer.json and, where they are there, the files beside it.

    Args:
        path: the folder.
        vocabulary_size: how many tokens the model has; none may be beyond.
        config_end_ids: what ``config.json`` says ends a text.

    Raises:
        ModelFormatError: a file is missing or damaged, or is not of this model.
        UnsupportedModelError: texts would be given an end token, or two start tokens.
    """
    file = path / "tokenizer.json"
    if not file.is_file():
        msg = (
            f"{path} has no tokenizer.json; make it with transformers: "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
        raise ModelFormatError(msg)
    tokenizer = read_json(file)
    config = _optional(path / "tokenizer_config.json")
    ids = _vocabulary(tokenizer)
    beyond = sorted((number, text) for text, number in ids.items() if number >= vocabulary_size)
    if beyond:
        msg = (
            f"{file}: the token {shown(beyond[-1][1])} has the id {beyond[-1][0]}, but the model "
            f"has {vocabulary_size} tokens; tokenizer and weights are of different models"
        )
        raise ModelFormatError(msg)
    start_text, end_text = token_text(config, "bos_token"), token_text(config, "eos_token")
    generation = _optional(path / "generation_config.json")
    end_ids = [*token_ids(generation, "eos_token_id"), *config_end_ids]
    if end_text in ids:
        end_ids.append(ids[end_text])
    start_id = _start_id(file, tokenizer, config, ids.get(start_text))
    return Tokenizer(
        # As text again, and not as it stands, so that a byte order mark or the like can't matter.
        json=json.dumps(tokenizer.values, ensure_ascii=False),
        start_id=start_id,
        end_ids=tuple(dict.fromkeys(end_ids)),
        chat_template=_chat_template(path, config),
        start_text=start_text,
        end_text=end_text,
        start_token_id=ids.get(start_text) if start_id is None else start_id,
    )


def token_text(fields: Fields, key: str) -> str:
    """The text of a token, which is given as a text or as an object; "" where there is none."""
    value = fields.get(key)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _optional(path: Path) -> Fields:
    return read_json(path) if path.is_file() else Fields(str(path), {})


def _vocabulary(tokenizer: Fields) -> dict[str, int]:
    """Ids by token; a token's text is as the file has it, for instance in byte-level letters."""
    model = tokenizer.section("model")
    vocabulary = None if model is None else model.get("vocab")
    if model is None or not isinstance(vocabulary, dict):
        kind = None if model is None else model.get("type")
        msg = (
            f"{tokenizer.where}: a tokenizer of the type {shown(kind)} is not understood, or has "
            "no vocabulary; understood is BPE"
        )
        raise UnsupportedModelError(msg)
    if not all(type(number) is int and number >= 0 for number in vocabulary.values()):
        msg = f"{tokenizer.where}: the vocabulary has ids that are no numbers; it is damaged"
        raise ModelFormatError(msg)
    ids = dict(vocabulary)
    added = tokenizer.get("added_tokens")
    for entry in added if isinstance(added, list) else []:
        token = as_fields(f"{tokenizer.where}, added_tokens", entry)
        ids[token.text("content")] = token.integer("id", least=0)
    return ids


def _start_id(file: Path, tokenizer: Fields, config: Fields, start: int | None) -> int | None:
    """The token put before every text: by tokenizer_config.json, or else by tokenizer.json.

    Where the two differ, the former wins, as with llama.cpp's converter and with the Llama
    tokenizers of transformers 4; transformers 5 leaves it out of account.
    """
    if config.flag("add_eos_token", default=False):
        msg = (
            f"{config.where}: add_eos_token puts an end token after every prompt, so that the "
            "model is asked to go on after the end; set it to false in a copy of the folder"
        )
        raise UnsupportedModelError(msg)
    says = config.get("add_bos_token")
    if says is not None:
        return start if config.flag("add_bos_token", default=False) else None
    before, after = _surrounding(tokenizer.section("post_processor"))
    if len(before) > 1 or after:
        msg = (
            f"{file}: the post-processor puts {before + after} around every text; understood is "
            "one start token or none"
        )
        raise UnsupportedModelError(msg)
    return before[0] if before else None


def _surrounding(processor: Fields | None) -> tuple[list[int], list[int]]:
    """Ids that a post-processor puts before and after a single text."""
    if processor is None:
        return [], []
    kind = processor.get("type")
    if kind == "Sequence":
        before: list[int] = []
        after: list[int] = []
        steps = processor.get("processors")
        for step in steps if isinstance(steps, list) else []:
            first, second = _surrounding(as_fields(processor.where, step))
            before, after = first + before, after + second
        return before, after
    if kind == "ByteLevel":
        return [], []
    if kind != "TemplateProcessing":
        msg = f"{processor.where}: the type {shown(kind)} is not understood"
        raise UnsupportedModelError(msg)
    return _template(processor)


def _template(processor: Fields) -> tuple[list[int], list[int]]:
    tokens = processor.section("special_tokens") or Fields(processor.where, {})
    sides: tuple[list[int], list[int]] = ([], [])
    side = 0
    pieces = processor.get("single")
    for piece in pieces if isinstance(pieces, list) else []:
        special = as_fields(processor.where, piece).section("SpecialToken")
        if special is None:
            side = 1
            continue
        entry = tokens.section(special.text("id"))
        if entry is None:
            msg = f"{processor.where}: {special.text('id')} is used, but not defined; damaged"
            raise ModelFormatError(msg)
        sides[side].extend(token_ids(entry, "ids"))
    return sides


def _chat_template(path: Path, config: Fields) -> str | None:
    """The template file, or else what tokenizer_config.json holds, or None."""
    file = path / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            msg = f"{file} can't be read: {error}"
            raise ModelFormatError(msg) from error
    value = config.get("chat_template")
    if isinstance(value, list):  # named templates
        entries = [as_fields(f"{config.where}, chat_template", entry) for entry in value]
        named = {entry.text("name"): entry.text("template") for entry in entries}
        value = named.get("default")
    return value if isinstance(value, str) else None
