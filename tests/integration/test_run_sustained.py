"""Sustained work, by the fake runner's clock that passes without waiting."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.devices.reading import Reading
from edgebench.harness.board import LocalBoard
from edgebench.harness.execute import execute
from edgebench.harness.measuring import Starts
from edgebench.harness.observer import Silent
from edgebench.harness.records import Settings
from edgebench.harness.results.device import DeviceRecord
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.reports.data import build_report_data
from edgebench.reports.export_json import render_json
from edgebench.reports.export_latex import render_latex
from edgebench.reports.html import render_html
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_markdown
from edgebench.reports.sustained import sustained_views
from edgebench.reports.sustained_formula import by_power
from edgebench.reports.sustained_plot import sustained_plots
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario, RunFake

    from edgebench.harness.results.run import Run

STEADY = "name: steady, virtual_clock: true, prefill_s: 0.5, token_s: 0.1"
SLOWS = (
    "name: slows, virtual_clock: true, prefill_s: 0.5, token_s: 0.1, slow_after_s: 60, "
    "slow_factor: 2"
)
LONG = "{name: long, prompt_tokens: 9, generate_tokens: 16, sustained: 100s}"
BOTH = f"[{{name: chat, prompt_tokens: 9, generate_tokens: 4}}, {LONG}]"
MEASURE = "{warmup: {min: 1, max: 3}, repetitions: {min: 2, max: 2}, timeout_s: 20}"


@pytest.fixture
def path(make_scenario: MakeScenario) -> Path:
    return make_scenario(STEADY, SLOWS, workloads=BOTH, measure=MEASURE)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of both variants on both workloads, not to be changed."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "model.bin").write_bytes(b"weights")
    file = folder / "fake.yaml"
    file.write_text(
        "schema_version: 1\nname: fake\nmodel: {name: tiny, source: 'path:model.bin'}\n"
        f"variants:\n  - {{runner: fake, {STEADY}}}\n  - {{runner: fake, {SLOWS}}}\n"
        f"workloads: {BOTH}\nmeasure: {MEASURE}\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EDGEBENCH_CACHE", str(folder / "cache"))
        scenario = load_scenario(file, runners=runner_classes())
        store = ModelStore(folder / "store")
        execute(scenario, Settings(folder / "run", folder, store=store))
    return read_run(folder / "run")


def stretches(run: Run) -> list[object]:
    return [each for each in run.trials if each.sustained is not None]


def test_a_device_that_slows_down_shows_in_its_rates(done: Run) -> None:
    """10 tokens/s at first, 5 from the minute on; the steady one keeps its 10."""
    cells = {each.variant: each for each in done.record.cells if each.workload == "long"}
    rates = {
        variant: [cell.metrics[key].median for key in ("burst_rate", "sustained_rate")]
        for variant, cell in cells.items()
    }
    assert rates["steady"] == pytest.approx([10.0, 10.0])
    assert rates["slows"] == pytest.approx([10.0, 5.0])
    assert cells["slows"].metrics["sustained_ratio"].median == pytest.approx(0.5)
    # One stretch is all that is asked for, so there are not too few of them.
    assert [(cell.status, cell.n) for cell in cells.values()] == [("ok", 1)] * 2
    # A busy machine is told whoever it is.
    assert {flag for cell in cells.values() for flag in cell.flags} <= {"contended"}
    slow = next(each.sustained for each in stretches(done) if each.variant == "slows")
    assert slow.throttled is None
    assert "the rate fell by 50 %" in slow.throttled_because


def test_it_comes_last_in_processes_of_its_own(done: Run) -> None:
    """After every other block, a block for each stretch, and warmed up as little as is asked."""
    last = max(each.block for each in done.trials if each.workload == "chat")
    blocks = [each.block for each in stretches(done)]
    assert len(set(blocks)) == 2
    assert min(blocks) > last
    warmups = [each for each in done.trials if each.kind == "sustained" and each.phase == "warmup"]
    assert len(warmups) == 2
    assert done.record.workloads[1].sustained_s == 100.0
    assert done.record.workloads[1].kind == "sustained"


def test_a_run_that_goes_on_does_not_repeat_it(path: Path, run_fake: RunFake) -> None:
    """What was done is done; the other variant's is still to do."""
    run = run_fake(path)
    file = run.path / "trials.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [
        line
        for line in lines
        if not (json.loads(line)["kind"] == "sustained" and json.loads(line)["variant"] == "slows")
    ]
    file.write_text("".join(kept), encoding="utf-8")
    scenario = load_scenario(path, runners=runner_classes())
    settings = Settings(run.path, path.parent, store=ModelStore(run.path.parents[2] / "store"))
    execute(scenario, settings, resumed=read_run(run.path))
    again = stretches(read_run(run.path))
    assert sorted(each.variant for each in again) == ["slows", "steady"]


def test_a_crash_in_the_middle_is_a_row_and_the_others_go_on(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """It is tried once more, and then given up."""
    crashes = f"{STEADY}, fail: crash, fail_from_call: 5".replace("steady", "crashes")
    run = run_fake(make_scenario(crashes, STEADY, workloads=f"[{LONG}]", measure=MEASURE))
    cells = {each.variant: each for each in run.record.cells}
    assert (cells["crashes"].status, cells["crashes"].n_failed) == ("failed", 2)
    assert cells["crashes"].failure is not None
    assert cells["crashes"].failure.signal == "SIGSEGV"
    assert cells["steady"].status == "ok"


def test_what_was_done_before_a_crash_is_kept_and_counts_nowhere(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """The 31st generation crashes; one is a warm-up: 29 of 2 s each, of 100 s, at 10 tokens/s."""
    crashes = f"{STEADY}, fail: crash, fail_from_call: 31".replace("steady", "crashes")
    run = run_fake(make_scenario(crashes, STEADY, workloads=f"[{LONG}]", measure=MEASURE))
    (trial, *_again) = [
        each for each in run.trials if each.status == "failed" and each.phase == "measured"
    ]
    assert trial.sustained is not None
    assert trial.sustained.generations == pytest.approx(29, abs=1)
    assert trial.sustained.lasted_s == pytest.approx(2.0 * trial.sustained.generations, rel=0.02)
    rates = [each for each in trial.sustained.decode_rate if each is not None]
    assert rates == pytest.approx([10.0] * len(rates))
    assert trial.metrics == {}
    lasted = f"{trial.sustained.lasted_s:.0f}"
    assert f"It broke off after {lasted} s of 100 s of sustained work" in trial.failure.message
    cell = next(each for each in run.record.cells if each.variant == "crashes")
    assert (cell.status, cell.n, cell.metrics) == ("failed", 0, {})
    (view,) = sustained_views(build_report_data(run))
    assert (
        "its figures do not count; until then: the rate did not fall." in dict(view.seen)["crashes"]
    )
    assert len(view.over_time) == 2
    row = next(each for each in view.table.rows if each.variant == "crashes")
    assert {each.text for each in row.values} == {"–"}
    assert "It broke off after" in render_html(run)
    with language("zh"):
        assert "其数值不计" in render_markdown(run)


class Late(Silent):
    """An observer in whose first block time passes; keeps what is noted."""

    def __init__(self, passes_s: float) -> None:
        self.now, self._passes_s = 0.0, passes_s
        self.passes_each_s = 0.0
        self.notes: list[str] = []

    def session(self, block: int, variant: str) -> None:
        self.now, self._passes_s = self.now + self._passes_s, self.passes_each_s

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(("passes_s", "done"), [(10.0, 1), (170.0, 0)])
def test_no_stretch_is_begun_that_can_not_fit(
    passes_s: float, done: int, make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Of 250 s, 170 went before: 100 s are more than the 80 that are left."""
    measure = MEASURE.replace("timeout_s", "time_budget_s: 250, timeout_s")
    path = make_scenario(STEADY, workloads=BOTH, measure=measure)
    late = Late(passes_s)
    settings = Settings(
        tmp_path / "run", tmp_path, store=ModelStore(tmp_path / "store"),
        monotonic=lambda: late.now,
    )  # fmt: skip
    execute(load_scenario(path, runners=runner_classes()), settings, late)
    run = read_run(tmp_path / "run")
    assert len([each for each in stretches(run) if each.phase == "measured"]) == done
    told = "steady is not begun: it takes 100 s, and 80 s of the time budget are left"
    assert any(told in each for each in late.notes) is (done == 0)


def test_each_stretch_that_is_not_begun_gets_its_line(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Time that is over before the first of them; the report blames no precision for it."""
    measure = MEASURE.replace("timeout_s", "time_budget_s: 250, timeout_s")
    path = make_scenario(STEADY, SLOWS, workloads=BOTH, measure=measure)
    late = Late(400.0)
    settings = Settings(
        tmp_path / "run", tmp_path, store=ModelStore(tmp_path / "store"),
        monotonic=lambda: late.now,
    )  # fmt: skip
    execute(load_scenario(path, runners=runner_classes()), settings, late)
    told = [each for each in late.notes if "is not begun" in each]
    assert sorted(each.split()[2] for each in told) == ["slows", "steady"]
    assert all("it takes 100 s, and 0 s of the time budget are left" in each for each in told)


def test_loading_is_part_of_the_time_and_of_what_is_expected(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Three stretches of 100 s, in 300: the first one's start took 40 s; two of 140 do not fit."""
    measure = MEASURE.replace("timeout_s", "time_budget_s: 300, interleave: false, timeout_s")
    others = [STEADY, STEADY.replace("steady", "other"), STEADY.replace("steady", "last")]
    path = make_scenario(*others, workloads=f"[{LONG}]", measure=measure)
    late = Late(140.0)
    settings = Settings(
        tmp_path / "run", tmp_path, store=ModelStore(tmp_path / "store"),
        monotonic=lambda: late.now,
    )  # fmt: skip
    late.passes_each_s = 140.0
    execute(load_scenario(path, runners=runner_classes()), settings, late)
    done = [each.variant for each in stretches(read_run(tmp_path / "run"))]
    assert list(dict.fromkeys(done)) == ["steady", "other"]
    assert any("last is not begun" in each for each in late.notes)
    text = render_markdown(read_run(tmp_path / "run"))
    assert "The time budget was not enough for all of the sustained work." in text
    assert "1 stretch of sustained work was not begun" in text
    assert "precision" not in text.split("#")[1]


def test_how_long_a_start_takes_is_taken_from_the_others() -> None:
    """Of what was never started, the mean of those that were."""
    starts = Starts()
    assert starts.expected((0, "a")) == 0
    starts.keep((0, "a"), 10)
    starts.keep((0, "b"), 30)
    assert starts.expected((0, "a")) == 10
    assert starts.expected((0, "c")) == 20


def test_an_empty_interpreter_or_host_is_refused(path: Path) -> None:
    """An unset variable of a shell is no wish."""
    for option in ("--python", "--ssh"):
        refused = edgebench("run", path, option, "")
        assert refused.returncode == 2
        assert f"{option} is empty" in refused.stderr


def test_seconds_are_told_as_seconds(make_scenario: MakeScenario) -> None:
    """20 s, not a third of a minute."""
    short = LONG.replace("100s", "20s")
    checked = edgebench("validate", make_scenario(STEADY, workloads=f"[{short}]"))
    assert "20 s of the time, last of all: 20 s for each variant, once" in checked.stdout


def test_a_stretch_above_the_bandwidth_is_broken_in_every_form(done: Run) -> None:
    """It is named so, gets no formula, and its line does not press the others to the axis."""
    twice = {"mbu": Measured(value=2.0, unit="1", source="derived")}
    trials = tuple(
        each.model_copy(update={"metrics": {**each.metrics, **twice}})
        if (each.variant, each.workload) == ("steady", "long")
        else each
        for each in done.trials
    )
    device = DeviceRecord(reach="local", profile="board", tdp_w=15, sustained_w=7.5)
    record = done.record.model_copy(update={"device": device})
    run = replace(done, record=record, trials=trials)
    data = build_report_data(run)
    (view,) = sustained_views(data)
    assert data.is_broken("long", "steady")
    row = next(each for each in view.table.rows if each.variant == "steady")
    assert "broken: above the memory's bandwidth" in row.remarks
    assert "By the formula" not in dict(view.seen)["steady"]
    assert "By the formula" in dict(view.seen)["slows"]
    for shown in (render_html(run), render_markdown(run)):
        assert "broken: above the memory" in shown
    plots = sustained_plots(data, view, name="p")
    assert {each for plot in plots for each, *_look in plot.legend} == {"slows"}


def test_reports_show_it_in_every_form(done: Run) -> None:
    """A section, a picture and a table, the fall in words; Chinese too."""
    page, text = render_html(done), render_markdown(done)
    for shown in (page, text):
        assert "Sustained work" in shown
        assert "the cause is not known" in shown
        assert "The rate did not fall" in shown
    assert "long: Decode rate over time" in page
    sections = {
        each["section"] for each in json.loads(render_json(build_report_data(done)))["tables"]
    }
    assert "sustained" in sections
    with language("zh"):
        chinese = render_markdown(done)
    assert "持续负载" in chinese
    assert "原因不明" in chinese
    # The rates of minutes do not mix with those of single generations.
    assert build_report_data(done).workload_names == ("chat",)


def test_a_run_of_nothing_else_has_a_report(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """No section needs a workload of another kind."""
    run = run_fake(make_scenario(STEADY, workloads=f"[{LONG}]", measure=MEASURE))
    assert "Sustained work" in render_html(run)
    assert "Sustained work" in render_markdown(run)


def test_the_documents_formula_stands_beside_the_measurement(done: Run) -> None:
    """10 tokens/s x 6 W / 15 W = 4 tokens/s, where 5 were measured: 20 % below."""
    assert any("the TDP is not known" in each for each in sustained_views(
        build_report_data(done))[0].table.notes)  # fmt: skip
    device = DeviceRecord(reach="local", profile="board", profile_name="A Board", tdp_w=15)
    record = done.record.model_copy(update={"device": device})
    data = build_report_data(
        replace(done, record=record, trials=tuple(map(with_power, done.trials)))
    )
    (view,) = sustained_views(data)
    said = dict(view.seen)["slows"]
    assert "10.0 tokens/s × min(1, 6.00 W / 15.0 W) = 4.00 tokens/s" in said
    assert "the sustained power is measured, the TDP that of A Board" in said
    assert "Measured: 5.00 tokens/s; the formula is 20 % below." in said
    predicted = view.table.rows[1].values[-1]
    assert (predicted.text, predicted.chip, predicted.source) == ("4.00", "predicted", "estimated")


def test_the_formula_takes_the_profiles_power_where_none_was_measured(done: Run) -> None:
    """And says whose it is."""
    device = DeviceRecord(reach="local", profile="board", tdp_w=15, sustained_w=7.5)
    data = build_report_data(
        replace(done, record=done.record.model_copy(update={"device": device}))
    )
    said = dict(sustained_views(data)[0].seen)["steady"]
    assert "min(1, 7.50 W / 15.0 W) = 5.00 tokens/s; the sustained power is the profile's" in said


def test_an_estimate_of_the_power_gives_no_rate_by_the_formula(done: Run) -> None:
    """It is a share of the TDP: divided by the TDP, it would say what was put in."""
    device = DeviceRecord(reach="local", profile="board", tdp_w=15)
    trials = tuple(with_power(each, "estimated") for each in done.trials)
    record = done.record.model_copy(update={"device": device})
    (view,) = sustained_views(build_report_data(replace(done, record=record, trials=trials)))
    assert any("the power is estimated, from the TDP itself" in each for each in view.table.notes)
    assert not any("By the formula" in text for _who, text in view.seen)
    known = device.model_copy(update={"sustained_w": 7.5})
    record = done.record.model_copy(update={"device": known})
    (view,) = sustained_views(build_report_data(replace(done, record=record, trials=trials)))
    assert "the sustained power is the profile's" in dict(view.seen)["steady"]


def with_power(trial: object, source: str = "observed") -> object:
    if trial.sustained is None:  # type: ignore[attr-defined]
        return trial
    watts = Measured.model_validate({"value": 6.0, "unit": "W", "source": source})
    metrics = {**trial.metrics, "sustained_power_w": watts}  # type: ignore[attr-defined]
    return trial.model_copy(update={"metrics": metrics})  # type: ignore[attr-defined]


def with_course(run: Run, source: str, **more: object) -> Run:
    """The same run, whose meter showed 6 W all the time."""
    trials = []
    for trial in run.trials:
        if trial.sustained is None:
            trials.append(trial)
            continue
        watts = {"power_w": [6.0] * len(trial.sustained.t_s), "power_source": source}
        course = trial.sustained.model_copy(update={**watts, **more})
        trials.append(trial.model_copy(update={"sustained": course}))
    return replace(run, trials=tuple(trials))


def test_estimated_power_over_time_is_labelled_in_every_form(done: Run) -> None:
    """In each row, and where the sources stand."""
    run = with_course(done, "estimated")
    data = build_report_data(run)
    tables = [each for each in json.loads(render_json(data))["tables"] if "time" in each["key"]]
    assert len(tables) == 2
    for table in tables:
        columns = {each["key"]: each for each in table["columns"]}
        assert columns["mean_power_w"]["sources"] == ["estimated"]
        assert columns["decode_rate"]["sources"] == ["derived"]
    rows = len(tables[0]["rows"])
    latex, page, text = render_latex(data), render_html(run), render_markdown(run)
    for shown, label in ((text, "6.00 *estimated*"), (page, "estimated"), (latex, "estimated")):
        assert shown.count(label) >= 2 * rows
    assert "estimated (power)" in text
    with language("zh"):
        assert render_markdown(run).count("6.00 *估计*") >= 2 * rows
    measured = render_markdown(with_course(done, "observed"))
    assert "6.00 *" not in measured
    assert "observed (power)" in measured


def test_what_is_wrong_with_power_over_time_stands_below_its_table(done: Run) -> None:
    """A meter too slow for an interval, and one that could not tell at all."""
    slow = render_markdown(with_course(done, "observed", power_over_s=5.0))
    assert "too slow for intervals of 1.67 s: the power is the mean over up to 5.00 s." in slow
    lost = with_course(done, "observed", power_reason="it was pulled out")
    assert "No power over time: it was pulled out." in render_markdown(lost)


def test_the_tdp_of_the_scenario_is_enough_for_the_formula(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """What the report advises is taken: no estimate is asked for, and none is made."""
    path = make_scenario(STEADY, workloads=f"[{LONG}]", measure=MEASURE)
    path.write_text(path.read_text(encoding="utf-8") + "power: {tdp_w: 12}\n", encoding="utf-8")
    run = run_fake(path)
    assert all(each.source != "estimated" for each in run.record.meters)
    (view,) = sustained_views(build_report_data(run))
    said = " ".join([*view.table.notes, *(text for _who, text in view.seen)])
    assert "the TDP is not known" not in said
    assert "the sustained power was not measured" in said or "/ 12.0 W" in said


def test_a_slow_device_shows_its_digits_while_it_runs(path: Path, tmp_path: Path) -> None:
    """A token in 40 s is no rate of 0.0."""
    slow = path.read_text(encoding="utf-8").replace("token_s: 0.1", "token_s: 40")
    path.write_text(slow, encoding="utf-8")
    done = edgebench("run", path, "--out", tmp_path / "out", "--repetitions", "1",
                     "--time-budget", "9000")  # fmt: skip
    assert "0.0250 token/s at first" in done.stderr
    assert "median 0.0250 token/s" in done.stderr


@pytest.mark.parametrize(("watts", "rate"), [(15, 20.0), (30, 20.0), (7.5, 10.0), (3, 4.0)])
def test_more_power_than_the_tdp_adds_nothing(watts: float, rate: float) -> None:
    """20 tokens/s at 15 W."""
    assert by_power(20.0, watts, 15.0) == pytest.approx(rate)


class Warming(LocalBoard):
    """A board that is warm after the first block, and stays so."""

    def __init__(self, *celsius: float) -> None:
        super().__init__()
        self._celsius = list(celsius)

    def temperature(self) -> Reading:
        return Reading(self._celsius.pop(0) if len(self._celsius) > 1 else self._celsius[0])


def test_blocks_say_how_they_came_to_their_start(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """40 °C before all, then 42.5 °C, within three degrees: nothing waits, and it is written."""
    measure = MEASURE.replace(
        "timeout_s", "cooldown: {within_celsius: 3, at_most_s: 60}, timeout_s"
    )
    scenario = load_scenario(make_scenario(STEADY, measure=measure), runners=runner_classes())
    record = execute(
        scenario,
        Settings(
            tmp_path / "run", tmp_path, store=ModelStore(tmp_path / "store"),
            board=Warming(40.0, 40.0, 42.5),
        ),
    )  # fmt: skip
    loads = [each for each in read_run(tmp_path / "run").trials if each.kind == "load"]
    started = [each.metrics["start_temperature_celsius"].value for each in loads]
    assert started == [40.0, 42.5]
    assert all(each.metrics["cooldown_wait_s"].value < 1 for each in loads)
    assert record.protocol.cooldown_within_celsius == 3


def test_a_device_that_stays_hot_is_measured_all_the_same_and_told(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """The limit of time is short, and the note has both temperatures."""
    cooldown = "cooldown: {within_celsius: 3, at_most_s: 0.001}, timeout_s"
    path = make_scenario(STEADY, measure=MEASURE.replace("timeout_s", cooldown))
    told = Notes()
    settings = Settings(
        tmp_path / "run", tmp_path, store=ModelStore(tmp_path / "store"),
        board=Warming(40.0, 40.0, 61.25),
    )  # fmt: skip
    record = execute(load_scenario(path, runners=runner_classes()), settings, told)
    assert [cell.n for cell in record.cells] == [2]
    assert any(
        "still 61.2 °C after 0 s, and 40.0 °C before the first block" in each for each in told.notes
    )


class Notes(Silent):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_two_interleaved_runs_sustain_side_by_side(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Once on each side, both in the same block; and a budget for one of them is not enough."""
    path = make_scenario(STEADY, workloads=f"[{LONG}]", measure=MEASURE)
    command = ["run", path, "--against", "token_s=0.2", "--out", tmp_path / "out"]
    refused = edgebench(*command, "--time-budget", "150")
    assert refused.returncode == 2
    assert "the sustained work of both sides takes 200 s" in refused.stderr
    ran = edgebench(*command, "--format", "md")
    assert "Traceback" not in ran.stderr, ran.stderr
    sides = [read_run(each) for each in sorted((tmp_path / "out" / "fake").iterdir())]
    found = [[(each.block, each.kind) for each in stretches(side)] for side in sides]
    assert found == [[(0, "sustained")]] * 2
    rates = [side.record.cells[0].metrics["burst_rate"].median for side in sides]
    assert rates == pytest.approx([5.0, 10.0])


def test_compare_and_gate_cannot_tell_from_one_stretch(
    path: Path, run_fake: RunFake, done: Run
) -> None:
    """One value a side is no evidence, and nothing breaks over it."""
    first, second = done, run_fake(path)
    told = edgebench("compare", first.path, second.path)
    assert "Traceback" not in told.stderr
    assert "sustained" in told.stdout
    gated = edgebench("gate", second.path, "--baseline", first.path)
    assert "Traceback" not in gated.stderr


def test_the_command_line_says_how_long_it_takes(path: Path, tmp_path: Path) -> None:
    """Before, during and after; and refuses a budget that it does not fit into."""
    checked = " ".join(edgebench("validate", path).stdout.split())
    assert "3 min 20 s of the time, last of all: 1 min 40 s for each variant, once" in checked
    done = edgebench("run", path, "--out", tmp_path / "out", "--repetitions", "1")
    assert done.returncode == 0, done.stderr
    assert "then sustained work 2 times, 3 min 20 s in all" in done.stderr
    assert "long: 10.0 token/s at first, 5.00 at last, over 1 min" in done.stderr
    assert "long, slows: The rate fell by 50 %" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 + len(str(tmp_path)) + 60
    refused = edgebench("run", path, "--time-budget", "60")
    assert refused.returncode == 2
    assert "the sustained work takes 200 s, and the time budget is 60 s" in refused.stderr
