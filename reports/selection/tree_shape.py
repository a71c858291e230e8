"""Whether a tree is one: every way ends, none goes in a circle, nothing is out of reach.

The rules look at what was written, which need not be valid by itself, so that they are reported
beside wrong types and unknown keys, all at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from edgebench.harness.scenario.problems import Finding, KeyPath, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_WAYS: Final = 200
"""More ways through than anybody reads, or a drawing can show."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """An answer that leads somewhere, and where that is written."""

    to: str
    path: KeyPath


@dataclass(frozen=True, slots=True)
class _Shape:
    """The nodes and the ways between them, without anything that is not well written.

    Attributes:
        start: the name that stands there, of whatever kind it is.
        edges: by question.
        meant: by question all nodes that its answers lead to, or were probably meant to.
        keys: by question.
        ends: the recommendations.
    """

    start: object
    edges: Mapping[str, tuple[_Edge, ...]]
    meant: Mapping[str, frozenset[str]]
    keys: Mapping[str, str]
    ends: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        return self.ends | self.edges.keys()


def shape_findings(tree: Mapping[str, object]) -> list[Finding]:
    """What is wrong with the ways through a tree.

    Args:
        tree: the file as plain values.
    """
    shape = _shape(tree)
    findings = [*_answers(tree), *_twice(shape), *_unknown(shape)]
    circles = list(_circles(shape))
    findings += circles
    findings += _out_of_reach(shape)
    if not circles:
        known = _resolved(shape)
        findings += _asked_again(known)
        findings += _too_many(known)
    return findings


def _resolved(shape: _Shape) -> _Shape:
    """The same without what leads nowhere."""
    edges = {
        name: tuple(each for each in found if each.to in shape.names)
        for name, found in shape.edges.items()
    }
    return replace(shape, edges=edges)


def _shape(tree: Mapping[str, object]) -> _Shape:
    questions = dict(_groups(tree.get("questions")))
    edges = {}
    for name, question in questions.items():
        edges[name] = tuple(
            _Edge(to, ("questions", name, "answers", key, "to"))
            for key, answer in _groups(question.get("answers"))
            if isinstance(to := answer.get("to"), str)
        )
    keys = {
        name: key if isinstance(key := question.get("key"), str) else name
        for name, question in questions.items()
    }
    ends = frozenset(name for name, _ in _groups(tree.get("recommendations")))
    names = ends | edges.keys()
    meant = {
        name: frozenset(filter(None, (_meant(to, names) for to in _places(question))))
        for name, question in questions.items()
    }
    return _Shape(tree.get("start"), edges, meant, keys, ends)


def _places(question: Mapping[str, object]) -> Iterator[str]:
    """Where a question's answers lead; of one that does not say so, all texts that it holds.

    What such an answer leads to is not out of reach: the fault is told of the answer alone.
    """
    answers = question.get("answers")
    for answer in answers.values() if isinstance(answers, dict) else ():
        texts = list(answer.values()) if isinstance(answer, dict) else [answer]
        if isinstance(answer, dict) and isinstance(answer.get("to"), str):
            texts = [answer["to"]]
        yield from (text for text in texts if isinstance(text, str))


def _meant(name: str, known: frozenset[str]) -> str | None:
    return name if name in known else suggestion(name, known)


def _answers(tree: Mapping[str, object]) -> Iterator[Finding]:
    for name, question in _groups(tree.get("questions")):
        answers = question.get("answers")
        if isinstance(answers, dict) and len(answers) < 2:  # noqa: PLR2004 - a question parts ways
            message = f"a question needs at least two answers, got {len(answers)}"
            yield Finding(("questions", name, "answers"), message)


def _twice(shape: _Shape) -> Iterator[Finding]:
    for name in sorted(shape.ends & shape.edges.keys()):
        message = "a question has this name already; give one of them another"
        yield Finding(("recommendations", name), message, at="key")


def _unknown(shape: _Shape) -> Iterator[Finding]:
    if isinstance(shape.start, str) and shape.start not in shape.edges:
        if shape.start in shape.ends:
            message = "must be a question, and is a recommendation: nothing would be asked"
        else:
            message = _no_such("question", shape.start, frozenset(shape.edges))
        yield Finding(("start",), message)
    for edges in shape.edges.values():
        for edge in edges:
            if edge.to not in shape.names:
                message = _no_such("question or recommendation", edge.to, shape.names)
                yield Finding(edge.path, message)


def _no_such(what: str, name: str, known: frozenset[str]) -> str:
    meant = suggestion(name, known)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return f"there is no {what} {quote(name)}{hint}"


def _circles(shape: _Shape) -> Iterator[Finding]:
    """The answers that lead back to a question on the way to them, each once."""
    done: set[str] = set()
    for root in shape.edges:
        if root in done:
            continue
        # By hand and not by recursion: a file may hold thousands of questions in a row.
        way = [root]
        pending = [iter(shape.edges[root])]
        while way:
            edge = next(pending[-1], None)
            if edge is None:
                done.add(way.pop())
                pending.pop()
            elif edge.to in way:
                back = [*way[way.index(edge.to) :], edge.to]
                message = f"goes in a circle ({' -> '.join(back)}); every way must end"
                yield Finding(edge.path, message)
            elif edge.to in shape.edges and edge.to not in done:
                way.append(edge.to)
                pending.append(iter(shape.edges[edge.to]))


def _out_of_reach(shape: _Shape) -> Iterator[Finding]:
    reached: set[str] = set()
    start = _meant(shape.start, frozenset(shape.edges)) if isinstance(shape.start, str) else None
    # Where it is not known which question comes first, each of them may be it.
    pending = list(shape.edges) if start is None else [start]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += shape.meant.get(name, ())
    for kind, names in (("questions", shape.edges), ("recommendations", shape.ends)):
        for name in sorted(set(names) - reached):
            yield Finding((kind, name), "no answer leads here; remove it, or lead to it", at="key")


def _asked_again(shape: _Shape) -> Iterator[Finding]:
    """Questions whose key was answered on some way to them already."""
    before: dict[str, set[str]] = {name: set() for name in shape.names}
    for name in _from_the_start(shape):
        asked = before[name] | ({shape.keys[name]} if name in shape.keys else set())
        for edge in shape.edges.get(name, ()):
            before[edge.to] |= asked
    for name, key in shape.keys.items():
        if key in before[name]:
            message = f"{quote(key)} is asked on the way here already; its answer is known"
            yield Finding(("questions", name), message, at="key")


def _too_many(shape: _Shape) -> Iterator[Finding]:
    ways: dict[str, int] = dict.fromkeys(shape.ends, 1)
    for name in reversed(_from_the_start(shape)):
        if name in shape.edges:
            ways[name] = sum(ways[edge.to] for edge in shape.edges[name])
    total = max(ways.values(), default=0)
    if total > MAX_WAYS:
        yield Finding(("questions",), f"{total} ways through; at most {MAX_WAYS} can be shown")


def _from_the_start(shape: _Shape) -> list[str]:
    """All names, each after those that lead to it; there must be no circle."""
    leading = dict.fromkeys(shape.names, 0)
    for edges in shape.edges.values():
        for edge in edges:
            leading[edge.to] += 1
    ready = [name for name, count in leading.items() if not count]
    order = []
    while ready:
        name = ready.pop()
        order.append(name)
        for edge in shape.edges.get(name, ()):
            leading[edge.to] -= 1
            if not leading[edge.to]:
                ready.append(edge.to)
    return order


def _groups(value: object) -> Iterator[tuple[str, dict[str, object]]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict):
                yield key, item
