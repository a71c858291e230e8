"""Figures of another framework than the runner's own carry its name wherever they stand."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.results.run import Run
from edgebench.harness.results.sameness import Sameness
from edgebench.harness.results.trial import Trial
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.html import render_page
from edgebench.reports.labels import with_labels
from edgebench.reports.markdown import render_text
from edgebench.reports.picture import LONGEST_LABEL, short, text_width
from edgebench.reports.sameness import sameness_view
from edgebench.reports.sentences import plain
from edgebench.reports.sweeps import sweeps
from edgebench.reports.terminal import comparison_table

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.reports.data import ReportData

NAME = "TVM, built by edgebench"
LABELS = ("mlc q4 threads=1", "mlc q4 threads=2")


def load_of(variant: str, engine: str | None) -> Trial:
    return Trial.model_validate(
        {
            "kind": "load", "variant": variant, "workload": None, "block": 0, "repetition": 0,
            "phase": "measured", "status": "ok", "started_at": "", "duration_s": 1.0,
            "engine": engine, "engine_version": engine and "0.27.0",
        }
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A sweep of two variants on a library that edgebench built, and a llama.cpp; it was killed."""
    values = {"decode_rate": [10.0] * 5, "ttft_s": [0.5] * 5}
    faster = {"decode_rate": [20.0] * 5, "ttft_s": [0.5] * 5}
    record, trials = handmade(
        {LABELS[0]: dict(values), LABELS[1]: faster, "llama.cpp Q4": dict(values)},
        options={LABELS[0]: {"threads": 1}, LABELS[1]: {"threads": 2}},
    )
    variants = [
        each.model_copy(
            update={
                "runner": "mlc" if each.id in LABELS else "llama.cpp",
                "quantization": "q4" if each.id in LABELS else "Q4",
                "engine": "TVM" if each.id in LABELS else "llama.cpp",
                "engine_version": "0.27.0",
            }
        )
        for each in record.variants
    ]
    loads = [load_of(each, NAME) for each in LABELS]
    return Run(
        tmp_path,
        record.model_copy(update={"variants": variants, "status": "running"}),
        (*loads, load_of("llama.cpp Q4", None), *trials),
        0,
    )


@pytest.fixture
def data(run: Run) -> ReportData:
    return build_report_data(run)


def printed(data: ReportData) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(comparison_table(data))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("form", [printed, render_text, render_page])
def test_no_form_of_a_report_names_such_a_variant_without_its_framework(
    form: object, data: ReportData
) -> None:
    """Tables, plots, legends, sentences, options, statistics: the name is always there."""
    assert callable(form)
    text = re.sub(r"\s+", " ", form(data))
    for each in LABELS:
        assert each not in text
        rest = re.escape(each.removeprefix("mlc "))
        assert re.search(f"{NAME}: {rest}", text)
        assert not re.search(f"(?<!{NAME}: ){rest}", text)
    assert "llama.cpp Q4" in text


def test_the_short_answer_and_the_sweep_say_whose_figures_they_are(data: ReportData) -> None:
    """A reader who reads one sentence must not take them for MLC's."""
    (answer,) = answers(data)
    assert plain(answer.paragraph).startswith(f"{NAME}: q4 threads=2 decodes fastest")
    (sweep,) = sweeps(data)
    assert sweep.base == f"{NAME}: q4"


def test_the_version_stands_beside_the_name_once(data: ReportData) -> None:
    """A table that has the framework in the variant's name adds the version, not the name again."""
    assert f"`{NAME}: q4 threads=1` | 0.27.0 |" in render_text(data)


def test_verifying_names_them_too(run: Run) -> None:
    """The table of `edgebench verify` is made of the record alone."""
    same = Sameness(verdict="agrees")
    variants = [
        each.model_copy(update={"framework": NAME, "engine": NAME, "sameness": same})
        for each in run.record.variants[:1]
    ]
    view = sameness_view(with_labels(variants), None)
    assert view is not None
    assert [row.variant for row in view.rows] == [f"{NAME}: q4 threads=1"]


def test_a_run_of_the_runners_own_framework_is_left_as_it_is(run: Run) -> None:
    """No label where there is nothing to tell."""
    own = run.record.variants[2:]
    record = run.record.model_copy(update={"variants": own})
    trials = tuple(each for each in run.trials if each.variant == own[0].id)
    assert build_report_data(Run(run.path, record, trials, 0)).variant_ids == ("llama.cpp Q4",)


def named(run: Run, *ids: str, framework: str | None = NAME) -> list[str]:
    """The labels of variants of the runner mlc with these ids."""
    like = run.record.variants[0].model_copy(update={"quantization": "q4", "framework": framework})
    return [each.id for each in with_labels([like.model_copy(update={"id": i}) for i in ids])]


def test_a_name_that_the_scenario_gave_is_kept_whole(run: Run) -> None:
    """Only the runner's name in an id made of options is put in place of."""
    assert named(run, "mlc q4", "mlc q4 threads=4", "mlc fast", "mlc", "mlc-q4", "mlc q4b") == [
        f"{NAME}: q4", f"{NAME}: q4 threads=4", f"{NAME}: mlc fast", f"{NAME}: mlc",
        f"{NAME}: mlc-q4", f"{NAME}: mlc q4b",
    ]  # fmt: skip


def test_two_variants_never_have_one_label(run: Run) -> None:
    """They would be counted as one: where labels would be equal, ids are kept whole."""
    assert named(run, "mlc q4 threads=4", "q4 threads=4") == [
        f"{NAME}: mlc q4 threads=4", f"{NAME}: q4 threads=4",
    ]  # fmt: skip


def test_a_long_label_in_a_plot_keeps_its_begin_and_its_end() -> None:
    """What framework it is, and what tells it from the next bar."""
    shown = short(f"{NAME}: q4f32_1 prefill_chunk_size=256 threads=2")
    assert shown.startswith(f"{NAME}: ")
    assert shown.endswith("=256 threads=2"[-len(shown.partition("…")[2]) :])
    assert LONGEST_LABEL - 2 < text_width(shown) <= LONGEST_LABEL
