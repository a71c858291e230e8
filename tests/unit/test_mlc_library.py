"""What is seen of a compiled library before it is loaded, and what it says of itself."""

from __future__ import annotations

import json
import platform
import struct
from pathlib import Path
from typing import Any

import pytest

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_library import check_file, parse_metadata

MACHINES = {"x86_64": 62, "aarch64": 183}

SAYS: dict[str, Any] = {
    "model_type": "llama", "quantization": "q0f32", "prefill_chunk_size": 64, "params": []
}  # fmt: skip


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


@pytest.mark.parametrize(
    "own",
    [3, "yes", [], {"target": 3}, {"target": {"features": "avx2"}}],
)
def test_an_entry_of_edgebenchs_of_another_form_is_refused(own: object) -> None:
    """In one sentence that names the file."""
    words = r"what lib\.so says in _metadata\(\) is not understood .*edgebench's own entry"
    with pytest.raises(RunnerFailure, match=words) as failure:
        parse_metadata(json.dumps({**SAYS, "edgebench": own}), Path("lib.so"))
    assert failure.value.reason == "invalid"


def elf(kind: int, entry_bytes: int) -> bytes:
    """The header of a 64-bit ELF file for this machine, without what follows."""
    machine = MACHINES.get(platform.machine(), 0)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQ", kind, machine, 1, 0, 64, 0)
    return head + struct.pack("<IHHHHHH", 0, 64, entry_bytes, 1, 64, 0, 0)


@pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in MACHINES, reason="of ELF files"
)
@pytest.mark.parametrize(
    ("kind", "entry_bytes", "found"),
    [
        (1, 0, "but an object file"),
        (2, 56, "but a program"),
        (4, 56, "but a core dump"),
        (9, 56, "but an ELF file of type 9"),
        (3, 0, "but a damaged ELF file"),
        (3, 16, "but a damaged ELF file"),
    ],
)
def test_other_kinds_of_elf_files_are_no_library(
    kind: int, entry_bytes: int, found: str, tmp_path: Path
) -> None:
    """What it is, and what is expected, is told; TVM's object files have no table of parts."""
    path = tmp_path / "model.o"
    path.write_bytes(elf(kind, entry_bytes) + bytes(200))
    words = f"model.o is no compiled library {found}: a shared library is expected"
    with pytest.raises(RunnerFailure, match=words) as failure:
        check_file(path)
    assert failure.value.reason == "invalid"


def test_a_file_that_is_none_at_all_is_told_what_is_expected(tmp_path: Path) -> None:
    """Where it comes from, and what to do."""
    path = tmp_path / "lib.so"
    path.write_text("no library\n" * 20, encoding="utf-8")
    words = "is no compiled library: a shared library is expected, .*; copy it or compile the model"
    with pytest.raises(RunnerFailure, match=words):
        check_file(path)
