"""What the documents say, as checked values: their figures, their words, their judgements."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - pydantic reads it
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from edgebench.reports.languages import current

STRICT = ConfigDict(extra="forbid", frozen=True)

STAR = "⭐"
DocumentKey = Literal["chapter", "article"]
FrameworkKey = Literal["llama.cpp", "mnn", "mediapipe", "mlc"]
Degree = Literal["no", "limited", "yes"]
Target = Literal["pc", "browser", "phone", "board"]
Unit = Literal["1", "token/s", "byte", "W", "token/s/W"]
Positive = Annotated[float, Field(gt=0)]

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_GIGA = 1e9
_SAME = 1e-9


class Words(BaseModel):
    """A text of a document, word for word, and what it means in English."""

    model_config = STRICT

    zh: str = Field(min_length=1)
    en: str

    def said(self) -> str:
        """The text in the language of the report."""
        return self.zh if current() == "zh" else self.en


class Document(BaseModel):
    """One of the documents.

    Attributes:
        short: what stands beside what it says.
        date: of its publication; None where it says none.
        file: its name among the documents that edgebench was written after.
    """

    model_config = STRICT

    short: Words
    title: Words
    author: Words
    date: dt.date | None
    language: Literal["zh"]
    file: str


class Figure(BaseModel):
    """A number of a document, or a range.

    Attributes:
        text: as printed there.
        value: the number in `unit`; None for a range, which has `low` and `high`.
        unit: of the stored numbers.
    """

    model_config = STRICT

    text: str = Field(min_length=1)
    value: Positive | None = None
    low: Positive | None = None
    high: Positive | None = None
    unit: Unit

    @model_validator(mode="after")
    def _is_what_is_printed(self) -> Self:
        given = [each for each in (self.value, self.low, self.high) if each is not None]
        if len(given) != (1 if self.value is not None else 2):
            msg = "has either a value, or both low and high"
            raise ValueError(msg)
        factor = _GIGA if self.unit == "byte" else 0.01 if self.text.endswith("%") else 1.0
        printed = [float(each) * factor for each in _NUMBER.findall(self.text)]
        for each in given:
            if not any(abs(each - one) <= _SAME * one for one in printed):
                msg = f"{each} is not what {self.text!r} says"
                raise ValueError(msg)
        if self.low is not None and self.high is not None and self.low >= self.high:
            msg = "low must be below high"
            raise ValueError(msg)
        return self

    @property
    def middle(self) -> float:
        """The number; the middle of a range. To sort by and to draw, never to be quoted."""
        if self.value is not None:
            return self.value
        assert self.low is not None
        assert self.high is not None
        return (self.low + self.high) / 2


class FrameworkRow(BaseModel):
    """One framework in the table of frameworks."""

    model_config = STRICT

    framework: FrameworkKey
    ttft_relative: Figure
    decode_rate: Figure
    peak_memory: Figure
    quantization_support: Words


class Frameworks(BaseModel):
    """The table of frameworks."""

    model_config = STRICT

    document: DocumentKey
    caption: Words
    conditions: Words
    model: str
    columns: dict[str, Words]
    rows: tuple[FrameworkRow, ...]


class FormatRow(BaseModel):
    """One format in the table of formats."""

    model_config = STRICT

    format: str
    model_size: Figure
    perplexity: Figure
    relative_speed: Figure
    relative_read: Figure


class Formats(BaseModel):
    """The table of formats.

    Attributes:
        base: the format that speed and bandwidth are relative to.
    """

    model_config = STRICT

    document: DocumentKey
    caption: Words
    model: str
    framework: FrameworkKey
    base: str
    columns: dict[str, Words]
    rows: tuple[FormatRow, ...]

    @model_validator(mode="after")
    def _base_is_there(self) -> Self:
        if self.base not in {each.format for each in self.rows}:
            msg = f"there is no row of the base {self.base!r}"
            raise ValueError(msg)
        return self


class Memory(BaseModel):
    """What a device's memory moves at most.

    Attributes:
        bytes_per_s: the theoretical peak.
        source: who specifies it, in words.
    """

    model_config = STRICT

    bytes_per_s: Positive
    kind: Words
    source: Words


class Architecture(BaseModel):
    """What decoding one token reads of a model, in numbers of weights and bits of each.

    Attributes:
        layers, hidden, feed_forward, vocabulary: of the transformer.
        key_value: width of the keys and of the values, all heads together.
        weight_bits, output_bits, norm_bits: bits a weight, scales included.
    """

    model_config = STRICT

    layers: int
    hidden: int
    feed_forward: int
    key_value: int
    vocabulary: int
    weight_bits: Positive
    output_bits: Positive
    norm_bits: Positive


class PlatformRow(BaseModel):
    """One device in the table of platforms."""

    model_config = STRICT

    platform: str
    device: str
    decode_rate: Figure
    power: Figure
    rate_per_watt: Figure
    memory: Memory


class Platforms(BaseModel):
    """The table of platforms."""

    model_config = STRICT

    document: DocumentKey
    caption: Words
    model: str
    quantization: str
    framework: FrameworkKey
    architecture: Architecture
    columns: dict[str, Words]
    rows: tuple[PlatformRow, ...]


class Judgement(Words):
    """What a document thinks of one framework in one respect.

    Attributes:
        stars: out of 5, where it gives stars; `en` is then what stands in brackets behind them.
    """

    stars: int | None = Field(default=None, ge=1, le=5)

    @model_validator(mode="after")
    def _stars_are_counted(self) -> Self:
        if self.zh.count(STAR) != (self.stars or 0):
            msg = f"{self.stars} stars are not what {self.zh!r} says"
            raise ValueError(msg)
        if not self.en and self.stars is None:
            msg = "what is not stars needs its English"
            raise ValueError(msg)
        return self

    def said(self) -> str:
        """The words; of stars without words, their number out of 5."""
        if self.stars is None:
            return super().said()
        words = self.en
        if current() == "zh":
            words = self.zh.strip(f"{STAR} ").removeprefix("(").removesuffix(")")
        return f"{self.stars}/5 ({words})" if words else f"{self.stars}/5"


class FeatureRow(BaseModel):
    """One respect in which frameworks are compared."""

    model_config = STRICT

    key: str
    label: Words
    cells: dict[FrameworkKey, Judgement]


class FeatureTable(BaseModel):
    """One document's table of features."""

    model_config = STRICT

    document: DocumentKey
    caption: Words
    frameworks: tuple[FrameworkKey, ...]
    rows: tuple[FeatureRow, ...]

    @model_validator(mode="after")
    def _every_cell_is_there(self) -> Self:
        for row in self.rows:
            if set(row.cells) != set(self.frameworks):
                msg = f"the row {row.key!r} does not have exactly the table's frameworks"
                raise ValueError(msg)
        return self


class Quote(BaseModel):
    """The words of a document that something rests on.

    Attributes:
        quote: in its language, word for word.
        en: what that means.
        note: what the words do not say, where that matters.
    """

    model_config = STRICT

    document: DocumentKey
    quote: str
    en: str
    note: Words | None = None

    def said(self) -> str:
        """The quote in the language of the report."""
        return self.quote if current() == "zh" else self.en


class Claim(Quote):
    """Whether a framework can do something, as a document says."""

    value: Degree


class Capability(BaseModel):
    """What the documents say that a framework can do; None is that they say nothing of it.

    Attributes:
        multimodal: whether more than text goes in.
        vision: whether images or video go in.
        enterprise_support: whether a company stands behind it.
        target_quotes: by what it runs on. One that is not there is not spoken of, which is no no.
    """

    model_config = STRICT

    multimodal: Claim | None = None
    vision: Claim | None = None
    enterprise_support: Claim | None = None
    target_quotes: dict[Target, Quote] = Field(default={}, alias="targets")

    @property
    def targets(self) -> frozenset[str]:
        """What the documents say it runs on."""
        return frozenset(self.target_quotes)


class Features(BaseModel):
    """``features.yaml``."""

    model_config = STRICT

    tables: tuple[FeatureTable, ...]
    capabilities: dict[FrameworkKey, Capability]


class Documents(BaseModel):
    """``documents.yaml``."""

    model_config = STRICT

    documents: dict[DocumentKey, Document]
