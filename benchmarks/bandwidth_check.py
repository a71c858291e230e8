"""Whether the readers of memory reach what a compiled program reaches: each in turn, for rounds.

Every reader that `edgebench probe bandwidth` tries, numpy's maximum, and a C program compiled here
for this processor (gcc or cc, -O3 -march=native) that loads whole vectors from 1, 4 and 8 places in
turn. They take turns, so that a busy machine hits all alike; the fastest round counts, since
neighbours only take away. The probe is a roof where its best is no slower than all others.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from edgebench.devices.bandwidth import array_size, available_bytes, measure_bandwidth
from edgebench.devices.cpu_caches import last_level_bytes
from edgebench.devices.memory_readers import find_readers

C_READER = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef uint64_t vector __attribute__((vector_size(64)));
struct part {
    char *start; size_t size; int streams; pthread_barrier_t *ready; uint64_t seen;
    double begun, ended;
};
static double now(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + moment.tv_nsec * 1e-9;
}
static void *read_part(void *given) {
    struct part *part = given;
    vector seen[8] = {{0}};
    size_t length = part->size / part->streams;
    pthread_barrier_wait(part->ready);
    part->begun = now();
    for (size_t at = 0; at < length; at += 512)
        for (int stream = 0; stream < part->streams; stream++) {
            vector *from = (vector *)(part->start + stream * length + at);
            for (int k = 0; k < 8; k++) seen[k] |= from[k];
        }
    for (int k = 0; k < 8; k++) part->seen |= seen[k][0] | seen[k][7];
    part->ended = now();
    return NULL;
}
int main(int count, char **words) {
    int threads = atoi(words[1]), passes = atoi(words[4]);
    size_t size = strtoull(words[2], NULL, 10) / threads / 4096 * 4096;
    struct part parts[256];
    pthread_t started[256];
    for (int t = 0; t < threads; t++) {
        parts[t] = (struct part){aligned_alloc(4096, size), size, atoi(words[3]), NULL, 0};
        memset(parts[t].start, 1, size);
    }
    for (int pass = 0; pass < passes; pass++) {
        pthread_barrier_t ready;
        double begun = 1e300, ended = 0;
        pthread_barrier_init(&ready, NULL, threads);
        for (int t = 0; t < threads; t++) {
            parts[t].ready = &ready;
            pthread_create(&started[t], NULL, read_part, &parts[t]);
        }
        for (int t = 0; t < threads; t++) pthread_join(started[t], NULL);
        for (int t = 0; t < threads; t++) {
            begun = parts[t].begun < begun ? parts[t].begun : begun;
            ended = parts[t].ended > ended ? parts[t].ended : ended;
        }
        printf("%.0f\\n", (double)size * threads / (ended - begun));
    }
    return 0;
}
"""
PASSES = 8
STREAMS = (1, 4, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for threads in asked.threads:
            show(threads, rounds(threads, asked.rounds, program))


def compiled(folder: Path) -> Path | None:
    """The C program; None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("no C compiler is here; the readers are compared with numpy alone")
        return None
    source, program = folder / "reader.c", folder / "reader"
    source.write_text(C_READER)
    options = ["-O3", "-march=native", str(source), "-o", str(program), "-lpthread"]
    subprocess.run([compiler, *options], check=True)
    return program


def rounds(threads: int, count: int, program: Path | None) -> dict[str, list[float]]:
    """Bytes/s by what read, of every pass of every round."""
    size, reason = array_size(threads, last_level_bytes(), available_bytes(Path("/proc")))
    if reason is not None:
        raise SystemExit(reason)
    found: dict[str, list[float]] = {}
    for _round in range(count):
        for reader in find_readers():
            made = measure_bandwidth(threads, seconds=0.3, readers=[reader])
            found.setdefault(reader.name, []).extend(made.bytes_per_s)
        found.setdefault("numpy maximum", []).extend(with_numpy(threads, size))
        for streams in STREAMS if program else ():
            words = [str(program), str(threads), str(size), str(streams), str(PASSES)]
            said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            found.setdefault(f"C, {streams} streams", []).extend(map(float, said.split()))
    return found


def with_numpy(threads: int, size: int) -> list[float]:
    """The maximum of bytes, each thread of its own array."""
    arrays = [np.ones(size // threads, np.uint8) for _ in range(threads)]
    rates = []
    for _pass in range(PASSES):
        started = [threading.Thread(target=each.max) for each in arrays]
        begun = time.perf_counter()
        for each in started:
            each.start()
        for each in started:
            each.join()
        rates.append(size / (time.perf_counter() - begun))
    return rates


def show(threads: int, found: dict[str, list[float]]) -> None:
    """A table, and the ratio that matters."""
    print(f"\n{threads} thread{'s' if threads > 1 else ''}, GB/s {'':8} median   fastest")
    for name, rates in found.items():
        print(f"{name:24} {statistics.median(rates) / 1e9:8.1f} {max(rates) / 1e9:9.1f}")
    own = {each.name for each in find_readers()}
    best = max(max(rates) for name, rates in found.items() if name in own)
    others = max(max(rates) for name, rates in found.items() if name not in own)
    print(f"edgebench's fastest / the others' fastest: {best / others:.2f}")


if __name__ == "__main__":
    main()
