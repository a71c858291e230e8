"""A decision tree as it is drawn: what several answers lead to stands below each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.selection.tree_model import answer_words
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.reports.selection.tree_model import Tree
    from edgebench.reports.selection.walk import Way


@dataclass(frozen=True, slots=True)
class Item:
    """A question or an end, at one place of the drawing.

    Attributes:
        text: the question, or the framework's name.
        answer: the answer that leads here, in words; empty at the start.
        runner: what is recommended; empty for a question.
        lit: whether the way leads here.
        below: what the answers lead to.
    """

    text: str
    answer: str
    runner: str
    lit: bool
    below: tuple[Item, ...]

    @property
    def levels(self) -> int:
        """How many questions and ends the longest way has, from here on."""
        return 1 + max((each.levels for each in self.below), default=0)


def unfolded(tree: Tree, way: Way) -> Item:
    """The tree from its start on; it has no circle, and few enough ways."""
    return _item(tree, tree.start, "", dict(way.taken), lit=True)


def _item(tree: Tree, name: str, answer: str, taken: dict[str, str], *, lit: bool) -> Item:
    end = tree.recommendations.get(name)
    if end is not None:
        return Item(framework_name(end.runner), answer, end.runner, lit, ())
    question = tree.questions[name]
    below = tuple(
        _item(
            tree,
            each.to,
            one_line(answer_words(question, key)),
            taken,
            lit=lit and taken.get(name) == key,
        )
        for key, each in question.answers.items()
    )
    return Item(one_line(question.text.words), answer, "", lit, below)
