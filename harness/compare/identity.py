"""Whether two runs are of the same model and the same workloads, as far as their records tell.

Texts are as recorded: whoever shows them makes them safe to show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.store.store import AS_PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import RunRecord, WorkloadRecord

HASH_DIGITS: Final = 12
"""Of a hash, as messages show it."""

TESTING_RUNNER: Final = "fake"
"""The runner that makes its figures up."""

_LONGEST = 60

_RATED: Final = {
    "protocol": "the protocol of rating",
    "text_sha256": "the text that is rated",
    "ids_sha256": "the tokens of the text",
    "window": "the length of a window",
    "stride": "the stride of the windows",
    "score_from": "the first position that is scored",
    "bos_id": "the start token",
}


def hashes_of(record: RunRecord) -> dict[str, str]:
    """All that tells which weights a run is of, by what it is the hash of.

    Returns:
        SHA-256 by ``the source``, ``the reference``, ``the reference of quality`` and the names of
        files that were loaded as they were published; those that the record tells.
    """
    found: dict[str, str] = {}
    model = record.scenario.get("model")
    given = model.get("sha256") if isinstance(model, dict) else None
    if isinstance(given, str):
        found["the source"] = given
    if record.reference is not None:
        found["the reference"] = record.reference.sha256
    for workload in record.workloads:
        if workload.quality is not None and workload.quality.reference is not None:
            found["the reference of quality"] = workload.quality.reference.sha256
    for variant in record.variants:
        artifact = variant.artifact
        if artifact is not None and (
            artifact.made_by == AS_PUBLISHED
            or (artifact.synthetic and variant.quantization == "source")
        ):
            found[artifact.name] = artifact.sha256
    return found


def model_text(record: RunRecord, key: str) -> str:
    """What the scenario says of its model under a key, such as ``source``; empty without."""
    model = record.scenario.get("model")
    value = model.get(key) if isinstance(model, dict) else None
    return value if isinstance(value, str) else ""


def differing_workload(
    mine: WorkloadRecord, theirs: WorkloadRecord
) -> Iterator[tuple[str, str, str]]:
    """What two workloads of one name differ in, with both values as text, cut where long."""
    facts = (
        ("what it asks", mine.kind, theirs.kind),
        ("the task", mine.task, theirs.task),
        ("the number of tokens to generate", mine.generate_tokens, theirs.generate_tokens),
        ("the depth of the cache", mine.depth, theirs.depth),
    )
    for what, own, else_ in facts:
        if own != else_:
            yield what, str(own), str(else_)
    # What a run that prepared nothing does not know is nothing to differ in.
    prepared = (
        ("the length of the prompt", mine.prompt_tokens, theirs.prompt_tokens),
        ("the prompt's tokens", mine.prompt_sha256, theirs.prompt_sha256),
        ("the text", mine.prompt_text, theirs.prompt_text),
    )
    for what, own, else_ in prepared:
        if own is not None and else_ is not None and own != else_:
            yield what, _short(own), _short(else_)
    yield from _rated_otherwise(mine, theirs)


def _rated_otherwise(
    mine: WorkloadRecord, theirs: WorkloadRecord
) -> Iterator[tuple[str, str, str]]:
    own, else_ = mine.quality, theirs.quality
    if own is None or else_ is None:
        return
    for name, said in _RATED.items():
        if getattr(own, name) != getattr(else_, name):
            yield said, _short(getattr(own, name)), _short(getattr(else_, name))
    # None at all: nothing could be rated, and there are no values that would not compare.
    if own.windows and else_.windows and own.windows != else_.windows:
        yield (
            "the number of windows that were rated",
            f"{own.windows} of {own.windows_planned}",
            f"{else_.windows} of {else_.windows_planned}",
        )
    whole, other = own.reference, else_.reference
    if whole is not None and other is not None and whole.sha256 != other.sha256:
        yield (
            "the reference",
            f"{whole.name}, sha256 {whole.sha256[:HASH_DIGITS]}",
            f"{other.name}, sha256 {other.sha256[:HASH_DIGITS]}",
        )


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[:HASH_DIGITS]}…"
