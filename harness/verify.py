"""Verifying: every variant against the reference, on the scenario's own prompts."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.errors import InvalidResultError, ModelError
from edgebench.harness.failures import failure_of
from edgebench.harness.records import with_engine
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.sameness import ReferenceRecord, Sameness
from edgebench.harness.sameness import (
    BFLOAT,
    FULL,
    Said,
    compare_prompt,
    figures,
    findings,
    limits_for,
    metrics_of,
    what_is_not_exact,
)
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.steps import Seldom
from edgebench.harness.verify_sessions import Asked, Generated, VariantSessions
from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError
from edgebench.models.reference import RatedTree, Reference, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prepared import Prepared, PreparedVariant
    from edgebench.harness.prompts import Prompt
    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.sameness import TokenizerResult
    from edgebench.harness.store.store import StoredFile
    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.base import LoadedModel

MOST_PROMPT_TOKENS = 512
"""Of a prompt, no more are compared: its first ones."""

CUTS = 32
"""Places that are tried to cut a longer prompt off: most of them are right."""

MOST_GENERATED_TOKENS = 64
"""Generated for the comparison, even where the workload asks for more."""

FRAMEWORKS = ("engine", "compiler")
"""Options that choose what computes."""

KEPT_OPTIONS = frozenset({"threads", *FRAMEWORKS})
"""What a variant that is added takes over from the scenario's: what runs it, and how wide."""

MOST_EXACT_FIRST = ("f32", "fp32", "q0f32", "bf16", "f16", "fp16", "q0f16")


@dataclass(frozen=True, slots=True)
class Verified:
    """What verifying found.

    Attributes:
        variants: by the variant's id; every variant that was prepared is there.
        reference: what they were compared with, or None where there was no reference.
        models: by the variant's id, what was loaded of those that could be.
    """

    variants: Mapping[str, Sameness]
    reference: ReferenceRecord | None = None
    models: Mapping[str, LoadedModel] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """How many variants in high precision were compared."""
        return sum(each.verdict in ("agrees", "differs") for each in self.variants.values())

    @property
    def all_agree(self) -> bool:
        """Whether none differs, and none failed."""
        return all(each.verdict in ("agrees", "not_judged") for each in self.variants.values())


class Verification:
    """Compares prepared variants with the reference.

    Args:
        folder: the folder that the logs' folder stands in.
        observer: told of each step.
        timeout_s: for one load or one generation.
    """

    def __init__(self, folder: Path, observer: Observer, timeout_s: float) -> None:
        self._observer = observer
        self._step = Seldom(lambda what: observer.preparing(f"reference: {what}"))
        self._sessions = VariantSessions(folder, timeout_s)

    def run(self, prepared: Prepared) -> Verified:
        """Generate with every variant, rate all that by the reference, rate by every variant.

        Returns:
            What was found. A variant that can't be compared, for whatever reason, says why.
        """
        begun = time.monotonic()
        found: dict[str, Sameness] = {
            item.variant.id: _failed(item.failure) for item in prepared.variants if item.failure
        }
        ready = [item for item in prepared.variants if item.failure is None]
        source = prepared.source
        if not ready or source is None:
            return Verified(found)
        if not prepared.prompts:
            msg = "no workload has a prompt to compare on: neither texts to rate nor tasks have"
            why = ModelError(msg)
            return Verified(found | _all_failed(ready, why))
        try:
            self._observer.preparing("reference: opening the model")
            model = open_model(source.path)
            prompts = [asked(prompt, model) for prompt in prepared.prompts]
            made = self._generate(ready, prompts, model, found)
            if not made:
                return Verified(found)
            rated = self._rate(model, prompts, made.values())
        except ModelFormatError as error:
            why = ModelError(f"there is no reference to compare with: {error}")
            return Verified(found | _all_failed(ready, why))
        for item in ready:
            if item.variant.id in made:
                compared = self._compare(item, made[item.variant.id], prompts, model, rated)
                found[item.variant.id] = compared
        record = _reference_record(source, model, rated, time.monotonic() - begun)
        return Verified(
            {item.variant.id: found[item.variant.id] for item in prepared.variants},
            record,
            {name: each.model for name, each in made.items()},
        )

    def _generate(
        self,
        ready: Sequence[PreparedVariant],
        prompts: Sequence[Asked],
        model: CanonicalModel,
        found: dict[str, Sameness],
    ) -> dict[str, Generated]:
        """What the variants made, by id; those that failed are put in `found`."""
        size = model.architecture.vocabulary_size
        made: dict[str, Generated] = {}
        for item in ready:
            self._observer.preparing(f"verify: {item.variant.id} generates")
            answer = self._sessions.generate(item, prompts)
            if isinstance(answer, Generated):
                strange = [each for ids in answer.tokens for each in ids if each >= size]
                if not strange:
                    made[item.variant.id] = answer
                    continue
                error = InvalidResultError(
                    f"it made token {strange[0]}, and the model has {size} tokens"
                )
                answer = failure_of(error)
            found[item.variant.id] = _failed(answer)
        return made

    def _rate(
        self, model: CanonicalModel, prompts: Sequence[Asked], made: Iterable[Generated]
    ) -> _Rated:
        size = model.architecture.vocabulary_size
        for prompt in prompts:
            if max(prompt.ids) >= size:
                msg = (
                    f"{model.path} has {size} tokens, and the prompt of {prompt.workload} holds "
                    f"token {max(prompt.ids)}"
                )
                raise ModelFormatError(msg)
        # Variants that made the same text are rated once.
        every = [each.tokens for each in made]
        texts = [list(dict.fromkeys(filter(None, column))) for column in zip(*every, strict=True)]
        trees = [
            Tree(prompt.ids, tuple(branches))
            for prompt, branches in zip(prompts, texts, strict=True)
        ]
        reference = Reference(model, self._step)
        return _Rated(tuple(trees), tuple(reference.rate(trees)))

    def _compare(
        self,
        item: PreparedVariant,
        made: Generated,
        prompts: Sequence[Asked],
        model: CanonicalModel,
        rated: _Rated,
    ) -> Sameness:
        self._observer.preparing(f"verify: {item.variant.id} rates the same tokens")
        candidates = [tree.prompt.candidate_lists() for tree in rated.found]
        answer = self._sessions.score(item, prompts, candidates)
        if isinstance(answer, Failure):
            return _failed(answer)
        compared, parts = [], []
        for place, prompt in enumerate(prompts):
            said = _said(item, made, place, prompt, model)
            said = (
                replace(said, no_scores=answer)
                if isinstance(answer, str)
                else replace(said, scores=answer[place])
            )
            tree = rated.found[place]
            part = figures(tree.prompt, said.scores, said.no_scores)
            # Where no id was told, there is nothing to be rated.
            branch = (
                tree.branches[rated.trees[place].branches.index(said.generated)]
                if said.generated
                else ()
            )
            compared.append(
                compare_prompt(prompt.workload, len(prompt.ids), said, branch, part, _Texts(model))
            )
            parts.append(part)
        inexact = what_is_not_exact(
            item.variant.quantization,
            model.lossy_types,
            item.variant.options,
            made.model.effective_options,
        )
        types = {tensor.stored_as for tensor in model.weights.values()}
        limits = limits_for(item.variant.quantization, types)
        wrong = [] if inexact else findings(compared, limits)
        told = any(each.generated_tokens for each in compared)
        if inexact is None and not told and all(part.difference is None for part in parts):
            inexact = "its framework tells neither token ids nor log-likelihoods"
        return Sameness(
            verdict="not_judged" if inexact else "differs" if wrong else "agrees",
            not_judged_because=inexact,
            findings=wrong,
            metrics=metrics_of(parts),
            prompts=compared,
        )


@dataclass(frozen=True, slots=True)
class _Rated:
    """The trees that were rated, and the ratings."""

    trees: tuple[Tree, ...]
    found: tuple[RatedTree, ...]


class _Texts:
    """The texts of tokens, as far as there is a tokenizer."""

    def __init__(self, model: CanonicalModel) -> None:
        self._model = model

    def __call__(self, number: int) -> str:
        try:
            text = self._model.tokenizer.decode([number])
        except ModelFormatError:
            text = ""
        return text or f"<token {number}>"


def asked(prompt: Prompt, model: CanonicalModel) -> Asked:
    """As much of a prompt as is verified: without depth, and not too long."""
    ids = prompt.ids
    if len(ids) > MOST_PROMPT_TOKENS:
        ids = _cut(ids, model)
    return Asked(
        workload=prompt.workload,
        ids=ids,
        text=prompt.text,
        generate_tokens=min(prompt.generate_tokens, MOST_GENERATED_TOKENS),
        whole=ids == prompt.ids,
    )


def _cut(ids: tuple[int, ...], model: CanonicalModel) -> tuple[int, ...]:
    """At a place where the text of what is left has these ids, for frameworks that take text."""
    try:
        for count in range(MOST_PROMPT_TOKENS, MOST_PROMPT_TOKENS - CUTS, -1):
            if tuple(model.tokenizer.encode(model.tokenizer.decode(ids[:count]))) == ids[:count]:
                return ids[:count]
    except ModelFormatError:
        pass  # then no framework of this run takes text
    return ids[:MOST_PROMPT_TOKENS]


def _said(
    item: PreparedVariant, made: Generated, place: int, prompt: Asked, model: CanonicalModel
) -> Said:
    """What it made of one prompt, and whether its tokenizer is the model's."""
    result, note = _tokenizer(item, made.text_ids[place], prompt, model)
    told = made.tokens[place]
    untold = prompt.generate_tokens - len(told)
    return Said(told, tokenizer=result, tokenizer_note=note, untold=untold)


def _tokenizer(
    item: PreparedVariant, theirs: tuple[int, ...] | None, prompt: Asked, model: CanonicalModel
) -> tuple[TokenizerResult, str]:
    if prompt.text is None:
        return "not_compared", "the prompt is made of token ids and has no text"
    if theirs is None:
        return "not_compared", f"{item.variant.runner} is handed ids: its tokenizer is not used"
    try:
        ours = model.tokenizer.encode(prompt.text)
    except ModelFormatError as error:
        return "not_compared", str(error)
    if list(theirs) == ours:
        return "equal", ""
    same = next(
        (at for at, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other),
        min(len(ours), len(theirs)),
    )
    return "differs", (
        f"{len(theirs)} ids for {len(ours)} of the reference, other ones from token {same + 1} on"
    )


def _failed(failure: Failure) -> Sameness:
    return Sameness(verdict="failed", failure=failure)


def _all_failed(ready: Sequence[PreparedVariant], why: ModelError) -> dict[str, Sameness]:
    return {item.variant.id: _failed(failure_of(why)) for item in ready}


def _reference_record(
    source: StoredFile, model: CanonicalModel, rated: _Rated, duration_s: float
) -> ReferenceRecord:
    shares = np.concatenate([tree.prompt.covered for tree in rated.found])
    return ReferenceRecord(
        name=source.name,
        sha256=source.sha256,
        lossy_types=list(model.lossy_types),
        parameters=model.architecture.parameters,
        prompt_positions=len(shares),
        candidates=sum(len(tree.prompt.ids) for tree in rated.found),
        covered=float(np.mean(shares)) if len(shares) else None,
        duration_s=duration_s,
        limits={
            f"{prefix}{name}": value
            for prefix, limits in (("", FULL), ("bf16_", BFLOAT))
            for name, value in asdict(limits).items()
        },
    )


def verified_record(record: RunRecord, verified: Verified) -> RunRecord:
    """The run's record with what verifying found."""
    return record.model_copy(
        update={
            "reference": verified.reference,
            **{
                name: [
                    with_engine(
                        variant.model_copy(update={"sameness": verified.variants.get(variant.id)}),
                        verified.models.get(variant.id),
                    )
                    for variant in variants
                ]
                for name, variants in (("variants", record.variants), ("proofs", record.proofs))
            },
        }
    )


def high_precision_variants(
    variants: Sequence[ExpandedVariant], quantizations: Mapping[str, Sequence[str]]
) -> list[ExpandedVariant]:
    """One variant for each framework of a scenario that makes an artifact in high precision.

    A runner that is asked for several of its engines or compilers is as many frameworks.

    Args:
        variants: the scenario's; those that are there already are left out.
        quantizations: what each runner makes, by its name.
    """
    known = {
        (*_framework(each), each.quantization)
        for each in variants
        if not set(each.options) - KEPT_OPTIONS
    }
    found: dict[tuple[object, ...], ExpandedVariant] = {}
    for each in variants:
        names = {name.lower(): name for name in quantizations.get(each.runner, ())}
        best = next((names[name] for name in MOST_EXACT_FIRST if name in names), None)
        if best is None or (*_framework(each), best) in known:
            continue
        kept = {name: value for name, value in each.options.items() if name in KEPT_OPTIONS}
        words = [each.runner, best, *(f"{name}={value}" for name, value in kept.items())]
        found.setdefault(
            _framework(each),
            ExpandedVariant(
                id=_new_id(" ".join(words), variants),
                runner=each.runner,
                quantization=best,
                options=kept,
                python=each.python,
            ),
        )
    return list(found.values())


def _framework(variant: ExpandedVariant) -> tuple[object, ...]:
    """What computes, as far as a scenario says it."""
    return (variant.runner, variant.python, *(variant.options.get(name) for name in FRAMEWORKS))


def _new_id(wanted: str, variants: Sequence[ExpandedVariant]) -> str:
    taken = {each.id for each in variants}
    return wanted if wanted not in taken else _new_id(f"{wanted} (to verify)", variants)
