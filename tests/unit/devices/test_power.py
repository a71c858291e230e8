"""The search for meters: which come first, which are left out, and what is said."""

from __future__ import annotations

import shlex
import shutil
import sys

import pytest

from edgebench.devices.power import PowerSettings, find_meters

STEADY = """
import time
for n in range(10**6):
    print(f"{n / 100},12", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def search():
    """Searches a tree, and closes what it finds."""
    found = []

    def look(tree, clock=None, **settings):
        options = {} if clock is None else {"clock": clock}
        made = find_meters(
            tree.sysfs, procfs=tree.procfs, settings=PowerSettings(**settings), **options
        )
        found.extend(made.meters)
        return made

    yield look
    for meter in found:
        meter.close()


def names(search) -> list[str]:
    return [meter.name for meter in search.meters]


def test_only_what_is_asked_for_is_read(intel_desktop, spinning, search):
    """A kind, or one meter by its name; the others are closed."""
    clock = spinning(intel_desktop)
    assert names(search(intel_desktop, clock, meter="rapl:dram")) == ["rapl:dram"]
    assert len(names(search(intel_desktop, clock, meter="rapl"))) == 5


def test_kind_that_is_not_there_is_named_with_those_that_are(intel_desktop, spinning, search):
    """A wrong or missing kind is no silent nothing."""
    found = search(intel_desktop, spinning(intel_desktop), meter="hwmon")

    assert found.meters == ()
    (refusal,) = found.refusals
    assert refusal.startswith("hwmon: no such meter can be used; those that can: rapl:package, ")


def test_refusals_of_other_kinds_are_not_told(intel_desktop, spinning, search):
    """Who asks for the package does not read about the memory."""
    intel_desktop.sys({"class/powercap/intel-rapl:0:2/energy_uj": "<unknown>\n"})
    clock = spinning(intel_desktop, stuck=("intel-rapl:0:2",))
    assert search(intel_desktop, clock, meter="rapl:package").refusals == ()


def test_external_meter_comes_first(intel_desktop, search):
    """What the user connected stands before what the processor says of itself."""
    command = shlex.join([sys.executable, "-u", "-c", STEADY])
    found = search(intel_desktop, command=command)
    assert names(found)[0].startswith("external:")


def test_measuring_comes_before_estimating(intel_desktop, spinning, search):
    """Where a meter can be used, what was asked for as an estimate is measured."""
    found = search(intel_desktop, spinning(intel_desktop), estimate="tdp", tdp_w=65.0)
    assert "estimate:tdp" not in names(found)
    assert {meter.source for meter in found.meters} == {"observed"}


def test_estimate_stands_in_only_when_asked(virtual_machine, search):
    """Without being asked nothing is estimated; with it the reasons for no meter stay."""
    virtual_machine.proc({"stat": "cpu  1 0 1 7 0 0 0 0 0 0\ncpu0 1 0 1 7 0 0 0 0 0 0\n"})
    assert search(virtual_machine).meters == ()
    found = search(virtual_machine, estimate="tdp", tdp_w=65.0)
    assert [(meter.name, meter.source) for meter in found.meters] == [("estimate:tdp", "estimated")]
    assert "virtual machines hide it" in found.refusals[0]


def test_broken_command_is_told(virtual_machine, search):
    """A command that can't be started is a refusal, beside the others."""
    found = search(virtual_machine, command="no-such-program")
    assert found.meters == ()
    assert any(each.startswith("external: no-such-program can't be") for each in found.refusals)


def test_missing_driver_is_told_beside_other_refusals(intel_desktop, search):
    """The command that loads RAPL's driver is worth knowing where another meter fails, too."""
    shutil.rmtree(intel_desktop.sysfs / "class/powercap")
    found = search(intel_desktop, command="no-such-program")
    assert len(found.refusals) == 2
    assert found.refusals[1].endswith("sudo modprobe intel_rapl_msr")
