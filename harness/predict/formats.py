"""How many bytes a model's weights take in each framework's formats, scales included."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from edgebench.harness.errors import UsageError
from edgebench.harness.predict.decoder import StoredBytes
from edgebench.harness.predict.gguf_types import MIXES, row_bytes, type_of
from edgebench.harness.scenario.problems import fold, quote, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from edgebench.harness.predict.decoder import Decoder, MatrixShape

Runner = Literal["llama.cpp", "mnn", "mediapipe", "mlc"]

TITLES: Final[Mapping[Runner, str]] = MappingProxyType(
    {"llama.cpp": "llama.cpp", "mnn": "MNN", "mediapipe": "LiteRT-LM", "mlc": "MLC LLM"}
)

SOURCE: Final = "source"
"""A file as it is."""

HALF: Final = 2
FLOAT: Final = 4


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one framework keeps weights.

    Attributes:
        bits: of a weight of a layer, without scales.
        block: how many weights share a scale; 0 for a whole row.
        scale_bytes: of a block: its scale, and its zero where there is one.
        output_bits: of the output layer; None as the layers.
        output_scale_bytes: of a row of it, where its bits are other ones.
        embedding_bytes: of one of its weights, where it is kept apart and not as the output layer.
        vector_bytes: of a weight of norms and biases.
        kv_bytes: of a number in the KV cache, where nothing else is asked for.
    """

    bits: int
    block: int = 0
    scale_bytes: int = 0
    output_bits: int | None = None
    output_scale_bytes: int = 0
    embedding_bytes: int | None = None
    vector_bytes: int = FLOAT
    kv_bytes: float = HALF

    def matrix_bytes(self, matrix: MatrixShape) -> int:
        """Of a matrix of a layer, or of the output layer or an embedding kept like it."""
        outer = matrix.role in ("output", "embedding")
        if outer and self.output_bits is not None:
            codes = -(-matrix.columns * self.output_bits // 8)
            return matrix.rows * (codes + self.output_scale_bytes)
        blocks = -(-matrix.columns // self.block) if self.block else 1
        return matrix.rows * (-(-matrix.columns * self.bits // 8) + blocks * self.scale_bytes)


SCHEMES: Final[Mapping[Runner, Mapping[str, Scheme]]] = {
    # Blocks with a scale and a zero in float16; untied embeddings in bfloat16, of which three make
    # a float32. Norms have a bias of zeros.
    "mnn": {
        "int4": Scheme(4, 64, 2 * HALF, embedding_bytes=HALF, vector_bytes=2 * FLOAT),
        "int4-b32": Scheme(4, 32, 2 * HALF, embedding_bytes=HALF, vector_bytes=2 * FLOAT),
        "int4-b64": Scheme(4, 64, 2 * HALF, embedding_bytes=HALF, vector_bytes=2 * FLOAT),
        "int8": Scheme(8, 64, 2 * HALF, embedding_bytes=HALF, vector_bytes=2 * FLOAT),
        "fp16": Scheme(16, embedding_bytes=HALF, vector_bytes=2 * FLOAT),
        "fp32": Scheme(32, embedding_bytes=3 * HALF, vector_bytes=2 * FLOAT),
    },
    # int4 in blocks of 32 with a scale in float16, int8 with one in float32 for each row; the
    # output layer and the embedding are int8 beside int4. The graphs' KV cache is float32.
    "mediapipe": {
        "int4": Scheme(4, 32, HALF, output_bits=8, output_scale_bytes=FLOAT, kv_bytes=FLOAT),
        "int8": Scheme(8, 0, FLOAT, kv_bytes=FLOAT),
        "fp16": Scheme(16, kv_bytes=FLOAT),
        "fp32": Scheme(32, kv_bytes=FLOAT),
    },
    # Groups of 32 with a scale in the type that is computed in, output layer and embedding too.
    "mlc": {
        "q4f16_1": Scheme(4, 32, HALF, vector_bytes=HALF),
        "q4f32_1": Scheme(4, 32, FLOAT, kv_bytes=FLOAT),
        "q0f16": Scheme(16, vector_bytes=HALF),
        "q0f32": Scheme(32, kv_bytes=FLOAT),
    },
}


@dataclass(frozen=True, slots=True)
class Format:
    """A quantisation of a framework.

    Attributes:
        runner: whose it is.
        name: such as ``Q4_0`` or ``int4``.
    """

    runner: Runner
    name: str

    def __str__(self) -> str:
        """As people write it: alone where no other framework has one of that name."""
        return self.name if len(_runners_of(self.name)) == 1 else f"{self.runner}:{self.name}"

    def kv_bytes(self) -> float:
        """Bytes of a number in the KV cache where nothing else is asked for."""
        if self.runner == "llama.cpp":
            return HALF
        return SCHEMES[self.runner][self.name].kv_bytes


def parse_format(text: str) -> Format:
    """A quantisation as people write it: ``Q4_0``, ``mnn:int4``, ``mediapipe:int8``.

    Raises:
        UsageError: there is none, or several frameworks have one of that name.
    """
    if text == SOURCE:
        return Format("llama.cpp", SOURCE)
    runner, colon, name = text.partition(":") if ":" in text else ("", "", text)
    known = formats()
    found = [
        each
        for each in known
        if fold(each.name) == fold(name) and (not colon or fold(each.runner) == fold(runner))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        which = " or ".join(f"{each.runner}:{each.name}" for each in found)
        msg = f"several frameworks have a quantisation {quote(name)}, and each keeps it its own way"
        raise UsageError(msg, remedy=f"Write {which}.")
    everything = ", ".join(map(str, known))
    near = suggestion(text, [*map(str, known), *(each.name for each in known)])
    msg = f"there is no quantisation {quote(text)}"
    hint = f"Did you mean {near}? " if near else ""
    raise UsageError(msg, remedy=f"{hint}Known: {everything}.")


def formats() -> tuple[Format, ...]:
    """Every quantisation that can be predicted."""
    return (
        *(Format("llama.cpp", each) for each in MIXES),
        *(Format(runner, name) for runner, each in SCHEMES.items() for name in each),
    )


def _runners_of(name: str) -> list[Runner]:
    return [each.runner for each in formats() if each.name == name] or ["llama.cpp"]


def weight_bytes(model: Decoder, form: Format) -> StoredBytes:
    """Bytes of a model's weights in a format, and of those that a token reads.

    Raises:
        UsageError: the weights are asked for as they are, and there are none.
    """
    if form.name == SOURCE:
        if model.stored is None:
            msg = f"{model.name} is known by its shape alone, so it has no weights as they are"
            raise UsageError(msg, remedy="Name a quantisation by --quantization, such as Q4_0.")
        return model.stored
    if form.runner == "llama.cpp":
        return _counted(model, _gguf_bytes(model, form.name), FLOAT, None)
    scheme = SCHEMES[form.runner][form.name]
    apart = scheme.embedding_bytes
    return _counted(model, scheme.matrix_bytes, scheme.vector_bytes, apart)


def _gguf_bytes(model: Decoder, mix: str) -> Callable[[MatrixShape], int]:
    def nbytes(matrix: MatrixShape) -> int:
        return matrix.rows * row_bytes(type_of(mix, matrix, model), matrix.columns)

    return nbytes


def _counted(
    model: Decoder,
    matrix_bytes: Callable[[MatrixShape], int],
    vector_bytes: int,
    embedding_bytes: int | None,
) -> StoredBytes:
    output = matrix_bytes(model.output)
    both = sum(map(matrix_bytes, model.layer_matrices())) + output
    both += model.vector_weights * vector_bytes
    if model.tied:
        return StoredBytes(both, both)
    embedding = (
        matrix_bytes(model.embedding)
        if embedding_bytes is None
        else model.embedding.weights * embedding_bytes
    )
    return StoredBytes(both + embedding, both + embedding // model.vocabulary)
