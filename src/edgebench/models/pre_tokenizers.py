"""How a text is cut up before byte-level BPE, by the names that llama.cpp gives to the ways.

A GGUF file does not say how; it has a name (``tokenizer.ggml.pre``). The cuts are those of the
tokenizers that the names stand for, in the form of a ``tokenizer.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_CASELESS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = _CASELESS + r"|\p{N}{1,3}" + _TAIL
QWEN2 = _CASELESS + r"|\p{N}" + _TAIL
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """One way of cutting.

    Attributes:
        steps: entries of a ``tokenizer.json``, all but the last, which turns bytes into letters.
        byte_regex: the last step cuts as GPT-2 does, too.
        ignore_merges: a piece that is a token is taken whole, whatever the merges say.
        adds_start: a start token is due unless the file says otherwise.
        normal_form: texts are brought into Unicode's form C first. llama.cpp leaves that out.
    """

    steps: tuple[Json, ...] = ()
    byte_regex: bool = False
    ignore_merges: bool = False
    adds_start: bool = False
    normal_form: bool = False

    def pre_tokenizer(self) -> Json:
        """The entry ``pre_tokenizer`` of a ``tokenizer.json``."""
        last: Json = {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": self.byte_regex,
        }
        return {"type": "Sequence", "pretokenizers": [*self.steps, last]} if self.steps else last

    def normalizer(self) -> Json:
        """The entry ``normalizer`` of a ``tokenizer.json``."""
        return {"type": "NFC"} if self.normal_form else None


def _split(pattern: str) -> Json:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


_DIGITS: Json = {"type": "Digits", "individual_digits": True}
_GPT2_LIKE = PreTokenizer(byte_regex=True)
_DIGIT_LIKE = PreTokenizer((_DIGITS,), byte_regex=True)
_LLAMA3_LIKE = PreTokenizer((_split(LLAMA3),), ignore_merges=True, adds_start=True)
_QWEN2_LIKE = PreTokenizer((_split(QWEN2),), normal_form=True)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "gpt-2": _GPT2_LIKE,
    "phi-2": _GPT2_LIKE,
    "olmo": _GPT2_LIKE,
    "smollm": _DIGIT_LIKE,
    "starcoder": _DIGIT_LIKE,
    "refact": _DIGIT_LIKE,
    "codeshell": _DIGIT_LIKE,
    "llama-bpe": _LLAMA3_LIKE,
    "llama3": _LLAMA3_LIKE,
    "llama-v3": _LLAMA3_LIKE,
    "smaug-bpe": PreTokenizer((_split(LLAMA3),)),
    "qwen2": _QWEN2_LIKE,
    "deepseek-r1-qwen": _QWEN2_LIKE,
    "megrez": _QWEN2_LIKE,
    "tekken": PreTokenizer((_split(TEKKEN),), ignore_merges=True, adds_start=True),
    "deepseek-coder": PreTokenizer(
        (
            _split("[\r\n]"),
            _split(r"\s?\p{L}+"),
            _split(r"\s?\p{P}+"),
            _split("[一-龥ࠀ-一가-퟿]+"),
            _DIGITS,
        )
    ),
    # What llama.cpp does with files made before it had names.
    "default": PreTokenizer(
        (
            _split(r"[\p{P}\$\+<=>\^~\|]+"),
            _split(_GPT2),
            _split(r"\p{N}+"),
            _split("[0-9][0-9][0-9]"),
        )
    ),
}


def pre_tokenizer_name(tokenizer: dict[str, Json]) -> str | None:
    """llama.cpp's name of the way in which a ``tokenizer.json`` cuts texts up.

    Args:
        tokenizer: the file's content, of a byte-level BPE.

    Returns:
        The first name that does the same, or None where there is none.
    """
    found = _comparable(tokenizer.get("pre_tokenizer"))
    model = tokenizer.get("model")
    ignores = isinstance(model, dict) and model.get("ignore_merges") is True
    normalizer = tokenizer.get("normalizer")
    for name, way in PRE_TOKENIZERS.items():
        same = found == _comparable(way.pre_tokenizer()) and ignores == way.ignore_merges
        # llama.cpp normalises nothing, so that a file without it is as good.
        if same and (normalizer is None or normalizer == way.normalizer()):
            return name
    return None


def _comparable(entry: Json) -> Json:
    """Without what does not change ids, and without sequences around a single step."""
    if not isinstance(entry, dict):
        return entry
    if entry.get("type") == "Sequence":
        steps = entry.get("pretokenizers")
        inner = [_comparable(step) for step in steps] if isinstance(steps, list) else []
        return inner[0] if len(inner) == 1 else inner
    return {key: value for key, value in entry.items() if key != "trim_offsets"}
