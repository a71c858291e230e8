"""What LLVM says of CPUs, beside what Linux says of this one."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import pytest

from edgebench.runners.mlc_cpu import LINUX_NAMES, NEVER_USED, missing_instructions

pytestmark = pytest.mark.mlc

SHOWN_NOWHERE = {
    *("amx-avx512", "amx-complex", "amx-fp16", "amx-fp8", "amx-movrs", "amx-tf32", "avx10.1"),
    *("avx10.2", "avxifma", "avxneconvert", "avxvnniint16", "avxvnniint8", "cmpccxadd", "movrs"),
    *("raoint", "sha512", "sm3"),
    *("ccmp", "cf", "egpr", "ndd", "nf", "ppx", "push2pop2", "zu"),  # parts of Intel's APX
}
"""Extensions of x86 that have no word in Linux's list of flags."""

TUNING = re.compile(
    r"(fast|faster|slow|false-deps|no-bypass|prefer|use|lea|idiv[lq]|tuning|sbb|allow|pad)-.+|"
    r"branchfusion|macrofusion|branch-hint|ermsb|fsrm|"
    r"64bit-mode|nopl|vzeroupper|x87"  # of every 64-bit x86
)
"""LLVM's features that are no instructions of their own: what is fast on a CPU, what is slow."""

X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM tells of the CPU's own kind")


def test_the_hosts_target_has_what_this_cpu_has(host: Any) -> None:
    """LLVM's list of instructions for the target is Linux's; that it was built here is noted."""
    from edgebench.runners.mlc_cpu import host_name
    from edgebench.runners.tvm_target import cpu_target, target_facts

    facts = target_facts(host)
    assert facts.pop("host") == host_name()
    assert set(missing_instructions(facts)) <= SHOWN_NOWHERE
    foreign = cpu_target({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64"})
    assert missing_instructions(target_facts(foreign)) == ["riscv64"]


@X86
@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="takes Linux's list")
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("bdver2", {"fma4": "fma4", "xop": "xop", "tbm": "tbm"}),
        ("icelake-server", {"avx512vbmi2": "avx512_vbmi2", "avx512ifma": "avx512ifma"}),
        ("knl", {"avx512cd": "avx512cd"}),
    ],
)
def test_what_other_cpus_have_and_this_one_has_not_is_missing(
    host: Any, name: str, flags: dict[str, str]
) -> None:
    """A library for one of them would end in SIGILL."""
    from edgebench.runners.tvm_target import cpu_target, target_facts

    here = Path("/proc/cpuinfo").read_text("utf-8").split()
    facts = target_facts(cpu_target({"kind": "llvm", "mcpu": name}))
    assert "host" not in facts
    lacking = {each for each, flag in flags.items() if flag not in here}
    assert lacking == flags.keys() & set(missing_instructions(facts))


@X86
def test_every_extension_that_llvm_knows_is_known_here(host: Any) -> None:
    """All features of all CPUs, but for what tunes the order of instructions."""
    import tvm

    list_cpus = tvm.get_global_func("target.llvm_get_cpu_archlist")
    list_features = tvm.get_global_func("target.llvm_get_cpu_features")
    cpus = [str(name) for name in list_cpus(tvm.target.Target("llvm"))]
    assert {"bdver1", "znver5", "haswell", "graniterapids", "knl"} < set(cpus)
    names = {str(name) for name in tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()}
    assert names - LINUX_NAMES.keys() - NEVER_USED == SHOWN_NOWHERE
    for cpu in cpus:
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
        others = {str(name) for name in list_features(target)} - names
        assert not [name for name in others if not TUNING.fullmatch(name)]
