"""What a CPU is called, and what it lacks for a library: by Linux's list of its instructions."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from edgebench.runners import mlc_cpu

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
    monkeypatch.setattr(mlc_cpu, "CPUINFO", path)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    mlc_cpu.host_name.cache_clear()
    yield path
    mlc_cpu.host_name.cache_clear()


def facts(*features: str, arch: str = "x86_64") -> dict[str, object]:
    return {"arch": arch, "features": list(features)}


def test_missing_instructions_are_named_by_llvms_names(cpuinfo: Path) -> None:
    """Those that the CPU has under another name of Linux's are not missing."""
    there = facts("sse4.1", "avx512f", "avx512vnni", "bmi", "lzcnt", "fma")
    assert mlc_cpu.missing_instructions(there) == []
    lacking = facts("avx512vl", "avx2", "avx512bf16", "fma4", "xop", "tbm")
    missing = ["avx512bf16", "avx512vl", "fma4", "tbm", "xop"]
    assert mlc_cpu.missing_instructions(lacking) == missing


def test_arm_is_known_by_both_names(cpuinfo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As x86, with the line that Linux has there."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    cpuinfo.write_text("processor : 0\nFeatures : fp asimd asimddp aes crc32\n")
    there = facts("neon", "fp-armv8", "dotprod", "aes", "crc", arch="aarch64")
    assert mlc_cpu.missing_instructions(there) == []
    assert mlc_cpu.missing_instructions(facts("i8mm", "lse", arch="aarch64")) == ["i8mm", "lse"]


def test_what_no_model_uses_is_not_missing(cpuinfo: Path) -> None:
    """A compiler never makes use of some instructions, and Linux doesn't list all."""
    assert mlc_cpu.missing_instructions(facts("mwaitx", "xsaves", "rdpru")) == []


def test_what_linux_does_not_show_is_missing_but_where_it_was_built(cpuinfo: Path) -> None:
    """Nor is it known of a feature of tomorrow: the library is then built here, once."""
    there = facts("fma", "avxifma", "avx2048")
    assert mlc_cpu.missing_instructions(there) == ["avx2048", "avxifma"]
    assert mlc_cpu.missing_instructions({**there, "host": mlc_cpu.host_name()}) == []
    assert mlc_cpu.missing_instructions({**there, "host": "x86_64-0"}) == ["avx2048", "avxifma"]


def test_another_architecture_is_missing_as_a_whole(
    cpuinfo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ARM library on an x86, and the other way round; Apple's name for ARM is understood."""
    assert mlc_cpu.missing_instructions(facts("sve", arch="aarch64")) == ["aarch64"]
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert mlc_cpu.missing_instructions(facts("avx")) == ["x86_64"]
    assert mlc_cpu.missing_instructions(facts(arch="aarch64")) == []


def test_nothing_is_missing_where_the_system_tells_nothing(cpuinfo: Path) -> None:
    """Other systems have no such list."""
    cpuinfo.unlink()
    assert mlc_cpu.missing_instructions(facts("avx512f")) == []


def test_a_cpus_name_depends_on_its_instructions_and_not_on_its_clock(cpuinfo: Path) -> None:
    """Two with the same name can share a library."""
    name = mlc_cpu.host_name()
    assert name.startswith("x86_64-")
    cpuinfo.write_text(INTEL.format(mhz=3500))
    mlc_cpu.host_name.cache_clear()
    assert mlc_cpu.host_name() == name
    cpuinfo.write_text(INTEL.replace("avx512_vnni", ""))
    mlc_cpu.host_name.cache_clear()
    assert mlc_cpu.host_name() != name
