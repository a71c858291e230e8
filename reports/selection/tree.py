"""Files of decision trees: read, checked as a whole, every problem reported at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.errors import TreeError
from edgebench.harness.scenario.problems import (
    Finding,
    Position,
    Problem,
    format_path,
    suggestion,
)
from edgebench.harness.scenario.text_file import UnreadableFileError, read_text_file
from edgebench.harness.scenario.wording import reword
from edgebench.harness.scenario.yaml_reader import read_yaml
from edgebench.reports.selection.tree_model import (
    SCHEMA_VERSION,
    Answer,
    Question,
    Recommendation,
    Source,
    TextIn,
    Tree,
)
from edgebench.reports.selection.tree_runners import runner_findings
from edgebench.reports.selection.tree_shape import shape_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

    from pydantic import BaseModel

    from edgebench.harness.scenario.problems import KeyPath
    from edgebench.harness.scenario.wording import Layout

__all__ = ["DEFAULT_TREE", "Tree", "load_tree", "load_trees", "parse_tree"]

_WAYS: Final = ("start", "questions", "recommendations")
DEFAULT_TREE: Final = "edge-frameworks"
"""The one that is walked first."""


@cache
def load_trees() -> tuple[Tree, ...]:
    """The trees that edgebench comes with, the one that decides first."""
    files = _built_in()
    order = sorted(files, key=lambda name: (name != DEFAULT_TREE, name))
    return tuple(
        parse_tree(files[name].read_text(encoding="utf-8"), filename=f"{name}.yaml")
        for name in order
    )


def load_tree(name_or_path: str | Path) -> Tree:
    """A tree by its name, of those that edgebench comes with, or from a file.

    Raises:
        TreeError: there is no such tree, or the file can't be read or is wrong; one line for each
            problem, as ``file:line:column: path: what is wrong, what is allowed``.
    """
    known = {tree.name: tree for tree in load_trees()}
    if str(name_or_path) in known:
        return known[str(name_or_path)]
    path = Path(name_or_path)
    if len(path.parts) == 1 and not path.suffix and not path.exists():
        meant = suggestion(str(path), known)
        hint = f"did you mean {meant}?" if meant else "name a file, or one of those"
        message = f"edgebench has no decision tree {str(path)!r}, only {', '.join(known)}"
        raise TreeError(message, remedy=hint)
    return parse_tree(_read(path), filename=str(path))


def parse_tree(text: str, *, filename: str) -> Tree:
    """Read a tree from its text.

    Args:
        text: the whole file.
        filename: how the messages name it.

    Raises:
        TreeError: the text is wrong.
    """
    document = read_yaml(text)
    plain = document.plain()
    problems = set(document.problems)
    tree: Tree | None = None
    if isinstance(plain, dict) and _is_something_else(plain):
        message = f"this is no decision tree: it has none of {', '.join(_WAYS)}"
        raise TreeError(Problem(Position(1, 1), "tree", message).line(filename))
    if document.root is not None:
        tree, findings = _validate(plain)
        if isinstance(plain, dict) and not _is_newer(plain):
            findings += [*shape_findings(plain), *runner_findings(plain)]
        problems.update(filter(None, map(document.place, findings)))
    if problems or tree is None:
        lines = (_of_a_tree(problem).line(filename) for problem in sorted(problems))
        raise TreeError("\n".join(dict.fromkeys(lines)))
    return tree


def _validate(plain: object) -> tuple[Tree | None, list[Finding]]:
    if not isinstance(plain, dict):
        return None, [Finding((), "must be a group of keys such as 'name: …', one a line")]
    try:
        return Tree.model_validate(plain), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if _is_newer(plain):
        details = [detail for detail in details if detail["loc"] == ("schema_version",)]
    return None, reword([(detail, detail["loc"]) for detail in details], _layout(details))


def _layout(details: Iterable[Mapping[str, object]]) -> Layout:
    """The models at the places that are wrong; those below a name differ from file to file."""
    found: Layout = {}
    for detail in details:
        location = detail["loc"]
        assert isinstance(location, tuple)
        for length in range(len(location)):
            place = location[:length]
            model = _model_at(place)
            if model is not None:
                found[tuple("*" if isinstance(part, int) else part for part in place)] = model
    return found


def _model_at(place: KeyPath) -> type[BaseModel] | None:  # noqa: PLR0911 - one line for each
    match place:
        case ():
            return Tree
        case (*_, "title" | "text" | "because" | "document") | ("fits", _, _):
            return TextIn
        case ("source",):
            return Source
        case ("questions", _):
            return Question
        case ("questions", _, "answers", _):
            return Answer
        case ("recommendations", _):
            return Recommendation
    return None


def _is_something_else(plain: Mapping[str, object]) -> bool:
    """Whether a file, of another kind, has nothing of a tree's ways and keys that no tree has."""
    # Not what merely looks like `start`, as the `status` of a run does.
    ways = [name for name in plain if name in _WAYS or suggestion(name, _WAYS[1:])]
    return not ways and not plain.keys() <= Tree.model_fields.keys()


def _is_newer(plain: Mapping[str, object]) -> bool:
    version = plain.get("schema_version")
    return type(version) is int and version > SCHEMA_VERSION


def _of_a_tree(problem: Problem) -> Problem:
    return replace(problem, path="tree") if problem.path == format_path(()) else problem


def _built_in() -> dict[str, Traversable]:
    folder = resources.files(__package__).joinpath("trees")
    return {
        file.name.removesuffix(".yaml"): file
        for file in folder.iterdir()
        if file.name.endswith(".yaml")
    }


def _read(path: Path) -> str:
    try:
        return read_text_file(path, "tree")
    except UnreadableFileError as error:
        raise TreeError(Problem(error.position, "tree", error.message).line(str(path))) from error
