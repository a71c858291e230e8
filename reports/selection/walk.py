"""The way through a decision tree, by the answers that were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.problems import quote, suggestion
from edgebench.harness.scenario.requirements import QUESTIONS, overruled
from edgebench.reports.languages import N_
from edgebench.reports.selection.draw import draw
from edgebench.reports.selection.mermaid import mermaid
from edgebench.reports.selection.tree_model import answer_words, choices
from edgebench.reports.selection.view import Open, Step, Walk

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.selection.tree_model import Tree

SCENARIO: Final = N_("scenario")
COMMAND_LINE: Final = N_("command line")
TERMINAL: Final = N_("terminal")
IMPLIED: Final = N_("follows from vision")
"""Who answered: messages, to be looked up where they are shown."""


@dataclass(frozen=True, slots=True)
class Given:
    """An answer.

    Attributes:
        value: ``yes``, ``no`` or a name.
        by: who gave it, such as `SCENARIO`.
    """

    value: str
    by: str


def answers_of(requirements: Requirements, by: str = SCENARIO) -> dict[str, Given]:
    """The answers among the requirements, by the key of the question."""
    found = {key: getattr(requirements, key) for key in QUESTIONS} | requirements.answers
    return {
        key: Given(written(value), by)
        for key, value in found.items()
        if isinstance(value, bool | str)
    }


def written(value: bool | str) -> str:  # noqa: FBT001 - an answer
    """An answer as it is written."""
    return value if isinstance(value, str) else ("yes" if value else "no")


def put_over(above: Mapping[str, Given], below: Mapping[str, Given]) -> dict[str, Given]:
    """Answers above others; those below that don't go with them are left out."""
    values = [{key: each.value for key, each in given.items()} for given in (above, below)]
    gone = overruled(*values)
    return {key: each for key, each in below.items() if key not in gone} | dict(above)


def with_implied(answers: Mapping[str, Given]) -> dict[str, Given]:
    """The answers, and what follows from them: images are more than text."""
    found = dict(answers)
    vision = found.get("vision")
    if vision is not None and vision.value == "yes":
        found.setdefault("multimodal", Given("yes", IMPLIED))
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """How far answers lead, in the names of the tree's own file.

    Attributes:
        taken: each question's name with the answer's key, from the start on.
        at: the name of the question or recommendation where it ends.
        ended: whether that is a recommendation.
    """

    taken: tuple[tuple[str, str], ...]
    at: str
    ended: bool


def way_through(tree: Tree, answers: Mapping[str, Given]) -> Way:
    """How far the answers lead.

    Raises:
        UsageError: an answer is none that its question allows.
    """
    at = tree.start
    taken: list[tuple[str, str]] = []
    while at in tree.questions:
        question, key = tree.questions[at], tree.key(at)
        given = answers.get(key)
        if given is None:
            return Way(tuple(taken), at, ended=False)
        answer = _matching(given.value, question.answers)
        if answer is None:
            raise _no_answer(tree, key, given, tuple(question.answers))
        taken.append((at, answer))
        at = question.answers[answer].to
    return Way(tuple(taken), at, ended=True)


def _matching(value: str, allowed: Collection[str]) -> str | None:
    """The answer that a value means: in upper or lower case, and ``true`` for ``yes``."""
    if value in allowed:
        return value
    return next((each for each in allowed if _folded(each) == _folded(value)), None)


def _folded(value: str) -> str:
    folded = value.casefold()
    return {"true": "yes", "false": "no"}.get(folded, folded)


def walk(tree: Tree, answers: Mapping[str, Given], *, name: str) -> Walk:
    """The way through a tree, ready to be shown.

    Args:
        tree: the tree.
        answers: by the key of the question; what no question asks is left out.
        name: unique in the page, of letters, digits and hyphens; ids in the drawing begin so.

    Raises:
        UsageError: an answer is none that its question allows.
    """
    way = way_through(tree, answers)
    steps = tuple(
        Step(
            key=tree.key(node),
            question=tree.questions[node].text.words,
            answer=answer,
            answer_text=answer_words(tree.questions[node], answer),
            given_by=answers[tree.key(node)].by,
        )
        for node, answer in way.taken
    )
    end = tree.recommendations[way.at] if way.ended else None
    return Walk(
        name=tree.name,
        version=tree.version,
        title=tree.title.words,
        document=tree.source.document.words if tree.source else "",
        steps=steps,
        open=None if way.ended else open_question(tree, way.at),
        recommendation=end.runner if end else "",
        because=end.because.words if end and end.because else "",
        svg=draw(tree, way, name=name),
        mermaid=mermaid(tree, way),
        fits=tuple(each.words for each in tree.fits.get(end.runner, ())) if end else (),
    )


def open_question(tree: Tree, name: str) -> Open:
    """The question of that name, as one that nobody answered."""
    question = tree.questions[name]
    return Open(tree.key(name), question.text.words, tuple(choices(question)))


def _no_answer(tree: Tree, key: str, given: Given, allowed: tuple[str, ...]) -> UsageError:
    meant = suggestion(given.value, allowed)
    hint = f"did you mean {meant}?" if meant else f"allowed: {', '.join(allowed)}"
    message = (
        f"{key}: the decision tree {tree.name} has no answer {quote(given.value)} "
        f"({given.by}); {hint}"
    )
    return UsageError(message)
