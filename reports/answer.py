"""The short answer: which variant leads in what, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.reports.broken import broken_text
from edgebench.reports.data import intervals_overlap, paired_ratio
from edgebench.reports.format import number, scale_for, shown
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import lowered, unstopped
from edgebench.reports.metric_names import metric_label
from edgebench.reports.sentences import Name, Sentence, fill, joined, listed

if TYPE_CHECKING:
    from edgebench.harness.results.cell import Summary
    from edgebench.reports.data import ReportData

NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a reader wants the best variant for; its texts are English, to be looked up.

    Attributes:
        key: the metric that decides.
        title: a heading of two or three words.
        does_best: what the best one does, such as ``decodes fastest``.
        do_best: the same for several.
        next_one: what is said of the next one, with the field ``ratio``.
    """

    key: str
    title: str
    does_best: str
    do_best: str
    next_one: str

    @property
    def heading(self) -> str:
        """The title in the current language."""
        return _(self.title)


QUESTIONS = (
    Question(
        "decode_rate",
        N_("Fastest decode"),
        N_("decodes fastest"),
        N_("decode fastest"),
        N_("decodes at {ratio} times that rate"),
    ),
    Question(
        "ttft_s",
        N_("First token soonest"),
        N_("gives the first token soonest"),
        N_("give the first token soonest"),
        N_("takes {ratio} times as long"),
    ),
    Question(
        "peak_rss_bytes",
        N_("Least memory"),
        N_("needs the least memory"),
        N_("need the least memory"),
        N_("needs {ratio} times as much"),
    ),
)


@dataclass(frozen=True, slots=True)
class Leader:
    """The answer to one question on one workload.

    Attributes:
        question: what was asked.
        variants: the best one, and those that can't be told apart from it; best first.
        value, unit, interval: the best one's, as text.
        certainty: one of ``sure``, ``tie``, ``unsure`` (no interval), ``alone`` (nothing to
            compare with), ``unknown`` (not measured).
        sentence: all of it as a sentence.
    """

    question: Question
    variants: tuple[str, ...]
    value: str
    unit: str
    interval: str
    certainty: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Answer:
    """The short answer for one workload."""

    workload: str
    leaders: tuple[Leader, ...]

    @property
    def paragraph(self) -> Sentence:
        """All the answers as one paragraph."""
        return joined(each.sentence for each in self.leaders)


def answers(data: ReportData) -> tuple[Answer, ...]:
    """The short answers, one for each workload."""
    return tuple(
        Answer(workload, tuple(_leader(data, workload, question) for question in QUESTIONS))
        for workload in data.workload_names
    )


def best_variants(summaries: dict[str, Summary], key: str) -> tuple[tuple[str, ...], bool]:
    """The best variant and those that can't be told apart from it, best first.

    Args:
        summaries: by variant, with a median each, at least one.
        key: the metric, which says what is better.

    Returns:
        The variants, and whether every interval that the decision needs is there.
    """
    higher = metric(key).better == "higher"
    ranked = sorted(summaries, key=lambda each: summaries[each].median or 0.0, reverse=higher)
    best = summaries[ranked[0]]
    overlaps = {each: intervals_overlap(best, summaries[each]) for each in ranked[1:]}
    tied = [each for each, overlap in overlaps.items() if overlap]
    known = all(overlap is not None for overlap in overlaps.values())
    return (ranked[0], *tied), known


def _leader(data: ReportData, workload: str, question: Question) -> Leader:
    summaries = data.summaries(workload, question.key)
    if not summaries:
        return _unknown(data, workload, question)
    variants, known = best_variants(summaries, question.key)
    best = summaries[variants[0]]
    scale = scale_for(best.unit, [best.median])
    text = shown(best, scale)
    figure = f"{text.value}{scale.suffix}"
    with_interval = f"{figure} {text.interval}".rstrip()
    if len(summaries) == 1:
        certainty = "alone"
        sentence = _alone(data, question, variants[0], with_interval)
    elif len(variants) > 1:
        certainty = "tie"
        sentence = _tie(question, variants, figure)
    elif not known:
        certainty = "unsure"
        sentence = fill(
            "{variant} {does_best}: {figure} (a hint only: too few repetitions for an interval).",
            variant=Name(variants[0]),
            does_best=_(question.does_best),
            figure=figure,
        )
    else:
        certainty = "sure"
        sentence = _sure(data, workload, question, variants[0], with_interval)
    return Leader(question, variants, text.value, scale.unit, text.interval, certainty, sentence)


def _alone(data: ReportData, question: Question, variant: str, figure: str) -> Sentence:
    label = metric_label(question.key)
    if len(data.variant_ids) == 1:
        return fill("{label}: {figure}.", label=label, figure=figure)
    return fill(
        "Only {variant} has a {label}: {figure}.",
        variant=Name(variant),
        label=lowered(label),
        figure=figure,
    )


def _tie(question: Question, variants: tuple[str, ...], figure: str) -> Sentence:
    named = variants[:NAMED_AT_MOST]
    more = len(variants) - len(named)
    who = fill("{variants} and {more} more", variants=listed(named), more=more) if more else None
    return fill(
        "{variants} {do_best}, at about {figure}; their 95 % intervals overlap, so this run can't "
        "tell them apart.",
        variants=who or listed(named),
        do_best=_(question.do_best),
        figure=figure,
    )


def _sure(data: ReportData, workload: str, question: Question, best: str, figure: str) -> Sentence:
    summaries = data.summaries(workload, question.key)
    del summaries[best]
    runner_up = best_variants(summaries, question.key)[0][0]
    ratio = paired_ratio(data.run.trials, workload, question.key, runner_up, best)
    lead = fill(
        "{variant} {does_best}: {figure}",
        variant=Name(best),
        does_best=_(question.does_best),
        figure=figure,
    )
    if ratio is None:
        return fill("{what}.", what=lead)
    return fill(
        "{what}; {variant}, the next, {compares}.",
        what=lead,
        variant=Name(runner_up),
        compares=_(question.next_one, ratio=number(ratio, 2)),
    )


def _unknown(data: ReportData, workload: str, question: Question) -> Leader:
    label = lowered(metric_label(question.key))
    reasons = dict.fromkeys(
        summary.reason
        for variant in data.variant_ids
        if (summary := data.summary(workload, variant, question.key)) and summary.reason
    )
    if data.broken([workload]):
        sentence = fill(
            "No {label} is compared: what was measured is {left_out}.",
            label=label,
            left_out=broken_text(),
        )
    elif reasons:
        why = unstopped(recorded(next(iter(reasons))))
        sentence = fill("No {label} was measured: {reason}.", label=label, reason=why)
    else:
        sentence = fill("No {label} was measured.", label=label)
    return Leader(question, (), "–", "", "", "unknown", sentence)
