"""Whether variants are the same model, as reports say it."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.run import Run
from edgebench.harness.results.sameness import Parting, PromptSameness, ReferenceRecord, Sameness
from edgebench.reports import facts
from edgebench.reports.data import build_report_data
from edgebench.reports.html import render_page
from edgebench.reports.markdown import render_text
from edgebench.reports.sameness import sameness_view
from edgebench.reports.table import comparison_rows
from edgebench.reports.terminal import comparison_table, sameness_table, sameness_text

EVIL = '"><img src=x onerror=alert(1)>|`\x1b[31m\u202e'


def value(number, unit="nat"):
    return Measured(value=number, unit=unit, source="derived")


def metrics(kl=1.2e-5, top1=1.0):
    return {
        "top1_agreement": value(top1, "1"),
        "kl_divergence": value(kl),
        "kl_divergence_p99": value(6 * kl),
        "log_likelihood_difference": value(kl),
        "log_likelihood_difference_max": value(0.0314),
    }


def prompt(**changes):
    return PromptSameness.model_validate(
        {
            "workload": "w", "prompt_tokens": 40, "tokenizer": "equal", "generated_tokens": 64,
            "common_tokens": 64, "metrics": metrics(),
        }
        | changes
    )  # fmt: skip


def parting(text=" a"):
    return Parting(
        token=7, reference_id=1, reference_text=" the", variant_id=2, variant_text=text, margin=2.5
    )


FOUND = {
    "good": Sameness(verdict="agrees", metrics=metrics(), prompts=[prompt()]),
    "bad": Sameness(
        verdict="differs",
        findings=["on w, the mean KL divergence is 0.5, over 0.0001"],
        metrics=metrics(0.5, 0.25),
        prompts=[prompt(common_tokens=7, parting=parting(), metrics=metrics(0.5, 0.25))],
    ),
    "small": Sameness(
        verdict="not_judged",
        not_judged_because="int4 weights",
        metrics=metrics(0.0123, 0.941),
        prompts=[prompt(metrics=metrics(0.0123, 0.941))],
    ),
    "mute": Sameness(
        verdict="not_judged",
        not_judged_because="int4 weights",
        metrics={"kl_divergence": Measured.missing("nat", "it gives no log-likelihoods")},
        prompts=[
            prompt(
                tokenizer="not_compared",
                tokenizer_note="ids are handed over",
                metrics={"kl_divergence": Measured.missing("nat", "it gives no log-likelihoods")},
            )
        ],
    ),
    "dead": Sameness(verdict="failed", failure=Failure(kind="crash", message="It died.")),
}
REFERENCE = ReferenceRecord(
    name="model.gguf",
    sha256="0" * 64,
    lossy_types=["Q4_1"],
    parameters=134_515_008,
    prompt_positions=39,
    candidates=900,
    covered=0.975,
    duration_s=3.0,
    limits={"near_tie": 0.1, "bf16_near_tie": 0.3, "kl_divergence": 1e-4, "difference": 0.3},
)


@pytest.fixture
def verified(sample_run):
    """A report's data of variants with the given findings, by their names."""

    def make(found=FOUND, reference=REFERENCE):
        values = {name: {"decode_rate": [10.0, 10.1]} for name in found}
        record, trials = sample_run.handmade(values)
        driven = {"engine": "LiteRT-LM", "engine_version": "0.18.1 (binding 7)"}
        variants = [
            each.model_copy(update={"sameness": found[each.id], **driven})
            for each in record.variants
        ]
        record = record.model_copy(update={"variants": variants, "reference": reference})
        return build_report_data(Run(Path("made-up"), record, tuple(trials), 0))

    return make


def test_the_column_says_it_in_few_words(verified):
    """A verdict for what is judged, two figures for what is not, a dash for what is not known."""
    assert verified().sameness.short == {
        "good": "agrees",
        "bad": "DIFFERS",
        "small": "KL 0.012, top-1 94.1 %",
        "mute": "–",
        "dead": "not verified",
    }


def test_the_column_falls_back_to_likelihoods(verified):
    """Of a framework that rates only what stands there, the mean difference is what is known."""
    metrics = {
        "kl_divergence": Measured.missing("nat", "it rates nothing else"),
        "top1_agreement": Measured.missing("1", "it does not tell"),
        "log_likelihood_difference": value(0.0523),
    }
    same = FOUND["small"].model_copy(update={"metrics": metrics})
    assert verified({"one": same}).sameness.short == {"one": "mean Δ log-likelihood 0.052"}


def test_every_table_names_the_engine(verified):
    """Name and version stand beside the variant, in each form and each table."""
    data = verified({"good": FOUND["good"]})
    named = "LiteRT-LM 0.18.1"
    lines = [line for line in render_text(data).splitlines() if line.startswith("| `good`")]
    assert len(lines) > 1
    assert all(named in line for line in lines)
    page = render_page(data)
    heads = re.findall(r'<th scope="row" role="rowheader".*?</th>', page, re.DOTALL)
    rows = [head for head in heads if ">good<" in head]
    assert len(rows) > 1
    assert all(named in row for row in rows)
    for table in (comparison_table(data), sameness_table(data.sameness)):
        console = Console(width=80, file=StringIO())
        console.print(table)
        assert named in console.file.getvalue()


def test_a_run_that_was_not_verified_has_no_such_section(verified):
    """Without findings there is no view, no column and no banner."""
    data = verified(dict.fromkeys(("a", "b")), reference=None)
    assert data.sameness is None
    assert not [each for each in facts.banners(data) if "same model" in each.title]
    assert "ame model" not in render_text(data)
    assert "ame model" not in render_page(data)


def test_what_differs_or_failed_is_a_banner(verified):
    """Before any figure, with the reason; what agrees or is not judged is none."""
    found = {each.title: each.text for each in facts.banners(verified())}
    assert "over 0.0001" in found["bad does not compute the same model."]
    assert found["dead could not be verified."] == "It died."
    assert not [title for title in found if title.startswith(("good", "small", "mute"))]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["good", "small"], "1 of 1 in high precision agree with the reference."),
        (
            ["good", "bad", "dead"],
            "1 of 2 in high precision DIFFER from the reference. 1 could not be verified.",
        ),
        (["small"], "No variant is in high precision, so none was judged; "),
    ],
)
def test_the_judgement_counts_what_was_judged(verified, names, sentence):
    """Only variants in high precision count, and where there is none, the option is named."""
    data = verified({name: FOUND[name] for name in names})
    assert data.sameness.judgement.startswith(sentence)


def test_markdown_has_a_column_and_a_table(verified):
    """Each comparison has the column, the section a table for each prompt, a row a variant."""
    data = verified()
    text = render_text(data)
    comparison = text.partition("## Comparison")[2].partition("\n## ")[0]
    (head,) = [line for line in comparison.splitlines() if line.startswith("| variant")]
    (row,) = [line for line in comparison.splitlines() if line.startswith("| `bad`")]
    place = head.split(" | ").index("same model?")
    assert row.split(" | ")[place] == "DIFFERS"
    section = text.partition("## Same model?")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith("| `bad`")]
    assert row == (
        "| `bad` | LiteRT-LM 0.18.1 | equal | 7 of 64 | 25 % | 0.5 | 3 | 0.031 | **DIFFERS** |"
    )
    assert "Parts at token 8: ' a' for ' the', whose logit is higher by 2.5." in text
    assert "(bf16: 0.3)" in text
    tables = [token for token in MarkdownIt("commonmark").enable("table").parse(text)
              if token.type == "table_open"]  # fmt: skip
    assert len(tables) >= 3


def test_the_page_has_a_column_and_a_section(verified):
    """Every row of the comparison has its cell; the section is linked from the page's head."""
    data = verified()
    page = render_page(data)
    rows = sum(len(table.rows) for table in comparison_rows(data))
    assert len(re.findall(r'<td [^>]*data-label="Same model\?"', page)) == rows
    assert '<a href="#same">' in page
    section = re.search(r'<section id="same".*?</section>', page, re.DOTALL)[0]
    assert "It died." in section
    assert "it gives no log-likelihoods" in section


def test_texts_of_models_can_do_nothing(verified):
    """Tokens are any text at all: in no form do they become markup or terminal controls."""
    evil = FOUND["bad"].model_copy(
        update={"prompts": [prompt(common_tokens=7, parting=parting(EVIL), workload="w")]}
    )
    data = verified({"bad": evil})
    page, text = render_page(data), render_text(data)
    assert "<img src=x" not in page
    assert "<img src=x" not in text
    assert "\x1b" not in page + text + sameness_text(data.sameness).plain
    assert "\u202e" not in page + text


def test_the_terminal_fits_80_columns(verified):
    """Long names fold; every figure is there."""
    found = {f"llama.cpp F16 threads=2 {name} with a long name": each
             for name, each in FOUND.items()}  # fmt: skip
    view = verified(found).sameness
    console = Console(width=80, record=True, file=StringIO())
    console.print(sameness_table(view))
    console.print(sameness_text(view))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert "not judged: int4 weights" in " ".join(shown.split())
    for figure in ("7/64", "94.1 %", "1.2e-05", "DIFFERS", "It died."):
        assert figure in shown


def test_a_variant_without_findings_beside_others_is_a_dash(sample_run):
    """A run whose record lacks one variant's comparison is shown, with a dash."""
    record, _ = sample_run.handmade({"a": {"decode_rate": [1.0]}, "b": {"decode_rate": [1.0]}})
    variants = [record.variants[0].model_copy(update={"sameness": FOUND["good"]}),
                record.variants[1]]  # fmt: skip
    view = sameness_view(variants, None)
    assert view.short == {"a": "agrees", "b": "–"}
    assert (view.reference, view.notes) == ("", ())


def test_a_reason_that_holds_for_many_is_said_once(verified):
    """The same note of several prompts and variants is one line that names them all."""
    mute = FOUND["mute"].model_copy(
        update={
            "prompts": [
                FOUND["mute"].prompts[0].model_copy(update={"workload": name})
                for name in ("w", "v")
            ]
        }
    )
    remarks = dict(map(reversed, verified({"one": mute, "two": mute}).sameness.remarks))
    assert remarks["Not compared: it gives no log-likelihoods."] == "one on w, v; two on w, v"
