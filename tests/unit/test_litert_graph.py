"""Graphs for LiteRT as files: what a reader of TFLite's schema finds in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from in_memory import InMemory

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_file import ModelFile
from edgebench.runners.litert_graph import Graph
from edgebench.runners.litert_shapes import check_lengths
from edgebench.runners.litert_weights import Form, Store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mediapipe

VALUES = np.arange(48 * 32, dtype=np.float32).reshape(48, 32)


def store() -> Store:
    return Store({"m": InMemory(VALUES), "v": InMemory(np.arange(48, dtype=np.float32))})


def two_graphs(form: Form) -> list[Graph]:
    """The same linear layer for two numbers of tokens."""
    weights, graphs = store(), []
    for tokens in (4, 1):
        graph = Graph(f"g{tokens}")
        bias = graph.floats(weights.vector("v"), (48,))
        state = graph.input("x", (tokens, 32))
        graph.output("y", graph.linear(state, weights.matrix("m", form), bias))
        graphs.append(graph)
    return graphs


def read(path: Path) -> tuple[Any, bytes]:
    from ai_edge_litert import schema_py_generated as schema

    raw = path.read_bytes()
    return schema.ModelT.InitFromPackedBuf(bytearray(raw)), raw


def test_weights_lie_once_behind_the_flatbuffer_and_aligned(tmp_path: Path) -> None:
    """Both graphs name the same place, which holds the numbers as they are."""
    ModelFile(two_graphs(Form("fp32")), "a test").write(tmp_path / "made.tflite")
    model, raw = read(tmp_path / "made.tflite")
    assert raw[4:8] == b"TFL3"
    assert model.description == b"a test"
    places = set()
    for graph in model.subgraphs:
        tensor = next(each for each in graph.tensors if each.name.endswith(b"/m"))
        buffer = model.buffers[tensor.buffer]
        places.add((buffer.offset, buffer.size))
    [(offset, size)] = places
    assert offset % 64 == 0
    assert raw[offset : offset + size] == VALUES.tobytes()
    assert raw.count(VALUES.tobytes()) == 1


def test_names_of_tensors_are_unlike_each_other(tmp_path: Path) -> None:
    """In the whole model, or ai-edge-quantizer mistakes one for another."""
    ModelFile(two_graphs(Form("int4")), "").write(tmp_path / "made.tflite")
    model, _ = read(tmp_path / "made.tflite")
    names = [tensor.name for graph in model.subgraphs for tensor in graph.tensors]
    assert len(names) == len(set(names))
    assert [signature.signatureKey for signature in model.signatureDefs] == [b"g4", b"g1"]


def test_scales_that_are_known_last_stand_in_front(tmp_path: Path) -> None:
    """The FlatBuffer keeps its length: scales of rows are in it, those of blocks behind it."""
    for form in (Form("int8"), Form("int4")):
        path = tmp_path / f"{form.precision}.tflite"
        ModelFile(two_graphs(form), "").write(path)
        model, raw = read(path)
        graph = model.subgraphs[1]
        tensor = next(each for each in graph.tensors if each.name == b"g1/m")
        largest = VALUES.max(axis=1)
        if form.precision == "int8":
            assert tensor.quantization.scale == pytest.approx(largest / 127, rel=1e-6)
        else:
            buffer = model.buffers[graph.tensors[tensor.quantization.details.scales].buffer]
            scales = np.frombuffer(raw[buffer.offset : buffer.offset + buffer.size], np.float16)
            assert scales.astype(np.float32) == pytest.approx(largest / 7, rel=0.5)


def test_the_same_graphs_make_the_same_file(tmp_path: Path) -> None:
    """Byte for byte."""
    for name in ("a", "b"):
        ModelFile(two_graphs(Form("int8")), "").write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """Whose ever it is."""
    (tmp_path / "made").write_text("mine")
    with pytest.raises(FileExistsError):
        ModelFile(two_graphs(Form("fp32")), "").write(tmp_path / "made")


def test_lengths_are_sorted_and_may_have_blanks() -> None:
    """As people write lists; a single one will do, and one as long as the cache."""
    assert check_lengths("512, 32,128", 1280) == (32, 128, 512)
    assert check_lengths(" 64", 64) == (64,)


def test_a_length_beyond_the_cache_is_named() -> None:
    """With the cache's."""
    with pytest.raises(RunnerFailure, match=r"from 2 to cache_length 100, .* unlike '128'"):
        check_lengths("32,128", 100)
