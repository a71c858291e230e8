"""Where scenarios are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.errors import ScenarioError
from edgebench.harness.scenario.device import Device
from edgebench.harness.scenario.find import builtin_scenarios, find_scenario
from edgebench.harness.scenario.loader import load_scenario
from edgebench.runners.registry import runner_classes

SHIPPED = [
    "android-phone",
    "jetson-orin",
    "llama2-7b",
    "quantization",
    "raspberry-pi-5",
    "smollm2-135m",
    "wikitext2",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def users_own(folder: Path) -> dict[str, str]:
    """What a shipped scenario leaves to its user: of the text, whether it is there is looked at."""
    text = folder / "wiki.test.raw"
    text.write_text("A text.", encoding="utf-8")
    return {"MODEL": "/models/a.gguf", "WIKITEXT2": str(text)}


def test_the_shipped_scenarios_are_known_and_right(folder: Path) -> None:
    """Every scenario that is shipped loads, with all its options known to the runner."""
    assert builtin_scenarios() == SHIPPED
    environ = users_own(folder)
    frameworks = {"llama.cpp", "mnn", "mediapipe", "mlc"}
    for name, runners, workloads in (
        ("llama2-7b", frameworks, {"chat", "pp512-tg128", "prose"}),
        ("quantization", frameworks, {"prose", "decode"}),
        ("smollm2-135m", frameworks, {"chat", "pp512-tg128", "prose"}),
        ("wikitext2", {"llama.cpp"}, {"wikitext2"}),
        ("android-phone", {"llama.cpp", "mnn"}, {"pp128-tg64", "pp512-tg128"}),
        ("jetson-orin", {"llama.cpp"}, {"chat", "pp512-tg128", "sustained"}),
        ("raspberry-pi-5", {"llama.cpp", "mnn"}, {"chat", "pp512-tg128", "sustained"}),
    ):
        scenario = load_scenario(find_scenario(name), runners=runner_classes(), environ=environ)
        assert {variant.runner for variant in scenario.variants} == runners
        assert scenario.name == name
        assert {workload.name for workload in scenario.workloads} == workloads
        if scenario.device == Device():
            assert any(workload.quality for workload in scenario.workloads)
        elif scenario.device.adb is None:
            # What a device is asked for is speed that lasts; quality is the same everywhere.
            # On Android devices tools run, which tell nothing over time.
            assert any(workload.sustained for workload in scenario.workloads)
            assert scenario.measure.cooldown is not None
            assert all(variant.options["threads"] == 4 for variant in scenario.variants)


@pytest.mark.parametrize("missing", ["MODEL", "WIKITEXT2"])
def test_what_a_shipped_scenario_leaves_to_the_user_is_asked_for(
    folder: Path, missing: str
) -> None:
    """A variable that is not set is named, with the line that needs it."""
    environ = users_own(folder)
    del environ[missing]
    with pytest.raises(ScenarioError) as caught:
        load_scenario(find_scenario("wikitext2"), environ=environ)
    (line,) = caught.value.message.splitlines()
    assert line.endswith(f"the environment variable {missing} is not set; the path needs it")


@pytest.mark.parametrize(
    "name", ["smollm2-135m", "smollm2-135m.yaml", "scenarios/smollm2-135m.yaml"]
)
def test_a_shipped_scenario_is_found_by_name(folder: Path, name: str) -> None:
    """The name, the file's name and the path in edgebench's own folder all do, from anywhere."""
    found = find_scenario(name)
    assert found.name == "smollm2-135m.yaml"
    assert found.is_absolute()
    assert found.read_text(encoding="utf-8").startswith("#")


@pytest.mark.parametrize("name", ["smollm2-135m", "scenarios/smollm2-135m.yaml"])
def test_a_path_comes_before_a_shipped_name(folder: Path, name: str) -> None:
    """A file of the user is taken even where edgebench ships one of that name."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert find_scenario(name) == path


def test_a_folder_does_not_hide_a_shipped_scenario(folder: Path) -> None:
    """A folder of results named as the scenario is not taken for it."""
    (folder / "smollm2-135m").mkdir()
    assert find_scenario("smollm2-135m").suffix == ".yaml"
    (folder / "mine").mkdir()
    with pytest.raises(ScenarioError, match="'mine' is a folder"):
        find_scenario("mine")


@pytest.mark.parametrize("name", ["llama-2-7b", "Llama2-7B", "scenarios/llama2-7.yaml"])
def test_a_near_miss_is_named(folder: Path, name: str) -> None:
    """Where there is no such scenario, the message lists what there is and what was meant."""
    with pytest.raises(ScenarioError) as caught:
        find_scenario(name)
    assert caught.value.message == (
        f"there is no scenario {name!r}: no such file, and none that edgebench ships"
    )
    assert caught.value.remedy == (
        f"did you mean 'llama2-7b'? edgebench ships {', '.join(SHIPPED)}."
    )


@pytest.mark.parametrize("name", ["nothing-like-it", "", "a/smollm2-135m", "x" * 5000, "a\0b", "~"])
def test_names_that_are_nothing_are_errors(folder: Path, name: str) -> None:
    """No name gives anything but a path or a scenario's error."""
    with pytest.raises(ScenarioError):
        find_scenario(name)
