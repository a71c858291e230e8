"""Reports in Chinese hold no English, but for what a run itself says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from sample_quality import quality_sample
from sample_run import NO_POWER, NOTE, sample

from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.sameness import Parting, PromptSameness, ReferenceRecord, Sameness
from edgebench.reports.data import load_report_data
from edgebench.reports.html import render_page
from edgebench.reports.languages import language
from edgebench.reports.languages.words import unstopped
from edgebench.reports.markdown import render_text

ENGLISH_RUN = re.compile(r"[A-Za-z][A-Za-z'’]*(?:[ \n,;:]+[A-Za-z][A-Za-z'’]*){2,}")
"""Three English words in a row, or more."""

MADE_UP = (
    NO_POWER, NOTE, "the scenario does not ask for cold loads",
    "the prompt was handed over as token ids", "the virtual machine does not show it",
    "no sensor is readable",
)  # fmt: skip
"""What the made-up runs record and no harness writes: quotations, so in English."""

VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)


def texts_in(value):
    """All texts inside of what JSON or YAML holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        yield value.strip()


class _Texts(HTMLParser):
    """The texts of a page that people read, code and quotations left out."""

    SKIPPED = frozenset({"script", "style", "code", "pre", "blockquote", "q"})
    READ = frozenset({"title", "aria-label", "data-label", "alt", "placeholder"})

    def __init__(self):
        super().__init__()
        self.texts = []
        self._skipping = 0

    def handle_starttag(self, tag, attrs):
        # What is written in another language says so.
        quoted = tag in self.SKIPPED or ("lang", "en") in attrs
        self._skipping += bool(quoted) or (self._skipping > 0 and tag not in VOID)
        if not self._skipping:
            self.texts += [text for name, text in attrs if name in self.READ and text]

    def handle_endtag(self, tag):
        if self._skipping and tag not in VOID:
            self._skipping -= 1

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_data(self, data):
        if not self._skipping and data.strip():
            self.texts.append(data)


OTHER_IDS = "45 ids for 43 of the reference, other ones from token 7 on"


def verified(verdict, **changes):
    """What verifying found of a variant on one prompt, some of it missing."""
    missing = Measured.missing("nat", "the framework does not tell its likeliest token")
    known = Measured(value=0.0123, unit="nat", source="derived")
    prompt = PromptSameness(
        workload="chat",
        prompt_tokens=43,
        tokenizer="differs",
        tokenizer_note=OTHER_IDS,
        generated_tokens=20,
        untold_tokens=4,
        common_tokens=7,
        parting=Parting(
            token=7, reference_id=1, reference_text=" the", variant_id=2, variant_text=" a",
            margin=2.5,
        ),
        metrics={"kl_divergence": known, "top1_agreement": missing},
    )  # fmt: skip
    return Sameness(verdict=verdict, prompts=[prompt], metrics={"kl_divergence": known}, **changes)


VERIFIED = (
    verified("agrees"),
    verified(
        "differs",
        findings=[
            f"on chat, its tokenizer makes other ids: {OTHER_IDS}",
            "on chat, the mean KL divergence is 0.0123, over 0.0001",
        ],
    ),
    verified("not_judged", not_judged_because="q4f16_1 weights"),
    Sameness(verdict="failed", failure=Failure(kind="crash", message=MADE_UP[-1])),
)
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


def own_words(data):
    """What the run itself names and says: no report translates that."""
    record = data.record
    said = [*MADE_UP, *record.notes, json.dumps(record.scenario)]
    said += [text for each in record.workloads for text in (each.name, each.description)]
    said += [text for each in record.variants for text in (each.id, each.engine, each.runner)]
    said += [each.artifact.made_by for each in record.variants if each.artifact]
    said += [each.artifact.note for each in record.variants if each.artifact]
    said += [each.quality.text_origin for each in record.workloads if each.quality]
    said += [text for each in data.failures for text in (each.message, each.log_tail)]
    said += [text for each in data.failures for text in each.log_tail.splitlines()]
    said += [str(value) for value in record.machine.model_dump().values()]
    said += [str(value) for value in record.scenario.values()]
    for value in record.scenario.values():
        said += [str(each) for each in value.values()] if isinstance(value, dict) else []
    return set(filter(None, said))


def english_in(texts, data):
    """Runs of English words that are neither the run's own nor a name."""
    own = {form for text in own_words(data) for form in (text, unstopped(text))}
    known = re.compile("|".join(map(re.escape, sorted(own, key=len, reverse=True))))
    left = (known.sub(" · ", text) for text in texts)
    return sorted({match[0] for text in left for match in ENGLISH_RUN.finditer(text)})


@pytest.fixture(scope="module", params=["speed", "quality"])
def chinese(request, tmp_path_factory):
    """The data of a run, its page and its Markdown, in Chinese."""
    folder = tmp_path_factory.mktemp("runs") / request.param
    if request.param == "quality":
        made = quality_sample(blocks=3, timeline_samples=6)
        made.variants = dict(list(made.variants.items())[::4])
        for (record, speed), found in zip(list(made.variants.values()), VERIFIED, strict=True):
            made.variants[record.id] = (record.model_copy(update={"sameness": found}), speed)
        made.changes = {"reference": REFERENCE}
        made.write(folder)
    else:
        made = sample(timeline_samples=6, blocks=3)
        made.crash = (list(made.variants)[-1], made.workloads[0].name)
        made.changes = {"quick": True, "status": "interrupted", "stopped_by_budget": True}
        made.write(folder)
    with language("zh"):
        data = load_report_data(folder)
        return data, render_page(data), render_text(data)


def test_a_chinese_page_holds_no_english_sentence(chinese):
    """Whatever a reader of the page reads is Chinese, but for what the run itself says."""
    data, page, _markdown = chinese
    parser = _Texts()
    parser.feed(page)
    assert len(parser.texts) > 200
    assert english_in(parser.texts, data) == []
    assert re.search(r"<html[^>]* lang=\"?zh", page)


def test_what_the_pages_script_says_is_chinese_too(chinese):
    """The texts that the script puts into the page are in it in the page's language."""
    data, page, _markdown = chinese
    blocks = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    texts = [text for block in blocks for text in texts_in(json.loads(block))]
    assert len(texts) > 100
    assert english_in(texts, data) == []


def test_chinese_markdown_holds_no_english_sentence(chinese):
    """The same of the Markdown report."""
    data, _page, markdown = chinese
    text = re.sub(r"^(`{3,}).*?^\1", " · ", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?<!\\)`[^`\n]*`", " · ", text)
    text = re.sub(r"\\(?=[^\w\s])", "", text)
    assert english_in(text.splitlines(), data) == []


def test_chinese_sentences_are_not_joined_by_blanks(chinese):
    """No blank stands after a Chinese full stop, where English sentences have one."""
    _data, page, markdown = chinese
    parser = _Texts()
    parser.feed(page)
    texts = (*parser.texts, *markdown.splitlines())
    assert [text for text in texts if re.search(r"。 +[*]*[\u4e00-\u9fff]", text)] == []


def test_chinese_markdown_has_chinese_punctuation(chinese):
    """After Chinese words stands no half-width colon, comma or semicolon, whatever is set bold."""
    _data, _page, markdown = chinese
    text = re.sub(r"^(`{3,}).*?^\1", " · ", markdown, flags=re.DOTALL | re.MULTILINE)
    own = [line for line in text.splitlines() if "主观评价" not in line]  # quotes are verbatim
    assert [each for each in own if re.search(r"[\u4e00-\u9fff）][*`]*[:;,](?: |$)", each)] == []
