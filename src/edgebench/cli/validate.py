"""``edgebench validate``: what a scenario would run, or what is wrong with it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Measure, Requirements, Scenario, Workload

_LONGEST_PROMPT = 40
NOT_THERE = "can't be done by tools on an Android device: a row with that reason"


@click.command()
@click.argument("scenario")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def validate(scenario: str, *, as_json: bool) -> None:
    """Check SCENARIO and say what it would run.

    SCENARIO is a path, or the name of a scenario that edgebench ships. Every problem is printed
    with its line and column; the exit status is then 2.
    """
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.scenario.config import load_config  # noqa: PLC0415
    from edgebench.harness.scenario.expand import expand  # noqa: PLC0415
    from edgebench.harness.scenario.find import find_scenario  # noqa: PLC0415
    from edgebench.harness.scenario.loader import load_scenario  # noqa: PLC0415
    from edgebench.runners.registry import runner_classes  # noqa: PLC0415

    path = find_scenario(scenario)
    configured = [name for name, runner in load_config().runners.items() if runner.python]
    loaded = load_scenario(path, runners=runner_classes(), configured=configured)
    variants = expand(loaded)
    if as_json:
        click.echo(json.dumps(_as_json(path, loaded, variants), indent=2))
    else:
        _print(path, loaded, variants)


def _as_json(
    path: Path, scenario: Scenario, variants: Sequence[ExpandedVariant]
) -> dict[str, object]:
    return {
        "path": str(path),
        "scenario": scenario.model_dump(mode="json"),
        "variants": [dataclasses.asdict(variant) for variant in variants],
        "cells": len(variants) * len(scenario.workloads),
    }


def _print(path: Path, scenario: Scenario, variants: Sequence[ExpandedVariant]) -> None:
    from rich.console import Console, Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    heading = Text.assemble((scenario.name, "bold"), f"  {_clean(str(path))}")
    if scenario.description:
        heading.append(f"\n{_clean(scenario.description)}")

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in (*_model_facts(scenario), *_device_facts(scenario)):
        facts.add_row(name, Text(_clean(value)))

    columns = Table(title="Variants", title_justify="left", title_style="bold", box=None)
    columns.add_column("#", justify="right")
    columns.add_column("name", overflow="fold")
    # A name made from the options says all there is to say.
    explained = any(_explanation(variant) for variant in variants)
    if explained:
        columns.add_column("which is", overflow="fold")
    for number, variant in enumerate(variants, start=1):
        row = [variant.id, _explanation(variant)] if explained else [variant.id]
        columns.add_row(str(number), *(Text(_clean(cell)) for cell in row))

    rows = Table(title="Workloads", title_justify="left", title_style="bold", box=None)
    rows.add_column("name", overflow="fold")
    rows.add_column("prompt", overflow="fold")
    rows.add_column("generate", justify="right")
    rows.add_column("depth", justify="right")
    on_phone = scenario.device.adb is not None
    for workload in scenario.workloads:
        generated = workload.generate_tokens
        lengths = ("–", "–") if generated is None else (generated, workload.depth)
        prompt = _prompt(workload, on_phone=on_phone)
        rows.add_row(workload.name, Text(_clean(prompt)), *map(str, lengths))

    limits = Table.grid(padding=(0, 2))
    limits.add_column(style="bold", no_wrap=True)
    limits.add_column()
    for name, value in _limits(scenario.measure, on_phone=on_phone):
        limits.add_row(name, value)
    if any(each.sustained for each in scenario.workloads):
        long = _sustained(scenario, len(variants))
        limits.add_row("Sustained", NOT_THERE if on_phone else long)
    if scenario.verify and not on_phone:
        also = " and each framework's most exact artifact" * (scenario.verify == "high_precision")
        limits.add_row("Verify", f"every variant{also} against the reference")

    parts: list[RenderableType] = [heading, facts, columns, rows, limits]
    if scenario.requirements is not None:
        parts.append(_requirements(scenario.requirements))
    spaced = [item for part in parts for item in (part, Text())]
    cells_total = len(variants) * len(scenario.workloads)
    summary = Text.assemble(
        ("valid", "bold green"),
        f": {_count(len(variants), 'variant')} on {_count(len(scenario.workloads), 'workload')},"
        f" {_count(cells_total, 'cell')}",
    )
    Console(highlight=False).print(Group(*spaced, summary))


def _model_facts(scenario: Scenario) -> list[tuple[str, str]]:
    model = scenario.model
    return [
        ("Model", model.name),
        ("Source", model.source),
        ("SHA-256", model.sha256 or "not given: any file is taken"),
        ("License", model.license or "not given"),
        *(
            [("Synthetic", f"{model.synthetic}, with --synthetic-weights")]
            if model.synthetic
            else []
        ),
    ]


def _device_facts(scenario: Scenario) -> list[tuple[str, str]]:
    """How the device is reached, and what the scenario says of it; nothing of this machine."""
    device, facts = scenario.device, []
    if device.ssh is not None:
        facts.append(("Device", f"over SSH, {device.ssh}"))
    if device.adb is not None:
        one = "the one that is attached" if device.adb == "any" else device.adb
        facts.append(("Device", f"Android over adb, {one}"))
    if device.python is not None:
        facts.append(("Python there", device.python))
    if device.profile is not None:
        facts.append(("Profile", device.profile))
    if device.folder is not None:
        facts.append(("Folder there", device.folder))
    return [*facts, *((f"Tool, {runner}", path) for runner, path in device.tools.items())]


def _requirements(requirements: Requirements) -> RenderableType:
    """What the choice depends on, as it was written."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    needs = Table(
        title="Requirements", title_justify="left", title_style="bold", box=None, show_header=False
    )
    needs.add_column(overflow="fold")
    needs.add_column(overflow="fold")
    for key, value in requirements.model_dump(exclude_defaults=True).items():
        inner = value.items() if isinstance(value, dict) else ((None, value),)
        for name, each in inner:
            text = _needed(each, is_bytes=key.endswith("_bytes"))
            needs.add_row(key if name is None else f"{key}.{name}", Text(_clean(text)))
    return needs


def _needed(value: object, *, is_bytes: bool) -> str:
    """A requirement as people write it: ``yes``, ``2GiB``, ``60``."""
    if isinstance(value, bool):
        return ("no", "yes")[value]
    if is_bytes and isinstance(value, int):
        # Exactly what was asked for, as a limit is, in whichever unit is short.
        sizes = [
            f"{value // base**power}{prefix}{infix}B"
            for base, infix in ((1024, "i"), (1000, ""))
            for power, prefix in enumerate("KMGT", 1)
            if value % base**power == 0
        ]
        return min((*sizes, f"{value}B"), key=len)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _explanation(variant: ExpandedVariant) -> str:
    """What the variant's name does not say."""
    options = (f"{key}={_value(value)}" for key, value in variant.options.items())
    full = " ".join([variant.runner, variant.quantization, *options])
    interpreter = f" in {variant.python}" if variant.python else ""
    return "" if full == variant.id and not interpreter else full + interpreter


def _sustained(scenario: Scenario, variants: int) -> str:
    """How long the sustained work takes, which comes last."""
    long = [each.sustained for each in scenario.workloads if each.sustained is not None]
    each = " + ".join(_duration(seconds) for seconds in long)
    whole = _duration(variants * sum(long))
    return f"{whole} of the time, last of all: {each} for each variant, once"


def _duration(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"


def _prompt(workload: Workload, *, on_phone: bool) -> str:
    if on_phone and (workload.prompt_tokens is None or workload.sustained is not None):
        return NOT_THERE
    if workload.quality is not None:
        quality = workload.quality
        way = "" if quality.protocol == "sliding" else f", as {quality.protocol}"
        return (
            f"rates up to {quality.max_tokens} tokens of {quality.text}, "
            f"windows of {quality.window}{way}"
        )
    again = "" if workload.sustained is None else f", again and again for {workload.sustained:g} s"
    if workload.prompt is None:
        kind = "made up by the tool" if on_phone else workload.text
        return f"{workload.prompt_tokens} tokens, {kind}{again}"
    text = " ".join(workload.prompt.split())
    short = text if len(text) <= _LONGEST_PROMPT else text[: _LONGEST_PROMPT - 1] + "…"
    if workload.task is not None:
        return f"{workload.task} of “{short}”"
    return f"“{short}”{' in the chat template' if workload.chat_template else ''}{again}"


def _limits(measure: Measure, *, on_phone: bool) -> list[tuple[str, str]]:
    warmup, repetitions = measure.warmup, measure.repetitions
    order = f"in random order (seed {measure.seed})" if measure.interleave else "one after another"
    pause = f", {measure.cooldown_s:g} s pause before each" if measure.cooldown_s else ""
    cold = "; loading measured cold too" if measure.cold_load and not on_phone else ""
    warm = f"{_range(warmup.min, warmup.max)}, until stable within {_percent(warmup.stable_within)}"
    if on_phone:
        warm = f"{warmup.min} in each block"
    known = _percent(repetitions.ci_half_width)
    enough = f"{_range(repetitions.min, repetitions.max)}, until the median is known to ±{known}"
    blocks = f"{_count(measure.per_block, 'repetition')} each, {order}{pause}{cold}"
    times = f"{measure.time_budget_s:g} s in all, {measure.timeout_s:g} s a load or generation"
    cooling = []
    if measure.cooldown is not None:
        within, most = measure.cooldown.within_celsius, measure.cooldown.at_most_s
        how = f"before each block, to within {within:g} °C of the first, at most {most:g} s"
        cooling.append(("Cool-down", how))
    return [
        ("Warm-up", warm),
        ("Repetitions", enough),
        ("Blocks", blocks),
        *cooling,
        ("Time", times),
        ("Noisy", f"above a variation of {_percent(measure.max_cv)}"),
    ]


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:g} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _value(value: bool | float | str) -> str:  # noqa: FBT001 - an option's value
    from edgebench.harness.scenario.values import written  # noqa: PLC0415

    return written(value)


def _clean(text: str) -> str:
    """`text` without what a terminal would obey."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
