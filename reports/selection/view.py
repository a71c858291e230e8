"""What there is to say about a choice, ready to be shown in any form.

`edgebench.reports.selection.select` makes it; the terminal, HTML, Markdown and JSON show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.reports.sentences import Sentence
    from edgebench.reports.table_model import Table


@dataclass(frozen=True, slots=True)
class Step:
    """One question on the way through a tree, answered.

    Attributes:
        key: of the question, by which it is answered.
        question: in words.
        answer: the answer's key: ``yes``, ``no`` or a name.
        answer_text: the answer in words.
        given_by: who answered: ``scenario``, ``command line``, ``terminal`` or ``follows from
            vision``; a message, to be looked up with `_` where it is shown.
    """

    key: str
    question: str
    answer: str
    answer_text: str
    given_by: str


@dataclass(frozen=True, slots=True)
class Open:
    """A question that nobody answered, where the walk ends.

    Attributes:
        key, question: of the question.
        choices: the answers' keys with their words.
    """

    key: str
    question: str
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """One decision tree with the way through it.

    Attributes:
        name, version: the tree's.
        title: in words.
        document: the document that it is taken from, in words; empty for a user's own.
        steps: the questions that were answered, from the root on.
        open: where it ended without a recommendation; None where it has one.
        recommendation: the runner's name in lower case; empty where the way is open.
        because: the document's own reason, if it gives one.
        svg: the tree drawn twice, with the way lit: an ``<svg class="tree-wide">`` and one of the
            class ``tree-narrow``, of which a page shows the one that it has room for.
        mermaid: the same as the text of a Mermaid flowchart, without its fence.
        fits: what the recommended framework fits, as the tree's document says it.
    """

    name: str
    version: int
    title: str
    document: str
    steps: tuple[Step, ...]
    open: Open | None
    recommendation: str
    because: str
    svg: str
    mermaid: str
    fits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of a finding, for whoever reads no sentences.

    Attributes:
        goal: as it is weighed: a metric's key, or ``quality``, whose value is the perplexity, or
            how many times it is the reference's.
        workload: whose value it is; empty for the geometric mean of several.
        value: in its unit; None where nothing was measured.
        low, high: the ends of its 95 % interval; None where there is none.
        unit: of the value, such as ``token/s``.
        other: the variant that it is compared with; empty without.
        ratio: how many times the value is that of the other one, of pairs where there are some.
        ratio_low, ratio_high: the ends of the ratio's 95 % interval; None where there is none.
    """

    goal: str
    workload: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    other: str = ""
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured value, or one fact, that speaks for or against a framework.

    Attributes:
        kind: ``supports``, ``contradicts``, ``fails`` (a limit), ``lacks`` (a capability),
            ``failed`` (crashed, out of memory, not run to its end), ``unknown`` (not measured or
            not known, and why) or ``note`` (measured, but neither for it nor against it: a hint
            from too few repetitions, flags, nothing to compare it with).
        sentence: what it is, with the value, its interval and where it is from.
        quoted: whether a document says it, and nobody measured it here.
        figures: its numbers; None where it has none.
    """

    kind: str
    sentence: Sentence
    quoted: bool = False
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known for and against one framework.

    Attributes:
        framework: its name in words; that of what was really measured where the runner drove
            something else.
        runner: the runner's name.
        ran: whether any variant of it has measured values, on any workload.
        variant: the variant that stands for it, the best that meets the limits; empty without.
        meets_limits: whether that variant meets all limits; None where that is not known, and
            where no limit was given.
        findings: in the order of importance.
        state: ``measured`` (on all workloads), ``partly`` (on some), ``failed`` (it was tried, and
            nothing came of it) or ``absent`` (not part of the run).
    """

    framework: str
    runner: str
    ran: bool
    variant: str
    meets_limits: bool | None
    findings: tuple[Finding, ...]
    state: str = "absent"


@dataclass(frozen=True, slots=True)
class Excluded:
    """A variant that the measurements do not recommend, whatever the weights.

    Attributes:
        variant: its id.
        state: ``failed`` (it has no values on some workload), ``broken`` (it takes more than the
            memory's bandwidth on some), ``fails`` (a limit) or ``unknown`` (whether it meets all
            limits).
        reasons: why, in words.
    """

    variant: str
    state: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant that is left once the limits have been applied.

    Attributes:
        variant, framework, runner: its id, whose it is in words, and the runner's name.
        score: from 0 to 1; None where it has none.
        score_source: estimated where a part of the score is, else derived.
        score_low, score_high: the ends of its 95 % interval; None where there is none.
        wins: share of resamples in which it has the highest score; None where that is not known.
        dominated_by: a variant that dominates it; empty where none does.
        on_front: whether none does.
        values: by goal the value, the ends of its 95 % interval, and the unit.
    """

    variant: str
    framework: str
    runner: str
    score: float | None
    score_low: float | None
    score_high: float | None
    score_source: str
    wins: float | None
    dominated_by: str
    on_front: bool
    values: Mapping[str, tuple[float | None, float | None, float | None, str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """The second answer: from the measurements.

    Attributes:
        recommendation: the runner's name; empty where nothing is known to meet the limits, nothing
            was measured, or only the testing runner ran.
        framework, variant: whose figures they are.
        certainty: ``sure``, ``tie`` (others can't be told apart from it), ``unsure`` (too few
            repetitions to tell), ``alone`` (nothing else is left), ``none``.
        sentences: how it came about: limits, who is left, the front, the weights.
        table: every variant: limits met, on the front, score; None where nothing was measured.
        weights: what was weighed, each goal's share; they add up to 1.
        weights_given: whether the user gave them.
        front: ids of the variants that none dominates.
        excluded: each variant that failed, or is not known to meet all limits.
        candidates: those that are left, the best first.
        by_documents: whether what documents say of abilities decided who is left, so that this is
            no answer of the measurements alone.
        limits_given: whether the user gave any limit, or asked for any ability.
    """

    recommendation: str
    framework: str
    variant: str
    certainty: str
    sentences: tuple[Sentence, ...]
    table: Table | None
    weights: Mapping[str, float]
    weights_given: bool
    front: tuple[str, ...]
    excluded: tuple[Excluded, ...]
    candidates: tuple[Candidate, ...] = ()
    by_documents: bool = False
    limits_given: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """All of it.

    Attributes:
        headline: one or two sentences: what to take, by whom, and how sure that is.
        walks: the trees, those with a recommendation first.
        warnings: what must be read before any recommendation, such as that a recommended
            framework failed to run.
        evidence: by framework, the recommended one first; empty without measurements.
        measured: the answer of the measurements; None where there are none.
        disagreements: where a tree and the measurements differ, and why; a sentence each.
    """

    headline: Sentence
    walks: tuple[Walk, ...]
    warnings: tuple[Sentence, ...]
    evidence: tuple[Evidence, ...]
    measured: Measured | None
    disagreements: tuple[Sentence, ...]
