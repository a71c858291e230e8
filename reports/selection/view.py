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
class Finding:
    """One measured value, or one fact, that speaks for or against a framework.

    Attributes:
        kind: ``supports``, ``contradicts``, ``fails`` (a limit), ``lacks`` (a capability) or
            ``unknown`` (not measured, and why).
        sentence: what it is, with the value, its interval and where it is from.
        quoted: whether a document says it, and nobody measured it here.
    """

    kind: str
    sentence: Sentence
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known for and against one framework.

    Attributes:
        framework: its name in words; that of what was really measured where the runner drove
            something else.
        runner: the runner's name.
        ran: whether any variant of it has measured values.
        variant: the variant that stands for it, the best that meets the limits; empty without.
        meets_limits: whether that variant meets all limits; None where that is not known.
        findings: in the order of importance.
    """

    framework: str
    runner: str
    ran: bool
    variant: str
    meets_limits: bool | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The second answer: from the measurements alone.

    Attributes:
        recommendation: the runner's name; empty where nothing meets the limits or was measured.
        framework, variant: whose figures they are.
        certainty: ``sure``, ``tie`` (others can't be told apart from it), ``unsure`` (too few
            repetitions to tell), ``alone`` (nothing else is left), ``none``.
        sentences: how it came about: limits, who is left, the front, the weights.
        table: every variant: limits met, on the front, score; None where nothing was measured.
        weights: what was weighed, each goal's share; they add up to 1.
        weights_given: whether the user gave them.
        front: ids of the variants that none dominates.
        excluded: id and reasons of each variant that meets not all limits.
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
    excluded: tuple[tuple[str, tuple[str, ...]], ...]


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
