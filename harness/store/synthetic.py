"""Synthetic weights as a source: which there are, and how their file is made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edgebench import __version__
from edgebench.harness.errors import ModelError
from edgebench.harness.scenario.problems import suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.sources import SyntheticSource
    from edgebench.models.shapes import ModelShape
    from edgebench.models.synthetic_tensors import Quantization

NOTE: Final = "synthetic weights: random numbers; what the model says means nothing"

# What the tokenizer's pieces of words are learned from.
_PROSE: Final = Path(__file__).parents[1] / "texts" / "prose.txt"

_STEP_BYTES: Final = 32 << 20
"""Progress is told so often."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model to be made up.

    Attributes:
        text: what its tokenizer is learned from.
        needed_bytes: about the file's size.
    """

    shape: ModelShape
    quantization: Quantization
    text: str
    needed_bytes: int

    @classmethod
    def of(cls, source: SyntheticSource, shapes: Mapping[str, ModelShape]) -> Wanted:
        """What a source asks for.

        Raises:
            ModelError: there is no such architecture or quantisation; those that there are are
                named.
        """
        from edgebench.models.synthetic import QUANTIZATIONS, synthetic_bytes  # noqa: PLC0415

        shape = shapes.get(source.architecture)
        if shape is None:
            msg = f"{source}: no architecture {source.architecture!r} is known"
            raise ModelError(msg, remedy=_named(source.architecture, shapes))
        for quantization in QUANTIZATIONS:
            if quantization == source.quantization:
                break
        else:
            msg = f"{source}: synthetic weights are not made as {source.quantization!r}"
            raise ModelError(msg, remedy=_named(source.quantization, QUANTIZATIONS))
        try:
            needed = synthetic_bytes(shape, quantization)
        except ValueError as error:
            msg = f"{source} can't be made: {error}"
            raise ModelError(msg, remedy="F16 has no blocks, and takes any shape.") from error
        return cls(shape, quantization, _PROSE.read_text(encoding="utf-8"), needed)

    @property
    def key(self) -> dict[str, str]:
        """All that the file depends on."""
        from edgebench.models.synthetic import SEED, version_of  # noqa: PLC0415

        return {
            "source": f"synthetic:{self.shape.key}@{self.quantization}",
            "shape": repr(self.shape),
            "seed": str(SEED),
            "text": hashlib.sha256(self.text.encode()).hexdigest(),
            "version": str(version_of(self.shape)),
        }

    @property
    def made_by(self) -> str:
        """What makes it, with its version."""
        return f"edgebench {__version__}"

    def make(self, folder: Path, tell: Progress) -> tuple[Path, str]:
        """Write the file into a folder.

        Returns:
            The file, and its SHA-256.

        Raises:
            ModelError: the shape has too small a vocabulary.
            OSError: the file can't be written.
        """
        from edgebench.models.synthetic import write_synthetic  # noqa: PLC0415 - needs numpy

        path = folder / f"{self.shape.key}-synthetic.{self.quantization}.gguf"
        what, told = f"making {path.name}", 0

        def told_seldom(written: int) -> None:
            nonlocal told
            if written - told >= _STEP_BYTES:
                told = written
                tell(what, written, self.needed_bytes)

        tell(what, 0, self.needed_bytes)
        try:
            sha256 = write_synthetic(
                self.shape, self.quantization, path, text=self.text, tell=told_seldom
            )
        except ValueError as error:
            msg = f"{path.name} can't be made: {error}"
            raise ModelError(msg) from error
        size = path.stat().st_size
        tell(what, size, size)
        return path, sha256


def _named(name: str, known: Collection[str]) -> str:
    """Which name was meant, or which there are."""
    meant = suggestion(name, known)
    did = f"Did you mean {meant!r}? " if meant is not None else ""
    return f"{did}Known are: {', '.join(known)}."
