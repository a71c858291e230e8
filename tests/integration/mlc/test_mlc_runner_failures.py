"""Files that MLC's runner refuses, each in one sentence, and before TVM could crash on them."""

from __future__ import annotations

import json
import os
import platform
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.harness.errors import RunnerRefusedError
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    RunnerFailure,
    ScoreRequest,
)
from edgebench.runners.mlc import MlcRunner
from edgebench.runners.mlc_library import missing_instructions, parse_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

PROMPT = list(range(5, 35))
CONFIG, INDEX, SHARD = "mlc-chat-config.json", "tensor-cache.json", "params_shard_0.bin"


def refused(path: Path, *, context: int = 64, **options: Any) -> RunnerFailure:
    """What the runner says where it does not load."""
    with pytest.raises(RunnerFailure) as caught:
        MlcRunner().load(LoadRequest(str(path), context, options))
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return caught.value


def change(path: Path, **values: Any) -> None:
    """Change entries of a file of JSON; None takes one away."""
    facts = json.loads(path.read_text("utf-8")) | values
    kept = {key: value for key, value in facts.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")


def change_shard(folder: Path, number: int = 0, **values: Any) -> None:
    """Change what the index says of one tensor of the first shard."""
    index = json.loads((folder / INDEX).read_text("utf-8"))
    index["records"][0]["records"][number] |= values
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def cut(path: Path, count: int) -> None:
    """Take bytes from the end of a file."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - count)


def test_models_of_others_are_told_apart(tiny: Any, tmp_path: Path) -> None:
    """A GGUF file and a folder of Hugging Face's get the way out: a quantization."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for path in (file, tiny.source, tmp_path / "nothing"):
        failure = refused(path)
        assert "is no folder of MLC's" in str(failure)
        assert "choose quantization q0f32, q0f16, q4f32_1, q4f16_1 or q3f16_1" in str(failure)
        assert failure.reason == "invalid"


@pytest.mark.parametrize("name", [CONFIG, INDEX])
def test_json_that_is_cut_off_is_named(artifact: Path, name: str) -> None:
    """The file and where it breaks are told."""
    cut(artifact / name, 30)
    assert f"{name} can't be read" in str(refused(artifact))


@pytest.mark.parametrize("text", ["[]", '{"records": 3}', '{"records": [{"dataPath": "x"}]}'])
def test_json_of_something_else_is_no_index(artifact: Path, text: str) -> None:
    """Whatever it holds."""
    (artifact / INDEX).write_text(text, encoding="utf-8")
    assert INDEX in str(refused(artifact))


def test_a_configuration_without_the_essentials_is_none(artifact: Path) -> None:
    """Vocabulary, quantization and model type are needed."""
    model = json.loads((artifact / CONFIG).read_text("utf-8"))["model_config"]
    del model["vocab_size"]
    change(artifact / CONFIG, vocab_size=None, model_config=model)
    assert "lacks model_type, quantization or vocab_size" in str(refused(artifact))


def test_a_folder_without_weights_is_refused(artifact: Path) -> None:
    """The index of either name is missing."""
    (artifact / INDEX).unlink()
    assert "has no tensor-cache.json" in str(refused(artifact))


def test_a_folder_without_a_library_tells_the_option(artifact: Path) -> None:
    """MLC's own folders have none."""
    (artifact / "lib.so").unlink()
    assert "has no lib.so: set the option library" in str(refused(artifact))


def test_a_library_that_is_not_there_is_refused(artifact: Path) -> None:
    """The option has a path that leads nowhere."""
    assert "no model library" in str(refused(artifact, library=str(artifact / "other.so")))


def test_a_missing_shard_is_named(artifact: Path) -> None:
    """TVM would name it after it had loaded the others."""
    (artifact / SHARD).unlink()
    assert f"{SHARD} is missing" in str(refused(artifact))


def test_a_shard_that_was_cut_off_is_named(artifact: Path) -> None:
    """By its size."""
    size = (artifact / SHARD).stat().st_size
    cut(artifact / SHARD, 4)
    assert f"{SHARD} has {size - 4} bytes instead of {size}" in str(refused(artifact))


@pytest.mark.parametrize("method", ["prepare", "load"])
def test_a_damaged_shard_is_seen_by_its_checksum(artifact: Path, method: str) -> None:
    """Before a measured load, and in one that nothing came before."""
    with (artifact / SHARD).open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(RunnerFailure, match=f"{SHARD} is damaged: its checksum is") as caught:
        getattr(MlcRunner(), method)(LoadRequest(str(artifact), 64))
    assert caught.value.reason == "invalid"


def test_checksums_that_were_compared_are_not_compared_again(artifact: Path) -> None:
    """Unless a file has changed meanwhile: what `prepare` did is no part of the measured load."""
    runner, request = MlcRunner(), LoadRequest(str(artifact), 64)
    runner.prepare(request)
    path = artifact / SHARD
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    runner.load(request)
    path.write_bytes(data)
    with pytest.raises(RunnerFailure, match="is damaged"):
        runner.load(request)


@pytest.mark.parametrize(
    "values", [{"byteOffset": 1 << 40}, {"byteOffset": -4}, {"nbytes": 12}, {"shape": [1 << 40]}]
)
def test_a_tensor_beyond_its_shard_is_refused(artifact: Path, values: dict[str, Any]) -> None:
    """TVM reads whatever is in memory there."""
    change_shard(artifact, **values)
    assert "can't be right" in str(refused(artifact))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"model_type": "qwen2"}, "model_type is qwen2 in its configuration and llama in the"),
        ({"quantization": "q4f16_1"}, "quantization is q4f16_1 in its configuration and q0f32 in"),
        ({"context_window_size": 512}, "context_window_size is 512 in its configuration and 256"),
        ({"vocab_size": 319}, "vocab_size is 319 in its configuration and 320"),
    ],
)
def test_a_configuration_that_disagrees_with_the_library_is_refused(
    artifact: Path, values: dict[str, Any], says: str
) -> None:
    """What disagrees is told with both values."""
    change(artifact / CONFIG, **values)
    failure = refused(artifact)
    assert says in str(failure)
    assert failure.reason == "invalid"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": "another"}, "tensor-cache.json has no model.embed_tokens.weight"),
        ({"shape": [64, 320]}, "is 64 x 320 float32 in tensor-cache.json and 320 x 64 float32"),
        ({"dtype": "uint32"}, "is 320 x 64 uint32 in tensor-cache.json and 320 x 64 float32"),
    ],
)
def test_weights_that_the_library_does_not_take_are_refused(
    artifact: Path, values: dict[str, Any], says: str
) -> None:
    """A name, a shape or a type that differs."""
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    names = [each["name"] for each in index["records"][0]["records"]]
    change_shard(artifact, names.index("model.embed_tokens.weight"), **values)
    assert says in str(refused(artifact))


def test_a_context_longer_than_compiled_is_refused(artifact: Path) -> None:
    """And one that the folder's configuration lowered."""
    assert "takes 257 tokens" in str(refused(artifact, context=257))
    change(artifact / CONFIG, context_window_size=100)
    failure = refused(artifact, context=101)
    assert "takes 101 tokens" in str(failure)
    assert "for 100" in str(failure)
    assert failure.reason == "invalid"


def test_a_longer_chunk_than_compiled_is_refused(artifact: Path) -> None:
    """TVM's memory is planned for those of the library."""
    assert "prefill_chunk is 300" in str(refused(artifact, prefill_chunk=300))


def test_a_file_that_is_no_library_is_refused(artifact: Path) -> None:
    """An empty one, a text, and a library's beginning alone."""
    library = artifact / "lib.so"
    whole = library.read_bytes()
    for data in (b"", b"hello, I am no library\n" * 9, whole[:40]):
        library.write_bytes(data)
        assert "is no compiled library" in str(refused(artifact))


def test_a_library_that_was_cut_off_is_refused(artifact: Path) -> None:
    """The dynamic linker ends the process on it, by SIGBUS."""
    cut(artifact / "lib.so", (artifact / "lib.so").stat().st_size - 10_000)
    assert "lib.so is cut off" in str(refused(artifact))


@pytest.mark.skipif(platform.system() != "Linux", reason="changes an ELF file")
def test_a_library_for_another_machine_is_refused(artifact: Path) -> None:
    """The machine stands in the file's header."""
    here = platform.machine()
    for number, name in ((183, "aarch64"), (62, "x86_64"), (8, "machine 8")):
        data = bytearray((artifact / "lib.so").read_bytes())
        struct.pack_into("<H", data, 18, number)
        (artifact / "lib.so").write_bytes(data)
        if name != here:
            says = f"is a library for {name} (ELF), and this machine takes {here} (ELF)"
            assert says in str(refused(artifact))


@pytest.mark.skipif(platform.system() != "Linux", reason="changes an ELF file")
def test_a_library_for_another_system_is_refused(artifact: Path) -> None:
    """macOS has files of another kind."""
    (artifact / "lib.so").write_bytes(struct.pack("<II", 0xFEEDFACF, 0x0100000C) + bytes(100))
    assert "is a library for aarch64 (Mach-O)" in str(refused(artifact))


def test_a_library_of_something_else_is_refused(artifact: Path) -> None:
    """Any shared library, and one for TVM's calls of before."""
    import _ctypes

    data = Path(_ctypes.__file__).read_bytes()
    (artifact / "lib.so").write_bytes(data)
    assert "is no model library of MLC's" in str(refused(artifact))
    (artifact / "old.so").write_bytes(data + b"__tvm_dev_mblob\0")
    failure = refused(artifact, library=str(artifact / "old.so"))
    assert "was compiled for an older TVM than 0.27" in str(failure)


def test_a_library_for_another_tvm_is_refused(artifact: Path) -> None:
    """Its instructions for the virtual machine have another version."""
    library = artifact / "lib.so"
    data = library.read_bytes()
    # Its length stands before it, in 8 bytes.
    version = struct.pack("<Q", 4) + b"0.14"
    assert data.count(version) == 1
    library.write_bytes(data.replace(version, struct.pack("<Q", 4) + b"0.99"))
    failure = refused(artifact)
    assert "can't load" in str(failure)
    assert "for this TVM" in str(failure)


def test_a_library_for_a_device_that_tvm_does_not_know_is_refused(
    artifact: Path, make_library: Callable[..., None]
) -> None:
    """TVM can compile for OpenCL where it can't run that."""
    if "opencl" in MlcRunner().describe().capabilities.gpu_backends:
        pytest.skip("it can")
    make_library(artifact / "gpu.so", {}, kind="opencl")
    failure = refused(artifact, library=str(artifact / "gpu.so"))
    assert "gpu.so was compiled for opencl, and TVM 0.27" in str(failure)
    assert failure.reason == "unavailable"


def test_a_library_without_a_function_is_refused(
    tiny: Any, artifact: Path, make_library: Callable[..., None]
) -> None:
    """Its metadata fits, and it can do nothing."""
    make_library(artifact / "lib.so", metadata_of(tiny.artifact))
    failure = refused(artifact)
    assert "has no function embed" in str(failure)
    assert failure.reason == "unsupported"


@pytest.mark.parametrize(
    ("changes", "says", "reason"),
    [
        ({"tensor_parallel_shards": 2}, "compiled for 2 devices", "unsupported"),
        ({"kv_state_kind": "rnn_state"}, "state rnn_state", "unsupported"),
        ({"model_task": "embedding"}, "task embedding", "unsupported"),
        ({"sliding_window_size": 32, "context_window_size": -1}, "slides a window", "unsupported"),
        ({"params": None}, "is not understood", "invalid"),
        ({"params": [{"name": "x"}]}, "is not understood", "invalid"),
    ],
)
def test_a_library_of_another_kind_is_refused(
    tiny: Any,
    artifact: Path,
    make_library: Callable[..., None],
    changes: dict[str, Any],
    says: str,
    reason: str,
) -> None:
    """What is not run here is said before its weights are loaded."""
    make_library(artifact / "lib.so", metadata_of(tiny.artifact) | changes)
    failure = refused(artifact)
    assert says in str(failure)
    assert failure.reason == reason


def metadata_of(folder: Path) -> dict[str, Any]:
    """What the real library in a folder says."""
    runner = MlcRunner()
    runner.load(LoadRequest(str(folder), 64))
    loaded = runner._loaded
    assert loaded is not None
    metadata = loaded[1].metadata
    params = [{"name": n, "shape": list(s), "dtype": d} for n, s, d in metadata.parameters]
    return {
        "model_type": metadata.model_type,
        "quantization": metadata.quantization,
        "context_window_size": metadata.context_tokens,
        "prefill_chunk_size": metadata.prefill_chunk,
        "params": params,
        "edgebench": metadata.built_by,
    }


@pytest.mark.skipif(platform.system() != "Linux", reason="instructions are known of Linux only")
def test_a_library_for_a_newer_cpu_is_refused(
    tiny: Any, artifact: Path, make_library: Callable[..., None]
) -> None:
    """It would end the process at its first prompt; edgebench notes what it compiles for."""
    there = "neon" if platform.machine() == "aarch64" else "sse3"
    lacks = "avx2" if platform.machine() == "aarch64" else "sve2"
    target = {"mcpu": "future", "features": [there, lacks, "tuning-of-some-kind"]}
    built_by = {"version": 1, "tvm": "0.27.0", "target": target}
    make_library(artifact / "lib.so", metadata_of(tiny.artifact) | {"edgebench": built_by})
    failure = refused(artifact)
    assert f"for a CPU (future) with {lacks}, which this one lacks" in str(failure)
    assert failure.reason == "unsupported"


def test_instructions_are_known_by_both_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM and Linux call some of them differently; on other systems nothing is claimed."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fma avx2 sse4_2 pni abm\n", encoding="utf-8")
    monkeypatch.setattr("edgebench.runners.mlc_library.CPUINFO", cpuinfo)
    wanted = ["sse3", "sse4.2", "avx2", "lzcnt", "avx512f", "bmi"]
    assert missing_instructions(wanted) == ["avx512f", "bmi"]
    cpuinfo.write_text("Features\t: asimd asimddp\n", encoding="utf-8")
    assert missing_instructions(["neon", "dotprod", "i8mm"]) == ["i8mm"]
    cpuinfo.unlink()
    assert missing_instructions(["i8mm"]) == []


def test_metadata_of_mlcs_compiler_is_read() -> None:
    """A shape may name a number of the configuration, and -1 stands for none."""
    says = {
        "model_type": "llama",
        "quantization": "q4f16_1",
        "context_window_size": 4096,
        "sliding_window_size": -1,
        "attention_sink_size": -1,
        "prefill_chunk_size": 2048,
        "tensor_parallel_shards": 1,
        "params": [{"name": "w", "shape": ["vocab_size", 8], "dtype": "uint32", "preprocs": []}],
    }
    metadata = parse_metadata(json.dumps(says), Path("lib.so"))
    assert metadata.parameters == (("w", ("vocab_size", 8), "uint32"),)
    assert (metadata.context_tokens, metadata.sliding_window) == (4096, None)
    assert metadata.built_by is None


def test_logits_that_are_no_numbers_are_a_failure(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """The token of a NaN would be a result like any other."""
    change_shard(artifact)  # nothing, but the checksum goes below
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    size = index["records"][0]["nbytes"]
    del index["records"][0]["md5sum"]
    (artifact / INDEX).write_text(json.dumps(index), encoding="utf-8")
    (artifact / SHARD).write_bytes(np.full(size // 4, np.nan, dtype=np.float32).tobytes())
    with open_model(artifact) as each:
        for call in (lambda: each.generate(PROMPT, 4), lambda: each.score(PROMPT)):
            with pytest.raises(RunnerRefusedError, match="as the highest logit"):
                call()


@pytest.mark.parametrize("device", ["cuda", "metal"])
def test_a_device_that_is_not_there_is_refused(artifact: Path, device: str) -> None:
    """TVM would name a function that it lacks."""
    if device in MlcRunner().describe().capabilities.gpu_backends:
        pytest.skip("it is there")
    failure = refused(artifact, device=device)
    assert f"can't use {device}, or there is none; it has: cpu" in str(failure)
    assert failure.reason == "unavailable"


def test_mlcs_engine_has_to_be_installed(artifact: Path) -> None:
    """How is told, in the description, too; the library is another question."""
    description = MlcRunner().describe()
    if description.engine == "MLC LLM":
        pytest.skip("it is installed")
    assert description.engine == "TVM"
    assert "mlc-llm-nightly-cpu" in description.notes[0]
    failure = refused(artifact, engine="mlc_llm")
    assert "mlc-llm-nightly-cpu" in str(failure)
    assert failure.reason == "unavailable"


def test_more_threads_than_were_made_are_refused(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """TVM makes its threads once in a process, so another load may use fewer of them only."""
    from edgebench.runners.base import to_wire

    with open_model(artifact, threads=2) as each:
        for count, fits in ((1, True), (2, True), (3, False)):
            request = to_wire(LoadRequest(str(artifact), 64, {"threads": count}))
            if fits:
                answer: Any = each.session.call("load", request, timeout_s=60)
                assert answer["model"]["effective_options"]["threads"] == count
                continue
            with pytest.raises(RunnerRefusedError, match="3 threads are asked for and TVM uses 2"):
                each.session.call("load", request, timeout_s=60)


def test_nothing_is_generated_before_a_model_is_loaded() -> None:
    """TVM's functions are not there yet."""
    for call in (
        lambda runner: runner.generate(GenerateRequest([1], 1)),
        lambda runner: runner.score(ScoreRequest([1, 2])),
    ):
        with pytest.raises(RunnerFailure, match="no model is loaded"):
            call(MlcRunner())


def test_quantizations_that_take_mlcs_compiler_say_so(tiny: Any, tmp_path: Path) -> None:
    """Where it is not installed, its command is told."""
    if MlcRunner().describe().engine == "MLC LLM":
        pytest.skip("it is installed")
    request = ConvertRequest(str(tiny.source), "q4f16_1", str(tmp_path / "made"))
    with pytest.raises(RunnerFailure, match="mlc-llm-nightly-cpu") as caught:
        MlcRunner().convert(request)
    assert caught.value.reason in ("unsupported", "unavailable")
