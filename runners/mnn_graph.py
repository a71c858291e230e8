"""MNN's graph of a llama-like decoder, in the JSON form that MNN's own converter reads.

A graph is a list of operators over numbered tensors. Activations between the linear layers keep
MNN's channel-packed form (``NC4HW4``, a column of 1 x 1 pixels per token), in which a linear layer
is a 1 x 1 convolution, so that nothing is rearranged but at the ends.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.runners.mnn_weights import Matrix

Fields: TypeAlias = "Mapping[str, object]"
"""Of an operator, JSON-ready."""

PACKED, PLAIN = "NC4HW4", "NHWC"

END = 1 << 30
"""Where a slice ends that takes all that is left."""


class Graph:
    """Operators, added in the order in which they run; every method returns its result's tensor."""

    def __init__(self) -> None:
        self._operators: list[dict[str, object]] = []
        self._tensors: list[str] = []
        self._constants: dict[int, int] = {}

    def write(self, path: Path, output: str) -> None:
        """Write the graph, whose result is the tensor of that name."""
        graph = {
            "bizCode": "edgebench",
            "oplists": self._operators,
            "outputName": [output],
            "preferForwardType": "CPU",
            "sourceType": "ONNX",
            "tensorName": self._tensors,
            "tensorNumber": len(self._tensors),
            "usage": "INFERENCE",
        }
        with path.open("x", encoding="utf-8") as file:
            json.dump(graph, file)

    def input(self, name: str, shape: Sequence[int], kind: str) -> int:
        """An input; lengths that are known at run time are -1."""
        main = {"dims": shape, "dtype": kind, "dformat": "NCHW"}
        return self._add(name, "Input", "Input", main)

    def floats(self, name: str, shape: Sequence[int], values: Sequence[float]) -> int:
        """A constant that stands in the graph itself."""
        main = {"dims": shape, "dataFormat": "NCHW", "dataType": "DT_FLOAT", "float32s": values}
        return self._add(name, "Const", "Blob", main)

    def reshape(self, name: str, tensor: int, shape: Sequence[int], *, layout: str = PLAIN) -> int:
        """The same numbers in another shape; one length may be -1."""
        main = {"dims": shape, "dimType": "NCHW"}
        return self._add(name, "Reshape", "Reshape", main, [tensor], layout=layout)

    def pack(self, name: str, tensor: int) -> int:
        """(tokens, channels, 1, 1) in the form that convolutions take."""
        main = {"source": "NCHW", "dest": PACKED}
        return self._add(name, "ConvertTensor", "TensorConvertInfo", main, [tensor])

    def unpack(self, name: str, tensor: int) -> int:
        """The way back from `pack`."""
        main = {"source": PACKED, "dest": "NCHW"}
        return self._add(name, "ConvertTensor", "TensorConvertInfo", main, [tensor])

    def to_float(self, name: str, tensor: int) -> int:
        """Integers as floats."""
        main = {"srcT": "DT_INT32", "dstT": "DT_FLOAT"}
        return self._add(name, "Cast", "CastParam", main, [tensor])

    def unary(self, name: str, operation: str, tensor: int) -> int:
        """An operation on each number, such as ``COS``."""
        main = {"opType": operation, "T": "DT_FLOAT"}
        return self._add(name, "UnaryOp", "UnaryOp", main, [tensor])

    def binary(
        self, name: str, operation: str, left: int, right: int, *, layout: str = PACKED
    ) -> int:
        """An operation on each pair of numbers, such as ``ADD``."""
        main = {"opType": operation, "T": "DT_FLOAT", "activationType": 0}
        return self._add(name, "BinaryOp", "BinaryOp", main, [left, right], layout=layout)

    def total(self, name: str, tensor: int, axis: int) -> int:
        """The sum over one axis, which stays with length 1."""
        main = {"operation": "SUM", "dim": [axis], "keepDims": True, "dType": "DT_FLOAT"}
        return self._add(name, "Reduction", "ReductionParam", main, [tensor])

    def norm(self, name: str, tensor: int, place: Sequence[int], epsilon: float) -> int:
        """RMS norm over the channels; `place` is its weights' offset, length, and zeros' length."""
        main = _norm_settings(place, epsilon)
        return self._add(name, "LayerNorm", "LayerNorm", main, [tensor], layout=PACKED)

    def add_and_norm(
        self, name: str, tensors: tuple[int, int], place: Sequence[int], epsilon: float
    ) -> tuple[int, int]:
        """A sum of two tensors and its RMS norm, in one step, as MNN's exporter fuses them."""
        main = _norm_settings(place, epsilon)
        first = self._add(name, "LayerNorm", "LayerNorm", main, tensors, layout=PACKED, results=2)
        return first, first + 1

    def linear(self, name: str, tensor: int, matrix: Matrix) -> int:
        """A linear layer whose weights lie in the weight file."""
        place = [matrix.offset, matrix.weight_bytes]
        if matrix.format.precision != "fp32":
            place.append(matrix.scale_bytes)
        place.append(matrix.bias_bytes)
        if matrix.format.precision != "fp32":
            place.append(0)
        main: dict[str, object] = {"common": _pixel(matrix), "external": place}
        if matrix.format.precision != "fp32":
            main["quanParameter"] = _quantization(matrix)
        return self._add(name, "Convolution", "Convolution2D", main, [tensor], layout=PACKED)

    def rotate(self, name: str, tensors: Sequence[int], main: Fields) -> tuple[int, int]:
        """Queries and keys, normalised where `main` says so, then rotated by cosine and sine."""
        first = self._add(name, "RoPE", "RoPEParam", main, tensors, results=2)
        return first, first + 1

    def attend(self, name: str, tensors: Sequence[int], layer: int) -> int:
        """Attention of one layer, over a cache of keys and values that MNN keeps."""
        main = {
            "kv_cache": True,
            "layer_index": layer,
            "kv_shared_layer_index": -1,
            "output_c4": True,
            "attnScale": 0.0,  # which stands for one over the root of the head's size
        }
        return self._add(name, "Attention", "AttentionParam", main, tensors)

    def tail(self, name: str, tensor: int, start: int) -> int:
        """Tokens from `start` on, a tensor of one integer; -1 is the last."""
        numbers = [self._integer(value) for value in (END, 0, 1)]
        main = {
            "Index": "DT_INVALID",
            "T": "DT_INVALID",
            "beginMask": 0,
            "endMask": 0,
            "ellipsisMask": 0,
            "newAxisMask": 0,
            "shrinkAxisMask": 0,
            "fromType": 1,
        }
        inputs = [tensor, start, *numbers]
        return self._add(name, "StridedSlice", "StridedSliceParam", main, inputs, layout=PACKED)

    def _integer(self, value: int) -> int:
        if value not in self._constants:
            main = {"dims": [1], "dataFormat": "NCHW", "dataType": "DT_INT32", "int32s": [value]}
            self._constants[value] = self._add(f"integer_{value}", "Const", "Blob", main)
        return self._constants[value]

    def _add(
        self,
        name: str,
        kind: str,
        main_kind: str,
        main: Fields,
        inputs: Sequence[int] = (),
        *,
        layout: str = PLAIN,
        results: int = 1,
    ) -> int:
        first = len(self._tensors)
        self._tensors += [name] if results == 1 else [f"{name}.{i}" for i in range(results)]
        operator: dict[str, object] = {
            "name": name,
            "type": kind,
            "main_type": main_kind,
            "main": main,
            "outputIndexes": list(range(first, first + results)),
            "defaultDimentionFormat": layout,  # as MNN's schema spells it
        }
        if inputs:
            operator["inputIndexes"] = list(inputs)
        self._operators.append(operator)
        return first


def _norm_settings(place: Sequence[int], epsilon: float) -> dict[str, object]:
    return {"axis": [-1], "epsilon": epsilon, "group": 1, "external": place, "useRMSNorm": True}


def _pixel(matrix: Matrix) -> dict[str, object]:
    """A convolution that looks at one pixel, which is a linear layer."""
    ones = ("dilateX", "dilateY", "strideX", "strideY", "kernelX", "kernelY", "group")
    return {
        **dict.fromkeys(ones, 1),
        "padX": 0,
        "padY": 0,
        "outputCount": matrix.rows,
        "inputCount": matrix.columns,
        "relu": False,
        "relu6": False,
        "padMode": "CAFFE",
        "hasOutputShape": False,
    }


def _quantization(matrix: Matrix) -> dict[str, object]:
    """How a convolution reads its weights, for all that is not float32."""
    form = matrix.format
    if not form.integers:
        return {"type": 3}  # float16
    blocks = matrix.rows * (matrix.columns // form.blocks(matrix.columns).size)
    return {
        "type": 1,
        "aMaxOrBits": form.bits,
        "aMin": 0 if form.symmetric else 1,
        "readType": 0 if form.symmetric else blocks,
        "quantScale": 1.0,
        "scaleIn": 0.0,
        "scaleOut": 0.0,
        "useInt32": False,
        "has_scaleInt": False,
        "shapeInt32": matrix.wide_header,
        "weightSize": 0,
        "scaleStorage": "FP16",
    }
