"""Libraries that MLC's runner refuses, each in one sentence, and before they could crash."""

from __future__ import annotations

import platform
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mlc_damage import cut, forget_library_sum, refused

from edgebench.runners.base import LoadRequest, RunnerFailure
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]


def test_a_library_that_is_not_there_is_refused(artifact: Path) -> None:
    """The option has a path that leads nowhere; told is the whole path that was tried."""
    words = f"there is no model library {artifact / 'other.so'}: correct the option library"
    for library in (str(artifact / "other.so"), "other.so", "./other.so"):
        assert words in str(refused(artifact, library=library))


def test_a_file_that_is_no_library_is_refused(artifact: Path) -> None:
    """An empty one, a text, a library's beginning alone, and an object file of it."""
    library = artifact / "lib.so"
    whole = library.read_bytes()
    relocatable = whole[:16] + struct.pack("<H", 1) + whole[18:54] + bytes(4) + whole[58:]
    for data in (b"", b"hello, I am no library\n" * 9, whole[:40], relocatable):
        library.write_bytes(data)
        assert "is no compiled library" in str(refused(artifact))


@pytest.mark.parametrize("method", ["prepare", "load"])
def test_a_damaged_library_is_seen_by_its_checksum(artifact: Path, method: str) -> None:
    """It has its full length, and would end the process by SIGSEGV."""
    library = artifact / "lib.so"
    data = bytearray(library.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    library.write_bytes(data)
    with pytest.raises(RunnerFailure, match=r"lib\.so is damaged: its checksum is") as caught:
        getattr(MlcRunner(), method)(LoadRequest(str(artifact), 64))
    assert caught.value.reason == "invalid"
    assert "mlc-chat-config.json says" in str(caught.value)
    assert "copy or convert the model again" in str(caught.value)


def test_a_library_of_mlcs_own_has_no_checksum(artifact: Path, tmp_path: Path) -> None:
    """Its folder tells none, and a library elsewhere is another than that of the folder."""
    library = artifact / "lib.so"
    library.write_bytes(library.read_bytes() + b"more")
    assert "is damaged" in str(refused(artifact))
    library.rename(tmp_path / "other.so")
    MlcRunner().load(LoadRequest(str(artifact), 64, {"library": str(tmp_path / "other.so")}))
    (tmp_path / "other.so").rename(library)
    forget_library_sum(artifact)
    MlcRunner().load(LoadRequest(str(artifact), 64))


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
    forget_library_sum(artifact)
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
    forget_library_sum(artifact)
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
    forget_library_sum(artifact)
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
        ({"edgebench": "yes"}, "edgebench's own entry is no object", "invalid"),
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
    forget_library_sum(artifact)
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
    target = {"mcpu": "future", "features": [there, lacks]}
    built_by = {"version": 1, "tvm": "0.27.0", "target": target}
    forget_library_sum(artifact)
    make_library(artifact / "lib.so", metadata_of(tiny.artifact) | {"edgebench": built_by})
    failure = refused(artifact)
    assert f"for a CPU (future) with {lacks}, which this one lacks by the system's" in str(failure)
    assert failure.reason == "unsupported"
