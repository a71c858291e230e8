"""Recommendation, as Markdown: the trees walked, the evidence, the answer of the measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import semicolons
from edgebench.reports.markdown_text import bullets, pair, sentence_text, table_blocks, title
from edgebench.reports.text import markdown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from edgebench.reports.selection.view import Evidence, Measured, Selection, Walk

_KINDS = {
    "supports": N_("for it"),
    "contradicts": N_("against it"),
    "fails": N_("fails a limit"),
    "failed": N_("failed"),
    "lacks": N_("lacks"),
    "unknown": N_("not known"),
    "note": N_("note"),
}
"""What a finding is; to be looked up."""

_GIVEN_BY = {
    "scenario": N_("scenario"),
    "command line": N_("command line"),
    "terminal": N_("terminal"),
}


def choice_blocks(selection: Selection, *, names: Collection[str]) -> Iterator[str]:
    """The whole section.

    Args:
        selection: what there is to say.
        names: of the variants.
    """
    yield title(_("Recommendation"))
    if selection.headline:
        yield sentence_text(selection.headline)
    mind = _("Mind this.")
    for warning in selection.warnings:
        yield f"> **{mind}** {sentence_text(warning)}"
    for walk in selection.walks:
        yield from _walk(walk)
    if selection.disagreements:
        yield title(_("Where tree and measurements disagree"), level=3)
        yield bullets(map(sentence_text, selection.disagreements))
    if selection.measured is not None:
        yield from _measured(selection.measured, names)
    if selection.evidence:
        yield title(_("Evidence"), level=3)
        for evidence in selection.evidence:
            yield from _evidence(evidence)


def _walk(walk: Walk) -> Iterator[str]:
    yield f"### {markdown(walk.title)}"
    version = _("decision tree {name}, version {version}", name=walk.name, version=walk.version)
    taken_from = _("from {document}", document=walk.document) if walk.document else ""
    yield f"*{markdown(semicolons(filter(None, (version, taken_from))))}*"
    if walk.recommendation:
        found = markdown(_("Recommendation: {name}", name=framework_name(walk.recommendation)))
        because = f" {markdown(walk.because)}" if walk.because else ""
        yield f"**{found}**{because}"
    elif walk.open is not None:
        question = markdown(_("Not answered: {question}", question=walk.open.question))
        answers = semicolons(f"`{walk.open.key}={key}`" for key, _words in walk.open.choices)
        yield f"**{question}** ({answers})"
    if walk.steps:
        yield "\n".join(
            f"{number}. {markdown(step.question)} **{markdown(step.answer_text)}** "
            f"({markdown(_(_GIVEN_BY.get(step.given_by, step.given_by)))})"
            for number, step in enumerate(walk.steps, 1)
        )
    if walk.fits:
        yield markdown(_("It fits, by the document:"))
        yield bullets(map(markdown, walk.fits))
    if walk.mermaid:
        # No label holds a backtick as it is: none can close the fence.
        yield f"```mermaid\n{walk.mermaid}\n```"


def _measured(measured: Measured, names: Collection[str]) -> Iterator[str]:
    found = (
        _("From the measurements, and what documents say of abilities")
        if measured.by_documents
        else _("From the measurements alone")
    )
    yield title(found, level=3)
    for sentence in measured.sentences:
        yield sentence_text(sentence)
    if measured.table is not None:
        yield from table_blocks(measured.table, names=names)


def _evidence(evidence: Evidence) -> Iterator[str]:
    state = "" if evidence.ran else _("has no measured values")
    if evidence.state == "partly":
        state = _("measured in part")
    ran = f" ({markdown(state)})" if state else ""
    yield f"**{markdown(evidence.framework)}**{ran}"
    quoted = _("quoted")
    if evidence.findings:
        yield bullets(
            pair(markdown(_(_KINDS.get(each.kind, each.kind))), sentence_text(each.sentence))
            + (f" *({markdown(quoted)})*" if each.quoted else "")
            for each in evidence.findings
        )
