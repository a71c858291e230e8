"""Energy from a thermal design power, against the share of the CPUs worked out by hand."""

from __future__ import annotations

import os

import pytest

from edgebench.devices.estimate import TdpMeter, estimated_meter
from edgebench.devices.proof import Refusal

TICKS = os.sysconf("SC_CLK_TCK")


def set_busy(tree, *seconds: float) -> None:
    """So many seconds of user time on each CPU since the start."""
    each = "".join(
        f"cpu{n} {round(s * TICKS)} 0 0 {round(1000 * TICKS)} 0 0 0 0 0 0\n"
        for n, s in enumerate(seconds)
    )
    tree.proc({"stat": f"cpu  {round(sum(seconds) * TICKS)} 0 0 0 0 0 0 0 0 0\n{each}"})


def test_half_of_the_cpus_draw_half_of_the_power(tree):
    """Two of four CPUs that are busy for 3 s at a TDP of 40 W are 60 J."""
    set_busy(tree, 1, 1, 1, 1)
    meter = TdpMeter(40.0, tree.procfs)
    before = meter.read_j()

    set_busy(tree, 4, 4, 1, 1)

    assert meter.read_j() - before == pytest.approx(60.0)
    assert (meter.name, meter.source) == ("estimate:tdp", "estimated")


def test_idle_machine_draws_nothing(tree):
    """The model knows no idle power."""
    set_busy(tree, 1, 1)
    meter = TdpMeter(40.0, tree.procfs)

    assert meter.read_j() == meter.read_j() == 0.0


def test_cpu_that_goes_offline_adds_nothing(tree):
    """Its ticks go with it, and the counter neither falls nor jumps."""
    set_busy(tree, 1, 5)
    meter = TdpMeter(40.0, tree.procfs)
    meter.read_j()

    set_busy(tree, 2)
    assert meter.read_j() == 0.0
    set_busy(tree, 3)
    assert meter.read_j() == pytest.approx(40.0)


def test_there_is_no_estimate_without_its_power(tree):
    """No figure of this project stands in for the one that is not known."""
    set_busy(tree, 1)
    refusal = estimated_meter(None, tree.procfs)

    assert isinstance(refusal, Refusal)
    assert "no thermal design power is known" in str(refusal)
    assert "tdp_w" in str(refusal)


def test_system_that_does_not_tell_has_no_estimate(tree):
    """Without the kernel's account of busy CPUs there is nothing to compute from."""
    refusal = estimated_meter(40.0, tree.procfs)

    assert isinstance(refusal, Refusal)
    assert str(refusal) == "estimate:tdp: this system does not tell how busy its CPUs are"
