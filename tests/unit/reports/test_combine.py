"""Several runs in one report: what is refused, what is told apart, and that nothing is paired."""

from __future__ import annotations

import json

import pytest
from sample_quality import EXACT, made, steady

from edgebench.harness.errors import ResultError
from edgebench.harness.results.run import Run, read_run
from edgebench.harness.results.sameness import ReferenceRecord
from edgebench.harness.results.summary import summarize
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.combine import NOT_IN_RUN, combine, combined
from edgebench.reports.data import build_report_data, load_report_data, ratios_within_blocks
from edgebench.reports.parts import part_banners, part_notes, runs_table
from edgebench.reports.quality import quality_views
from edgebench.reports.run_labels import machine_name, run_labels
from edgebench.reports.selection.select import (
    differing_requirements,
    requirements_of,
    select,
)
from edgebench.reports.sentences import plain
from edgebench.reports.sweeps import sweeps

INTEL = "Intel(R) Core(TM) i9-13900K CPU @ 3.00GHz"


@pytest.fixture
def make(sample_run, tmp_path):
    """Makes the data of a small run; what is not given is as in the others."""
    count = 0

    def build(values=None, *, folder=None, machine=None, **changes):
        nonlocal count
        count += 1
        record, trials = sample_run.handmade(
            values or {"A": {"decode_rate": [10.0, 11.0, 12.0, 13.0, 14.0]}},
            **{"id": f"run-{count}", "created_at": f"2025-01-{count:02}T10:15:00Z"} | changes,
        )
        if machine is not None:
            record = record.model_copy(
                update={"machine": record.machine.model_copy(update=machine)}
            )
        return build_report_data(Run(tmp_path / (folder or f"run-{count}"), record, tuple(trials)))

    return build


def changed_workload(data, **changes):
    """The run with another workload `w`."""
    (workload,) = data.record.workloads
    workload = workload.model_copy(update=changes)
    record = data.record.model_copy(update={"workloads": [workload]})
    trials = (each.model_copy(update={"workload": workload.name}) for each in data.run.trials)
    return build_report_data(Run(data.run.path, record, tuple(trials)))


def with_artifact(data, sample_run, **changes):
    """The run with a file that is as it was published, behind its first variant."""
    variant = sample_run.llama_variant("source", {}, "weights.gguf", 1000)
    artifact = variant.artifact.model_copy(update=changes)
    variants = [each.model_copy(update={"artifact": artifact}) for each in data.record.variants]
    record = data.record.model_copy(update={"variants": variants})
    return build_report_data(Run(data.run.path, record, data.run.trials))


def test_variants_of_two_machines_say_which(make):
    """Every variant has its machine behind its name, short and without what tells nothing."""
    other = {"fingerprint": "f" * 16, "cpu_model": INTEL}
    data = combine([make(), make({"B": {"decode_rate": [1.0] * 5}}, machine=other)])
    assert data.variant_ids == ("A @ AMD EPYC 9B14", "B @ Intel Core i9-13900K")
    assert [each.label for each in data.parts] == ["AMD EPYC 9B14", "Intel Core i9-13900K"]
    assert data.part_of("B @ Intel Core i9-13900K").record.id == "run-2"


def test_variants_of_two_dates_say_when_only_where_both_runs_have_them(make):
    """What one run alone has keeps its name."""
    both = {"A": {"decode_rate": [1.0] * 5}, "B": {"decode_rate": [2.0] * 5}}
    data = combine([make(), make(both)])
    assert data.variant_ids == ("A @ 2025-01-01", "A @ 2025-01-02", "B")


@pytest.mark.parametrize(
    ("moments", "labels"),
    [
        (("03-01T10:15:00Z", "03-01T11:20:00Z"), ("10:15", "11:20")),
        (("03-01T10:15:00Z", "03-01T10:15:45Z"), ("10:15:00", "10:15:45")),
        (("03-01T10:15:00Z", "03-01T10:15:00Z"), ("run-1", "run-2")),
        # Three runs of two days: which day must be said.
        (
            ("03-01T10:15:00Z", "03-01T11:20:00Z", "03-02T10:15:00Z"),
            ("2025-03-01 10:15", "2025-03-01 11:20", "2025-03-02 10:15"),
        ),
        # One day of UTC, though not of the clocks on the wall.
        (("03-01T23:15:00Z", "03-02T01:20:00+02:00"), ("23:15", "23:20")),
    ],
)
def test_runs_of_one_day_are_told_apart_by_no_more_than_it_takes(make, moments, labels):
    """By the minute, by the second, and else by their ids; the day where there are several."""
    runs = [make(created_at=f"2025-{each}") for each in moments]
    assert run_labels([each.record for each in runs]) == labels


def test_ids_that_name_the_runs_are_no_column_besides(make):
    """The table of the runs says nothing twice."""
    day = "2025-03-01T10:15:00Z"
    table = runs_table(combine([make(created_at=day), make(created_at=day)]))
    assert [row.variant for row in table.rows] == ["run-1", "run-2"]
    assert "run" not in [each.key for each in table.columns]
    assert {len(row.values) for row in table.rows} == {len(table.columns)}
    table = runs_table(combine([make(), make()]))
    assert table.columns[-1].key == "run"
    assert [row.values[-1].text for row in table.rows] == ["run-3", "run-4"]


def test_trials_of_one_run_are_never_another_runs(sample_run, tmp_path):
    """A variant that was taken out of one record is refused, though the other run has it."""
    folders = [
        sample_run.sample(blocks=1, changes={"id": name}).write(tmp_path / name)
        for name in ("one", "two")
    ]
    file = folders[0] / "run.json"
    record = json.loads(file.read_text())
    gone = record["variants"].pop()["id"]
    file.write_text(json.dumps(record))
    with pytest.raises(ResultError, match="one/trials") as caught:
        combined(folders)
    assert gone in str(caught.value)


def test_lost_trials_of_a_finished_run_are_told(sample_run, tmp_path):
    """Without its trials a report is empty, and says why; of several runs it says whose."""
    folders = []
    for name in ("2025-01-14", "2025-01-15"):
        changes = {"id": name, "created_at": f"{name}T10:15:00Z"}
        folders.append(sample_run.sample(blocks=1, changes=changes).write(tmp_path / name))
        run = read_run(folders[-1])
        # As a run does at its end.
        record = run.record.model_copy(update={"cells": summarize(run.record, run.trials)})
        (run.path / "run.json").write_text(record.model_dump_json())
    assert part_banners(load_report_data(folders[0])) == ()
    trials = folders[0] / "trials.jsonl"
    whole = trials.read_bytes().splitlines(keepends=True)
    trials.write_bytes(b"".join(whole[: len(whole) // 2]))
    (banner,) = part_banners(load_report_data(folders[0]))
    assert banner.title == "trials.jsonl is not whole, though the run finished."
    trials.unlink()
    (banner,) = part_banners(load_report_data(folders[0]))
    assert banner.title == "trials.jsonl is missing or empty, though the run finished."
    # 9 cells with 2 measured generations each.
    assert banner.text.startswith("run.json counts 18 results, trials.jsonl holds 0.")
    banner = part_banners(combined(folders))[-1]
    assert banner.title.startswith("trials.jsonl of the run of 2025-01-14 is missing or empty")


def test_a_run_that_was_killed_before_its_first_trial_lost_none(sample_run, tmp_path):
    """It is a run, and its own banner says that it did not finish."""
    folder = sample_run.sample(blocks=1, changes={"status": "running"}).write(tmp_path / "run")
    (folder / "trials.jsonl").unlink()
    assert part_banners(load_report_data(folder)) == ()


def test_machines_of_one_processor_are_told_apart_by_what_differs(make):
    """Two machines with the same processor are two."""
    larger = {"fingerprint": "f" * 16, "memory_bytes": 64 * 2**30}
    runs = [make(), make(machine=larger)]
    assert run_labels([each.record for each in runs]) == (
        "AMD EPYC 9B14, 8.00 GiB",
        "AMD EPYC 9B14, 64.0 GiB",
    )


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9 7950X"),
        ("Apple M2 Pro", "Apple M2 Pro"),
        ("CPU", "CPU"),
    ],
)
def test_a_machine_is_named_in_a_few_words(make, model, name):
    """What tells nothing goes; a name is never empty."""
    assert machine_name(make(machine={"cpu_model": model}).record.machine) == name


def test_cells_are_those_of_their_own_run(make):
    """Medians, counts and flags are what each run alone says; limits of noise are each run's."""
    noisy = [10.0, 11.0, 12.0, 13.0, 14.0]
    strict = make({"A": {"decode_rate": noisy}})
    loose = make({"B": {"decode_rate": [20.0, 22.0, 24.0, 26.0, 28.0]}})
    protocol = loose.record.protocol.model_copy(update={"max_cv": 0.5})
    record = loose.record.model_copy(update={"protocol": protocol})
    loose = build_report_data(Run(loose.run.path, record, loose.run.trials))
    data = combine([strict, loose])
    assert data.summary("w", "A", "decode_rate").median == 12.0
    assert data.summary("w", "B", "decode_rate").median == 24.0
    assert "noisy" in data.cell("w", "A").flags
    assert "noisy" not in data.cell("w", "B").flags
    (note,) = [each for each in part_notes(data) if "protocols" in each]
    assert "limit of noise 5 % (2025-01-01), 50 % (2025-01-02)" in note


def test_no_ratio_pairs_what_two_runs_measured(make):
    """No block holds trials of two runs; a run's own pairs stay."""
    both = {"A": {"decode_rate": [10.0] * 5}, "B": {"decode_rate": [20.0] * 5}}
    data = combine([make(both), make(both)])
    trials = data.run.trials
    blocks = [{each.block for each in trials if each.variant in part.variants}
              for part in data.parts]  # fmt: skip
    assert not blocks[0] & blocks[1]
    first, second = data.parts
    across = (second.variants[1], first.variants[0])
    assert ratios_within_blocks(trials, "w", "decode_rate", *across) == {}
    within = ratios_within_blocks(trials, "w", "decode_rate", *reversed(second.variants))
    assert len(within) == 5
    assert set(within.values()) == {2.0}


def test_no_sweep_goes_over_two_runs(make):
    """One thread on one machine and two on another are no sweep of threads."""
    one = make(options={"A": {"threads": 1}})
    two = make({"B": {"decode_rate": [9.0] * 5}}, options={"B": {"threads": 2}})
    assert sweeps(combine([one, two])) == ()


def test_a_workload_that_a_run_lacks_has_the_reason(make):
    """It is no dash without a word, and no failure."""
    other = changed_workload(make({"B": {"decode_rate": [1.0] * 5}}), name="x")
    data = combine([make(), other])
    assert {each.name for each in data.record.workloads} == {"w", "x"}
    cell = data.cell("x", "A")
    assert cell.status == "not_run"
    assert cell.metrics["decode_rate"].median is None
    assert cell.metrics["decode_rate"].reason == NOT_IN_RUN
    assert cell.metrics["decode_rate"].unit == "token/s"
    assert data.summary("x", "B", "decode_rate").median == 1.0


def test_a_log_is_found_in_its_own_run(sample_run, tmp_path):
    """The path of a log begins with its run's folder, from the folder that holds both."""
    folders = [
        sample_run.sample(blocks=1, changes={"id": name}).write(tmp_path / name)
        for name in ("one", "two")
    ]
    data = combined(folders)
    assert data.run.path == tmp_path
    log = "logs/llama.cpp-F16-threads-2.log"
    assert [each.log for each in data.failures] == [f"one/{log}", f"two/{log}"]
    failed = [each.failure.log for each in data.run.trials if each.failure]
    assert failed == [f"one/{log}", f"two/{log}"]


def test_one_run_alone_is_read_as_it_is(run_folder):
    """There is nothing to say of several."""
    data = combined([run_folder])
    assert data.variant_ids == load_report_data(run_folder).variant_ids
    assert part_banners(data) == ()
    assert runs_table(data) is None


def test_the_report_says_first_that_it_combines_runs(make):
    """Machines, versions that differ, and runs that did not end."""
    other = {"fingerprint": "f" * 16, "cpu_model": INTEL}
    data = combine([make(), make(machine=other, status="interrupted", edgebench_version="0.2.0")])
    first, second = part_banners(data)
    assert first.title == "This report combines 2 runs of 2 machines."
    assert "edgebench 0.1.0, 0.2.0" in first.text
    assert second.title == "The run of Intel Core i9-13900K was interrupted."
    table = runs_table(data)
    assert [row.variant for row in table.rows] == ["AMD EPYC 9B14", "Intel Core i9-13900K"]
    assert data.record.status == "interrupted"


def refused(runs):
    """The refusal's message and remedy; both runs' folders are named in it."""
    with pytest.raises(ResultError) as caught:
        combine(runs)
    message = str(caught.value)
    for run in runs:
        assert str(run.run.path) in message
    assert caught.value.remedy
    return message


def test_the_same_run_twice_is_refused(make):
    """Its repetitions would count twice, under whatever folder it lies."""
    run = make()
    copy = build_report_data(Run(run.run.path.with_name("copy"), run.record, run.run.trials))
    assert "the same run" in refused([run, copy])


def test_a_quick_look_beside_a_measurement_is_refused(make):
    """It is no measurement."""
    assert "quick look" in refused([make(quick=True), make()])


def test_the_runner_of_tests_beside_frameworks_is_refused(make):
    """What it makes up must not stand beside what was measured."""
    fake = make()
    variants = [each.model_copy(update={"runner": "fake"}) for each in fake.record.variants]
    record = fake.record.model_copy(update={"variants": variants})
    fake = build_report_data(Run(fake.run.path, record, fake.run.trials))
    assert "makes its figures up" in refused([make(), fake])


def scenario(source, **more):
    """A scenario of a model."""
    return {"model": {"name": "M", "source": source, **more}}


def test_another_model_is_refused(make):
    """By its source, where no hash is known."""
    runs = [make(scenario=scenario("hf:a/b")), make(scenario=scenario("hf:a/c"))]
    message = refused(runs)
    assert "different models" in message
    assert "hf:a/b" in message
    assert "hf:a/c" in message


def test_other_weights_under_the_same_name_are_refused(make, sample_run):
    """The hash of the file that frameworks loaded as published tells them apart."""
    same = scenario("path:weights.gguf")
    one = with_artifact(make(scenario=same), sample_run)
    other = with_artifact(make(scenario=same), sample_run, sha256="a" * 64)
    message = refused([one, other])
    assert "different models" in message
    assert "sha256 aaaaaaaaaaaa of weights.gguf" in message


def test_the_same_weights_from_two_places_are_one_model(make, sample_run):
    """Equal hashes say more than the names of the sources."""
    one = with_artifact(make(scenario=scenario("hf:a/b")), sample_run)
    other = with_artifact(make(scenario=scenario("path:weights.gguf")), sample_run)
    assert len(combine([one, other]).variant_ids) == 2


def test_a_path_that_no_hash_proves_is_told(make):
    """Two machines may have different files under one path."""
    same = scenario("path:weights.gguf")
    (note,) = part_notes(combine([make(scenario=same), make(scenario=same)]))
    assert "only by the path" in note


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"prompt_sha256": "b" * 64}, "the prompt's tokens"),
        ({"prompt_tokens": 999}, "the length of the prompt"),
        ({"generate_tokens": 999}, "the number of tokens to generate"),
        ({"depth": 999}, "the depth of the cache"),
        ({"task": "summarize", "generate_tokens": None}, "what it asks"),
    ],
)
def test_another_prompt_under_the_same_name_is_refused(make, changes, what):
    """A row of one prompt beside a row of another would compare nothing."""
    known = {"prompt_sha256": "a" * 64, "prompt_tokens": 8, "depth": 0}
    one, other = changed_workload(make(), **known), changed_workload(make(), **known | changes)
    message = refused([one, other])
    assert f"the workload 'w' is another one in each: the two differ in {what}." in message


def test_a_prompt_that_was_never_made_is_no_difference(make):
    """A run that prepared nothing knows no hash."""
    one = changed_workload(make(), prompt_sha256=None, prompt_tokens=None)
    other = changed_workload(make(), prompt_sha256="a" * 64, prompt_tokens=8)
    (workload,) = combine([one, other]).record.workloads
    assert workload.prompt_sha256 == "a" * 64


def verified(data, **changes):
    """The run with a reference that it was verified against."""
    reference = ReferenceRecord(
        name="weights",
        sha256="c" * 64,
        parameters=1000,
        prompt_positions=10,
        candidates=10,
        covered=1.0,
        duration_s=1.0,
        limits={"difference": 0.1},
    ).model_copy(update=changes)
    record = data.record.model_copy(update={"reference": reference})
    return build_report_data(Run(data.run.path, record, data.run.trials))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sha256": "d" * 64}, "different models"),
        ({"limits": {"difference": 0.2}}, "different references, or by different limits"),
    ],
)
def test_another_reference_is_refused(make, changes, what):
    """A verdict against one says nothing beside a verdict against another."""
    assert what in refused([verified(make()), verified(make(), **changes)])


def rated(folder, windows, reference=EXACT, **changes):
    """A run with exactly these windows of one text."""
    run = made(
        windows, reference, id=folder, created_at=f"{folder}T10:15:00Z", speed=False, **changes
    )
    return build_report_data(Run(run.path.with_name(folder), run.record, run.trials))


def test_texts_rated_by_two_runs_stand_in_one_table_and_pair(make):
    """The same tokens in the same windows compare, wherever they were rated."""
    one, two = rated("2025-01-01", {"a": steady(0.1)}), rated("2025-01-02", {"b": steady(0.0)})
    (view,) = quality_views(combine([one, two]))
    assert {row.variant for row in view.table.rows} == {"a", "b"}
    assert view.differences.tested
    assert "b is better" in view.differences.rows[0].words


def test_fewer_windows_of_the_same_text_are_refused(make):
    """A perplexity over other tokens is another figure."""
    few = rated("2025-01-02", {"b": steady(0.0)[:6]}, EXACT[:6])
    message = refused([rated("2025-01-01", {"a": steady(0.1)}), few])
    assert "differ in the number of windows that were rated." in message
    assert "6 of 6" in message


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"text_sha256": "e" * 64}, "the text that is rated"),
        ({"ids_sha256": "e" * 64}, "the tokens of the text"),
        ({"protocol": "llama-perplexity"}, "the protocol of rating"),
        ({"stride": 99}, "the stride of the windows"),
    ],
)
def test_another_way_of_rating_is_refused(changes, what):
    """Values of different protocols are never compared."""
    one = rated("2025-01-01", {"a": steady(0.1)})
    other = rated("2025-01-02", {"b": steady(0.0)}, quality=changes)
    assert f"the two differ in {what}." in refused([one, other])


def test_a_text_that_no_variant_could_rate_takes_the_other_runs_protocol():
    """A run without any window holds nothing that would not compare."""
    one = rated("2025-01-01", {"a": None}, quality={"windows": 0})
    (workload,) = combine([one, rated("2025-01-02", {"b": steady(0.0)})]).record.workloads
    assert workload.quality.windows == len(EXACT)


def test_runs_without_a_workload_in_common_are_not_compared(make):
    """The choice says so, and not that nothing meets the needs."""
    data = combine([make(), changed_workload(make(), name="other")])
    said = plain(select(data, Requirements()).headline)
    assert said.endswith("The runs have no workload in common, so their speeds can't be compared.")


def test_requirements_that_differ_are_named_and_none_is_taken(make):
    """The note names the keys; where the scenarios agree there is none."""
    pc = {"requirements": {"target": "pc", "max_ttft_s": 1.0}}
    phone = {"requirements": {"target": "phone", "max_ttft_s": 1.0}}
    differing = combine([make(scenario=pc), make(scenario=phone)])
    assert differing_requirements(differing) == ("target",)
    assert any("different requirements (target)" in each for each in part_notes(differing))
    assert requirements_of(differing) == Requirements()
    agreeing = combine([make(scenario=pc), make(scenario=pc)])
    assert differing_requirements(agreeing) == ()
    assert requirements_of(agreeing).target == "pc"
