"""Chat templates that take a turn in parts, and give of a text what they gave before."""

from __future__ import annotations

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgebench.runners.litert_template import with_parts

CHATML = (
    "{% for message in messages %}"
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nHi<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
    "{% set messages = messages[1:] %}{% endif %}"
    "{% for message in messages %}{{ bos_token + '[INST] ' + message['content'] | trim }}"
    "{% if system is defined %}{{ system }}{% endif %}{% endfor %}"
)
LINES = """{%- for message in messages %}
    {%- if message.tool_calls %}
        {{- 'calls ' ~ message.tool_calls | length }}
    {%- else %}
        {{- message.role ~ ': ' ~ message.content }}
    {%- endif %}
{%- endfor %}
end
"""
PLAIN = "  {% for message in messages %}{{ message.content }}{% endfor %}"

TEXT_TURNS = [
    [{"role": "user", "content": "Why?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " naïve {{ x }} "}],
    [{"role": "user", "content": ""}, {"role": "assistant", "content": "b"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [1]}],
]


def render(template: str, turns: list[dict[str, object]]) -> str:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        messages=turns, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
    )


@pytest.mark.parametrize("template", [LINES, PLAIN])
@pytest.mark.parametrize("turns", TEXT_TURNS)
def test_turns_with_a_text_are_rendered_as_before(
    template: str, turns: list[dict[str, object]]
) -> None:
    """What a chat prompt is does not change by a character, white space at its edges included."""
    assert render(with_parts(template), turns) == render(template, turns)


@pytest.mark.parametrize("template", [CHATML, LLAMA2])
@pytest.mark.parametrize("turns", TEXT_TURNS[:3])
def test_templates_that_add_texts_are_rendered_as_before(
    template: str, turns: list[dict[str, object]]
) -> None:
    """The same for templates that can't take a turn without a text."""
    assert render(with_parts(template), turns) == render(template, turns)


@pytest.mark.parametrize("template", [CHATML, LLAMA2, LINES])
def test_a_turn_in_parts_is_the_turn_with_their_texts(template: str) -> None:
    """As MediaPipe's TextSummarizer hands it over: a list of one part, with a mode in it."""
    parts = [{"type": "text", "text": "The light", "mode": "Keypoints"}, {"text": "house."}]
    whole = render(template, [{"role": "user", "content": "The lighthouse."}])
    assert render(with_parts(template), [{"role": "user", "content": parts}]) == whole
