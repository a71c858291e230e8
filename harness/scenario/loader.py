"""Scenario files: read, checked as a whole, every problem reported at once with its place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.errors import ModelError, ProfileError, ScenarioError
from edgebench.harness.scenario.conflicts import (
    bounds_conflicts,
    name_conflicts,
    variant_conflicts,
    verify_conflicts,
    workload_conflicts,
)
from edgebench.harness.scenario.device import Device, Power, device_conflicts, power_conflicts
from edgebench.harness.scenario.expand import expand_variant
from edgebench.harness.scenario.model import (
    CONFLICT,
    SCHEMA_VERSION,
    Cooldown,
    Measure,
    Model,
    Quality,
    Repetitions,
    Scenario,
    Variant,
    Warmup,
    Workload,
)
from edgebench.harness.scenario.options import RunnerOptions, runner_findings
from edgebench.harness.scenario.problems import (
    Finding,
    KeyPath,
    Problem,
    format_path,
    one_line,
)
from edgebench.harness.scenario.quality import quality_conflicts
from edgebench.harness.scenario.requirements import Requirements, requirements_conflicts
from edgebench.harness.scenario.sustained import sustained_conflicts
from edgebench.harness.scenario.text_file import UnreadableFileError, read_text_file
from edgebench.harness.scenario.wording import Layout, reword
from edgebench.harness.scenario.yaml_reader import UNREADABLE, Plain, read_yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

LAYOUT: Final[Layout] = {
    (): Scenario,
    ("model",): Model,
    ("variants", "*"): Variant,
    ("workloads", "*"): Workload,
    ("workloads", "*", "quality"): Quality,
    ("measure",): Measure,
    ("measure", "warmup"): Warmup,
    ("measure", "repetitions"): Repetitions,
    ("measure", "cooldown"): Cooldown,
    ("requirements",): Requirements,
    ("device",): Device,
    ("power",): Power,
}


def load_scenario(
    path: Path,
    *,
    runners: Mapping[str, RunnerOptions] | None = None,
    configured: Collection[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Scenario:
    """Read a scenario's file.

    Args:
        path: the file.
        runners: the installed runners by name, whose options are then checked too; None leaves
            runners and options unchecked.
        configured: names of runners that the user's configuration gives an interpreter, which
            need not be installed here.
        environ: where ``${VARIABLE}`` in the model's source is looked up.

    Raises:
        ScenarioError: the file can't be read or is wrong; one line for each problem, as
            ``file:line:column: path: what is wrong, what is allowed``.
    """
    return parse_scenario(
        _read(path),
        filename=str(path),
        runners=runners,
        configured=configured,
        base=path.parent,
        environ=environ,
    )


def parse_scenario(
    text: str,
    *,
    filename: str,
    runners: Mapping[str, RunnerOptions] | None = None,
    configured: Collection[str] = (),
    base: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Scenario:
    """Read a scenario from its text; see `load_scenario`.

    Args:
        text: the whole file.
        filename: how the messages name it.
        runners: the installed runners by name, or None to leave them unchecked.
        configured: names of runners that need not be installed here.
        base: the folder that a relative ``path:`` source is relative to.
        environ: where ``${VARIABLE}`` in the model's source is looked up.

    Raises:
        ScenarioError: the text is wrong.
    """
    document = read_yaml(text)
    tree = document.plain()
    problems = set(document.problems)
    scenario: Scenario | None = None
    if document.root is not None:
        findings = _drop_nested_options(tree)
        scenario, wrong = _validate(tree)
        findings += wrong
        if isinstance(tree, dict) and not _is_newer(tree):
            findings += _conflicts(tree)
            findings += _runner_findings(tree, runners, configured)
            findings += _source_findings(tree, base, environ)
            findings += _text_findings(tree, base, environ)
            findings += _device_findings(tree, base)
            findings += _power_findings(tree, base)
        problems.update(filter(None, map(document.place, findings)))
    if problems or scenario is None:
        raise ScenarioError("\n".join(problem.line(filename) for problem in sorted(problems)))
    return scenario


def _validate(tree: object) -> tuple[Scenario | None, list[Finding]]:
    if not isinstance(tree, dict):
        message = "must be a group of keys such as 'name: …', one a line"
        return None, [Finding((), message)]
    try:
        return Scenario.model_validate(tree), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if _is_newer(tree):
        # Its other keys may well be right in that format.
        details = [detail for detail in details if detail["loc"] == ("schema_version",)]
    # Conflicts are looked for on their own, since pydantic gets to them only where all else is
    # right; see `_conflicts`.
    errors = [
        (detail, _path_as_written(detail["loc"]))
        for detail in details
        if detail["type"] != CONFLICT
    ]
    return None, reword(errors, LAYOUT)


def _path_as_written(location: KeyPath) -> KeyPath:
    """A place in the model as a place in the file, where options stand beside their runner."""
    in_options = location[:1] == ("variants",) and location[2:3] == ("options",)
    return location[:2] + location[3:] if in_options else location


def _drop_nested_options(tree: Plain) -> list[Finding]:
    """Refuse the model's own form of a variant: a file has one way to write options."""
    findings = []
    variants = tree.get("variants") if isinstance(tree, dict) else None
    for path, variant in _groups(variants, ("variants",)):
        if variant.pop("options", UNREADABLE) is not UNREADABLE:
            message = "unknown key; write the options themselves beside runner"
            findings.append(Finding((*path, "options"), message, at="key"))
    return findings


def _is_newer(tree: Mapping[str, object]) -> bool:
    version = tree.get("schema_version")
    return type(version) is int and version > SCHEMA_VERSION


def _conflicts(tree: Mapping[str, object]) -> list[Finding]:
    findings: list[Finding] = []
    workloads = list(_groups(tree.get("workloads"), ("workloads",)))
    for path, workload in workloads:
        findings += _under(path, workload_conflicts(workload))
        quality = workload.get("quality")
        if isinstance(quality, dict):
            findings += _under((*path, "quality"), quality_conflicts(quality))
    names = tree.get("workloads")
    if isinstance(names, list):
        findings += name_conflicts(
            [item.get("name") if isinstance(item, dict) else None for item in names]
        )
        findings += verify_conflicts(tree.get("verify"), names)
    measure = tree.get("measure")
    if isinstance(measure, dict):
        for key, kind in (("warmup", Warmup), ("repetitions", Repetitions)):
            bounds = measure.get(key)
            if isinstance(bounds, dict):
                defaults = {end: kind.model_fields[end].default for end in ("min", "max")}
                findings += _under(("measure", key), bounds_conflicts(bounds, defaults))
    requirements = tree.get("requirements")
    if isinstance(requirements, dict):
        findings += _under(("requirements",), requirements_conflicts(requirements))
    variants = _valid_variants(tree.get("variants"))
    found = variant_conflicts(variants)
    if not found and isinstance(names, list):
        count = sum(1 for each in variants.values() for _ in expand_variant(each))
        given = measure.get("time_budget_s") if isinstance(measure, dict) else None
        budget = Measure().time_budget_s if given is None else given
        findings += sustained_conflicts(names, count, budget)
    return findings + found


def _valid_variants(value: object) -> dict[int, Variant]:
    """The variants that are right by themselves; the others are reported already."""
    valid = {}
    for path, variant in _groups(value, ("variants",)):
        try:
            valid[int(path[-1])] = Variant.model_validate(variant)
        except ValidationError:
            continue
    return valid


def _runner_findings(
    tree: Mapping[str, object],
    runners: Mapping[str, RunnerOptions] | None,
    configured: Collection[str],
) -> list[Finding]:
    findings: list[Finding] = []
    for path, variant in _groups(tree.get("variants"), ("variants",)):
        if runners is not None:
            findings += runner_findings(variant, path, runners, configured)
    return findings


def _source_findings(
    tree: Mapping[str, object], base: Path | None, environ: Mapping[str, str]
) -> list[Finding]:
    # Imported late: the store is not needed for anything else here.
    from edgebench.harness.store.sources import SyntheticSource, parse_source  # noqa: PLC0415

    model = tree.get("model")
    source = model.get("source") if isinstance(model, dict) else None
    if isinstance(source, str):
        try:
            found = parse_source(source, base=base, environ=environ)
            if isinstance(found, SyntheticSource):
                from edgebench.harness.store.synthetic import Wanted  # noqa: PLC0415 - seldom
                from edgebench.models.shapes import SHAPES  # noqa: PLC0415

                Wanted.of(found, SHAPES)
        except ModelError as error:
            remedy = (error.remedy or "").rstrip(".")
            message = f"{error.message}; {remedy[:1].lower()}{remedy[1:]}"
            return [Finding(("model", "source"), one_line(message))]
        except ValueError as error:
            return [Finding(("model", "source"), one_line(" ".join(str(error).split())))]
    return []


def _text_findings(
    tree: Mapping[str, object], base: Path | None, environ: Mapping[str, str]
) -> list[Finding]:
    from edgebench.harness.quality.texts import check_spec, read_text  # noqa: PLC0415 - seldom

    findings = []
    for path, workload in _groups(tree.get("workloads"), ("workloads",)):
        quality = workload.get("quality")
        text = quality.get("text") if isinstance(quality, dict) else None
        if isinstance(text, str):
            try:
                check_spec(text, base=base, environ=environ)
                read_text(text, base=base, environ=environ)
            except (ValueError, ModelError) as error:
                message = one_line(" ".join(str(error).split()))
                findings.append(Finding((*path, "quality", "text"), message))
    return findings


def _device_findings(tree: Mapping[str, object], base: Path | None) -> list[Finding]:
    device = tree.get("device")
    if not isinstance(device, dict):
        return []
    findings = _under(("device",), device_conflicts(device))
    profile = device.get("profile")
    if isinstance(profile, str):
        from edgebench.harness.device_profiles import find_profile  # noqa: PLC0415 - seldom

        try:
            find_profile(profile, base=base)
        except ProfileError as error:
            # Of a wrong file, the first of its problems, with its place in that file.
            first, _, more = error.message.partition("\n")
            also = f" (and {more.count(chr(10)) + 1} more)" if more else ""
            remedy = f"; {error.remedy.rstrip('.')}" if error.remedy else ""
            findings.append(Finding(("device", "profile"), one_line(f"{first}{also}{remedy}")))
    return findings


def _power_findings(tree: Mapping[str, object], base: Path | None) -> list[Finding]:
    power = tree.get("power")
    if not isinstance(power, dict):
        return []
    findings = _under(("power",), power_conflicts(power))
    if power.get("estimate") == "tdp" and power.get("tdp_w") is None:
        device = tree.get("device")
        profile = device.get("profile") if isinstance(device, dict) else None
        lacks = _no_tdp(profile, base) if isinstance(profile, str) else "device: profile is not set"
        if lacks:
            message = f"it needs the thermal design power: set tdp_w beside it ({lacks})"
            findings.append(Finding(("power", "estimate"), message))
    return findings


def _no_tdp(profile: str, base: Path | None) -> str | None:
    from edgebench.harness.device_profiles import find_profile  # noqa: PLC0415 - seldom

    try:
        known = find_profile(profile, base=base).power.tdp_w.value
    except ProfileError:
        return None  # said of the profile itself
    return None if known else "the profile does not say it"


def _groups(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, object]]]:
    """The groups of keys in a list, with their paths; whatever else it holds is left out."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield (*path, index), item


def _under(path: KeyPath, findings: list[Finding]) -> list[Finding]:
    return [Finding((*path, *found.path), found.message, found.at) for found in findings]


def _read(path: Path) -> str:
    try:
        return read_text_file(path, "scenario")
    except UnreadableFileError as error:
        problem = Problem(error.position, format_path(()), error.message)
        raise ScenarioError(problem.line(str(path))) from error
