"""English and Chinese: every message is translated, nothing else is, and both say the same."""

from __future__ import annotations

import ast
import json
import re
import string
from collections import defaultdict
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from babel.messages.extract import extract
from ruamel.yaml import YAML

from edgebench.harness.metrics.definitions import METRICS
from edgebench.harness.metrics.statistics import median_interval
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.reports.facts import moment
from edgebench.reports.format import counted
from edgebench.reports.languages import LANGUAGES, N_, _, current, language, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import day_text, lowered, unstopped
from edgebench.reports.metric_names import metric_label
from edgebench.reports.sentences import Name, fill, joined, listed, plain

ROOT = Path(__file__).parents[3]
REPORTS = ROOT / "reports"
CATALOGUES = sorted((REPORTS / "languages" / "zh").glob("*.json"))
RECORDED = REPORTS / "languages" / "zh" / "recorded.json"
KEYWORDS = {"_": (1,), "N_": (1,), "fill": (1,), "plural": (1, 2), "counted": (1, 2)}
"""What takes messages, with the places of its arguments that are some."""

NOTING = ("runners/worker.py", "runners/checked_weights.py", "runners/*_convert.py")
"""Runners' modules whose words get into the records of a run."""

ENGLISH_RUN = re.compile(r"[A-Za-z][A-Za-z'’]*(?:[ \n,;:]+[A-Za-z][A-Za-z'’]*){2,}")
"""Three English words in a row, or more."""


def read(path):
    """One catalogue; a key that stands in it twice is an error, not the last one."""

    def unique(pairs):
        keys = [key for key, _value in pairs]
        assert len(keys) == len(set(keys)), sorted({key for key in keys if keys.count(key) > 1})
        return dict(pairs)

    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)


def fields(message):
    return {name for _text, name, *_rest in string.Formatter().parse(message) if name is not None}


def in_code(path):
    """The messages of a module, each with its other forms before it where it has a count.

    By its syntax, since a message may stand inside of an f-string.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        places = KEYWORDS.get(node.func.id, ())
        forms = [node.args[place - 1] for place in places if place <= len(node.args)]
        texts = [each.value for each in forms if isinstance(each, ast.Constant)]
        if texts and len(texts) == len(forms):
            yield texts


def in_template(path):
    """The same of a template."""
    options = {"encoding": "utf-8", "trimmed": "false", "silent": "false"}
    method = "jinja2.ext:babel_extract"
    with path.open("rb") as file:
        for _line, found, *_rest in extract(method, file, keywords=KEYWORDS, options=options):
            yield found if isinstance(found, tuple) else (found,)


@pytest.fixture(scope="module")
def messages():
    """Every message of the code and of the templates, with the file that holds it first.

    Of a message with a count, the form for many: Chinese has one form, and looks that one up.
    """
    found = {}
    for path in sorted(REPORTS.rglob("*.py")):
        for *_forms, message in in_code(path):
            found.setdefault(message, path.name)
    for path in sorted((REPORTS / "templates").glob("*.j2")):
        for *_forms, message in in_template(path):
            found.setdefault(message, path.name)
    return found


@pytest.fixture(scope="module")
def catalogue():
    """Everything that is translated."""
    return {key: text for path in CATALOGUES for key, text in read(path).items()}


def texts_in(value):
    """All texts inside of what JSON or YAML holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        yield value.strip()


def texts_of_yaml():
    """All texts of the YAML files of the reports: their trees, and what is published."""
    for path in REPORTS.rglob("*.yaml"):
        yield from texts_in(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))


def defined():
    """What metrics are called, and how they are defined."""
    return {text for each in METRICS.values() for text in (each.label, each.short, each.definition)}


def test_there_are_messages_in_code_and_templates(messages):
    """Messages are found where they are known to be, so that the other tests look at something."""
    assert messages["Fastest decode"] == "answer.py"
    assert "{count} windows" in messages
    assert "{count} window" not in messages
    assert any(where.endswith(".j2") for where in messages.values())
    assert len(messages) > 300


def test_every_message_is_translated(messages, catalogue):
    """A message of the code or a template that lacks its Chinese is named, with its file."""
    missing = defaultdict(list)
    for message, where in messages.items():
        if message not in catalogue:
            missing[where].append(message)
    assert not missing, json.dumps(missing, indent=1, ensure_ascii=False)


def test_every_metric_is_translated(catalogue):
    """Names and definitions of the metrics, which the harness holds, have their Chinese too."""
    assert sorted(defined() - set(catalogue)) == []


def test_nothing_is_translated_that_nobody_says(messages):
    """A translation goes when its message goes."""
    said = {*messages, *defined(), *texts_of_yaml()}
    stale = {
        path.name: [key for key in read(path) if key not in said]
        for path in CATALOGUES
        if path != RECORDED
    }
    assert not any(stale.values()), json.dumps(stale, indent=1, ensure_ascii=False)


def test_both_sides_have_the_same_fields():
    """A field that the translation lacks, or that nobody fills, is named."""
    for path in CATALOGUES:
        for message, text in read(path).items():
            if "{" in message or "{" in text:
                assert fields(message) == fields(text), (path.name, message)


def test_a_message_has_one_translation():
    """Two catalogues may hold a message only if they say the same of it."""
    found = defaultdict(dict)
    for path in CATALOGUES:
        if path == RECORDED:
            continue
        for message, text in read(path).items():
            found[message].setdefault(text, path.name)
    assert {message: texts for message, texts in found.items() if len(texts) > 1} == {}


def test_translations_are_chinese():
    """A translation holds Chinese, unless it is a name, a number or a unit."""
    for path in CATALOGUES:
        for message, text in read(path).items():
            words = re.sub(r"\{\w+\}", "", text)
            chinese = re.search(r"[\u4e00-\u9fff，。：；、（）]", words)
            assert chinese or not ENGLISH_RUN.search(words), (path.name, message, text)


def test_sentences_end_as_chinese_ones_do():
    """A sentence keeps its full stop, of the right form, so that sentences can be put in a row."""
    for path in CATALOGUES:
        for message, text in read(path).items():
            if message.endswith(".") and not message.endswith(("...", "ref.", "temp.")):
                assert text.endswith("。"), (path.name, message)
            assert not text.endswith("."), (path.name, message)


def constants(path):
    """The texts of a module; what is filled in is a pair of braces."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values
            )


def test_recorded_texts_are_still_written_by_somebody():
    """Each known text of the records is, piece by piece, in the source of what writes them."""
    source = "\n".join(
        text
        for pattern in ("harness/**/*.py", "devices/*.py", *NOTING)
        for path in ROOT.glob(pattern)
        for text in constants(path)
    )
    for message in read(RECORDED):
        for text, *_rest in string.Formatter().parse(message):
            for piece in re.split(r"[:;] ", text):
                assert piece.strip() in source, message


def test_recorded_texts_are_recognised_with_what_they_hold():
    """A reason that the harness really made is shown in Chinese, with its own numbers."""
    reason = median_interval([1.0, 2.0], [0, 1]).reason
    with language("zh"):
        assert recorded(reason) == "置信区间至少需要 5 个区组，实际只有 2 个"
        assert recorded(f"{reason}.") == "置信区间至少需要 5 个区组，实际只有 2 个。"
        assert recorded("rapl-0 can't be read: No such device") == (
            "rapl-0 无法读取：No such device"
        )
        assert recorded("left with status 3") == "以状态 3 退出"
        ids = "45 ids for 43 of the reference, other ones from token 7 on"
        found = recorded(f"on chat, its tokenizer makes other ids: {ids}")
        assert found == f"在 chat 上，其分词器给出不同的 id：{recorded(ids)}"
        assert recorded(ids) == "得到 45 个 id，而参考模型为 43 个，从第 7 个 Token 起不同"
        both = "no power meter was found; its driver said so"
        assert recorded(both) == "未找到功耗计；“its driver said so”"
    assert recorded(reason) == reason


def test_what_nobody_knows_stays_as_it_was_recorded():
    """A framework's own words are quoted, whatever the language, and braces do no harm.

    A sentence is set in quotation marks, with the full stop of the sentence around it outside.
    """
    with language("zh"):
        assert recorded("segfault in {kernel} at 0x0") == "segfault in {kernel} at 0x0"
        assert recorded("no such kernel: {x}.") == "“no such kernel: {x}”。"
        assert recorded("") == ""


def test_a_language_lasts_as_long_as_it_is_asked_for():
    """Languages nest, and an error inside does not leave the wrong one behind."""
    assert (current(), LANGUAGES[0]) == ("en", "en")
    with language("zh"):
        with language("en"):
            assert _("not measured") == "not measured"
        assert _("not measured") == "未测量"
    with pytest.raises(ZeroDivisionError), language("zh"):
        raise ZeroDivisionError
    assert current() == "en"
    with pytest.raises(ValueError, match="no such language: tlh"), language("tlh"):
        pass


def test_without_a_translation_the_english_text_is_shown():
    """A message of a newer edgebench, or of an add-on, is better in English than not at all."""
    with language("zh"):
        assert _(N_("{count} hovercraft"), count=3) == "3 hovercraft"


def test_chinese_has_one_form_for_all_counts():
    """English tells one from many; the Chinese text is that of many."""
    assert plural("{count} window", "{count} windows", 1) == "1 window"
    assert counted("{count} window", "{count} windows", 12000) == "12\u202f000 windows"
    with language("zh"):
        assert plural("{count} window", "{count} windows", 1) == "1 个窗口"
        assert counted("{count} window", "{count} windows", 2) == "2 个窗口"


def test_sentences_keep_their_names_in_the_order_of_the_language():
    """What stands where is the translation's to say; a name stays a name wherever it stands."""
    with language("zh"):
        assert plain(listed(["A", "B", "C"])) == "A、B 和 C"
        sentence = fill("{variants} can't be told apart.", variants=listed(["A", "B"]))
        assert sentence == (Name("A"), " 和 ", Name("B"), " 无法区分。")
        assert plain(joined([sentence, sentence])) == "A 和 B 无法区分。A 和 B 无法区分。"
    assert plain(listed(["A", "B", "C"])) == "A, B and C"


def test_a_blank_stands_beside_names_and_not_between_chinese_words():
    """Templates hold a blank before a field, for a name or a number that may stand in it."""
    with language("zh"):
        on = "{who} on {where}"
        assert plain(fill(on, who=_("all variants"), where=Name("w"))) == "w 上的全部变体"
        assert plain(fill(on, who=Name("A"), where=Name("w"))) == "w 上的 A"
    assert plain(fill("{who} on {where}", who="all", where="w")) == "all on w"


def test_dates_and_labels_follow_the_language():
    """A date is written as people write it, and only English labels begin small in a sentence."""
    assert moment("2025-01-14T10:15:00Z") == "14 January 2025, 10:15 UTC"
    assert lowered(metric_label("ttft_s")) == "time to first token"
    with language("zh"):
        assert moment("2025-01-14T10:15:00Z") == "2025年1月14日 10:15 UTC"
        assert lowered(metric_label("ttft_s")) == "首Token延迟"
        assert metric_label("engine_ttft_s") == "首Token延迟（引擎自报）"
        assert unstopped("它。") == "它"


def test_months_are_all_there():
    """Each month of the year has its own number."""
    with language("zh"):
        months = [moment(f"2025-{month:02}-01T00:00:00Z") for month in range(1, 13)]
    assert months[0].startswith("2025年1月1日")
    assert all(one != other for one, other in pairwise(months))
    assert months[11].startswith("2025年12月1日")


def test_counts_of_windows_come_from_the_protocol():
    """The number in a translated reason is the one that the harness compares with."""
    with language("zh"):
        text = recorded(f"an interval needs {MIN_WINDOWS} windows, there are 3")
    assert text == f"置信区间至少需要 {MIN_WINDOWS} 个窗口，实际只有 3 个"


def test_a_crash_and_its_remedy_are_told_in_chinese():
    """The harness joins a message and what to do about it; both are known."""
    crash = "the runner mnn was ended by SIGKILL during generate. If nobody killed it, the kernel "
    with language("zh"):
        assert recorded(f"{crash}may have, for want of memory: see dmesg.") == (
            "运行器 mnn 在 generate 期间被 SIGKILL 终止。"
            "如果没有人终止它，可能是内核因内存不足终止的：见 dmesg。"
        )
        assert recorded("the time stamps go back. Ask Bob about that.") == (
            "时间戳出现倒退。“Ask Bob about that”。"
        )


def test_days_are_written_alike_in_all_sentences():
    """A day has no noughts before its numbers and no blanks in Chinese."""
    assert day_text(date(2025, 1, 4)) == "4 January 2025"
    with language("zh"):
        assert day_text(date(2025, 1, 4)) == "2025年1月4日"


def test_chinese_keeps_one_house_style():
    """A blank between Chinese and Latin letters or digits; no blank before %; full-width marks.

    A time to the first token is written 首Token延迟, as the documents write it.
    """
    whole = re.compile(r"首Token(?:延迟|最快)|^\d+月$|第?\d+年\d+月\d+日|\{\w*\}")
    wrong = re.compile(
        r"[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9%][\u4e00-\u9fff]|\d %|[\u4e00-\u9fff][,;:?!]"
    )
    for path in CATALOGUES:
        for message, text in read(path).items():
            assert not wrong.search(whole.sub(" ", text)), (path.name, message, text)
            assert "首 Token" not in text, (path.name, message, text)
