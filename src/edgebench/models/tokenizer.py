"""A model's tokenizer: Hugging Face's `tokenizers`, from its file or rebuilt from a GGUF."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text's tokens, and where in the text they are.

    Attributes:
        ids: the tokens, no start token before them.
        ends: for each the byte of the text's UTF-8 where it ends, which is where the next one
            begins. The bytes of a character of several tokens are shared out evenly to them; what
            the tokenizer leaves out counts at a token beside it. They never decrease, and the last
            one is the text's size.
    """

    ids: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class Tokenizer:
    """Texts to ids and back.

    Attributes:
        json: what stands in a ``tokenizer.json``.
        start_id: the token to put before every prompt, or None where the model wants none.
        end_ids: tokens that end a text.
        chat_template: the model's Jinja template, or None.
        start_text, end_text: the texts that a template may ask for, or "".
        start_token_id: the token that begins texts, whether prompts get one or not; None where
            the model has none.
    """

    json: str
    start_id: int | None = None
    end_ids: tuple[int, ...] = ()
    chat_template: str | None = None
    start_text: str = ""
    end_text: str = ""
    start_token_id: int | None = None

    @cached_property
    def _engine(self) -> Any:  # noqa: ANN401 - a package that may be absent
        return self._made(self.json)

    @cached_property
    def _text_engine(self) -> Any:  # noqa: ANN401 - as above
        # Another one: its state is different, and a post-processor may trim blanks off the places.
        plain = {"post_processor": None, "truncation": None, "padding": None}
        engine = self._made(json.dumps(json.loads(self.json) | plain, ensure_ascii=False))
        engine.encode_special_tokens = True
        return engine

    def _made(self, content: str) -> Any:  # noqa: ANN401 - as above
        try:
            from tokenizers import Tokenizer as Engine  # noqa: PLC0415
        except ImportError as error:
            msg = (
                f"the package tokenizers can't be imported by {sys.executable} ({error}); "
                "install it with: pip install 'edgebench[convert]'"
            )
            raise ModelFormatError(msg) from error
        try:
            return Engine.from_str(content)
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

    def encode_text(self, text: str) -> Encoded:
        """The tokens of a text in which the texts of special tokens are text like any other.

        Tokens that are not special, but were added by users, are found as in `encode`. No start
        token is put before it.
        """
        made = self._text_engine.encode(text, add_special_tokens=False)
        if not made.ids:
            return Encoded((), ())
        # In characters. Where tokens end is of little use: a mark that a normaliser has joined with
        # the letter before it lies beyond, and of a character each of its tokens says it has all.
        places = np.array(made.offsets, dtype=np.int64)
        begin = np.maximum.accumulate(places[:, 0])
        points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        sizes = 1 + sum((points >= least).astype(np.int64) for least in (0x80, 0x800, 0x10000))
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        first = np.concatenate((sizes, [0]))[begin]
        ends = _ends(bounds[begin], first, places[:, 1] > places[:, 0], int(bounds[-1]))
        return Encoded(tuple(made.ids), tuple(ends.tolist()))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens written out, a due start token in front left out."""
        if ids and self.start_id is not None and ids[0] == self.start_id:
            ids = ids[1:]
        text: str = self._engine.decode(list(ids), skip_special_tokens=False)
        return text


def _ends(
    begins: NDArray[np.int64], first: NDArray[np.int64], real: NDArray[np.bool_], size: int
) -> NDArray[np.int64]:
    """Where tokens end, in bytes.

    Args:
        begins: where the character begins that each begins in.
        first: the bytes of that character; tokens that begin in the same one share them, and the
            last of these has all that is left up to the next one.
        real: whether there is anything in the text that each stands for.
        size: the text's.
    """
    starts = np.flatnonzero(np.concatenate(([True], begins[1:] > begins[:-1])))
    counts = np.diff(np.concatenate((starts, [len(begins)])))
    running = np.cumsum(real)
    before = np.concatenate(([0], running))[starts]
    rank = running - np.repeat(before, counts)
    among = np.maximum(1, np.repeat(np.add.reduceat(real.astype(np.int64), starts), counts))
    ends: NDArray[np.int64] = begins + first * rank // among
    ends[starts + counts - 1] = np.concatenate((begins[starts[1:]], [size]))
    return ends
