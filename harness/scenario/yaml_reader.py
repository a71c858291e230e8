"""YAML text to plain values that remember their place.

The text is read event by event, so that nesting, size and aliases are limited while reading
and no text can exhaust the stack or the memory. Scalars follow the core schema of YAML 1.2:
``no`` is text and ``010`` is ten. Merge keys, custom tags and further documents are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from edgebench.harness.scenario.problems import (
    Finding,
    KeyPath,
    Position,
    Problem,
    format_path,
    quote,
)
from edgebench.harness.scenario.yaml_scalars import TAG_PREFIX, Refused, read_scalar
from edgebench.harness.scenario.yaml_syntax import syntax_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruamel.yaml.error import StringMark
    from ruamel.yaml.events import Event

MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Unreadable:
    """Stands for a value that has been reported already."""


UNREADABLE: Final = _Unreadable()

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | _Unreadable | None"


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place.

    Attributes:
        start: where it begins.
        value: the scalar, the items, or the entries by key, each with its key's place.
        nodes: how many values it holds, itself included and aliases written out.
        depth: how deep it nests, 1 for a scalar.
    """

    start: Position
    value: bool | int | float | str | _Unreadable | list[Node] | dict[str, Entry] | None
    nodes: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place and its value."""

    key_start: Position
    node: Node


@dataclass(frozen=True, slots=True)
class Document:
    """What was read: the tree, or None where there is none, and what is wrong with the text."""

    root: Node | None
    problems: list[Problem]

    def plain(self) -> Plain:
        """The document as plain values, `UNREADABLE` where one was reported."""
        return UNREADABLE if self.root is None else _plain(self.root)

    def place(self, finding: Finding) -> Problem | None:
        """`finding` with its place, or None where the text there was reported already."""
        node = self.root
        position = Position(1, 1) if node is None else node.start
        for part in finding.path:
            child: Node | None = None
            if node is not None and isinstance(node.value, list) and isinstance(part, int):
                child = node.value[part]
                position = child.start
            elif node is not None and isinstance(node.value, dict) and part in node.value:
                entry = node.value[str(part)]
                child = entry.node
                position = entry.key_start if finding.at == "key" else child.start
            else:
                break  # a missing key: its place is that of what should hold it
            if child.value is UNREADABLE:
                return None
            node = child
        return Problem(position, format_path(finding.path), finding.message)


def read_yaml(text: str) -> Document:
    """Read one YAML document.

    Args:
        text: the whole file; a byte order mark at its start is left out.

    Returns:
        The tree and every problem of the text itself. Never raises for any text.
    """
    text = text.removeprefix("\ufeff")
    if bad := _UNPRINTABLE.search(text):
        before = text[: bad.start()]
        position = Position(before.count("\n") + 1, bad.start() - (before.rfind("\n") + 1) + 1)
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML; remove it"
        return Document(None, [Problem(position, "syntax", message)])
    builder = _Builder(_events(text))
    try:
        root = builder.document()
    except _StopReading as stop:
        return Document(None, sorted([*builder.problems, stop.problem]))
    return Document(root, builder.problems)


class _StopReading(Exception):  # noqa: N818 - control flow inside this module
    """The rest of the text can't be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def _events(text: str) -> Iterator[Event]:
    """The parser's events; what the parser raises becomes `_StopReading`."""
    last = Position(1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            last = _start(event)
            yield event
    except MarkedYAMLError as error:
        raise _StopReading(syntax_problem(error, last)) from error
    except Exception as error:
        # ruamel.yaml lets plain exceptions through for some texts, such as "\UFFFFFFFF".
        message = f"this can't be read as YAML, at or after this place: {error}"
        raise _StopReading(Problem(last, "syntax", " ".join(message.split()))) from error


def _start(event: Event) -> Position:
    mark: StringMark = event.start_mark
    return Position(mark.line + 1, mark.column + 1)


@dataclass(slots=True)
class _Builder:
    """Builds the tree, one method for each kind of node."""

    events: Iterator[Event]
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)
    nodes: int = 0

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if event.version is not None and tuple(event.version) != (1, 2):
                    self.report(event, (), "scenarios are YAML 1.2; remove the %YAML line")
            elif isinstance(
                event, (ScalarEvent, SequenceStartEvent, MappingStartEvent, AliasEvent)
            ):
                if root is not None:
                    message = "only one document is allowed in a file; remove the '---' before it"
                    raise _StopReading(self.problem(event, (), message))
                root = self.node(event, ())
        if root is None:
            message = "the file is empty; start with 'schema_version: 1'"
            self.problems.append(Problem(Position(1, 1), format_path(()), message))
        return root

    def problem(self, event: Event, path: KeyPath, message: str) -> Problem:
        return Problem(_start(event), format_path(path), message)

    def report(self, event: Event, path: KeyPath, message: str) -> None:
        self.problems.append(self.problem(event, path, message))

    def node(self, event: Event, path: KeyPath) -> Node:
        self.nodes += 1
        if isinstance(event, AliasEvent):
            return self.limited(self.alias(event, path), event, path)
        if len(path) >= MAX_DEPTH:
            message = f"nests deeper than {MAX_DEPTH} levels"
            raise _StopReading(self.problem(event, path[:MAX_DEPTH], message))
        # Nothing else stands for a node in the parser's grammar.
        assert isinstance(event, (ScalarEvent, SequenceStartEvent, MappingStartEvent))
        anchor: str | None = event.anchor
        if anchor is not None:
            self.open_anchors.add(anchor)
        if isinstance(event, ScalarEvent):
            node = self.scalar(event, path)
        elif isinstance(event, SequenceStartEvent):
            node = self.sequence(event, path)
        else:
            node = self.mapping(event, path)
        if anchor is not None:
            self.open_anchors.discard(anchor)
            self.anchors[anchor] = node
        return self.limited(node, event, path)

    def limited(self, node: Node, event: Event, path: KeyPath) -> Node:
        """`node`, unless what it stands for, aliases written out, is too large to be meant."""
        if node.nodes > MAX_NODES or self.nodes > MAX_NODES:
            message = f"holds more than {MAX_NODES} values, aliases written out"
            raise _StopReading(self.problem(event, path, message))
        if len(path) + node.depth > MAX_DEPTH + 1:
            message = f"nests deeper than {MAX_DEPTH} levels, aliases written out"
            raise _StopReading(self.problem(event, path, message))
        return node

    def alias(self, event: AliasEvent, path: KeyPath) -> Node:
        name: str = event.anchor
        if name in self.open_anchors:
            self.report(event, path, f"the alias {quote('*' + name)} stands inside its own anchor")
        elif name not in self.anchors:
            self.report(event, path, f"the alias {quote('*' + name)} has no anchor before it")
        else:
            known = self.anchors[name]
            # The alias itself is the place to name; what it holds keeps the places it has.
            return Node(_start(event), known.value, known.nodes, known.depth)
        return Node(_start(event), UNREADABLE)

    def sequence(self, event: SequenceStartEvent, path: KeyPath) -> Node:
        items: list[Node] = []
        while not isinstance(inner := next(self.events), SequenceEndEvent):
            items.append(self.node(inner, (*path, len(items))))
        if self.refuses_tag(event, path, "seq"):
            return Node(_start(event), UNREADABLE)
        return _collection(_start(event), items, items)

    def mapping(self, event: MappingStartEvent, path: KeyPath) -> Node:
        entries: dict[str, Entry] = {}
        while not isinstance(key_event := next(self.events), MappingEndEvent):
            key = self.key(key_event, path)
            inner = (*path, "?" if key is None else key)
            value_event = next(self.events)
            node = self.node(value_event, inner)
            if isinstance(value_event, ScalarEvent) and value_event.end_mark.index == (
                value_event.start_mark.index
            ):
                # Nothing is written there: the parser's place is that of what comes next.
                node = Node(_start(key_event), node.value)
            if key is None:
                continue
            if key in entries:
                first = entries[key].key_start
                message = f"this key is there already, at line {first.line}; remove one of them"
                self.report(key_event, inner, message)
                continue
            entries[key] = Entry(_start(key_event), node)
        if self.refuses_tag(event, path, "map"):
            return Node(_start(event), UNREADABLE)
        return _collection(_start(event), entries, [entry.node for entry in entries.values()])

    def key(self, event: Event, path: KeyPath) -> str | None:
        """The key's name, or None where it was reported."""
        found = len(self.problems)
        node = self.node(event, (*path, "?"))
        if isinstance(node.value, str):
            if node.value == "<<" and isinstance(event, ScalarEvent) and event.style is None:
                message = "merge keys are not supported; write the keys out"
                self.report(event, (*path, "<<"), message)
                return None
            return node.value
        if len(self.problems) == found:
            self.report(event, path, "a key must be a name; put it in quotes if it is meant as one")
        return None

    def scalar(self, event: ScalarEvent, path: KeyPath) -> Node:
        value = read_scalar(event.value, event.tag, quoted=event.style is not None)
        if isinstance(value, Refused):
            self.report(event, path, value.why)
            return Node(_start(event), UNREADABLE)
        return Node(_start(event), value)

    def refuses_tag(self, event: CollectionStartEvent, path: KeyPath, allowed: str) -> bool:
        tag: str | None = event.tag
        if tag in {None, "!", TAG_PREFIX + allowed}:
            return False
        self.report(event, path, f"the tag {quote(str(tag))} is not supported; remove it")
        return True


def _collection(
    start: Position, value: list[Node] | dict[str, Entry], children: list[Node]
) -> Node:
    nodes = 1 + sum(child.nodes for child in children)
    return Node(start, value, nodes, 1 + max((child.depth for child in children), default=0))


def _plain(node: Node) -> Plain:
    if isinstance(node.value, list):
        return [_plain(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: _plain(entry.node) for key, entry in node.value.items()}
    return node.value
