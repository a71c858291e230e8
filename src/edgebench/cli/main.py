"""The entry point: finds the command, runs it, turns every failure into a message and a status."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import TYPE_CHECKING

import click

from edgebench import __version__
from edgebench.cli.streams import outlive_readers
from edgebench.harness.errors import EdgebenchError, ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

# Short helps stand here, so that --help imports no command and none of what commands need.
COMMANDS: Mapping[str, str] = {
    "run": "Run a scenario and write its report.",
    "validate": "Check a scenario and show what it would run.",
    "verify": "Compare every variant with the reference: is it the same model?",
    "report": "Write the reports of finished runs again.",
    "compare": "Compare two runs: better, worse, the same, or can't tell.",
    "gate": "Compare with a baseline and fail where a limit is broken.",
    "baseline": "Save, list or show baselines, small files for git.",
    "noise": "Run a scenario against itself: what could a gate on this machine notice?",
    "history": "Show how results changed over time, and where.",
    "export": "Write results in another tool's format.",
    "import": "Make a baseline of another tool's results.",
    "predict": "Predict memory, speed and energy on a device that is not at hand.",
    "select": "Choose a framework: by decision trees, and by what runs measured.",
    "runners": "List the frameworks: installed or not, version, abilities.",
    "devices": "List, show or probe device profiles, each figure with its source.",
    "probe": "Measure this machine: how fast its memory is read.",
    "doctor": "Look for what will spoil a measurement on this machine.",
    "models": "List or remove stored models.",
    "schema": "Print the JSON Schema of a file format.",
}

MODULES: Mapping[str, str] = {"import": "import_results"}
"""Commands that no module can be called after."""

EPILOG = """\
Exit status: 0 done; 1 the gate found a regression; 2 the scenario or the command line is wrong;
3 finished, but some cells failed (each is a row with its reason) or a variant is not the same
model; 4 nothing could be run; 5 the baseline is missing or does not compare, or too few
repetitions to decide; 70 a fault of edgebench itself; 130 interrupted (what was finished is kept,
and --resume goes on).
"""


class LazyGroup(click.Group):
    """Imports a command when it is used, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module, which holds it under its own name."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        name = MODULES.get(cmd_name, cmd_name)
        command = getattr(importlib.import_module(f"edgebench.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.version_option(__version__, prog_name="edgebench")
def cli() -> None:
    """Benchmark edge LLM inference frameworks side by side.

    The same weights, the same token ids, each framework in its own process; certainty beside
    every number, and a reason wherever there is none.
    """


def main() -> None:
    """Run the command line and exit with its status."""
    outlive_readers()
    sys.exit(run_command_line())


def run_command_line(arguments: list[str] | None = None) -> int:
    """The same without leaving: what ``main`` would exit with."""
    try:
        status = cli.main(arguments, prog_name="edgebench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitStatus.DONE
    except click.ClickException as error:
        error.show()
        return ExitStatus.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("edgebench: interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except EdgebenchError as error:
        for line in str(error).splitlines():
            # Indented lines belong to the one above them.
            alone = line.startswith(" ") or _has_position(line)
            click.echo(line if alone else f"edgebench: {line}", err=True)
        return error.exit_status
    except Exception:  # noqa: BLE001 - a status of its own: 1 would be a regression
        traceback.print_exc()
        click.echo("edgebench: this is a fault of edgebench itself; please report it.", err=True)
        return ExitStatus.INTERNAL
    return status if isinstance(status, int) else ExitStatus.DONE


def _has_position(line: str) -> bool:
    """``file:line:column: …`` is left as it is, for editors that jump to it."""
    parts = line.split(":", 3)
    return len(parts) > 3 and parts[1].isdigit() and parts[2].isdigit()  # noqa: PLR2004
