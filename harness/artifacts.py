"""What a runner makes of a source: the request, its name, and about how large it will be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.scenario.values import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.values import OptionScalar
    from edgebench.harness.store.store import StoredFile
    from edgebench.harness.wire import Probe

BITS = re.compile(r"(?<![A-Za-z])(I?Q|B?F|FP|INT)(\d{1,2})(?!\d)", re.IGNORECASE)
"""The bits in a quantisation's name: 4 in ``IQ4_NL``, ``Q4_K_M`` and ``int4``, 16 in ``BF16``."""

UNQUANTIZED = re.compile(r"(?<![A-Za-z])q0(?=b?f\d)", re.IGNORECASE)
"""How MLC begins the name of weights that stay what they are: ``q0f32``."""

SCALES_BITS = 1.0
"""What scales and less quantised tensors add to each weight, at most."""

EMBEDDING_BITS = 1.0
EXACT_EMBEDDING_BITS = 12.0
"""What an embedding beside the output layer adds to each weight of a small model, at most.

Frameworks that name their formats ``int4`` or ``fp16`` keep one, in 16 bits. MNN reads no others:
for ``fp32`` each number is kept as three of them, and a quarter of a small model is its embedding.
"""

FEWEST_BITS = 4
"""Assumed of a source whose name does not tell."""

FOLDER_BITS = 16
"""The bits of weights in Hugging Face's layout."""

_LONGEST_OPTION = 40


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is to be made of a source for a variant.

    Attributes:
        key: all that the artifact depends on.
        name: the file's or folder's name.
        options: the variant's options that shape it.
        needed_bytes: about how large it will be, so that a full disk is noticed before the work.
    """

    key: Mapping[str, str]
    name: str
    options: Mapping[str, OptionScalar]
    needed_bytes: int


def conversion(variant: ExpandedVariant, probe: Probe, source: StoredFile) -> Conversion:
    """How `variant` gets its artifact from `source`, by what its runner says of itself."""
    options = {key: value for key, value in variant.options.items() if key in probe.convert_options}
    key = {
        "source": source.sha256,
        "quantization": variant.quantization,
        "runner": variant.runner,
        "engine": f"{probe.description.engine} {probe.description.engine_version}",
    }
    if probe.converter_version:
        key["converter"] = probe.converter_version
    key |= {f"option {name}": written(value) for name, value in options.items()}
    is_folder = source.path.is_dir()
    stem = source.name if is_folder else source.path.stem
    parts = [stem, variant.quantization, *map(_short, options.items())]
    name = "-".join(parts) + (probe.artifact_suffix or f"-{variant.runner}")
    return Conversion(
        key,
        name,
        options,
        expected_bytes(source.name, source.bytes, variant.quantization, is_folder=is_folder),
    )


def expected_bytes(
    source: str, source_bytes: int, quantization: str, *, is_folder: bool = False
) -> int:
    """About how large an artifact will be.

    Args:
        source: the source's name, which by custom holds its quantisation.
        source_bytes: its size.
        quantization: what is to be made of it.
        is_folder: whether the source is a folder in Hugging Face's layout.
    """
    before, after = (BITS.search(UNQUANTIZED.sub("", name)) for name in (source, quantization))
    if after is None:
        return source_bytes
    bits = int(before[2]) if before else 0
    bits = bits or (FOLDER_BITS if is_folder else FEWEST_BITS)
    added = SCALES_BITS
    if after[1].upper() in {"FP", "INT"}:
        added += EXACT_EMBEDDING_BITS if after[2] == "32" else EMBEDDING_BITS
    return round(source_bytes * (int(after[2]) + added) / bits)


def _short(option: tuple[str, OptionScalar]) -> str:
    """An option as a part of a file's name; of a path, its end."""
    name, value = option
    text = re.sub(r"[^A-Za-z0-9._]+", "-", written(value)).strip("-.")
    return f"{name}={text[-_LONGEST_OPTION:]}"
