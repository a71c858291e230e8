"""What the baseline of an interleaved run is: the scenario with something changed, or another one.

The changes are those of ``edgebench run --against KEY=VALUE``.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.alike import interpreter_of, run_alike
from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.model import Scenario
from edgebench.harness.scenario.options import runner_findings
from edgebench.harness.scenario.problems import one_line, quote, suggestion
from edgebench.harness.scenario.values import OPTION_NAME, OptionScalar
from edgebench.harness.scenario.yaml_scalars import Refused, read_scalar
from edgebench.harness.store.sources import PathSource, parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.scenario.model import Variant
    from edgebench.harness.scenario.options import RunnerOptions

FLAG: Final = "--against"
PYTHON: Final = "python"
MODEL: Final = "model"
QUANTIZATION: Final = "quantization"

_HOW: Final = (
    "Give python=INTERPRETER, python.RUNNER=INTERPRETER, model=SOURCE, quantization=NAME or a "
    "runner's OPTION=VALUE; or one file, another scenario."
)

_NOISE: Final = "To run a scenario against itself, use `edgebench noise`."


@dataclass(frozen=True, slots=True)
class Change:
    """One ``KEY=VALUE``."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"

    def refused(self, why: str, remedy: str | None = None) -> UsageError:
        """The failure that says what is wrong with it."""
        return UsageError(f"{FLAG} {one_line(str(self))}: {why}", remedy=remedy)


@dataclass(frozen=True, slots=True)
class Sides:
    """Two scenarios that differ in what was asked for.

    Attributes:
        candidate: as written; where interpreters are what is compared, its own is named too, so
            that the processes of both sides are started in the same way.
        difference: what the baseline has in place of it, in the words of the command line.
    """

    baseline: Scenario
    candidate: Scenario
    difference: str


def is_change(text: str) -> bool:
    """Whether it is a ``KEY=VALUE``, and not the name of a file."""
    key, equals, _ = text.partition("=")
    return bool(equals) and re.fullmatch(OPTION_NAME, key) is not None


def changed(
    scenario: Scenario,
    given: Sequence[str],
    *,
    runners: Mapping[str, RunnerOptions],
    pythons: Mapping[str, str],
    folder: Path | None = None,
    base: Path | None = None,
) -> Sides:
    """The baseline's scenario, made of the candidate's.

    Args:
        scenario: the candidate's.
        given: what the baseline has in its place, as ``KEY=VALUE``.
        runners: the installed runners by name.
        pythons: interpreters by runner from the user's configuration.
        folder: what a relative ``path:`` on the command line is relative to; the working folder
            by default.
        base: what a relative ``path:`` of the scenario is relative to, its folder; likewise.

    Raises:
        UsageError: a key that nothing here has, a value that is not possible, or nothing changed.
    """
    changes = _parsed(given)
    for change in changes:
        if not _known(change, scenario, runners):
            raise _unknown(change, scenario, runners)
    here = Path.cwd() if folder is None else folder
    model = scenario.model
    for change in changes:
        if change.key == MODEL:
            model = model.model_copy(
                # Another file is under its own license, which nobody told.
                update={"source": _source(change, here), "sha256": None, "license": None}
            )
    variants = tuple(
        _variant(each, position, changes, runners, pythons)
        for position, each in enumerate(scenario.variants)
    )
    baseline = _checked(scenario.model_copy(update={"model": model, "variants": variants}), changes)
    if run_alike(scenario, baseline, bases=(base, base), runners=runners, pythons=pythons):
        words = ", ".join(map(str, changes))
        msg = f"with {FLAG} {one_line(words)} both sides are the same"
        raise UsageError(msg, remedy=_NOISE)
    candidate = scenario
    if any(_is_python(change) for change in changes):
        own = zip(scenario.variants, variants, strict=True)
        candidate = scenario.model_copy(
            update={
                "variants": tuple(
                    ours
                    if ours.python == theirs.python
                    else ours.model_copy(update={"python": interpreter_of(ours, pythons)})
                    for ours, theirs in own
                )
            }
        )
    return Sides(baseline, candidate, ", ".join(map(str, changes)))


def other_scenario(
    scenario: Scenario,
    other: Scenario,
    name: str,
    *,
    runners: Mapping[str, RunnerOptions],
    pythons: Mapping[str, str],
    bases: tuple[Path | None, Path | None] = (None, None),
) -> Sides:
    """A baseline that is another scenario, measured by the protocol of the candidate's.

    Args:
        scenario: the candidate's.
        other: the baseline's.
        name: how the command line named it.
        runners: the installed runners by name.
        pythons: interpreters by runner from the user's configuration.
        bases: what a relative ``path:`` of each is relative to, in their order.

    Raises:
        UsageError: they have no workload in common, or do not differ.
    """
    if not {each.name for each in scenario.workloads} & {each.name for each in other.workloads}:
        msg = f"{FLAG} {one_line(name)}: the two scenarios have no workload in common"
        remedy = "Workloads are compared by name; those of one name must be alike."
        raise UsageError(msg, remedy=remedy)
    if run_alike(scenario, other, bases=bases, runners=runners, pythons=pythons):
        msg = f"with {FLAG} {one_line(name)} both sides are the same"
        raise UsageError(msg, remedy=_NOISE)
    baseline = other.model_copy(update={"measure": scenario.measure})
    return Sides(baseline, scenario, f"the scenario {name}")


def _parsed(given: Sequence[str]) -> list[Change]:
    changes: list[Change] = []
    for text in given:
        key, _, value = text.partition("=")
        change = Change(key, value.strip())
        if not change.value:
            why = "there is no value behind '='"
            raise change.refused(why, _HOW)
        if any(other.key == key for other in changes):
            why = f"{key} is given twice; give it once"
            raise change.refused(why)
        changes.append(change)
    return changes


def _is_python(change: Change) -> bool:
    return change.key == PYTHON or change.key.startswith(f"{PYTHON}.")


def _known(change: Change, scenario: Scenario, runners: Mapping[str, RunnerOptions]) -> bool:
    if change.key in {PYTHON, MODEL, QUANTIZATION}:
        return True
    if _is_python(change):
        return change.key.partition(".")[2] in {each.runner for each in scenario.variants}
    return any(_has(each, change.key, runners) for each in scenario.variants)


def _has(variant: Variant, key: str, runners: Mapping[str, RunnerOptions]) -> bool:
    """Whether a variant's runner has an option; of a runner that is not here, what is set."""
    runner = runners.get(variant.runner)
    return key in variant.options if runner is None else key in runner.OPTIONS


def _unknown(
    change: Change, scenario: Scenario, runners: Mapping[str, RunnerOptions]
) -> UsageError:
    names = dict.fromkeys(each.runner for each in scenario.variants)
    if _is_python(change):
        runner = change.key.partition(".")[2]
        near = suggestion(runner, names)
        meant = f"; did you mean {f'{PYTHON}.{near}'!r}?" if near else ""
        msg = f"the scenario has no runner {quote(runner)}{meant}"
        return change.refused(msg, f"It has: {', '.join(names)}.")
    options = {key for name in names if name in runners for key in runners[name].OPTIONS}
    near = suggestion(change.key, [*options, PYTHON, MODEL, QUANTIZATION])
    meant = f"; did you mean {near!r}?" if near else ""
    return change.refused(f"no runner of the scenario has such an option{meant}", _HOW)


def _source(change: Change, folder: Path) -> str:
    scheme, _, rest = change.value.partition(":")
    text = change.value
    # On a command line a path is relative to where one is, and not to a scenario's folder.
    if scheme == "path" and rest and not rest.startswith(("/", "~", "$")):
        text = f"path:{folder / rest}"
    try:
        source = parse_source(text)
    except ValueError as error:
        raise change.refused(one_line(" ".join(str(error).split()))) from error
    if isinstance(source, PathSource) and not source.path.exists():
        why = f"there is no file or folder {one_line(str(source.path))}"
        raise change.refused(why, "Here a relative path: is relative to the working folder.")
    return text


def _variant(
    variant: Variant,
    position: int,
    changes: Sequence[Change],
    runners: Mapping[str, RunnerOptions],
    pythons: Mapping[str, str],
) -> Variant:
    """A variant of the baseline."""
    by_key = {change.key: change for change in changes}
    update: dict[str, object] = {}
    options = dict(variant.options)
    python = by_key.get(f"{PYTHON}.{variant.runner}", by_key.get(PYTHON))
    if python is not None:
        update["python"] = _interpreter(python)
    if change := by_key.get(QUANTIZATION):
        _refuse_sweep(change, variant.quantization)
        update["quantization"] = change.value
    for change in changes:
        if change.key in {MODEL, QUANTIZATION} or _is_python(change):
            continue
        if _has(variant, change.key, runners):
            _refuse_sweep(change, options.get(change.key))
            options[change.key] = _value(change, variant, runners)
    made = variant.model_copy(update={**update, "options": options})
    written = {
        "runner": made.runner,
        "quantization": made.quantization,
        "python": made.python,
        **made.options,
    }
    path = ("variants", position)
    for found in runner_findings(written, path, runners, pythons):
        key = str(found.path[2]) if len(found.path) > len(path) else ""
        blamed = by_key.get(key, changes[0])
        named = found.message.startswith(made.runner)
        why = found.message if named else f"{made.runner}: {found.message}"
        raise blamed.refused(why)
    return made


def _refuse_sweep(change: Change, value: object) -> None:
    if isinstance(value, tuple):
        values = ", ".join(map(str, value))
        why = f"the scenario sweeps it ({values}), so nothing tells which one it stands against"
        raise change.refused(one_line(why), "Write a scenario with one value, and run that.")


def _value(change: Change, variant: Variant, runners: Mapping[str, RunnerOptions]) -> OptionScalar:
    """The value in the kind that the option has; what does not fit is left for the check."""
    runner = runners.get(variant.runner)
    if runner is not None and runner.OPTIONS[change.key].kind == "str":
        return change.value
    value = read_scalar(change.value, None, quoted=False)
    if value is None or isinstance(value, Refused):
        return change.value
    return value


def _interpreter(change: Change) -> str:
    """The interpreter that is named, checked to be there."""
    text = os.path.expanduser(change.value)  # noqa: PTH111 - raises nothing without a home
    if os.path.isdir(text):  # noqa: PTH112 - a null character makes pathlib raise
        # The folder of a virtual environment is what people have in mind.
        text = os.path.join(text, "bin", "python")  # noqa: PTH118
    try:
        found = shutil.which(text)
    except ValueError:
        found = None
    if found is None:
        why = "there is no such interpreter, or it can't be started"
        raise change.refused(why, "Give the path of a Python 3.11 or newer.")
    # Not resolved: a virtual environment's is a link, and what it links to is another one.
    return os.path.abspath(found)  # noqa: PTH100


def _checked(scenario: Scenario, changes: Sequence[Change]) -> Scenario:
    """The scenario again, checked as a whole: two variants may have become the same."""
    try:
        return Scenario.model_validate_json(scenario.model_dump_json())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
    words = ", ".join(map(str, changes))
    msg = f"{FLAG} {one_line(words)} makes no scenario for the baseline: {one_line(first)}"
    raise UsageError(msg, remedy="Leave variants out with --runners, or write two scenarios.")
