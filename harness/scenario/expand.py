"""Variants with their sweeps written out."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.scenario.values import OptionScalar, OptionValue, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edgebench.harness.scenario.model import Scenario, Variant


@dataclass(frozen=True, slots=True)
class ExpandedVariant:
    """A variant with one value for each option.

    Attributes:
        id: unique in its scenario, and readable.
        options: one scalar for each option that is set.
        python: the interpreter that the scenario names, or None.
        sweep: what the variants of one sweep share, the id without the swept values; None where
            the variant does not sweep.
    """

    id: str
    runner: str
    quantization: str
    options: Mapping[str, OptionScalar]
    python: str | None = None
    sweep: str | None = None


def expand(scenario: Scenario) -> list[ExpandedVariant]:
    """Every variant with its sweeps written out, in the order of the scenario."""
    here = scenario.device.ssh is None and scenario.device.adb is None
    return [
        expanded for variant in scenario.variants for expanded in expand_variant(variant, here=here)
    ]


def expand_variant(variant: Variant, *, here: bool = True) -> Iterator[ExpandedVariant]:
    """The product of the variant's sweeps, the last option changing fastest.

    Args:
        variant: as the scenario has it.
        here: whether it runs on this machine; on another one, a ``~`` is another home.
    """
    quantizations = as_tuple(variant.quantization)
    axes = {key: as_tuple(value) for key, value in variant.options.items()}
    swept = {key for key in axes if isinstance(variant.options[key], tuple)}
    sweeps_quantization = isinstance(variant.quantization, tuple)
    sweeps = bool(swept) or sweeps_quantization
    for quantization, *values in itertools.product(quantizations, *axes.values()):
        options = dict(zip(axes, values, strict=True))
        # Each part of the id, and whether the sweep changes it.
        parts = [(variant.name or variant.runner, False)]
        if variant.name is None or sweeps_quantization:
            parts.append((str(quantization), sweeps_quantization))
        for key, value in options.items():
            if variant.name is None or key in swept:
                parts.append((f"{key}={written(value)}", key in swept))
        yield ExpandedVariant(
            id=" ".join(text for text, _ in parts),
            runner=variant.runner,
            quantization=str(quantization),
            options=options,
            python=_interpreter(variant.python) if here else variant.python,
            sweep=" ".join(text for text, changes in parts if not changes) if sweeps else None,
        )


def as_tuple(value: OptionValue) -> tuple[OptionScalar, ...]:
    """The values of a sweep; a single one where it is none."""
    return value if isinstance(value, tuple) else (value,)


def _interpreter(python: str | None) -> str | None:
    """`python` with a leading ``~`` replaced by the home folder, as a shell would."""
    # Path.expanduser raises where there is no home folder; this leaves the text alone.
    return None if python is None else os.path.expanduser(python)  # noqa: PTH111
