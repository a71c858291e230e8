"""Device profiles: those that are shipped, files of one's own, and all that can be wrong in one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from ruamel.yaml import YAML

from edgebench.harness.device_profiles import (
    builtin_profiles,
    find_profile,
    list_profiles,
    load_profile,
    parse_profile,
)
from edgebench.harness.device_profiles.figures import Sourced
from edgebench.harness.device_profiles.listing import lines
from edgebench.harness.device_profiles.scenario import device_record, power_settings
from edgebench.harness.device_profiles.schema import device_schema
from edgebench.harness.device_profiles.written import as_json, as_yaml
from edgebench.harness.errors import ProfileError, ScenarioError
from edgebench.harness.scenario.device import Device, Power
from edgebench.reports.published.load import published_platforms

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 2**30

MINE = """\
schema_version: 1
key: mine
name: My board
kind: board
soc: {value: Chip, source: Its data sheet}
cores:
  - name: Core
    count: 4
    source: Its data sheet
    max_hz: {value: 2GHz, source: Its data sheet}
    fp32_flop_per_cycle: {value: 8, source: Its data sheet}
    int8_op_per_cycle: {reason: not published}
  - name: Little
    count: 2
    source: Its data sheet
    max_hz: {value: 1.5GHz, source: Its data sheet}
    fp32_flop_per_cycle: {value: 4, source: Its data sheet}
    int8_op_per_cycle: {value: 16, source: Its data sheet}
instruction_sets: {value: [asimd], source: Its data sheet}
ram_bytes: {value: 4GiB, source: Its data sheet}
memory:
  kind: {value: LPDDR4, source: Its data sheet}
  width_bits: {value: 32, source: Its data sheet}
  bandwidth_bytes_per_s: {value: 17.1GB/s, source: Its data sheet}
power:
  peak_w: {value: 12.5W, source: Its data sheet}
  sustained_w: {value: 800mW, source: Its data sheet}
  tdp_w: {reason: not published}
storage:
  kind: {value: eMMC, source: Its data sheet}
  read_bytes_per_s: {value: 300MB/s, source: Its data sheet}
"""


def figures(node: object, path: str = "") -> Iterator[tuple[str, Sourced]]:
    """All that a profile says, with the place of each."""
    if isinstance(node, Sourced):
        yield path, node
    elif isinstance(node, list | tuple):
        for index, item in enumerate(node):
            yield from figures(item, f"{path}[{index}]")
    elif hasattr(node, "__pydantic_fields__"):
        for name in type(node).model_fields:
            yield from figures(getattr(node, name), f"{path}.{name}".lstrip("."))


def problems(text: str) -> list[str]:
    """What is said of a wrong file, a line for each problem, without the file's name."""
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, filename="f")
    return [line.removeprefix("f:") for line in caught.value.message.splitlines()]


def test_the_devices_that_people_ask_for_are_there() -> None:
    """The six of the documents' table of platforms, and those of boards and of a phone."""
    of_the_documents = {
        "i9-13900k", "ryzen-9-7950x", "snapdragon-8-gen-3", "dimensity-9300", "m2-pro", "m3-max",
    }  # fmt: skip
    others = {
        "raspberry-pi-5", "jetson-orin-nano", "jetson-orin-nano-super", "jetson-agx-orin",
        "snapdragon-8-elite", "vm",
    }  # fmt: skip
    assert set(builtin_profiles()) == of_the_documents | others
    assert [each.key for each in list_profiles()] == builtin_profiles()


@pytest.mark.parametrize("key", builtin_profiles())
def test_each_figure_has_a_source_or_the_reason_why_there_is_none(key: str) -> None:
    """A sentence that names a document stands beside each figure, of every shipped profile."""
    found = dict(figures(find_profile(key)))
    assert len(found) > 12
    for path, figure in found.items():
        said = figure.source if figure.has_value() else figure.reason
        assert said, path
        assert len(said.split()) >= 2, f"{path}: {said}"
        assert (figure.source is None) is (figure.reason is not None), path
    for cores in find_profile(key).cores:
        assert len(cores.source.split()) >= 2


@pytest.mark.parametrize("key", builtin_profiles())
def test_a_shipped_profile_is_what_the_schema_allows(key: str) -> None:
    """An editor that checks by the published schema finds nothing wrong with them."""
    text = (Path(__file__).parents[2] / f"devices/profiles/{key}.yaml").read_text(encoding="utf-8")
    tree = YAML(typ="safe", pure=True).load(text)
    jsonschema.Draft202012Validator(device_schema()).validate(tree)


def test_bandwidths_are_those_of_the_documents_platforms() -> None:
    """One device has one peak, whether the published table or the profile is asked."""
    keys = {
        "i9-13900K": "i9-13900k",
        "AMD 7950X": "ryzen-9-7950x",
        "Snapdragon 8 Gen3": "snapdragon-8-gen-3",
        "Dimensity 9300": "dimensity-9300",
        "M2 Pro": "m2-pro",
        "M3 Max": "m3-max",
    }
    rows = published_platforms().rows
    assert {row.device for row in rows} == set(keys)
    for row in rows:
        profile = find_profile(keys[row.device])
        assert profile.memory.bandwidth_bytes_per_s.value == row.memory.bytes_per_s


def test_a_bandwidth_is_transfers_times_width() -> None:
    """By hand: 4267 MT/s x 4 bytes, 9600 x 8, 10600 x 8, 6400 x 32, in MB/s, to 0.3 %."""
    for key, mb_per_s in (
        ("raspberry-pi-5", 17_068), ("snapdragon-8-gen-3", 76_800), ("dimensity-9300", 76_800),
        ("snapdragon-8-elite", 84_800), ("jetson-agx-orin", 204_800),
    ):  # fmt: skip
        value = find_profile(key).memory.bandwidth_bytes_per_s.value
        assert value == pytest.approx(mb_per_s * 1e6, rel=3e-3), key


def test_units_are_read_exactly() -> None:
    """Sizes by powers of 1024 or 1000, rates, clocks and watts with their prefixes."""
    mine = parse_profile(MINE, filename="f")
    assert mine.ram_bytes.value == 4 * GIB
    assert mine.memory.bandwidth_bytes_per_s.value == 17_100_000_000
    assert mine.cores[0].max_hz.value == 2_000_000_000
    assert (mine.power.peak_w.value, mine.power.sustained_w.value) == (12.5, 0.8)
    assert mine.storage.read_bytes_per_s.value == 300_000_000


def test_what_all_cores_compute_is_derived_and_says_how() -> None:
    """4 x 2 GHz x 8 + 2 x 1.5 GHz x 4 is 76 GFLOP/s; one unknown makes the sum unknown."""
    compute = parse_profile(MINE, filename="f").compute
    assert compute.fp32_flops.value == 76e9
    assert compute.fp32_flops.basis == "derived"
    assert "4 x 2 GHz x 8 + 2 x 1.5 GHz x 4" in str(compute.fp32_flops.source)
    assert compute.int8_ops.value is None
    assert compute.int8_ops.reason == "Core: operations a cycle not known (not published)"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: board", "kind: toaster", "4:7: kind: must be 'phone', 'board'"),
        ("name: My board", "name: My board\ncolour: red", "4:1: colour: unknown key"),
        ("peak_w:", "peek_w:", "26:3: power.peek_w: unknown key; did you mean 'peak_w'?"),
        ("{value: 12.5W, source: Its data sheet}", "{value: 12.5W}",
         "26:11: power.peak_w: its source is missing: name the document that says it"),
        ("{value: 12.5W, source: Its data sheet}", "{source: Its data sheet}",
         "26:11: power.peak_w: it has neither a value with its source nor a reason"),
        ("{value: 12.5W, source: Its data sheet}", "{}", "26:11: power.peak_w: it has neither"),
        ("{value: 12.5W, source: Its data sheet}", "{value: 1W, source: a b, reason: c}",
         "26:11: power.peak_w: it has a value, so there is no reason for having none"),
        ("tdp_w: {reason: not published}", "tdp_w: {reason: none, source: a book}",
         "28:10: power.tdp_w: it has no value, so there is nothing for a source to say"),
        ("source: Its data sheet}\ncores", 'source: "  "}\ncores',
         "5:28: soc.source: must not be blank"),
        ("name: My board", 'name: "My\\tboard"', "must be one line of text without control"),
        ("800mW", "12.6W", "power: the sustained power, 12.6 W, is above the peak power, 12.5 W"),
        ("tdp_w: {reason: not published}", "tdp_w: {value: 13W, source: a book}",
         "power: the TDP, 13 W, is above the peak power, 12.5 W"),
        ("12.5W", "-3", "26:19: power.peak_w.value: must not be negative, got -3"),
        ("12.5W", "12.5J", "must be a figure such as 12W, got '12.5J' (text)"),
        ("12.5W", "99kW", "no device has 99000 W; is the unit missing?"),
        ("17.1GB/s", "17.1", "no device has 17.1 bytes/s; is the unit missing? Write it as 34"),
        ("17.1GB/s", "17.1Gb/s", "must be a figure such as 34.1GB/s, got '17.1Gb/s' (text)"),
        ("17.1GB/s", "17.1GB", "must be a figure such as 34.1GB/s, got '17.1GB' (text)"),
        ("17.1GB/s", "17.1 MB/s", "no device has 1.71e+07 bytes/s"),
        ("2GHz", "2", "no device has 2 Hz; is the unit missing? Write it as 2.4GHz, got 2"),
        ("4GiB", "4", "no device has 4 bytes"),
        ("4GiB", "4GHz", "ram_bytes.value: must be a figure such as 8GiB, got '4GHz' (text)"),
        ("4GiB", ".inf", "20:20: ram_bytes.value: must be a finite number"),
        ("4GiB", "true", "must be a figure such as 8GiB, got true (true or false)"),
        ("{value: 4GiB,", "{value: 4GiB, choices: [2GiB, 8GiB],",
         "ram_bytes: its value must be one of its choices"),
        ("schema_version: 1", "schema_version: 2",
         "1:17: schema_version: written for a newer edgebench, format 2"),
        ("count: 4", "count: 0", "8:12: cores[0].count: must be at least 1, got 0"),
        ("ram_bytes: {value: 4GiB, source: Its data sheet}\n", "", "ram_bytes: this key is"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, expected: str) -> None:
    """Unknown keys, missing sources, negative figures and mistaken units: line, column, remedy."""
    assert old in MINE
    (problem,) = problems(MINE.replace(old, new, 1))
    assert expected in problem


@pytest.mark.parametrize("text", ["", "- 1", "just text", "a: 1\na: 2", "[" * 50])
def test_what_is_no_profile_is_refused(text: str) -> None:
    """Any text gives a profile or a message, never a traceback."""
    assert problems(text)


def test_a_scenario_is_not_taken_for_a_profile() -> None:
    """One line says so, in place of one for each key that it has and lacks."""
    text = "schema_version: 1\nname: s\nvariants: [{runner: fake}]\nworkloads: []\n"
    assert problems(text) == [
        "1:1: profile: this is no device profile: it has neither cores nor memory"
    ]


def test_a_wrong_file_tells_all_that_is_wrong_at_once() -> None:
    """Nobody has to run it once for each mistake."""
    text = MINE.replace("12.5W", "-3").replace("17.1GB/s", "17").replace("kind: board", "kind: x")
    assert len(problems(text)) == 3


def test_a_size_is_chosen_after_a_colon() -> None:
    """``raspberry-pi-5:4GiB`` is the one with 4 GiB; what is not sold is refused with the sizes."""
    assert find_profile("raspberry-pi-5").ram_bytes.value == 8 * GIB
    smaller = find_profile("raspberry-pi-5:4.0GiB")
    assert (smaller.key, smaller.ram_bytes.value) == ("raspberry-pi-5:4GiB", 4 * GIB)
    assert find_profile(smaller.key) == smaller
    with pytest.raises(ProfileError) as caught:
        find_profile("raspberry-pi-5:3GiB")
    assert caught.value.message == "Raspberry Pi 5 is not sold with '3GiB' of memory"
    assert caught.value.remedy is not None
    assert "2GiB, 4GiB, 8GiB, 16GiB" in caught.value.remedy
    # Of a virtual machine any size was only assumed.
    assert find_profile("vm:3GiB").ram_bytes.value == 3 * GIB
    with pytest.raises(ProfileError, match="no size of a memory"):
        find_profile("vm:large")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("raspbery-pi-5", "raspberry-pi-5"),
        ("Raspberry_Pi_5", "raspberry-pi-5"),
        ("m3max", "m3-max"),
        ("jetson-orin", "jetson-orin-nano"),
        ("snapdragon-8", "snapdragon-8-elite"),
    ],
)
def test_a_near_miss_is_named(name: str, meant: str) -> None:
    """An unknown name says which was probably meant, and where the list is."""
    with pytest.raises(ProfileError) as caught:
        find_profile(name)
    assert caught.value.message == f"there is no device profile '{name}'"
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith(f"did you mean '{meant}'")
    assert "edgebench devices list" in caught.value.remedy


@pytest.mark.parametrize("name", ["", "nothing-like-it", "a\0b", "x" * 5000, ":4GiB", "../x"])
def test_names_that_are_nothing_are_errors(name: str) -> None:
    """No name gives anything but a profile or its error."""
    with pytest.raises(ProfileError):
        find_profile(name)


def test_a_file_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suffix or a folder makes it a file, relative to where it is named; a bare name never is."""
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    assert load_profile(tmp_path / "mine.yaml").key == "mine"
    assert find_profile("mine.yaml", base=tmp_path).key == "mine"
    assert find_profile("./mine.yaml", base=tmp_path).key == "mine"
    monkeypatch.chdir(tmp_path)
    assert find_profile("mine.yaml").key == "mine"
    (tmp_path / "vm").write_text(MINE, encoding="utf-8")
    assert find_profile("vm").key == "vm"
    with pytest.raises(ProfileError, match="there is no such file"):
        find_profile("other.yaml")


def test_a_limit_that_was_set_may_be_below_the_tdp() -> None:
    """A processor of 65 W that its owner holds to 35 W contradicts nothing."""
    text = MINE.replace("{value: 12.5W,", "{value: 35W, basis: measured,")
    text = text.replace("tdp_w: {reason: not published}", "tdp_w: {value: 65W, source: a book}")
    assert parse_profile(text, filename="f").power.tdp_w.value == 65


def test_the_key_of_a_shipped_profile_is_refused_in_a_file(tmp_path: Path) -> None:
    """Two devices of one key could not be told apart; the shipped file itself is one of them."""
    mine = tmp_path / "mine.yaml"
    mine.write_text(MINE.replace("key: mine", "key: raspberry-pi-5"), encoding="utf-8")
    with pytest.raises(ProfileError, match=r"mine\.yaml:2:6: key: raspberry-pi-5 is the key of"):
        find_profile(str(mine))
    shipped = Path(__file__).parents[2] / "devices/profiles/raspberry-pi-5.yaml"
    assert load_profile(shipped).key == "raspberry-pi-5"


def test_a_size_of_another_device_is_told_from_one_that_is_not_sold() -> None:
    """There is an Orin Nano of 4 GB, with half the bus: another device."""
    with pytest.raises(ProfileError) as caught:
        find_profile("jetson-orin-nano:4GiB")
    assert caught.value.message == (
        "the profile jetson-orin-nano is of a device with 8GiB, not '4GiB'"
    )
    assert caught.value.remedy is not None
    assert "half the bus" in caught.value.remedy


@pytest.mark.parametrize("key", builtin_profiles())
def test_a_profile_that_is_written_is_read_back_the_same(key: str) -> None:
    """Written as YAML and read again, nothing is lost; as JSON, what is derived stands beside."""
    profile = find_profile(key)
    assert parse_profile(as_yaml(profile), filename="f") == profile
    compute = as_json(profile)["compute"]
    assert compute == profile.compute.model_dump(mode="json")


def test_a_figure_is_shown_with_its_unit_and_who_says_it() -> None:
    """What is not the maker's own is marked; what is unknown is a dash with its reason."""
    shown = {line.name.strip(): line for line in lines(find_profile("raspberry-pi-5"))}
    assert shown["bandwidth"].value == "17.1 GB/s"
    assert shown["bandwidth"].basis == "derived"
    assert shown["RAM"].value == "8 GiB (of 2, 4, 8, 16)"
    assert shown["all cores, float32"].value == "153.6 GOP/s"
    assert shown["read"].basis == "not the maker's"
    assert (shown["TDP"].value, shown["TDP"].why) == ("–", "the maker publishes none")


def test_what_nobody_looked_up_says_so_wherever_it_is_shown() -> None:
    """Its basis stands beside it, and its source, which predictions quote, begins with it."""
    shown = {line.name.strip(): line for line in lines(find_profile("dimensity-9300"))}
    assert shown["width"].why.startswith("Unchecked: ")
    unchecked = [
        figure
        for key in builtin_profiles()
        for _, figure in figures(find_profile(key))
        if figure.basis == "unchecked"
    ]
    assert unchecked
    assert all(str(figure.source).startswith("Unchecked: ") for figure in unchecked)
    text = MINE.replace(
        "{value: 17.1GB/s, source: Its data sheet}",
        "{value: 17.1GB/s, basis: unchecked, source: A table of a forum}",
    )
    mine = {line.name.strip(): line for line in lines(parse_profile(text, filename="f"))}
    assert (mine["bandwidth"].basis, mine["bandwidth"].why) == ("unchecked", "A table of a forum")


def test_results_keep_how_a_device_was_reached_and_its_profile() -> None:
    """Local, by ssh or by adb; with a profile its key, name and powers, null where unknown."""
    assert device_record(Device(), None).model_dump() == {
        "reach": "local", "address": None, "profile": None, "profile_name": None,
        "tdp_w": None, "sustained_w": None,
    }  # fmt: skip
    nano = device_record(Device(ssh="user@jetson"), find_profile("jetson-orin-nano"))
    assert nano.model_dump() == {
        "reach": "ssh", "address": "user@jetson", "profile": "jetson-orin-nano",
        "profile_name": "Jetson Orin Nano 8 GB", "tdp_w": 15.0, "sustained_w": 15.0,
    }  # fmt: skip
    phone = device_record(Device(adb="S1"), find_profile("snapdragon-8-elite"))
    assert (phone.reach, phone.address, phone.tdp_w) == ("adb", "S1", None)


def test_an_estimate_takes_the_profiles_thermal_design_power() -> None:
    """The scenario's own figure stands above it; an estimate without either is refused."""
    profile = find_profile("i9-13900k")
    assert power_settings(Power(estimate="tdp"), profile).tdp_w == 125
    assert power_settings(Power(estimate="tdp", tdp_w=65), profile).tdp_w == 65
    with pytest.raises(ScenarioError, match="no profile is named"):
        power_settings(Power(estimate="tdp"), None)
    with pytest.raises(ScenarioError, match="raspberry-pi-5 does not say it"):
        power_settings(Power(estimate="tdp"), find_profile("raspberry-pi-5"))
    assert power_settings(Power(), None).tdp_w is None
    assert power_settings(Power(meter="rapl"), profile).meter == "rapl"
    assert power_settings(Power(command="c"), profile).command == "c"


@pytest.mark.parametrize("wrong", ["0", "1e-300", "0.1"])
def test_a_core_that_computes_nothing_is_refused_with_its_place(wrong: str) -> None:
    """A vector unit does at least one operation every other cycle."""
    (said,) = problems(MINE.replace("{value: 8, ", f"{{value: {wrong}, "))
    assert said.startswith("11:34: cores[0].fp32_flop_per_cycle.value: ")


def test_what_all_cores_compute_is_checked_too() -> None:
    """4096 cores of 20 GHz and 8192 operations a cycle are 7e17 a second: each may be, not all."""
    text = MINE.replace("count: 4\n", "count: 4096\n").replace("value: 2GHz", "value: 20GHz")
    (said,) = problems(text.replace("{value: 8, ", "{value: 8192, "))
    assert said.split(": ")[1] == "cores"
    assert "which no device does" in said


@pytest.mark.parametrize("size", ["4gib", "4GB", "4"])
def test_a_size_that_is_written_otherwise_is_understood_or_guessed(size: str) -> None:
    """What begins with the number of one that is sold is probably that."""
    with pytest.raises(ProfileError) as caught:
        find_profile(f"raspberry-pi-5:{size}")
    assert "raspberry-pi-5:" in (caught.value.remedy or "")


def test_the_maximum_of_a_module_is_not_what_it_may_draw_all_the_time() -> None:
    """NVIDIA's data sheet: maximum module power, up to 60 W."""
    power = find_profile("jetson-agx-orin").power
    assert (power.peak_w.value, power.sustained_w.value) == (60, None)
