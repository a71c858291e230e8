"""Prompts of exact length that survive a tokenizer's round trip, or say that they don't."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import ModelError
from edgebench.harness.prompts import apply_chat_template, make_prompt
from edgebench.harness.scenario.model import Workload
from edgebench.runners.base import LoadedModel
from edgebench.runners.fake import CHAT_TEMPLATE, FakeRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = LoadedModel(effective_options={}, vocabulary_size=259, bos_text="<s>", eos_text="</s>")


class Lossy(FakeRunner):
    """A tokenizer whose text never comes back the same, as some are at every cut."""

    def detokenize(self, ids: Sequence[int]) -> str:
        return super().detokenize(ids) + "?"


class Starting(FakeRunner):
    """A tokenizer that knows the start token as text and adds one by itself."""

    def tokenize(self, text: str) -> list[int]:
        rest = text.removeprefix("<s>")
        return [1, *([1] if rest != text else []), *super().tokenize(rest)[1:]]


def workload(**fields: object) -> Workload:
    return Workload.model_validate({"name": "w", "generate_tokens": 4, **fields})


@pytest.mark.parametrize("count", [1, 2, 511, 512, 5000])
def test_natural_prompts_have_exactly_the_asked_length(count: int) -> None:
    """The ids are as many as asked, and the text tokenizes to just them."""
    prompt = make_prompt(workload(prompt_tokens=count), MODEL, FakeRunner(), seed=1)
    assert len(prompt.ids) == count
    assert prompt.text is not None
    assert tuple(FakeRunner().tokenize(prompt.text)) == prompt.ids


def test_a_text_that_does_not_come_back_is_not_handed_over() -> None:
    """Where detokenizing loses something, only ids are given, of the asked number."""
    prompt = make_prompt(workload(prompt_tokens=100), MODEL, Lossy(), seed=1)
    assert prompt.text is None
    assert len(prompt.ids) == 100


def test_the_cache_is_filled_with_another_text_than_the_prompt() -> None:
    """A prompt that repeated what is in the cache would be no fresh prompt."""
    prompt = make_prompt(workload(prompt_tokens=50, depth=50), MODEL, FakeRunner(), seed=1)
    assert len(prompt.depth_ids) == 50
    assert prompt.depth_ids != prompt.ids
    assert prompt.context_tokens == 50 + 50 + 4


def test_synthetic_prompts_depend_on_the_seed_only() -> None:
    """Same seed, same ids, all in the vocabulary; another seed, others."""
    synthetic = workload(prompt_tokens=64, text="synthetic")
    one, again, other = (
        make_prompt(synthetic, MODEL, FakeRunner(), seed=seed) for seed in (1, 1, 2)
    )
    assert one == again
    assert one.ids != other.ids
    assert all(0 <= number < 259 for number in one.ids)
    assert one.text is None


def test_a_chat_prompt_is_one_turn_in_the_models_template() -> None:
    """The template gets the role, the text and the request for an answer."""
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}|{{ m['content'] }}]{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}"
    )
    model = LoadedModel(
        effective_options={}, vocabulary_size=9, bos_text="<s>", chat_template=template
    )
    assert apply_chat_template(model, "hi") == "<s>[user|hi]>"


def test_the_start_token_is_not_doubled() -> None:
    """A template that writes the start token which the tokenizer adds too gives one of them."""
    model = LoadedModel(
        effective_options={}, vocabulary_size=259, bos_text="<s>", chat_template="{{ bos_token }}a"
    )
    prompt = make_prompt(workload(prompt="x", chat_template=True), model, Starting(), seed=1)
    assert prompt.ids == (1, 3 + ord("a"))
    assert prompt.text == "a"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (None, "the model has none"),
        (CHAT_TEMPLATE, "no such turn"),
        ("{% for %}", "can't be applied"),
        ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "can't be applied"),
    ],
    ids=["missing", "refuses", "broken", "escapes"],
)
def test_a_template_that_does_not_work_is_named(template: str | None, words: str) -> None:
    """No template, one that refuses, one with an error, one that tries to leave its sandbox."""
    model = LoadedModel(effective_options={}, vocabulary_size=259, chat_template=template)
    with pytest.raises(ModelError, match=words):
        make_prompt(workload(prompt="refused", chat_template=True), model, FakeRunner(), seed=1)
