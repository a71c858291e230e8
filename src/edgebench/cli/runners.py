"""``edgebench runners``: which frameworks are there, and how to get those that are not."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgebench.cli.ssh_options import board_at, refuse_python, ssh_options
from edgebench.harness import wire
from edgebench.harness.errors import RunnerError
from edgebench.harness.scenario.config import load_config
from edgebench.harness.scenario.values import written
from edgebench.harness.session import PROBE_TIMEOUT_S, Launch, Session
from edgebench.runners.base import Description, Option, RunnerFailure
from edgebench.runners.registry import runner_class, runner_names

if TYPE_CHECKING:
    from collections.abc import Callable

ABILITIES = {
    "token_ids_in": "takes token ids",
    "token_ids_out": "gives token ids",
    "token_timestamps": "a time stamp per token",
    "ignores_end_of_text": "exact lengths",
    "threads": "threads",
    "tokenizer": "tokenizer",
    "tokenizes": "ids of a text",
    "chat_template": "chat template",
    "scoring": "log-likelihoods",
    "top_k_logits": "top-k logits",
}


@dataclass(frozen=True, slots=True)
class Status:
    """A runner, installed or not.

    Attributes:
        tasks: by the name of each whole task that it knows, what runs it, or why nothing does.
    """

    name: str
    installed: bool
    description: Description | None
    tasks: dict[str, str]
    problem: str | None
    pip: str | None
    quantizations: tuple[str, ...]
    options: dict[str, Option]


@click.command()
@click.argument("name", required=False)
@ssh_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def runners(
    name: str | None,
    ssh: str | None,
    python: str | None,
    as_json: bool,  # noqa: FBT001 - click's own way
) -> None:
    """List the frameworks: installed or not, version, abilities, how to install.

    With NAME, that one with all its options and what they mean. With --ssh, those of another
    machine.
    """
    refuse_python(ssh, python)
    names = runner_names()
    if name is not None and name not in names:
        msg = f"there is no runner named {name!r}; there are {', '.join(names)}"
        raise click.BadParameter(msg, param_hint="NAME")
    wanted = [name] if name else names
    if ssh is None:
        config = load_config().runners
        pythons = {each: config[each].python for each in wanted if each in config}
        found = [_look(each, Session, pythons.get(each)) for each in wanted]
    else:
        with board_at(ssh, python) as board:
            board.machine()  # where it can't be reached, that is no runner's fault
            found = [_look(each, board.open, None) for each in wanted]
    if as_json:
        click.echo(json.dumps([asdict(status) for status in found], indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for status in found:
        table.add_row(status.name, _described(status), end_section=True)
        table.add_row()
    Console().print(table)
    if name is not None:
        Console().print(_options(found[0].options))


def _options(options: dict[str, Option]) -> Table:
    """Every option: its name, what it takes, and what it does."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, option in options.items():
        takes = ", ".join(map(str, option.choices)) or option.kind
        if option.minimum is not None:
            takes += f", at least {option.minimum:g}"
        if option.default is not None:
            takes += f"; {written(option.default)} where unset"
        shapes = " Shapes the artifact." if option.stage == "convert" else ""
        table.add_row(name, Text.assemble((takes, "dim"), f"\n{option.help}{shapes}"))
    return table


def _look(name: str, opened: Callable[[Launch], Session], python: str | None) -> Status:
    """Ask the runner in a process of its own: importing a framework may do anything.

    Args:
        name: the runner's.
        opened: gives such a process, here or on a board.
        python: the interpreter that has the framework, where it is another one.
    """
    try:
        kind = runner_class(name)
    except RunnerFailure as failure:
        return Status(name, False, None, {}, str(failure), None, (), {})  # noqa: FBT003
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(name, Path(folder) / "probe.log", python)
        description, problem = None, None
        tasks: dict[str, str] = {}
        try:
            with opened(launch) as session:
                description = wire.description(session.call("probe", timeout_s=PROBE_TIMEOUT_S))
            tasks = {task: _task(opened(launch), task) for task in description.capabilities.tasks}
        except RunnerError as error:
            problem = str(error)
    return Status(
        name=name,
        installed=description is not None,
        description=description,
        tasks=tasks,
        problem=problem,
        pip=f"pip install '{kind.PIP}'",
        quantizations=("source", *kind.QUANTIZATIONS),
        options=dict(kind.OPTIONS),
    )


def _task(process: Session, task: str) -> str:
    """What runs a task; asked in a process without what makes the runner's tokens."""
    try:
        with process as session:
            answer = session.call("describe_task", {"task": task}, timeout_s=PROBE_TIMEOUT_S)
            found = wire.task_description(answer)
    except RunnerError as error:
        return str(error)
    inside = "".join(f", {name} {value}" for name, value in found.build.items())
    return f"{found.engine} {found.engine_version}{inside}"


def _described(status: Status) -> Text:
    if status.description is None:
        return Text.assemble(
            ("not installed\n", "yellow"), f"{status.problem}\n", (status.pip or "", "bold")
        )
    capabilities = asdict(status.description.capabilities)
    facts = {
        "abilities": [text for key, text in ABILITIES.items() if capabilities[key]],
        "quantizations": status.quantizations,
        "KV cache": capabilities["kv_cache_types"],
        "GPU": capabilities["gpu_backends"] or ["none in this build"],
        "options": status.options,
    }
    lines = [f"{name}: {', '.join(values)}" for name, values in facts.items() if values]
    lines += [f"task {name}: {what}" for name, what in status.tasks.items()]
    lines += status.description.notes
    engine = f"{status.description.engine} {status.description.engine_version}"
    if status.name == "fake":
        engine += ", for tests of edgebench; it is no framework"
    return Text.assemble((f"{engine}\n", "green"), "\n".join(lines))
