"""Handmade comparisons and gates with plausible numbers, for tests of what shows them.

Nothing in them was measured, and nothing was decided: verdicts and statuses are as asked for.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edgebench.harness.compare.model import (
    Answer,
    Compared,
    Comparison,
    Differing,
    Matched,
    Pair,
    Side,
    SideCell,
    SideRun,
)
from edgebench.harness.gate.model import Allowance, Check, Gate
from edgebench.harness.metrics.definitions import metric as metric_of
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.model import (
    CommitRecord,
    MachineRecord,
    VariantRecord,
    WorkloadRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.harness.compare.model import Verdict

ODD = (
    "@octocat `x` |a|b| <img src=x onerror=alert(1)> ](http://evil.example) #1 *b* "
    "\x1b[31m%0A::error::"
)
"""A name that would act wherever it is not escaped."""


def machine(**changes: object) -> MachineRecord:
    """A machine of two CPUs."""
    return MachineRecord.model_validate(
        {
            "fingerprint": "3f9c2a1b2233445566",
            "cpu_model": "AMD EPYC 9B14",
            "logical_cpus": 2,
            "affinity": [0, 1],
            "memory_bytes": 8 * 2**30,
            "kernel": "6.8.0-45-generic",
            "system": "Debian GNU/Linux 12 (bookworm)",
            "architecture": "x86_64",
            "python": "3.11.2",
        }
        | changes
    )


def cell(
    variant: str = "llama.cpp Q4_0", workload: str = "chat", status: str = "ok", **changes: Any
) -> SideCell:
    """A cell without samples."""
    return replace(
        SideCell(
            VariantRecord(id=variant, runner="llama.cpp", quantization="Q4_0"),
            WorkloadRecord(name=workload, description="A question", generate_tokens=64),
            status,  # type: ignore[arg-type]
            {},
        ),
        **changes,
    )


def side(label: str, cells: Iterable[SideCell] = (), **changes: Any) -> Side:
    """A side of one run, on `machine`; `changes` are of its run, or `machine`."""
    run = SideRun(
        id=f"run-{label}",
        session=f"run-{label}",
        created_at="2025-01-14T10:15:00Z",
        scenario_name="smollm2-135m",
        edgebench_version="0.1.0",
        commit=CommitRecord(sha="0123456789abcdef" * 2 + "01234567", branch="main"),
        machine=machine(),
    )
    return Side(
        label=label,
        runs=(replace(run, **changes),),
        model_name="SmolLM2-135M-Instruct",
        model_source="path:model.gguf",
        hashes={"the source": "ab" * 32},
        cells={each.key: each for each in cells},
    )


def pair(variant: str = "llama.cpp Q4_0", workload: str = "chat", **changes: Any) -> Pair:
    """The same cell on both sides; see `Pair` for `changes`."""
    return replace(Pair(cell(variant, workload), cell(variant, workload)), **changes)


def row(
    of: Pair | None = None,
    metric: str = "decode_rate",
    baseline: float | None = 100.0,
    candidate: float | None = 90.0,
    verdict: Verdict = "worse",
    *,
    spread: float | None = 0.01,
    why: str = "",
    repetitions: int | None = None,
    **answered: Any,
) -> Compared:
    """One metric of a pair: ratio and worsening of the two values, the interval ± `spread`."""
    known = metric_of(metric)
    better = known.better or "lower"
    ratio = candidate / baseline if baseline and candidate is not None else None
    answer = Answer(
        ratio=ratio,
        low=None if ratio is None or spread is None else ratio - spread,
        high=None if ratio is None or spread is None else ratio + spread,
        paired=True,
        n=20,
        p_worse=None if ratio is None else 0.0004 if verdict == "worse" else 0.5,
        p_better=None if ratio is None else 0.0004 if verdict == "better" else 0.5,
        noticeable=0.021,
        reason=why if ratio is None else None,
    )
    worsening = None if ratio is None else ratio - 1 if better == "lower" else 1 - ratio
    return Compared(
        pair=of or pair(),
        metric=metric,
        unit=known.unit,
        better=better,
        baseline=baseline,
        candidate=candidate,
        answer=replace(answer, **answered),
        verdict=verdict,
        worsening=worsening,
        why=why,
        repetitions=repetitions,
    )


def comparison(rows: Iterable[Compared] = (), **matched: Any) -> Comparison:
    """A comparison of these rows, interleaved; `matched` are fields of `Matched`."""
    kept = tuple(rows)
    pairs = tuple(dict.fromkeys(id(each.pair) for each in kept))
    by_id = {id(each.pair): each.pair for each in kept}
    together = tuple(by_id[each] for each in pairs)
    both = Matched(
        baseline=side("baseline", (each.baseline for each in together)),
        candidate=side("candidate", (each.candidate for each in together)),
        pairs=together,
        interleaved=True,
    )
    return Comparison(replace(both, **matched), kept, 0.99, 0.02, 0.01)


def check(of: Compared | None = None, status: str = "fail", **changes: Any) -> Check:
    """A `worse_by` limit of 5 % on a row."""
    of = of or row()
    made = Check(
        cell=of.pair.name,
        metric=of.metric,
        kind="worse_by",
        status=status,  # type: ignore[arg-type]
        severity="warn" if status == "warn" else "fail",
        message="the decode rate fell by 10 %, and at most 5 % is allowed",
        limit=0.05,
        value=of.worsening,
        unit=of.unit,
        detail="A change of 2.1 % would have been noticed",
        compared=of,
        undecided=status == "undecided",
    )
    return replace(made, **changes)


def gate(
    checks: Iterable[Check] = (), *, headline: str = "", unused: Iterable[str] = (), **matched: Any
) -> Gate:
    """A gate of these checks, whose comparison has their rows."""
    kept = tuple(checks)
    rows = {id(each.compared): each.compared for each in kept if each.compared is not None}
    failed = sum(each.status == "fail" for each in kept)
    said = f"{failed} limit{' is' if failed == 1 else 's are'} broken" if failed else ""
    return Gate(
        comparison=comparison(rows.values(), **matched),
        checks=kept,
        outcome="failed" if failed else "passed",
        policy="gate.yaml",
        headline=headline or said or "No limit is broken",
        unused=tuple(unused),
    )


def every_status() -> Gate:
    """One limit of each status and kind, a cell that failed, one that vanished, one added."""
    q4, q8 = pair("llama.cpp Q4_0"), pair("llama.cpp Q8_0", "long", differing=(THREADS,))
    gone = cell("mnn int4", "chat")
    crashed = cell(
        "mnn int8",
        "chat",
        "failed",
        failure=Failure(
            kind="crash",
            message="The runner's process ended while it generated.",
            signal="SIGABRT",
            log_tail="n_ctx = 768\n\x1b[31mGGML_ASSERT(buffer) failed\x1b[0m\n```\n",
        ),
    )
    rows = {
        "fail": row(q4),
        "warn": row(q4, "peak_rss_bytes", 200 * 2.0**20, 220 * 2.0**20),
        "allowed": row(q8, "ttft_s", 0.2, 0.216, "worse"),
        "undecided": row(
            q8, "decode_rate", 50.0, 47.0, "cant_tell", spread=0.09,
            why="a change of 11 % would have been noticed", repetitions=34,
        ),
        "pass": row(q4, "perplexity", 21.43, 21.43, "same", spread=0.001),
        "missing": row(
            q8, "energy_per_token_j", None, None, "not_compared", why="no meter is readable"
        ),
    }  # fmt: skip
    allowance = Allowance(
        "llama.cpp Q8_0*", "ttft_s", 0.1, dt.date(2027, 1, 31), "the new tokenizer is slower"
    )
    return gate(
        [
            check(rows["fail"]),
            check(
                rows["fail"],
                kind="at_least",
                limit=95.0,
                value=90.0,
                message="the decode rate is 90 tokens/s, and at least 95 is asked for",
                detail="",
            ),
            Check(
                "mnn int4 / chat", "", "vanished", "fail", "fail", "the cell is gone", gone=gone
            ),
            Check(
                "mnn int8 / chat", "", "failed", "fail", "fail",
                "the cell fails now: the runner's process ended while it generated",
                detail="n_ctx = 768\nGGML_ASSERT(buffer) failed",
                gone=crashed,
            ),
            check(rows["warn"], "warn", message="peak memory grew by 10 %", limit=0.02),
            check(rows["allowed"], "allowed", message="TTFT grew by 8 %", allowance=allowance),
            check(rows["undecided"], "undecided", message="the decode rate fell by 6 %, or it "
                  "did not", detail="34 repetitions on each side would settle it"),
            check(rows["missing"], "undecided", message="the energy per token was not compared",
                  value=None, detail="no meter is readable"),
            check(rows["pass"], "pass", message="the perplexity is the same", limit=0.01),
        ],
        headline="4 limits are broken",
        unused=["no cell matches the pattern `mlc*`"],
        vanished=(gone,),
        added=(cell("mnn int8 block_size=32", "chat"),),
        differing=(Differing("llama.cpp's version", "b6510", "b6511", "version"),),
    )  # fmt: skip


def odd() -> Gate:
    """A gate all of whose names would act if they were not escaped."""
    named = pair(ODD, "w|\n@all", differing=(Differing(ODD, ODD, "</td>", "option"),))
    refused = row(named, "ttft_s", 0.0, 0.1, "not_compared", why=ODD)
    allowance = Allowance(ODD, "*", None, dt.date(2027, 1, 31), ODD)
    return gate(
        [
            check(row(named), message=ODD, detail=ODD),
            check(refused, "allowed", message=ODD, detail=ODD, allowance=allowance, value=None),
            check(row(named, "load_s", 1.0, 2.0), "undecided", message=ODD, detail=ODD),
            check(row(named, "prefill_rate"), "warn", message=ODD, detail=ODD),
        ],
        headline=ODD,
        unused=[ODD],
        baseline=side(ODD),
        across_machines=ODD,
    )


def large(cells: int = 600) -> Gate:
    """A gate of so many cells, all of which are worse."""
    return gate(
        check(row(pair(f"variant {number} of a long name that says its options a=1 b=2", "chat")))
        for number in range(cells)
    )


THREADS = Differing("threads", "2", "1", "option")
