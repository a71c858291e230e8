"""A made-up run of four frameworks that rates texts, for tests of the reports.

Nothing in it was measured. What a quantisation costs is set here; the figures come out of
edgebench's own summaries of the made-up windows.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sample_run import MIB, Sample, Speed, derived, handmade, sha256

from edgebench.harness.quality.figures import quality_metrics
from edgebench.harness.results.model import Artifact, VariantRecord, WorkloadRecord
from edgebench.harness.results.quality import QualityRecord, QualityReference, WindowRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from edgebench.harness.results.measured import Failure

ENGINES = {
    "llama.cpp": ("llama.cpp", "b6510 (llama-cpp-python 0.3.36)"),
    "mnn": ("MNN", "3.3.0"),
    "mediapipe": ("LiteRT-LM", "0.18.1"),
    "mlc": ("TVM", "0.22.0"),
}
FORMATS = (
    # runner, quantisation, bytes, bytes of weights a token, decode rate, nat above the reference
    ("llama.cpp", "f16", 271_000_000, 269_000_000, 41.5, 0.00001),
    ("llama.cpp", "q8_0", 144_000_000, 143_000_000, 74.2, 0.0007),
    ("llama.cpp", "q4_k_m", 105_000_000, 99_000_000, 86.0, 0.031),
    ("llama.cpp", "q4_0", 91_000_000, 84_000_000, 92.4, 0.066),
    ("llama.cpp", "q2_k", 88_000_000, 76_000_000, 81.0, 0.42),
    ("mnn", "fp16", 270_000_000, 269_000_000, 38.0, 0.00002),
    ("mnn", "int8", 141_000_000, 140_000_000, 69.0, 0.0021),
    ("mnn", "int4", 86_000_000, 80_000_000, 96.0, 0.081),
    ("mediapipe", "fp32", 540_000_000, None, 21.0, 0.0),
    ("mediapipe", "dynamic_wi8_afp32", 138_000_000, None, 71.0, 0.0045),
    ("mediapipe", "dynamic_wi4_afp32", 84_000_000, None, 93.0, 0.19),
    ("mlc", "q0f16", 270_500_000, 269_000_000, 30.0, 0.00001),
    ("mlc", "q4f16_1", 90_000_000, 82_000_000, 60.0, 0.078),
    ("mlc", "q3f16_1", 70_000_000, 63_000_000, 58.0, 0.35),
)

EXACT = [WindowRecord(tokens=10, bytes=40, log_likelihood=-10 * math.log(8))] * 8
"""A reference of perplexity 8, and so of 3 bits a token, 0.75 a byte."""


@dataclass
class QualitySample(Sample):
    """A run whose variants also rate the texts of some workloads."""

    losses: dict[str, float] = field(default_factory=dict)
    unrated: dict[str, Failure] = field(default_factory=dict)

    def trials(self) -> list[Trial]:
        texts = [each for each in self.workloads if each.quality]
        speed = Sample(
            self.variants,
            [each for each in self.workloads if not each.quality],
            self.blocks,
            self.per_block,
            self.seed,
            self.timeline_samples,
            self.crash,
        )
        rated = [self._rated(text, name) for text in texts for name in self.variants]
        return [*rated, *speed.trials()]

    def _rated(self, workload: WorkloadRecord, variant: str) -> Trial:
        common = {
            "kind": "quality",
            "variant": variant,
            "workload": workload.name,
            "block": 0,
            "repetition": 0,
            "phase": "measured",
            "started_at": "2025-01-14T10:15:05Z",
            "duration_s": 30.0,
        }
        failure = self.unrated.get(variant)
        if failure is not None:
            return Trial.model_validate({**common, "status": "failed", "failure": failure})
        reference = workload.quality.reference
        chance = random.Random(f"{variant} {workload.name}")
        windows = rate(reference.windows, self.losses[variant], chance)
        metrics = quality_metrics(windows, reference.windows, {}, taken_in=512 * len(windows))
        kl = metrics["kl_divergence"].value
        metrics["kl_divergence_p99"] = derived(9 * kl, "nat")
        return Trial.model_validate(
            {**common, "status": "ok", "metrics": metrics, "windows": windows}
        )


def quality_sample(**changes: object) -> QualitySample:
    """Fourteen variants of four frameworks, one speed workload, two texts."""
    variants: dict[str, tuple[VariantRecord, Speed]] = {}
    losses = {}
    for runner, quantization, size, read, decode, loss in FORMATS:
        engine, version = ENGINES[runner]
        name = f"{runner} {quantization} threads=2"
        record = VariantRecord(
            id=name,
            runner=runner,
            quantization=quantization,
            options={"threads": 2},
            engine=engine,
            engine_version=version,
            artifact=Artifact(
                name=f"SmolLM2-135M-{runner}-{quantization}",
                sha256=sha256(name),
                bytes=size,
                parameters=134_515_008,
                weight_bytes_per_token=read,
                made_by=f"edgebench, {runner}",
            ),
        )
        variants[name] = (record, Speed(decode * 7, decode, 60.0, size / MIB))
        losses[name] = loss
    speed = WorkloadRecord(
        name="chat",
        description="A question in the model's own chat template",
        prompt_tokens=43,
        generate_tokens=32,
        prompt_sha256=sha256("chat"),
    )
    sample = QualitySample(
        variants,
        [text_workload("prose", 30, seed=1), text_workload("code", 12, seed=2, cut=20), speed],
        blocks=6,
        per_block=1,
        losses=losses,
    )
    for name, value in changes.items():
        setattr(sample, name, value)
    return sample


def text_workload(name: str, windows: int, *, seed: int, cut: int = 0) -> WorkloadRecord:
    """A text with a reference that rated it; `cut` windows were planned beyond those."""
    chance = random.Random(seed)
    exact = [
        WindowRecord(tokens=256, bytes=1100, log_likelihood=-256 * chance.gauss(2.7, 0.25))
        for _ in range(windows)
    ]
    mean = -sum(each.log_likelihood for each in exact) / (256 * windows)
    return WorkloadRecord(
        name=name,
        description="",
        generate_tokens=None,
        text=f"builtin:{name}",
        quality=QualityRecord(
            text=f"builtin:{name}",
            text_sha256=sha256(name),
            text_bytes=48_221,
            text_origin="written for edgebench, CC0-1.0",
            protocol="sliding",
            window=512,
            stride=256,
            score_from=256,
            bos="model",
            bos_id=1,
            tokenizer="edgebench, from the source's own files",
            ids_sha256=sha256(f"ids {name}"),
            vocabulary_size=49_152,
            metrics=["perplexity", "bits_per_byte", "kl_divergence", "top1_agreement"],
            windows_planned=windows + cut,
            windows=windows,
            scored_tokens=256 * windows,
            scored_bytes=1100 * windows,
            reference=QualityReference(
                name="SmolLM2-135M-Instruct.Q4_1.gguf",
                sha256=sha256("source"),
                lossy_types=["Q4_1"],
                perplexity=math.exp(mean),
                bits_per_byte=mean * 256 / math.log(2) / 1100,
                windows=exact,
                candidates=256,
                covered=0.9921,
                stored_bytes=9_000_000,
                duration_s=71.0,
            ),
        ),
    )


def rate(
    exact: list[WindowRecord], loss: float, chance: random.Random | None = None
) -> list[WindowRecord]:
    """Windows of a variant that loses so many nat a token; by chance a little more or less."""
    found = []
    for each in exact:
        own = loss if chance is None else loss * chance.gauss(1, 0.2) + chance.gauss(0, 0.0005)
        found.append(
            each.model_copy(
                update={
                    "log_likelihood": each.log_likelihood - each.tokens * own,
                    "kl_divergence": each.tokens * abs(own),
                    "top1": round(each.tokens * math.exp(-1.2 * math.sqrt(abs(own)))),
                    "duration_s": 1.0,
                }
            )
        )
    return found


def by_windows(
    windows: dict[str, list[WindowRecord]],
    reference: list[WindowRecord] | None,
    *,
    name: str = "w",
    quality: dict[str, object] | None = None,
) -> tuple[WorkloadRecord, list[Trial]]:
    """A workload with exactly these windows, and its trials."""
    workload = text_workload(name, 5, seed=1)
    count = max(map(len, windows.values()), default=0)
    changes: dict[str, object] = {"windows": count, "windows_planned": count, "reference": None}
    if reference is not None:
        tokens = sum(each.tokens for each in reference)
        mean = -sum(each.log_likelihood for each in reference) / tokens
        changes["reference"] = workload.quality.reference.model_copy(
            update={"windows": reference, "perplexity": math.exp(mean)}
        )
    record = workload.quality.model_copy(update={**changes, **(quality or {})})
    trials = [
        Trial(
            kind="quality",
            variant=variant,
            workload=name,
            block=0,
            repetition=0,
            phase="measured",
            status="ok",
            started_at="2025-01-14T10:16:00Z",
            duration_s=1.0,
            metrics=quality_metrics(each, reference, {}),
            windows=each,
        )
        for variant, each in windows.items()
    ]
    return workload.model_copy(update={"quality": record}), trials


def made(windows, reference=EXACT, *, extra=(), speed=True, quality=None, **changes):
    """A run with exactly these windows on `text`, and a speed workload `w`."""
    record, trials = handmade({name: {"decode_rate": [10.0] * 5} for name in windows}, **changes)
    rated = {name: each for name, each in windows.items() if each is not None}
    workload, scored = by_windows(rated, reference, name="text", quality=quality)
    workloads = [*(record.workloads if speed else []), workload, *extra]
    record = record.model_copy(update={"workloads": workloads})
    return Run(Path("made-up"), record, (*(trials if speed else []), *scored))


def steady(loss, *, spread=0.0):
    """Eight windows that all lose so many nat a token, every second one a little more."""
    return [rate([each], loss + spread * (-1) ** place)[0] for place, each in enumerate(EXACT)]
