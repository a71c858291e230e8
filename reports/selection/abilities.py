"""What a framework must be able to do, which the documents say and hardly anybody measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.published.load import capability, documents
from edgebench.reports.selection.check import Check
from edgebench.reports.selection.machines import kind_of, machine_text
from edgebench.reports.sentences import Name, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import MachineRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.published.model import Capability, Claim, Quote
    from edgebench.reports.selection.check import State

CAPABILITIES: Final = {
    "multimodal": N_("more than text as input"),
    "vision": N_("images or video as input"),
    "enterprise_support": N_("a company behind the framework"),
    "pc": N_("running on a PC"),
    "browser": N_("running in a browser"),
    "phone": N_("running on a phone"),
    "board": N_("running on a board"),
}


def capability_checks(
    runner: str,
    requirements: Requirements,
    *,
    framework: str = "",
    machine: MachineRecord | None = None,
) -> Iterator[Check]:
    """What a framework must be able to do, by what the documents say of it.

    edgebench runs text on one machine: that it ran on a PC is measured, all else is not.

    Args:
        runner: the runner's name, which is that of a framework.
        requirements: the user's.
        framework: whose figures they really are, where the runner drove something else: what a
            document says of the framework says nothing of that.
        machine: where it ran; None where it did not.
    """
    other = framework if framework and framework != runner else ""
    known = None if other else capability(runner)
    for field in ("multimodal", "vision", "enterprise_support"):
        if not getattr(requirements, field):
            continue
        claim: Claim | None = getattr(known, field) if known else None
        if claim is None:
            yield _unsaid(field, CAPABILITIES[field], runner, other)
        else:
            yield _claimed(field, CAPABILITIES[field], claim)
    if requirements.target is not None:
        yield _on_target(known, requirements.target, runner, other, machine)


def _claimed(field: str, what: str, claim: Claim) -> Check:
    messages = {
        "no": N_('Needed is {what}; the document "{document}" says: "{quote}".'),
        "limited": N_('Needed is {what}, of which the document "{document}" says: "{quote}".'),
        "yes": N_('Needed is {what}; the document "{document}" says: "{quote}".'),
    }
    states: dict[str, State] = {"no": "fails", "limited": "limited", "yes": "meets"}
    return _quoting(field, states[claim.value], messages[claim.value], what, claim)


def _on_target(
    known: Capability | None, target: str, runner: str, other: str, machine: MachineRecord | None
) -> Check:
    what = CAPABILITIES[target]
    if machine is not None and kind_of(machine) == target:
        said = fill(
            "Needed is {what}; it ran on this machine, {machine}.",
            what=_(what),
            machine=machine_text(machine),
        )
        return Check("target", "meets", said)
    quote = (
        {str(key): each for key, each in known.target_quotes.items()}.get(target) if known else None
    )
    if quote is None:
        return _unsaid("target", what, runner, other)
    message = N_('Needed is {what}; the document "{document}" says: "{quote}".')
    return _quoting("target", "meets", message, what, quote)


def _quoting(limit: str, state: State, message: str, what: str, quote: Quote) -> Check:
    document = documents()[quote.document].short.said()
    said = fill(message, what=_(what), document=document, quote=quote.said())
    if quote.note is not None:
        said = fill("{sentence} ({note})", sentence=said, note=quote.note.said())
    return Check(limit, state, said, quoted=True)


def _unsaid(limit: str, what: str, runner: str, other: str) -> Check:
    if other:
        said = fill(
            "Needed is {what}; what a document says of {framework} is not of {other}.",
            what=_(what),
            framework=framework_name(runner),
            other=Name(other),
        )
    else:
        said = fill("Needed is {what}; no document says whether it is there.", what=_(what))
    return Check(limit, "unknown", said, quoted=True)
