"""MNN's ``llm_bench``, by the table that it prints.

With ``-kv true`` its row has both phases of one generation, ``prefill<br>decode``, each a mean and
its deviation over its repetitions. It is started once for each repetition, so that none of our
numbers is a mean of several. (MNN, transformers/llm/engine/tools/llm_bench.cpp.)
"""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.adb.tool import (
    Ask,
    Line,
    Told,
    Wanted,
    checked_rate,
    not_understood,
    option_value,
)
from edgebench.harness.errors import InvalidResultError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.measured import Scalar

LONGEST: Final = 100
LEVELS: Final[Mapping[str, str]] = MappingProxyType({"normal": "0", "high": "1", "low": "2"})
FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "threads": "-t",
        "precision": "-c",
        "memory": "--memory",
        "backend": "-a",
        "mmap": "-mmp",
        "dynamic_option": "-dyo",
    }
)
COLUMNS: Final = ("backend", "threads", "precision", "memory", "dynamicOption", "mmap")
NAMES: Final[Mapping[str, str]] = MappingProxyType({"dynamicOption": "dynamic_option"})

_RULE: Final = re.compile(r":?-+:?")
"""A cell of the line below a table's head."""


class LlmBench:
    """Both phases of a generation in each start."""

    program = "llm_bench"
    engine = "MNN"
    options = frozenset(FLAGS)
    changing = frozenset[str]()
    caveats = (
        (
            "llm_bench divides by the tokens that were asked for: where the model ends its text "
            "early, its decode rate is too high"
        ),
        "llm_bench adds 8 to dynamic_option (modulo 8) where a prompt has more than 300 tokens",
    )

    def refusal(self, wanted: Wanted) -> str:
        """It always begins with an empty cache."""
        return (
            "llm_bench has no option to fill the cache before (depth)"
            if wanted.depth_tokens
            else ""
        )

    def asks(self, wanted: Wanted, repetitions: int) -> list[Ask]:
        """One start for each repetition; it warms up by itself."""
        arguments = ["-m", f"{wanted.model}/config.json", "-kv", "true", "-rep", "1"]
        arguments += ["-load", "false", "-p", str(wanted.prompt_tokens)]
        arguments += ["-n", str(wanted.generate_tokens)]
        for name, value in wanted.options.items():
            if name in FLAGS:
                arguments += [FLAGS[name], _argument(value)]
        return [Ask(tuple(arguments), "both", 1)] * repetitions

    def read(self, ask: Ask, wanted: Wanted, lines: Sequence[Line]) -> Told:  # noqa: ARG002 - a Tool
        """The one row of its table."""
        rows = [_cells(line.text) for line in lines if line.text.startswith("|")]
        header = next((row for row in rows if "llm_demo" in row), None)
        below = rows[rows.index(header) + 1 :] if header is not None else []
        found = [each for each in below if not all(_RULE.fullmatch(cell) for cell in each)]
        if header is None or not found or len(found[0]) != len(header):
            raise not_understood(self.program, lines, "table with the column llm_demo")
        if len(found) > 1:
            msg = f"{self.program} printed {len(found)} rows for one test"
            raise InvalidResultError(msg)
        row = dict(zip(header, found[0], strict=True))
        _check_model(row, wanted)
        asked = f"prompt={wanted.prompt_tokens}<br>decode={wanted.generate_tokens}"
        if row["llm_demo"] != asked:
            told = one_line(row["llm_demo"])[:LONGEST]
            msg = f"{self.program} measured {told} where {asked} was asked for"
            raise InvalidResultError(msg)
        prefill, decode = _rates(row.get("speed(tok/s)", ""))
        return Told(
            prefill=(checked_rate(self.program, wanted.prompt_tokens, prefill),),
            decode=(checked_rate(self.program, wanted.generate_tokens, decode),),
            options=_options(row),
        )


def _check_model(row: Mapping[str, str], wanted: Wanted) -> None:
    """That it is the model that was asked for: it is named after the folder that it lies in."""
    told = row.get("model", "")
    name = PurePosixPath(wanted.model).name
    if told and told != name:
        msg = f"{LlmBench.program} measured the model {one_line(told)[:LONGEST]}, not {name}"
        raise InvalidResultError(msg)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _rates(text: str) -> tuple[float, float]:
    """``21.14 ± 0.00<br>9.12 ± 0.00``; not a number where it is something else.

    Raises:
        InvalidResultError: a deviation is not that of one repetition.
    """
    found = []
    for part in text.split("<br>"):
        rate, _, deviation = part.partition("±")
        try:
            found.append(float(rate))
            deviates = float(deviation or 0) > 0
        except ValueError:
            found.append(math.nan)
            deviates = False
        if deviates:
            msg = (
                f"{LlmBench.program} contradicts itself: one repetition that deviates by "
                f"{one_line(deviation)[:LONGEST]} tokens/s"
            )
            raise InvalidResultError(msg)
    return (found[0], found[1]) if len(found) == 2 else (math.nan, math.nan)  # noqa: PLR2004


def _options(row: Mapping[str, str]) -> dict[str, Scalar]:
    used: dict[str, Scalar] = {}
    for column in COLUMNS:
        value = row.get(column, "")
        number = int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else None
        kept = number if number is not None else option_value(value.lower())
        if kept not in {None, ""}:
            used[NAMES.get(column, column)] = kept
    return used


def _argument(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return LEVELS.get(str(value), str(value))
