"""NVIDIA's GPUs, through a library and a program that answer as NVIDIA's do."""

from __future__ import annotations

import shutil
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest
from recorded_meters import FOLDER, recorded

from edgebench.devices.nvidia import find_nvidia
from edgebench.devices.nvidia_smi import SmiReader, ask_smi
from edgebench.devices.nvml import NvmlError, NvmlLibrary

STAND_IN = Path(__file__).parents[2] / "support/nvml_stand_in.c"
UNSUPPORTED, FORBIDDEN, LOST = 3, 4, 15


class Gpus:
    """The library, with GPUs that draw what they are told, 1 ms between two questions."""

    def __init__(self, *watts: float, split: tuple[int, ...] = ()) -> None:
        self.watts = list(watts)
        self.split = split
        self.now_ns = 0
        self.no_counter: dict[int, int] = {}  # the error of each GPU that has none
        self.no_power: dict[int, int] = {}
        self.offset_mj = [10_000_000.0 for _ in watts]

    def clock(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def count(self) -> int:
        return len(self.watts)

    def energy_mj(self, index: int) -> int:
        if index in self.no_counter:
            raise NvmlError(self.no_counter[index], "no counter")
        # The counter of a GPU has something new every 100 ms.
        seconds = self.now_ns // 100_000_000 / 10
        return int(self.offset_mj[index] + self.watts[index] * seconds * 1000)

    def power_mw(self, index: int) -> int:
        if index in self.no_power:
            raise NvmlError(self.no_power[index], "GPU is lost")
        return int(self.watts[index] * 1000 + self.now_ns // 100_000_000 % 2)

    def is_split(self, index: int) -> bool:
        return index in self.split


@pytest.fixture(autouse=True)
def still_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges' thread makes its first round and no other: the clock is the test's."""
    monkeypatch.setattr("edgebench.devices.poller.Poller._run", lambda _self: None)


@pytest.fixture
def with_gpu(tree):
    """A machine with a card of NVIDIA's in it, and one of another maker's."""
    tree.sys(
        {
            "bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
            "bus/pci/devices/0000:01:00.0/class": "0x030200\n",
            "bus/pci/devices/0000:02:00.0/vendor": "0x8086\n",
            "bus/pci/devices/0000:02:00.0/class": "0x020000\n",
        }
    )
    return tree


def find(tree, gpus: Gpus):
    return find_nvidia(tree.sysfs, tree.procfs, gpus.clock, load=lambda: gpus)


def test_energy_counters_are_read_and_added_up(with_gpu) -> None:
    """Each GPU has its meter, and the first one is all of them: 350 W and 24 W for 10 s."""
    gpus = Gpus(350.0, 24.0)

    meters, refusals = find(with_gpu, gpus)

    assert [meter.name for meter in meters] == ["nvidia", "nvidia:0", "nvidia:1"]
    assert refusals == []
    assert meters[0].resolution_s == pytest.approx(0.1, rel=0.05)
    start = [meter.read_j() for meter in meters]
    gpus.now_ns += 10_000_000_000
    used = [meter.read_j() - before for meter, before in zip(meters, start, strict=True)]
    assert used == pytest.approx([3740.0, 3500.0, 240.0])


def test_power_serves_where_there_is_no_counter(with_gpu) -> None:
    """A GPU older than Volta tells its power only, which is integrated."""
    gpus = Gpus(71.94)
    gpus.no_counter[0] = UNSUPPORTED

    (meter,), refusals = find(with_gpu, gpus)

    assert (meter.name, refusals) == ("nvidia:0", [])
    start, begin_ns = meter.read_j(), gpus.now_ns
    gpus.now_ns += 100_000_000
    seconds = (gpus.now_ns + 1_000_000 - begin_ns) / 1e9
    assert meter.read_j() - start == pytest.approx(71.94 * seconds, rel=1e-3)
    meter.close()


def test_gpu_of_which_others_have_instances_is_refused(with_gpu) -> None:
    """A split GPU tells the power of all its users together."""
    meters, refusals = find(with_gpu, Gpus(350.0, 24.0, split=(0,)))

    assert [meter.name for meter in meters] == ["nvidia:1"]
    assert [str(each) for each in refusals] == [
        "nvidia:0: the GPU is split into instances (MIG), and tells only the power of all"
    ]


def test_counter_that_began_anew_is_an_error(with_gpu) -> None:
    """A driver that was loaded anew in the middle has forgotten its joules; the next window is
    measured again."""
    gpus = Gpus(100.0)
    (meter,), _ = find(with_gpu, gpus)
    meter.read_j()
    gpus.offset_mj[0] = 0.0

    with pytest.raises(OSError, match="the counter of GPU 0 began anew"):
        meter.read_j()

    start = meter.read_j()
    gpus.now_ns += 1_000_000_000
    assert meter.read_j() - start == pytest.approx(100.0)


def test_gpu_that_is_lost_says_so(with_gpu) -> None:
    """A GPU that falls off the bus in the middle of a run is an error of that meter."""
    gpus = Gpus(100.0)
    (meter,), _ = find(with_gpu, gpus)
    gpus.no_counter[0] = LOST

    with pytest.raises(OSError, match="no counter"):
        meter.read_j()
    gpus.no_power[0] = LOST
    assert [str(each) for each in find(with_gpu, gpus)[1]] == [
        "nvidia:0: it can't be read (GPU is lost)"
    ]


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        (9, "nvidia: its driver is not loaded; to change that: sudo modprobe nvidia"),
        (
            18,
            (
                "nvidia: the driver was updated and the old one still runs; "
                "to change that: sudo reboot"
            ),
        ),
        (FORBIDDEN, "nvidia: this user may not ask the driver"),
        (999, "nvidia: the driver does not answer (Unknown Error)"),
    ],
)
def test_driver_that_does_not_start(with_gpu, code: int, refusal: str) -> None:
    """Each reason of the library's has its sentence, and its remedy where there is one."""

    def load() -> Gpus:
        raise NvmlError(code, "Unknown Error")

    found = find_nvidia(with_gpu.sysfs, with_gpu.procfs, count(0).__next__, load=load)

    assert found[0] == []
    assert [str(each) for each in found[1]] == [refusal]


def test_machine_without_nvidia_is_not_asked(tree) -> None:
    """No GPU, no word, and no library is loaded."""

    def load() -> Gpus:
        raise AssertionError

    assert find_nvidia(tree.sysfs, tree.procfs, count(0).__next__, load=load) == ([], [])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A real shared library with the names and signatures of NVIDIA's."""
    compiler = shutil.which("cc")
    assert compiler is not None, (
        "a C compiler is needed, as for llama.cpp (Debian: apt install g++)"
    )
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, STAND_IN], check=True)
    return str(made)


def test_library_is_called_as_its_header_says(library: str) -> None:
    """Numbers wider than 32 bits, handles and errors pass through as they are."""
    nvml = NvmlLibrary(library)

    assert nvml.count() == 1
    assert nvml.energy_mj(0) - nvml.energy_mj(0) == -250
    assert nvml.power_mw(0) == 71_940
    assert nvml.is_split(0) is False
    with pytest.raises(NvmlError, match="Unknown Error"):
        nvml.energy_mj(1)


@pytest.mark.parametrize(
    ("wish", "names", "refusals"),
    [
        ("", ["nvidia:0"], []),
        ("energy", ["nvidia:0"], []),
        ("mig", [], ["nvidia:0: the GPU is split into instances (MIG), and tells only the power"]),
        ("init", [], ["nvidia: its driver is not loaded; to change that: sudo modprobe nvidia"]),
    ],
)
def test_whole_search_with_a_real_library(
    with_gpu, library: str, monkeypatch: pytest.MonkeyPatch, wish: str, names, refusals
) -> None:
    """From the card on the bus to its meter, or to the reason against it."""
    monkeypatch.setenv("NVML_STAND_IN", wish)

    meters, found = find_nvidia(
        with_gpu.sysfs, with_gpu.procfs, count(0, 10**6).__next__, load=lambda: NvmlLibrary(library)
    )

    assert [meter.name for meter in meters] == names
    assert [str(each)[: len(words)] for each, words in zip(found, refusals, strict=True)] == (
        refusals
    )
    for meter in meters:
        meter.close()


def test_library_that_is_not_there_is_an_error_of_the_system() -> None:
    """Then the program is asked."""
    with pytest.raises(OSError, match="libnvidia-ml-absent"):
        NvmlLibrary("libnvidia-ml-absent.so.1")


NO_DRIVER = """\
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that
the latest NVIDIA driver is installed and running."
exit 9
"""
TWICE = "for _ in 1 2; do {}; done; exec tail -f /dev/null"


def program(tmp_path: Path, body: str) -> str:
    """A program that does what the shell is told."""
    path = tmp_path / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_program_serves_where_the_library_is_missing(with_gpu, tmp_path: Path) -> None:
    """Two GPUs of recorded output have a meter each; the program ends with the last of them."""
    smi = program(tmp_path, f"cat '{FOLDER / 'nvidia-smi.csv'}'\nexec tail -f /dev/null")

    def load() -> Gpus:
        raise OSError

    meters, refusals = find_nvidia(
        with_gpu.sysfs, with_gpu.procfs, time.perf_counter_ns, load=load, smi=smi
    )

    assert [meter.name for meter in meters] == ["nvidia:0", "nvidia:1"]
    assert refusals == []
    assert meters[0].read_j() >= 0
    meters[0].close()
    meters[0].close()
    meters[1].close()


def test_lines_become_joules() -> None:
    """352.18 W and 71.94 W, a tenth of a second apart, are 21.206 J; pieces may end anywhere."""
    now_ns = [0]
    reader = SmiReader(lambda: now_ns[0])
    first, second = recorded("nvidia-smi.csv").encode().split(b"0, Disabled, 352.18\n")
    reader.take(first)
    now_ns[0] = 100_000_000
    reader.take(b"0, Disabled, 35")
    reader.take(b"2.18\n" + second)

    assert reader.meters[0].read_j() == pytest.approx((71.94 + 352.18) / 2 / 10)
    assert reader.meters[1].read_j() == pytest.approx((24.10 + 187.66) / 2 / 10)
    assert reader.refused == {}


@pytest.mark.parametrize("said", ["nan", "inf", "-inf", "1e999"])
def test_what_is_no_number_is_no_power(said: str) -> None:
    """It neither proves a GPU's meter (nan is never the same twice) nor ends one."""
    reader = SmiReader(lambda: 0)
    reader.take(f"0, Disabled, {said}\n0, Disabled, {said}\n1, Disabled, 24.1\n".encode())

    assert list(reader.meters) == [1]
    assert reader.refused == {0: f"nvidia-smi says {said}"}


def test_end_of_a_line_that_is_too_long_is_no_power() -> None:
    """What stands at the end of megabytes is no reading of a GPU."""
    reader = SmiReader(lambda: 0)
    for _ in range(3):
        reader.take(b"x" * 1_000_000)
    reader.take(b"\n0, Disabled, 71.94\n")

    assert reader.meters[0].read_j() == 0.0
    assert reader.refused == {}


def test_readings_are_not_what_it_died_of(tmp_path: Path) -> None:
    """Of many readings and a complaint, the complaint is the reason."""
    smi = program(
        tmp_path,
        "yes '0, Disabled, 71.94' | head -n 2000; echo 'GPU access blocked' >&2; exit 9",
    )

    meters, (refusal,) = ask_smi(smi, time.perf_counter_ns)
    assert meters == []
    assert str(refusal) == "nvidia: nvidia-smi ended with status 9: GPU access blocked"


def test_older_driver_is_asked_for_what_it_knows(tmp_path: Path) -> None:
    """A field that the program does not know is left out of the next question."""
    smi = program(
        tmp_path,
        'case "$1" in *instant*|*mig*)'
        " echo 'Field \"mig.mode.current\" is not a valid field to query.'; exit 2;; esac\n"
        "echo '0, 71.94'; echo '0, 72.01'; exec tail -f /dev/null",
    )

    (meter,), refusals = ask_smi(smi, time.perf_counter_ns)

    assert (meter.name, refusals) == ("nvidia:0", [])
    meter.close()


@pytest.mark.parametrize(
    ("body", "refusals"),
    [
        (
            "echo 'No devices were found'; exit 6",
            ["nvidia: nvidia-smi ended with status 6: No devices were found"],
        ),
        (
            NO_DRIVER,
            ["nvidia: its driver is not loaded; to change that: sudo modprobe nvidia"],
        ),
        (
            TWICE.format("echo '0, Disabled, [N/A]'; echo '1, Disabled, [Unknown Error]'"),
            ["nvidia:0: nvidia-smi says N/A", "nvidia:1: nvidia-smi says Unknown Error"],
        ),
        (
            TWICE.format("echo '0, Enabled, 71.94'"),
            ["nvidia:0: the GPU is split into instances (MIG), and tells only the power of all"],
        ),
        ("exit 1", ["nvidia: nvidia-smi ended with status 1"]),
        ("kill -9 $$", ["nvidia: nvidia-smi ended by signal 9"]),
    ],
    ids=("no device", "no driver", "no power", "split", "no word", "killed"),
)
def test_program_that_tells_no_power(tmp_path: Path, body: str, refusals: list[str]) -> None:
    """What it says instead is the reason."""
    meters, found = ask_smi(program(tmp_path, body), time.perf_counter_ns)

    assert meters == []
    assert [str(each) for each in found] == refusals


def test_program_that_is_missing() -> None:
    """A GPU without its driver's tools is named."""
    assert [str(each) for each in ask_smi(None, time.perf_counter_ns)[1]] == [
        "nvidia: there is a GPU, but neither its driver's library nor nvidia-smi is found"
    ]
    (refusal,) = ask_smi("/absent/nvidia-smi", time.perf_counter_ns)[1]
    assert str(refusal) == "nvidia: nvidia-smi can't be started (No such file or directory)"


def test_program_that_ends_in_the_middle_says_why() -> None:
    """Energy after its end is not known; a GPU that is lost is named at the next silence."""
    now_ns = [0]
    reader = SmiReader(lambda: now_ns[0])
    reader.take(b"0, Disabled, 71.94\n0, Disabled, 72.00\nnonsense\n\n")
    meter = reader.meters[0]
    reader.take(b"0, Disabled, [GPU is lost]\n")
    now_ns[0] = 900_000_000
    with pytest.raises(OSError, match=r"^nvidia-smi says GPU is lost$"):
        meter.read_j()
    reader.end("nvidia-smi ended with status 15")
    with pytest.raises(OSError, match=r"^nvidia-smi ended with status 15$"):
        meter.read_j()
