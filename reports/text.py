"""Text from outside, made safe to show: in a terminal, in Markdown and in HTML."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE_SEQUENCE = re.compile(
    r"""
    \x1b\[[0-?]*[ -/]*[@-~]                 # CSI: colours, cursor
    | \x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?    # OSC: titles, links
    | \x1b[PX^_].*?(?:\x1b\\|$)             # strings to the device
    | \x1b[ -/]*[0-~]                       # everything shorter
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[ -~\n\t]*\Z")
_CODE_SAFE = re.compile(r"[^`|\\\n\t]+\Z")
_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]~|$]|(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"(?P<digits>\d{1,9})(?=[.)](?:\s|$))|[-+#=:]")
_CONTROL_PICTURES = 0x2400
_SPACE = 0x20
_NONCHARACTER = 0xFFFE
_TURNS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_MARKS = frozenset("\N{LEFT-TO-RIGHT MARK}\N{RIGHT-TO-LEFT MARK}\N{ARABIC LETTER MARK}")


def clean(text: str) -> str:
    """Make a text from outside show what it holds, and do nothing.

    Terminal escape sequences go; other control characters, characters that turn the direction
    of writing, and halves of surrogate pairs are made visible. Line ends and tabs stay.
    """
    if _PLAIN.match(text):
        return text
    text = _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return "".join(character if character in "\n\t" else _visible(character) for character in text)


def one_line(text: str) -> str:
    """`clean`, with every run of white space as one space."""
    return " ".join(clean(text).split())


def tail(text: str, *, lines: int = 40, characters: int = 8000) -> str:
    """The end of a log, cleaned, at most so many lines and characters."""
    kept = clean(text).rstrip().splitlines()[-lines:]
    return "\n".join(kept)[-characters:]


def markdown(text: str) -> str:
    """A text from outside as one line of Markdown that shows the text and nothing else."""
    line = one_line(text)
    escaped = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", line)
    start = _BLOCK_START.match(escaped)
    if start:
        at = start.end() if start["digits"] else 0
        escaped = f"{escaped[:at]}\\{escaped[at:]}"
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown_code(text: str) -> str:
    """A name from outside as a code span; as escaped text where a code span can't hold it."""
    line = one_line(text)
    return f"`{line}`" if _CODE_SAFE.match(line) else markdown(line)


def markdown_block(text: str) -> str:
    """Lines from outside as a fenced block that they can't close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean(text)}\n{fence}"


def _visible(character: str) -> str:
    code = ord(character)
    category = unicodedata.category(character)
    if code < _SPACE:
        return chr(_CONTROL_PICTURES + code)
    if category == "Cs" or (code & _NONCHARACTER) == _NONCHARACTER:
        return "\N{REPLACEMENT CHARACTER}"
    if category in {"Zl", "Zp"}:
        return " "
    turns = unicodedata.bidirectional(character) in _TURNS or character in _MARKS
    return f"[U+{code:04X}]" if turns or category == "Cc" else character
