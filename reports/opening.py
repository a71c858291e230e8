"""The first three sentences of a report: what was measured, what won where, what not to trust."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.reports.answer import best_variants
from edgebench.reports.colours import framework_key
from edgebench.reports.data import paired_ratio
from edgebench.reports.facts import TESTING_RUNNER
from edgebench.reports.format import number, scale_for
from edgebench.reports.languages import N_, _, current, plural
from edgebench.reports.languages.words import commas
from edgebench.reports.sentences import Name, Sentence, fill, listed
from edgebench.reports.table import flag_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from edgebench.harness.results.model import Summary
    from edgebench.reports.data import ReportData

NAMED_AT_MOST = 3

_WINS = {
    "decode_rate": (
        N_("{who} decodes fastest on {where}"),
        N_("{who} can't be told apart in decode rate on {where}"),
        N_("{figure}, {ratio} times the next"),
    ),
    "ttft_s": (
        N_("{who} gives the first token soonest on {where}"),
        N_("{who} can't be told apart in time to first token on {where}"),
        N_("{figure}, where the next takes {ratio} times as long"),
    ),
    "peak_rss_bytes": (
        N_("{who} needs the least memory on {where}"),
        N_("{who} can't be told apart in peak memory on {where}"),
        N_("{figure}, where the next needs {ratio} times as much"),
    ),
}
"""By metric: what the best one does, the same for several, and by how much it leads."""

_ALONE = {
    "decode_rate": N_("a decode rate of {figure}"),
    "ttft_s": N_("a time to first token of {figure}"),
    "peak_rss_bytes": N_("a peak memory of {figure}"),
}
_HIGHER = frozenset({"decode_rate"})


def opening(data: ReportData) -> tuple[Sentence, Sentence, Sentence]:
    """What was measured; what won where, by how much and how surely; what is not to be trusted."""
    return _measured(data), _won(data), _not_trusted(data)


# What was measured


def _measured(data: ReportData) -> Sentence:
    model = data.record.scenario.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    parts: dict[str, object] = {
        "model": Name(str(name)) if name else _("A model"),
        "frameworks": listed(framework_names(data)),
        "variants": plural("{count} variant", "{count} variants", len(data.variant_ids)),
        "workloads": _workloads(data),
        "machine": _machines(data),
        "date": _dates(data),
        "measured": _amount(data),
    }
    return fill(
        "{model} ran in {frameworks}, as {variants} on {workloads}, on {machine}, {date}: "
        "{measured}.",
        **parts,
    )


def framework_names(data: ReportData) -> tuple[str, ...]:
    """The frameworks that the run is about, in words, each once."""
    from edgebench.reports.frameworks_table import framework_name  # noqa: PLC0415 - it needs us

    keys = dict.fromkeys(framework_key(each) for each in data.record.variants)
    return tuple(dict.fromkeys(framework_name(key) for key in keys))


def _workloads(data: ReportData) -> Sentence:
    names = [each.name for each in data.record.workloads]
    if len(names) <= NAMED_AT_MOST:
        return listed(names)
    return (plural("{count} workload", "{count} workloads", len(names)),)


def _machines(data: ReportData) -> Sentence:
    models = tuple(dict.fromkeys(each.record.machine.cpu_model for each in data.parts))
    prints = {each.record.machine.fingerprint for each in data.parts}
    if len(prints) > 1:
        return fill("{count} machines ({names})", count=len(prints), names=_names(models))
    return (Name(models[0]),)


def _dates(data: ReportData) -> str:
    days = sorted(each for part in data.parts if (each := _day(part.record.created_at)) is not None)
    if not days:
        return _("at an unknown time")
    first, last = _date(days[0]), _date(days[-1])
    if days[0] == days[-1]:
        return _("on {date}", date=first)
    return _("between {first} and {last}", first=first, last=last)


def _amount(data: ReportData) -> str:
    timed = sum(cell.n for (name, _v), cell in data.cells.items() if name not in data.quality_names)
    rated = sum(
        1 for (name, _v), cell in data.cells.items() if name in data.quality_names and cell.n
    )
    found = []
    if timed:
        found.append(plural("{count} measured repetition", "{count} measured repetitions", timed))
    if rated:
        found.append(plural("{count} rating of a text", "{count} ratings of a text", rated))
    return commas(found) or _("nothing was measured")


# What won where


def _won(data: ReportData) -> Sentence:
    clauses = [clause for key in _WINS for clause in _clauses(data, key)]
    if not clauses:
        return (_no_winner(data),)
    joined = _chain(clauses)
    if len(data.variant_ids) == 1:
        return fill(
            "One variant alone was measured, so nothing won; it has {values}.", values=joined
        )
    if any(kind == "sure" for key in _WINS for kind in _kinds(data, key)):
        return fill(
            "{clauses}; a lead without a remark is one whose 95 % interval is apart from all "
            "others.",
            clauses=_capital(joined),
        )
    return fill("{clauses}.", clauses=_capital(joined))


def _no_winner(data: ReportData) -> str:
    if data.quality_names and any(
        data.cell(q, v).n for q in data.quality_names for v in data.variant_ids
    ):
        return _("Texts were rated and no speed was compared: see Quality for what won.")
    if data.task_names and any(
        data.cell(t, v).n for t in data.task_names for v in data.variant_ids
    ):
        return _("Whole tasks were measured, of which nothing is ranked.")
    return _("Nothing won: no speed and no memory was measured.")


def _kinds(data: ReportData, key: str) -> Iterator[str]:
    for workload in data.workload_names:
        if summaries := data.summaries(workload, key):
            yield _outcome(summaries, key)[0]


def _outcome(summaries: dict[str, Summary], key: str) -> tuple[str, tuple[str, ...]]:
    """How it ended: ``alone``, ``tie``, ``sure`` or ``unsure``; and who is best, best first."""
    best, known = best_variants(summaries, key)
    if len(summaries) == 1:
        return "alone", best
    if len(best) > 1:
        return "tie", best
    return ("sure" if known else "unsure"), best


def _clauses(data: ReportData, key: str) -> list[Sentence]:
    """What there is to say about one metric, one clause for each kind of outcome."""
    groups: dict[tuple[str, frozenset[str]], list[str]] = {}
    bests: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    for workload in data.workload_names:
        summaries = data.summaries(workload, key)
        if not summaries:
            continue
        kind, best = _outcome(summaries, key)
        outcome = (kind, frozenset(best))
        groups.setdefault(outcome, []).append(workload)
        bests.setdefault(outcome, best)
    ranked = sorted(groups.items(), key=lambda each: -len(each[1]))
    return [
        _clause(data, key, outcome[0], bests[outcome], workloads)
        for outcome, workloads in ranked[:NAMED_AT_MOST]
    ]


def _clause(
    data: ReportData, key: str, kind: str, best: tuple[str, ...], workloads: Sequence[str]
) -> Sentence:
    wins, tie, by = _WINS[key]
    leader = best[0]
    summaries = [data.summaries(each, key) for each in workloads]
    figure = _range([each[leader] for each in summaries])
    if kind == "alone":
        if len(data.variant_ids) == 1:
            return fill(_ALONE[key], figure=figure)
        return fill(
            "only {who} was measured on {where}: {figure}",
            who=Name(leader),
            where=_where(data, workloads),
            figure=figure,
        )
    where = _where(data, workloads)
    if kind == "tie":
        lead = fill(tie, who=_names(best), where=where)
        return fill(
            "{clause} (about {figure}; the 95 % intervals overlap)", clause=lead, figure=figure
        )
    lead = fill(wins, who=Name(leader), where=where)
    if kind == "unsure":
        return fill(
            "{clause} ({figure}; a hint only, with too few repetitions)", clause=lead, figure=figure
        )
    ratios = [
        ratio
        for workload, each in zip(workloads, summaries, strict=True)
        if (ratio := _lead(data, workload, key, leader, each)) is not None
    ]
    amount = (
        fill(by, figure=figure, ratio=_between([number(each, 2) for each in sorted(ratios)]))
        if ratios
        else (figure,)
    )
    return fill("{clause} ({amount})", clause=lead, amount=amount)


def _lead(
    data: ReportData, workload: str, key: str, leader: str, summaries: dict[str, Summary]
) -> float | None:
    """By how many times the leader is ahead of the next one, the median of blocks."""
    others = {each: one for each, one in summaries.items() if each != leader}
    (second, *_rest), _known = best_variants(others, key)
    pair = (leader, second) if key in _HIGHER else (second, leader)
    return paired_ratio(data.run.trials, workload, key, *pair)


def _where(data: ReportData, workloads: Sequence[str]) -> Sentence:
    if len(workloads) == len(data.workload_names) and len(workloads) > NAMED_AT_MOST:
        return (_("all workloads"),)
    return _names(workloads)


def _range(summaries: Sequence[Summary]) -> str:
    medians = sorted(each.median for each in summaries if each.median is not None)
    scale = scale_for(summaries[0].unit, medians)
    texts = [scale.write(scale.of(each), scale.decimals(scale.of(each))) for each in medians]
    return _between(texts) + scale.suffix


def _between(texts: Sequence[str]) -> str:
    if texts[0] == texts[-1]:
        return texts[0]
    return _("{low} to {high}", low=texts[0], high=texts[-1])


# What is not to be trusted


def _not_trusted(data: ReportData) -> Sentence:
    found = [*_whole_run(data), *_of_variants(data)]
    if not found:
        return (_("Nothing failed and no value is flagged; what was not measured has its reason."),)
    return fill("Not to be trusted, or missing: {items}.", items=_chain(found))


def _whole_run(data: ReportData) -> Iterable[Sentence]:
    record = data.record
    if any(each.runner == TESTING_RUNNER for each in record.variants):
        yield fill(
            "all figures of the runner {name}, which makes them up", name=Name(TESTING_RUNNER)
        )
    if any(part.record.quick for part in data.parts):
        yield (_("all figures, for this was a quick look"),)
    if record.status != "finished":
        yield (_("what is missing, for the run did not finish"),)
    prints = {each.record.machine.fingerprint for each in data.parts}
    if len(prints) > 1:
        yield (
            _("any comparison across the {count} machines as one of frameworks", count=len(prints)),
        )
    if data.sameness and data.sameness.bad:
        yield fill(
            "the figures of {names}, which could not be shown to compute the same model",
            names=_names(tuple(dict.fromkeys(each.variant for each in data.sameness.bad))),
        )


def _of_variants(data: ReportData) -> Iterable[Sentence]:
    failed = tuple(dict.fromkeys(each.variant for each in data.failures))
    if failed:
        yield fill("{names}, which failed in part or whole (see Failures)", names=_names(failed))
    flags: dict[str, dict[str, None]] = {}
    for (_workload, variant), cell in data.cells.items():
        for flag in cell.flags:
            if flag != "quick":
                flags.setdefault(variant, {})[flag_text(flag)] = None
    whose: dict[tuple[str, ...], list[str]] = {}
    for variant, texts in flags.items():
        whose.setdefault(tuple(sorted(texts)), []).append(variant)
    for kinds, variants in whose.items():
        if len(variants) == len(data.variant_ids) > 1:
            yield fill("all variants ({flags})", flags=commas(kinds))
        else:
            yield fill("{names} ({flags})", names=_names(variants), flags=commas(kinds))
    if data.workload_names and not any(
        data.summaries(each, "mean_power_w") for each in data.workload_names
    ):
        yield (_("power, which was not measured"),)


# Words


def _names(names: Sequence[str]) -> Sentence:
    """At most three names, and how many more there are."""
    if len(names) <= NAMED_AT_MOST:
        return listed(names)
    shown = names[: NAMED_AT_MOST - 1]
    parts: list[str | Name] = []
    for place, name in enumerate(shown):
        parts += [_(", "), Name(name)] if place else [Name(name)]
    return fill("{names} and {more} more", names=tuple(parts), more=len(names) - len(shown))


def _chain(clauses: Sequence[Sentence]) -> Sentence:
    parts: list[str | Name] = []
    for place, clause in enumerate(clauses):
        parts += [_("; "), *clause] if place else clause
    return tuple(parts)


def _capital(sentence: Sentence) -> Sentence:
    """The sentence with a capital first letter, unless a name comes first."""
    first = sentence[0]
    if isinstance(first, Name):
        return sentence
    return (first[:1].upper() + first[1:], *sentence[1:])


def _day(moment: str) -> date | None:
    try:
        when = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (when.astimezone(UTC) if when.tzinfo is not None else when).date()


def _date(day: date) -> str:
    if current() == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {day:%B %Y}"
