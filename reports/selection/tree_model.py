"""Decision trees as people write them: questions, answers, and what is recommended at the ends.

History of the format (``schema_version``), which is independent of the trees' own versions:

1. the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field

from edgebench.harness.scenario.problems import shown
from edgebench.harness.scenario.values import LABEL, Slug, Text, format_version, refusal
from edgebench.harness.scenario.written import STRICT
from edgebench.reports.languages import ENGLISH, N_, _, current

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA_VERSION: Final = 1

_RUNNER: Final = r"^[a-z0-9][a-z0-9._-]*$"
_YES_NO: Final = {"yes": N_("yes"), "no": N_("no")}


def _version(value: object) -> object:
    return format_version(value, SCHEMA_VERSION)


def _words(value: object) -> object:
    if isinstance(value, str):
        return {ENGLISH: value}
    if not isinstance(value, dict):
        message = f"must be text, or one text under en and another under zh, got {shown(value)}"
        raise refusal(message)
    return value


def _runner(value: object) -> object:
    if isinstance(value, str) and value != value.lower():
        message = f"must be a runner's name in lower case: {value.lower()!r}"
        raise refusal(message)
    return value


Line = Annotated[str, Field(pattern=LABEL, max_length=1000)]
Runner = Annotated[Slug, BeforeValidator(_runner)]


class Node(BaseModel):
    """Base of all parts of a tree: unknown keys and wrong types are refused."""

    model_config = STRICT


class TextIn(Node):
    """A text in the languages of reports; a plain text is English."""

    en: Line = Field(description="In English, which stands where another language is missing.")
    zh: Line | None = Field(default=None, description="In Chinese.")

    @property
    def words(self) -> str:
        """The text in the language in which reports are being made."""
        return self.zh if self.zh is not None and current() == "zh" else self.en


Words = Annotated[TextIn, BeforeValidator(_words)]


class Source(Node):
    """The document that a tree is taken from."""

    document: Words = Field(description="What it is called, and where in it the tree stands.")
    quote: Text = Field(description="The tree or the advice, word for word.")


class Answer(Node):
    """One way on from a question."""

    to: Slug = Field(description="The question or recommendation that it leads to.")
    text: Words | None = Field(
        default=None, description="The answer in words, where its key does not say it."
    )


class Question(Node):
    """A place where the way parts."""

    text: Words = Field(description="The question in words.")
    key: Slug | None = Field(
        default=None,
        description="By which it is answered, where that is not its name in the tree: two "
        "questions may ask the same on different ways.",
    )
    answers: dict[Slug, Answer] = Field(
        description="By the answer's key, yes, no or a name, at least two."
    )


class Recommendation(Node):
    """An end."""

    runner: Runner = Field(description="The recommended framework's runner, in lower case.")
    because: Words | None = Field(
        default=None,
        description="Why; of a tree from a document its own words, and their translation.",
    )


class Tree(Node):
    """A decision tree."""

    schema_version: Annotated[Literal[1], BeforeValidator(_version)] = Field(
        description="Version of this format."
    )
    name: Slug = Field(description="Its name, which no other tree that is walked with it has.")
    version: Annotated[int, Field(ge=1)] = Field(
        description="Of the tree itself; raised when its ways change."
    )
    title: Words = Field(description="What it helps to choose.")
    source: Source | None = Field(
        default=None, description="Where it is from; nothing for a tree of your own."
    )
    start: Slug = Field(description="The question that comes first.")
    questions: dict[Slug, Question] = Field(description="By name.")
    recommendations: dict[Slug, Recommendation] = Field(description="The ends, by name.")
    fits: dict[Runner, Annotated[tuple[Words, ...], Field(strict=False)]] = Field(
        default={},
        description="What each framework fits, by runner; of a tree from a document its own "
        "words, and their translation.",
    )

    def key(self, name: str) -> str:
        """By which the question of that name is answered."""
        return self.questions[name].key or name

    @property
    def keys(self) -> Mapping[str, frozenset[str]]:
        """The keys of all its questions, each with all answers that any of them allows."""
        found: dict[str, frozenset[str]] = {}
        for name, question in self.questions.items():
            key = self.key(name)
            found[key] = found.get(key, frozenset()) | frozenset(question.answers)
        return found

    @property
    def runners(self) -> tuple[str, ...]:
        """All that it can recommend, in the order of the file."""
        return tuple(dict.fromkeys(each.runner for each in self.recommendations.values()))


def answer_words(question: Question, key: str) -> str:
    """An answer in words, in the language in which reports are being made."""
    text = question.answers[key].text
    if text is not None:
        return text.words
    return _(_YES_NO[key]) if key in _YES_NO else key


def choices(question: Question) -> Iterator[tuple[str, str]]:
    """The keys of a question's answers, each with its words."""
    return ((key, answer_words(question, key)) for key in question.answers)
