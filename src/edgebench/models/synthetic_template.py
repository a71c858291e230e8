"""How a chat is put to synthetic weights: in the form of the model that they stand for.

Each template asks for the tokens that the published one asks for, without its words for tools and
its default instructions, so a prompt is about as long. A base model has none.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_EACH: Final = "{% for message in messages %}"
_THEN: Final = "{% endfor %}{% if add_generation_prompt %}"
_END: Final = "{% endif %}"
_ROLE: Final = "{{ message['role'] }}"
_SAID: Final = "{{ message['content'] }}"

_CHATML: Final = (
    f"{_EACH}<|im_start|>{_ROLE}\n{_SAID}<|im_end|>\n{_THEN}<|im_start|>assistant\n{_END}"
)
_LLAMA3: Final = (
    f"{{{{ bos_token }}}}{_EACH}<|start_header_id|>{_ROLE}<|end_header_id|>\n\n{_SAID}<|eot_id|>"
    f"{_THEN}<|start_header_id|>assistant<|end_header_id|>\n\n{_END}"
)
_ZEPHYR: Final = f"{_EACH}<|{_ROLE}|>\n{_SAID}{{{{ eos_token }}}}\n{_THEN}<|assistant|>\n{_END}"
_GEMMA: Final = (
    f"{{{{ bos_token }}}}{_EACH}<start_of_turn>"
    "{{ 'model' if message['role'] == 'assistant' else message['role'] }}\n"
    f"{_SAID}<end_of_turn>\n{_THEN}<start_of_turn>model\n{_END}"
)

TEMPLATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tinyllama-1.1b": _ZEPHYR,
        "qwen2.5-0.5b": _CHATML,
        "llama3.2-1b": _LLAMA3,
        "gemma2-2b": _GEMMA,
        "smollm2-135m": _CHATML,
    }
)
"""Jinja, by the shape's key; Llama 2 7B, as it is published most, is no chat model."""
