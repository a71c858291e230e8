"""What every record in a result file is made of.

History of the format (``schema_version``), which is independent of the package's version:

1. the first.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

SYNTHETIC_WEIGHTS: Final = "synthetic weights"
"""What a model's name, and every table, says where a model's weights are made up."""


class Record(BaseModel):
    """Base of everything that is written by a machine: unknown fields are kept."""

    model_config = ConfigDict(
        frozen=True, extra="allow", allow_inf_nan=False, protected_namespaces=()
    )
