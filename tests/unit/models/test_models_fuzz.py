"""Files that were damaged at random end in an error that says what is wrong with the model."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebench.models.errors import ModelFormatError
from edgebench.models.fields import Fields
from edgebench.models.gguf_header import Header
from edgebench.models.gguf_tokenizer import read_tokenizer as read_tokenizer_of_gguf
from edgebench.models.hf_config import parse_config
from edgebench.models.hf_tokenizer import read_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

CONFIG: dict[str, Any] = {
    "model_type": "qwen2", "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16,
    "rms_norm_eps": 1e-5, "vocab_size": 10, "head_dim": 4, "rope_theta": 1e4,
    "rope_scaling": {
        "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8,
        "beta_fast": 32, "attention_factor": 1.0, "mscale": 1.0, "truncate": True,
    },
    "sliding_window": 8, "use_sliding_window": False, "max_window_layers": 1,
    "layer_types": ["full_attention"], "eos_token_id": [1], "hidden_act": "silu",
    "tie_word_embeddings": True,
}  # fmt: skip
TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
    "post_processor": {
        "type": "Sequence",
        "processors": [
            {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [0]}},
            }
        ],
    },
    "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1}, "merges": []},
}
TOKENIZER_CONFIG: dict[str, Any] = {
    "bos_token": {"content": "<s>"},
    "eos_token": "a",
    "chat_template": [{"name": "default", "template": "T"}],
    "add_eos_token": False,
}

GGUF: dict[str, Any] = {
    "model": "llama", "pre": "qwen2", "tokens": ["<unk>", "<s>", "</s>", "<0x41>", "a"],
    "token_type": [2, 3, 3, 6, 1], "scores": [0.0, 0.0, 0.0, 0.0, -1.0], "merges": ["a a"],
    "bos_token_id": 1, "eos_token_id": 2, "eot_token_id": 2, "add_bos_token": True,
    "add_eos_token": False, "add_space_prefix": True,
}  # fmt: skip
# A GGUF file has scalars and lists of one kind of them.
GGUF_VALUES = st.one_of(
    *(
        kind | st.lists(kind, max_size=6)
        for kind in (st.booleans(), st.integers(-1, 2**64), st.floats(), st.text(max_size=3))
    )
)

VALUES = st.recursive(
    st.sampled_from([0, 1, -1, 2**70, 10**400, 10**15, 1e308, 1e-308, "default", "yarn"])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value within a JSON document stands."""
    found = [so_far] if so_far else []
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += paths(inner, (*so_far, key))
    return found


def damaged(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value in one place."""
    copy = json.loads(json.dumps(document))
    target = copy
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return copy


@contextmanager
def refused_by_name(name: str) -> Iterator[None]:
    """Nothing is raised but an error of the model that names the file."""
    said = name
    try:
        yield
    except ModelFormatError as error:
        said = str(error)
    assert name in said


@settings(max_examples=300)
@given(place=st.sampled_from(paths(CONFIG)), value=VALUES)
def test_a_damaged_configuration_is_an_error_of_the_model(
    place: tuple[Any, ...], value: Any
) -> None:
    """Whatever stands in a place, the configuration is understood or refused, and no crash."""
    with refused_by_name("config.json"):
        parse_config(Fields("config.json", damaged(CONFIG, place, value)))


@settings(max_examples=300)
@given(data=st.data(), which=st.sampled_from(["tokenizer", "tokenizer_config"]), value=VALUES)
def test_damaged_tokenizer_files_are_an_error_of_the_model(
    data: st.DataObject,
    which: str,
    value: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever stands in a place, the tokenizer is read or refused, and no crash."""
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    folder.mkdir(exist_ok=True)
    for name, document in (("tokenizer", TOKENIZER), ("tokenizer_config", TOKENIZER_CONFIG)):
        if name == which:
            place = data.draw(st.sampled_from(paths(document)))
            document = damaged(document, place, value)  # noqa: PLW2901
        (folder / f"{name}.json").write_text(json.dumps(document))
    with refused_by_name(str(folder)):
        read_tokenizer(folder, 2, ())


@settings(max_examples=300)
@given(key=st.sampled_from([*GGUF]), kind=st.sampled_from(["llama", "gpt2"]), value=GGUF_VALUES)
def test_damaged_metadata_are_an_error_of_the_model(key: str, kind: str, value: Any) -> None:
    """Whatever a key of a GGUF file holds, the tokenizer is rebuilt or refused, and no crash."""
    keys = GGUF | {"model": kind} | {key: value}
    metadata = {f"tokenizer.ggml.{name}": keys[name] for name in keys}

    with refused_by_name("m.gguf"):
        read_tokenizer_of_gguf(Header(Path("m.gguf"), metadata, {}, 0), 5)
