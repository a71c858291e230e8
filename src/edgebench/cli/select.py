"""``edgebench select``: which framework to take, by the decision trees and by what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.harness.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.tree import Tree
    from edgebench.reports.selection.view import Open, Selection
    from edgebench.reports.selection.walk import Given


@click.command()
@click.argument(
    "run_dirs",
    nargs=-1,
    metavar="[RUN_DIR]...",
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--tree",
    "tree_names",
    multiple=True,
    metavar="NAME|FILE",
    help="Walk this decision tree, and not those that edgebench comes with (edge-frameworks, "
    "deployment-targets). May be repeated; the first one decides.",
)
@click.option(
    "--answer",
    "written",
    multiple=True,
    metavar="KEY=VALUE",
    help="Answer a question, or set a limit or a weight: vision=yes, target=phone, "
    "max_memory_bytes=4GiB, weights.decode_rate=2. May be repeated; stands above the scenario.",
)
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", help="Language.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def select(
    run_dirs: tuple[Path, ...],
    tree_names: tuple[str, ...],
    written: tuple[str, ...],
    lang: str,
    *,
    as_json: bool,
) -> int:
    """Choose a framework: by decision trees, and by what the runs in RUN_DIR measured.

    Answers are those of the scenario's `requirements`, then those of --answer; what is still open
    is asked on a terminal. Without a RUN_DIR there is only the trees' advice. The exit status is
    0 where a tree leads to a recommendation, 2 where all are left open.
    """
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.reports.languages import language  # noqa: PLC0415
    from edgebench.reports.selection.answers import parse_answers, with_answers  # noqa: PLC0415
    from edgebench.reports.selection.select import select as choose  # noqa: PLC0415
    from edgebench.reports.selection.walk import (  # noqa: PLC0415
        COMMAND_LINE,
        TERMINAL,
        answers_of,
        put_over,
    )

    trees = _trees(tree_names)
    on_line = parse_answers(written, trees)
    data = _measurements(run_dirs)
    with language(lang):
        scenario = _of_scenario(data)
        requirements = with_answers(scenario, on_line)
        above = _of(answers_of(requirements, COMMAND_LINE), on_line)
        given = put_over(above, answers_of(scenario))
        if not as_json and sys.stdin.isatty() and sys.stdout.isatty():
            asked = _ask(trees if tree_names else trees[:1], given)
            requirements = with_answers(scenario, {**on_line, **asked}, asked=asked)
            above |= _of(answers_of(requirements, TERMINAL), asked)
            given = put_over(above, answers_of(scenario))
        selection = choose(data, requirements, trees=trees, given=given)
        if as_json:
            _print_json(selection, requirements, given, data)
        else:
            _print(selection)
    if any(each.recommendation for each in selection.walks):
        return ExitStatus.DONE
    raise UsageError(_left_open(selection))


def _of(answers: Mapping[str, Given], keys: Collection[str]) -> dict[str, Given]:
    return {key: each for key, each in answers.items() if key in keys}


def _trees(names: Sequence[str]) -> tuple[Tree, ...]:
    from edgebench.reports.selection.tree import load_tree, load_trees  # noqa: PLC0415

    trees = tuple(map(load_tree, names)) if names else load_trees()
    listed = [tree.name for tree in trees]
    for place, name in enumerate(listed):
        if name in listed[:place]:
            message = f"--tree: two of the decision trees have the name {name}"
            raise UsageError(message, remedy="Name each once, or give one of them another name.")
    return trees


def _measurements(run_dirs: Sequence[Path]) -> ReportData | None:
    if not run_dirs:
        return None
    from edgebench.reports.combine import combined  # noqa: PLC0415 - pandas and numpy

    return combined(run_dirs)


def _of_scenario(data: ReportData | None) -> Requirements:
    from edgebench.harness.scenario.requirements import Requirements  # noqa: PLC0415
    from edgebench.reports.selection.select import (  # noqa: PLC0415
        differing_requirements,
        requirements_of,
    )

    if data is None:
        return Requirements()
    if keys := differing_requirements(data):
        runs = ", ".join(str(part.path) for part in data.parts)
        message = f"the scenarios of {runs} differ in what they ask for: {', '.join(keys)}"
        click.echo(f"edgebench: {message}", err=True)
        click.echo("edgebench: so none of it is taken; say by --answer what you need", err=True)
    return requirements_of(data)


def _ask(trees: Sequence[Tree], given: Mapping[str, Given]) -> dict[str, str]:
    """What the walks through the trees need and nobody said yet, asked on the terminal."""
    from edgebench.reports.selection.walk import (  # noqa: PLC0415
        TERMINAL,
        Given,
        open_question,
        put_over,
        way_through,
        with_implied,
    )

    asked: dict[str, str] = {}
    for tree in trees:
        while True:
            said = {key: Given(value, TERMINAL) for key, value in asked.items()}
            way = way_through(tree, with_implied(put_over(said, given)))
            if way.ended:
                break
            question = open_question(tree, way.at)
            asked[question.key] = _prompt(question)
    return asked


def _prompt(question: Open) -> str:
    keys = [key for key, _words in question.choices]
    for key, words in question.choices:
        if words != key:
            click.echo(f"  {key}: {words}")
    short = {key[0]: key for key in keys if key in {"yes", "no"}}
    in_words = {text: key for key, text in question.choices}
    answer: str = click.prompt(question.question, type=_Answer(keys, short | in_words))
    return answer


class _Answer(click.Choice[str]):
    """A choice that takes the first letter of yes and no, and the answers in words, as well."""

    def __init__(self, keys: Sequence[str], others: Mapping[str, str]) -> None:
        super().__init__(keys, case_sensitive=False)
        self.others = others

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The key that was meant."""
        return super().convert(self.others.get(str(value).strip().lower(), value), param, ctx)


def _print(selection: Selection) -> None:
    from rich.console import Console  # noqa: PLC0415

    from edgebench.reports.selection.terminal import selection_text  # noqa: PLC0415

    Console(highlight=False).print(selection_text(selection))


def _print_json(
    selection: Selection,
    requirements: Requirements,
    given: Mapping[str, Given],
    data: ReportData | None,
) -> None:
    from edgebench.reports.selection.as_json import selection_as_json  # noqa: PLC0415

    shown = selection_as_json(selection, requirements, given, data)
    click.echo(json.dumps(shown, indent=2, ensure_ascii=False))


def _left_open(selection: Selection) -> str:
    """The first open question of each tree, and how it is answered."""
    lines = [
        f"the decision tree {walk.name} asks: {walk.open.question} Answer with "
        + " or ".join(f"--answer {walk.open.key}={key}" for key, _words in walk.open.choices)
        for walk in selection.walks
        if walk.open is not None
    ]
    return "\n".join(lines)
