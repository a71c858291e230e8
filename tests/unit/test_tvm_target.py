"""What a CPU is called, and what it lacks for a library: by Linux's list of its instructions."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from edgebench.runners import tvm_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INTEL = """processor : 0
vendor_id : GenuineIntel
model : 85
cpu MHz : {mhz}
flags : fpu sse4_1 avx avx2 fma bmi1 bmi2 abm avx512f avx512_vnni

processor : 1
flags : fpu
"""


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file in place of Linux's, on a machine with an x86."""
    path = tmp_path / "cpuinfo"
    path.write_text(INTEL.format(mhz=2000))
    monkeypatch.setattr(tvm_target, "CPUINFO", path)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    tvm_target.host_name.cache_clear()
    yield path
    tvm_target.host_name.cache_clear()


def facts(*features: str, arch: str = "x86_64") -> dict[str, object]:
    return {"arch": arch, "features": list(features)}


def test_missing_instructions_are_named_by_llvms_names(cpuinfo: Path) -> None:
    """Those that the CPU has under another name of Linux's are not missing."""
    there = facts("sse4.1", "avx512f", "avx512vnni", "bmi", "lzcnt", "fma")
    assert tvm_target.missing_features(there) == []
    lacking = facts("avx512vl", "avx2", "avx512bf16")
    assert tvm_target.missing_features(lacking) == ["avx512bf16", "avx512vl"]


def test_what_only_tunes_is_not_missing(cpuinfo: Path) -> None:
    """A compiler never makes use of some instructions, and Linux doesn't list all."""
    assert tvm_target.missing_features(facts("mwaitx", "64bit", "rdpru")) == []


def test_another_architecture_is_missing_as_a_whole(
    cpuinfo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ARM library on an x86, and the other way round; Apple's name for ARM is understood."""
    assert tvm_target.missing_features(facts("sve", arch="aarch64")) == ["aarch64"]
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert tvm_target.missing_features(facts("avx")) == ["x86_64"]
    assert tvm_target.missing_features(facts(arch="aarch64")) == []


def test_nothing_is_missing_where_the_system_tells_nothing(cpuinfo: Path) -> None:
    """Other systems have no such list."""
    cpuinfo.unlink()
    assert tvm_target.missing_features(facts("avx512f")) == []


def test_a_cpus_name_depends_on_its_instructions_and_not_on_its_clock(cpuinfo: Path) -> None:
    """Two with the same name can share a library."""
    name = tvm_target.host_name()
    assert name.startswith("x86_64-")
    cpuinfo.write_text(INTEL.format(mhz=3500))
    tvm_target.host_name.cache_clear()
    assert tvm_target.host_name() == name
    cpuinfo.write_text(INTEL.replace("avx512_vnni", ""))
    tvm_target.host_name.cache_clear()
    assert tvm_target.host_name() != name
