"""A variant's runner, quantisation and options against what installed runners declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeGuard

from edgebench.harness.scenario.problems import (
    Finding,
    KeyPath,
    quote,
    shown,
    suggestion,
    unknown,
)
from edgebench.harness.scenario.values import OptionScalar, written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from edgebench.runners.base import Option

SOURCE = "source"
OWN_KEYS = ("runner", "quantization", "name", "python")
"""What a variant has beside its runner's options."""

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "text"),
}


class RunnerOptions(Protocol):
    """What a runner declares; every runner's class has it."""

    @property
    def OPTIONS(self) -> Mapping[str, Option]:  # noqa: N802 - named as the runners name it
        """Its options by name."""

    @property
    def QUANTIZATIONS(self) -> tuple[str, ...]:  # noqa: N802 - named as the runners name it
        """What it makes of a source beside ``source``."""


def runner_findings(
    variant: Mapping[str, object],
    path: KeyPath,
    runners: Mapping[str, RunnerOptions],
    configured: Collection[str],
) -> Iterator[Finding]:
    """What is wrong with a variant's runner and with what it asks of it.

    Args:
        variant: as written; values of a wrong type are left to the model.
        path: where it stands.
        runners: the installed runners by name.
        configured: names of runners that the user's configuration gives an interpreter.
    """
    name = variant.get("runner")
    if not isinstance(name, str):
        return
    if name not in runners:
        if name not in configured and not isinstance(variant.get("python"), str):
            near = suggestion(name, runners)
            meant = f"did you mean {near!r}? " if near else ""
            here = ", ".join(sorted(runners))
            message = (
                f"there is no runner {quote(name)}; {meant}installed: {here}; "
                "for one of another interpreter, write that beside it as python"
            )
            yield Finding((*path, "runner"), message)
        return
    runner = runners[name]
    yield from _quantization_findings(variant.get("quantization"), path, name, runner)
    for key, value in variant.items():
        if key in OWN_KEYS:
            continue
        option = runner.OPTIONS.get(key)
        if option is None:
            message = unknown(f"{name} has no such option", key, runner.OPTIONS, near=OWN_KEYS)
            yield Finding((*path, key), message, at="key")
            continue
        if option.stage == "convert" and _loads_source(variant):
            made = ", ".join(runner.QUANTIZATIONS)
            message = (
                f"shapes what {name} makes of the source, and the quantization 'source' is "
                f"loaded as it is; name what to make ({made}), or leave this out"
            )
            yield Finding((*path, key), message, at="key")
        for place, item in _items(value, (*path, key)):
            wrong = _wrong_option(option, item)
            if wrong is not None:
                yield Finding(place, wrong)


def _loads_source(variant: Mapping[str, object]) -> bool:
    """Whether a variant, or one of its sweep, has its source loaded without a conversion."""
    wanted = variant.get("quantization", SOURCE)
    return SOURCE in wanted if isinstance(wanted, (list, tuple)) else wanted == SOURCE


def _quantization_findings(
    value: object, path: KeyPath, name: str, runner: RunnerOptions
) -> Iterator[Finding]:
    allowed = (SOURCE, *runner.QUANTIZATIONS)
    for place, item in _items(value, (*path, "quantization")):
        if isinstance(item, str) and item not in allowed:
            what = f"{name} can't make the quantization {quote(item)}"
            yield Finding(place, unknown(what, item, allowed))


def _items(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, OptionScalar]]:
    """The values of a sweep with their paths; what is no option's value is left to the model."""
    if _is_scalar(value):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if _is_scalar(item):
                yield (*path, index), item


def _is_scalar(value: object) -> TypeGuard[OptionScalar]:
    return isinstance(value, (bool, int, float, str))


def _wrong_option(option: Option, value: OptionScalar) -> str | None:
    types, words = _KINDS[option.kind]
    choices = [written(choice) for choice in option.choices if choice is not None]
    # A bool is an int to Python, not to the person who wrote it.
    if not isinstance(value, types) or (isinstance(value, bool) and option.kind != "bool"):
        return f"must be {' or '.join(choices) or words}, got {shown(value)}"
    if choices and value not in option.choices:
        return unknown(f"{quote(written(value))} is not possible", written(value), choices)
    if option.minimum is not None and isinstance(value, (int, float)) and value < option.minimum:
        return f"must be at least {option.minimum:g}, got {value}"
    return None
