"""How the opening of a report names things: at most three, and how many more there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import _
from edgebench.reports.sentences import Name, Sentence, fill, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.reports.data import ReportData

NAMED_AT_MOST = 3


def named(names: Sequence[str]) -> Sentence:
    """At most three names, and how many more there are."""
    if len(names) <= NAMED_AT_MOST:
        return listed(names)
    shown = names[: NAMED_AT_MOST - 1]
    some = in_a_row([(Name(each),) for each in shown], _(", "))
    return fill("{names} and {more} more", names=some, more=len(names) - len(shown))


def places(data: ReportData, workloads: Sequence[str]) -> Sentence:
    """Workloads by name; many that are all of the run as such."""
    if len(workloads) == len(data.record.workloads) and len(workloads) > NAMED_AT_MOST:
        return (_("all workloads"),)
    return named(workloads)


def in_a_row(clauses: Sequence[Sentence], between: str) -> Sentence:
    """Clauses with the same text between any two."""
    parts: list[str | Name] = []
    for place, clause in enumerate(clauses):
        parts += [between, *clause] if place else clause
    return tuple(parts)


def with_and(clauses: Sequence[Sentence]) -> Sentence:
    """Clauses as ``A, B and C``."""
    if len(clauses) == 1:
        return clauses[0]
    return fill("{clauses} and {last}", clauses=in_a_row(clauses[:-1], _(", ")), last=clauses[-1])


def capital(sentence: Sentence) -> Sentence:
    """The sentence with a capital first letter, unless a name comes first."""
    first = sentence[0]
    if isinstance(first, Name):
        return sentence
    return (first[:1].upper() + first[1:], *sentence[1:])
