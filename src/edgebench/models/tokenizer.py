"""A model's tokenizer: Hugging Face's `tokenizers`, from its file or rebuilt from a GGUF."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Tokenizer:
    """Texts to ids and back.

    Attributes:
        json: what stands in a ``tokenizer.json``.
        start_id: the token to put before every prompt, or None where the model wants none.
        end_ids: tokens that end a text.
        chat_template: the model's Jinja template, or None.
        start_text, end_text: the texts that a template may ask for, or "".
    """

    json: str
    start_id: int | None = None
    end_ids: tuple[int, ...] = ()
    chat_template: str | None = None
    start_text: str = ""
    end_text: str = ""

    @cached_property
    def _engine(self) -> Any:  # noqa: ANN401 - a package that may be absent
        try:
            from tokenizers import Tokenizer as Engine  # noqa: PLC0415
        except ImportError as error:
            msg = (
                f"the package tokenizers can't be imported by {sys.executable} ({error}); "
                "install it with: pip install 'edgebench[convert]'"
            )
            raise ModelFormatError(msg) from error
        try:
            return Engine.from_str(self.json)
        except Exception as error:  # the package raises nothing narrower
            msg = (
                f"the package tokenizers can't make the model's tokenizer ({error}); the model is "
                "damaged, or a newer release of the package is needed: pip install -U tokenizers"
            )
            raise ModelFormatError(msg) from error

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, special tokens parsed, after the start token if one is due."""
        ids: list[int] = self._engine.encode(text, add_special_tokens=False).ids
        return ids if self.start_id is None else [self.start_id, *ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens written out, a due start token in front left out."""
        if ids and self.start_id is not None and ids[0] == self.start_id:
            ids = ids[1:]
        text: str = self._engine.decode(list(ids), skip_special_tokens=False)
        return text
