"""What every record in a result file is made of."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

BY_MACHINES = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, protected_namespaces=())
"""Of what is written by a machine: unknown fields are kept."""

SYNTHETIC_WEIGHTS: Final = "synthetic weights"
"""What a model's name, and every table, says where a model's weights are made up."""
