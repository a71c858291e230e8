"""What all that people write in a scenario is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict

from edgebench.harness.scenario.values import refusal

if TYPE_CHECKING:
    from edgebench.harness.scenario.problems import Finding

CONFLICT: Final = "conflict"
"""The type of the errors that say what does not go together."""

MOST_TOKENS: Final = 2**24
"""More than any context holds."""


STRICT: Final = ConfigDict(
    frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=()
)
"""Of everything that people write: unknown keys and wrong types are refused."""


def refuse(findings: list[Finding]) -> None:
    """Raise what was found, if anything, as pydantic wants it."""
    if findings:
        message = "; ".join(finding.message for finding in findings)
        raise refusal(message, CONFLICT)
