"""LiteRT's interpreter and LiteRT-LM's engine, in processes that their crashes can't hurt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

LIMIT_S = 120


def sections_of(bundle: Path) -> dict[str, bytes]:
    """The sections of a bundle by the names of their kinds, by the schema of Google's package."""
    from litert_lm_builder import litertlm_core
    from litert_lm_builder import litertlm_header_schema_py_generated as schema

    raw = bundle.read_bytes()
    assert raw[:8] == litertlm_core.HEADER_MAGIC_BYTES
    header = schema.LiteRTLMMetaData.GetRootAs(raw, litertlm_core.HEADER_BEGIN_BYTE_OFFSET)
    sections = header.SectionMetadata()
    found = {}
    for place in range(sections.ObjectsLength()):
        section = sections.Objects(place)
        kind = litertlm_core.any_section_data_type_to_string(section.DataType())
        found[kind] = raw[section.BeginOffset() : section.EndOffset()]
    return found


def facts_of(bundle: Path) -> dict[str, Any]:
    """What edgebench told in the header."""
    from litert_lm_builder import litertlm_core
    from litert_lm_builder import litertlm_header_schema_py_generated as schema

    raw = bundle.read_bytes()
    header = schema.LiteRTLMMetaData.GetRootAs(raw, litertlm_core.HEADER_BEGIN_BYTE_OFFSET)
    entries = header.SystemMetadata()
    for place in range(entries.EntriesLength()):
        entry = entries.Entries(place)
        if entry.Key() == b"edgebench":
            value, text = entry.Value(), schema.StringValue()
            text.Init(value.Bytes, value.Pos)
            facts: dict[str, Any] = json.loads(text.Value())
            return facts
    raise AssertionError("the bundle has no facts")


def settings_of(bundle: Path) -> Any:
    """LiteRT-LM's own metadata."""
    from litert_lm_builder.runtime.proto import llm_metadata_pb2

    return llm_metadata_pb2.LlmMetadata.FromString(sections_of(bundle)["LlmMetadataProto"])


def kept_matrices(bundle: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The matrices of a bundle by their names in the graph ``decode``, decoded by hand."""
    return matrices_in(sections_of(bundle)["TFLiteModel"])


def matrices_in(raw: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Those of a TFLite file."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(bytearray(raw))
    graph = next(each for each in model.subgraphs if each.name == b"decode")
    found = {}

    def stored(tensor: Any) -> bytes:
        buffer = model.buffers[tensor.buffer]
        if buffer.data is not None:
            return bytes(buffer.data)
        return raw[buffer.offset : buffer.offset + buffer.size]

    for tensor in graph.tensors:
        name = tensor.name.decode()
        if tensor.buffer == 0 or len(tensor.shape) != 2 or name.endswith(".scales"):
            continue
        data = stored(tensor)
        kind = tensor.type
        if kind == schema.TensorType.FLOAT32:
            values = np.frombuffer(data, np.float32).reshape(tensor.shape)
        elif kind == schema.TensorType.FLOAT16:
            values = np.frombuffer(data, np.float16).astype(np.float32).reshape(tensor.shape)
        elif kind == schema.TensorType.INT8:
            scales = np.asarray(tensor.quantization.scale, np.float32)
            assert tensor.quantization.quantizedDimension == 0
            assert not np.any(tensor.quantization.zeroPoint)
            values = np.frombuffer(data, np.int8).reshape(tensor.shape) * scales[:, None]
        elif kind == schema.TensorType.INT4:
            details = tensor.quantization.details
            scales = graph.tensors[details.scales]
            factors = np.frombuffer(stored(scales), np.float16).astype(np.float32)
            pairs = np.frombuffer(data, np.uint8)
            codes = np.stack([pairs & 15, pairs >> 4], axis=1).astype(np.int8)
            codes[codes > 7] -= 16
            values = codes.reshape(-1, details.blockSize) * factors[:, None]
            values = values.reshape(tensor.shape)
        else:
            raise AssertionError(f"{name} is of the kind {kind}")
        found[name.removeprefix("decode/")] = values
    return found


def ask(bundle: Path, **questions: Any) -> dict[str, Any]:
    """Put questions to the graphs of a bundle, or to the engine with the bundle loaded.

    Args:
        bundle: the artifact.
        questions: `steps`, numbers of tokens that are prefilled one after the other, and `ids`,
            of which the rest is decoded one by one, for the ``logits`` (positions, vocabulary) of
            the decoded ones, by the interpreter; or `prompt` and `count`, for the engine's greedy
            ``text`` and how many tokens it ``made``.
    """
    with tempfile.TemporaryDirectory() as place:
        if "ids" in questions:
            graphs = Path(place, "graphs.tflite")
            graphs.write_bytes(sections_of(bundle)["TFLiteModel"])
            bundle = graphs
        questions["bundle"], questions["answers"] = str(bundle), place
        done = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps(questions),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
        answers = json.loads(Path(place, "answers.json").read_text("utf-8"))
        for file in Path(place).glob("*.npy"):
            answers[file.stem] = np.load(file)
    return answers


def _answer(questions: dict[str, Any]) -> None:
    place = Path(questions["answers"])
    answers: dict[str, Any] = {}
    if "ids" in questions:
        np.save(place / "logits.npy", _logits(questions))
    if "prompt" in questions:
        answers |= _generated(questions)
    (place / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def _logits(questions: dict[str, Any]) -> np.ndarray[Any, Any]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=questions["bundle"], num_threads=1)
    runners = {
        name: interpreter.get_signature_runner(name) for name in interpreter.get_signature_list()
    }
    details = runners["decode"].get_input_details()
    caches = {
        name: np.zeros(detail["shape"], np.float32)
        for name, detail in details.items()
        if name.startswith("kv_cache")
    }
    places = details["mask"]["shape"][-1]
    lengths = sorted(int(name.removeprefix("prefill_")) for name in runners if name != "decode")
    ids, done = questions["ids"], 0
    for step in questions["steps"]:
        fits = next(length for length in lengths if length >= step)
        outputs = _run(
            runners[f"prefill_{fits}"], ids[done : done + step], done, fits, places, caches
        )
        caches = outputs
        done += step
    rows = []
    for token in ids[done:]:
        outputs = _run(runners["decode"], [token], done, 1, places, caches)
        rows.append(outputs.pop("logits").reshape(-1))
        caches = outputs
        done += 1
    return np.stack(rows)


def _run(
    runner: Any, ids: list[int], before: int, length: int, places: int, caches: dict[str, Any]
) -> dict[str, Any]:
    """One graph on `ids`, which are padded to its length as the engine pads them."""
    tokens, position = np.zeros((1, length), np.int32), np.zeros(length, np.int32)
    tokens[0, : len(ids)] = ids
    position[: len(ids)] = np.arange(before, before + len(ids))
    mask = np.full((1, 1, length, places), np.float32(-1e9))
    for row in range(len(ids)):
        mask[0, 0, row, : before + row + 1] = 0
    outputs: dict[str, Any] = runner(tokens=tokens, input_pos=position, mask=mask, **caches)
    return outputs


def _generated(questions: dict[str, Any]) -> dict[str, Any]:
    import litert_lm

    litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)
    greedy = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0)
    with ExitStack() as stack:
        engine = stack.enter_context(
            litert_lm.Engine(
                questions["bundle"],
                backend=litert_lm.Backend.CPU(thread_count=1),
                cache_dir=":nocache",
                enable_benchmark=True,
            )
        )
        session = engine.create_session(
            apply_prompt_template=False, sampler_config=greedy, max_output_tokens=questions["count"]
        )
        stack.callback(session.close)
        session.run_prefill([questions["prompt"]])
        text = session.run_decode().texts[0]
        made = session.get_benchmark_info().last_decode_token_count
        return {"text": text, "made": made, "prompt": engine.tokenize(questions["prompt"])}


if __name__ == "__main__":
    _answer(json.loads(sys.stdin.read()))
    sys.stdout.flush()
    os._exit(0)
