"""A decision tree as the text of a Mermaid flowchart, which code hosts draw."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.selection.tree_model import answer_words
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.reports.selection.tree_model import Tree
    from edgebench.reports.selection.walk import Way

_TAKEN: Final = "taken"
_STYLE: Final = f"classDef {_TAKEN} stroke:#1f5fbf,stroke-width:3px,font-weight:bold"
_LIST: Final = re.compile(r"\d+[.)]|[-+]")
_SYNTAX: Final = frozenset('"#$&*;<=>@[\\]^_`{|}~')
"""What a quoted label can't hold as it is, or what some version takes for markup or for maths."""
_ICON: Final = re.compile(r":(?=\S)")
"""As in ``fa:fa-car``, which Mermaid draws as a picture."""


def mermaid(tree: Tree, way: Way) -> str:
    """The tree, with the questions and answers of the way drawn thick.

    Returns:
        The text without the fence around it. Every label is in quotes with what could be taken
        for syntax or markup as entities; all else stands as it is, Chinese punctuation too, so
        that the text can be read.
    """
    names = [*tree.questions, *tree.recommendations]
    ids = {name: f"n{number}" for number, name in enumerate(names)}
    lines = ["flowchart TD"]
    for name, question in tree.questions.items():
        lines.append(f'    {ids[name]}["{_label(question.text.words)}"]')
    for name, end in tree.recommendations.items():
        lines.append(f'    {ids[name]}(["{_label(framework_name(end.runner))}"])')
    links, lit = 0, []
    for name, question in tree.questions.items():
        for key, answer in question.answers.items():
            taken = (name, key) in way.taken
            arrow = "==>" if taken else "-->"
            label = _label(answer_words(question, key))
            if taken:
                lit.append(links)
            links += 1
            lines.append(f'    {ids[name]} {arrow}|"{label}"| {ids[answer.to]}')
    lines.append(f"    {_STYLE}")
    if lit:
        lines.append(f"    linkStyle {','.join(map(str, lit))} stroke:#1f5fbf,stroke-width:3px")
    walked = [ids[name] for name, _answer in way.taken] + [ids[way.at]]
    lines.append(f"    class {','.join(walked)} {_TAKEN}")
    return "\n".join(lines)


def _label(text: str) -> str:
    """A label that Mermaid shows as it is: what could be syntax becomes a number."""
    line = one_line(text)
    # Some versions read labels as Markdown, and refuse those that begin as a list does.
    start = _LIST.match(line)
    escaped = {match.start() for match in _ICON.finditer(line)}
    if start:
        escaped.add(start.end() - 1)
    return "".join(
        f"#{ord(character)};"
        if place in escaped or character in _SYNTAX or not character.isprintable()
        else character
        for place, character in enumerate(line)
    )
