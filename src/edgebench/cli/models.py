"""``edgebench models``: what is in the model store, and making room."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from edgebench.harness.store.store import Entry, ModelStore, Pruned, ReferenceEntry

_DEFAULT_DAYS = 30.0


@click.group()
def models() -> None:
    """Show what the model store holds, and make room.

    The store is in the folder EDGEBENCH_CACHE, or in edgebench in your cache folder.
    """


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_models(*, as_json: bool) -> None:
    """List the models in the store, the last used first, and ratings by the reference."""
    store = _store()
    entries, references = store.entries(), store.references()
    names = {entry.sha256: entry.name for entry in entries}
    if as_json:
        document = {
            "root": str(store.root),
            "models": [_as_json(entry) for entry in entries],
            "references": [_rated_as_json(each, names) for each in references],
        }
        click.echo(json.dumps(document, indent=2))
        return
    if not entries and not references:
        click.echo(f"The model store at {store.root} is empty.")
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    from edgebench.harness.store.space import human_bytes  # noqa: PLC0415

    console = Console(highlight=False)
    if entries:
        console.print(_table(entries))
    for each in references:
        of = names.get(each.source_sha256, f"a model that is not here ({each.source_sha256[:12]})")
        windows = f"{each.windows} {'piece' if each.windows == 1 else 'pieces'} of text"
        said = f"{human_bytes(each.bytes)}: what the reference says of {windows}, by {of}"
        console.print(escape(said), soft_wrap=True)
    # Models of equal content share one file.
    sizes = {entry.path: entry.bytes for entry in entries}
    total = human_bytes(sum(sizes.values()) + sum(each.bytes for each in references))
    console.print(f"{total} in {escape(str(store.root))}", soft_wrap=True)


@models.command("prune")
@click.option(
    "--older-than",
    "older_than_days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help=f"Remove what was not used for so many days.  [default: {_DEFAULT_DAYS:g}]",
)
@click.option("--all", "everything", is_flag=True, help="Remove every model, however recent.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune_models(
    *, older_than_days: float | None, everything: bool, dry_run: bool, yes: bool
) -> None:
    """Remove models from the store; they are fetched or made again when they are needed.

    What the reference said of texts goes as models do. Cut-off downloads as old, and whatever
    killed processes left behind, go too. What another edgebench is fetching or making at the
    moment stays.
    """
    if everything and older_than_days is not None:
        msg = "--all and --older-than exclude each other"
        raise click.UsageError(msg)
    store = _store()
    days = None if everything else _DEFAULT_DAYS if older_than_days is None else older_than_days
    plan = store.prune(older_than_days=days, dry_run=True)
    if not plan.files:
        which = "" if days is None else f" that was not used for {days:g} days"
        click.echo(f"Nothing to remove: the model store at {store.root} holds nothing{which}.")
        _tell_in_use(plan)
        return
    for path in plan.files:
        click.echo(f"  {_short(path, store.root)}")
    if dry_run:
        click.echo(f"{_total(plan)} would be removed from {store.root}.")
        _tell_in_use(plan)
        return
    if not yes:
        click.confirm(f"Remove {_total(plan)} from {store.root}?", abort=True)
    done = store.prune(older_than_days=days)
    click.echo(f"Removed {_total(done)} from {store.root}.")
    _tell_in_use(done)


def _store() -> ModelStore:
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.store.store import ModelStore  # noqa: PLC0415

    return ModelStore()


def _table(entries: list[Entry]) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from edgebench.harness.store.space import human_bytes  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("Model", overflow="fold")
    table.add_column("Size", justify="right", no_wrap=True)
    table.add_column("From", overflow="fold")
    table.add_column("Last used", no_wrap=True)
    for entry in entries:
        used = entry.last_used_at.astimezone().strftime("%Y-%m-%d")
        table.add_row(Text(entry.name), human_bytes(entry.bytes), Text(_origin(entry)), used)
    return table


def _origin(entry: Entry) -> str:
    """The package or repository that a model was published in, or the tool that made it."""
    source = entry.request.get("source", "")
    # A source's file is the entry's name: what is of interest is all before its path.
    if source.startswith("pypi:"):
        return source.split("/")[0]
    if source.startswith("hf:"):
        return "/".join(source.split("/")[:2])
    return entry.made_by


def _short(path: Path, root: Path) -> str:
    """A path for a list: a model's is its name, and not also its hash."""
    inside = path.relative_to(root)
    return path.name if "files" in inside.parts else str(inside)


def _as_json(entry: Entry) -> dict[str, object]:
    return {
        "key": entry.key,
        "request": dict(entry.request),
        "name": entry.name,
        "path": str(entry.path),
        "sha256": entry.sha256,
        "bytes": entry.bytes,
        "made_by": entry.made_by,
        "note": entry.note,
        "created_at": entry.created_at,
        "last_used_at": entry.last_used_at.isoformat(timespec="seconds"),
    }


def _rated_as_json(entry: ReferenceEntry, names: dict[str, str]) -> dict[str, object]:
    return {
        "source_sha256": entry.source_sha256,
        "source_name": names.get(entry.source_sha256),
        "path": str(entry.path),
        "windows": entry.windows,
        "bytes": entry.bytes,
        "last_used_at": entry.last_used_at.isoformat(timespec="seconds"),
    }


def _total(pruned: Pruned) -> str:
    from edgebench.harness.store.space import human_bytes  # noqa: PLC0415

    count = len(pruned.files)
    return f"{count} {'file' if count == 1 else 'files'}, {human_bytes(pruned.bytes)},"


def _tell_in_use(pruned: Pruned) -> None:
    if pruned.in_use:
        click.echo(f"In use by another edgebench, left alone: {', '.join(pruned.in_use)}.")
