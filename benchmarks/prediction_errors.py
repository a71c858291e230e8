"""Sets predictions against every published figure at hand, and against runs of this machine.

    python benchmarks/prediction_errors.py [RUN_DIR ...] [--write docs/predict.md]

Prints tables; ``--write`` puts them between the two marks in the page.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from ruamel.yaml import YAML

from edgebench.cli.predict_output import number, span
from edgebench.harness.device_profiles import find_profile
from edgebench.harness.errors import EdgebenchError
from edgebench.harness.predict.decoder import Decoder, decoder_of
from edgebench.harness.predict.device import DeviceFacts, Known, Processor, facts_of
from edgebench.harness.predict.formats import Format, parse_format, weight_bytes
from edgebench.harness.predict.predict import Prediction, Request, predict
from edgebench.reports.data import load_report_data
from edgebench.reports.published.load import (
    published_formats,
    published_frameworks,
    published_platforms,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.predict.estimate import Estimate
    from edgebench.reports.data import ReportData

DATA = Path(__file__).parent / "data" / "published_rates.yaml"
BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"

CONTEXT = 128
"""Tokens in the KV cache, where rates were published of short generations."""

PLATFORMS: dict[str, tuple[str, Processor]] = {
    "i9-13900K": ("i9-13900k", "cpu"),
    "AMD 7950X": ("ryzen-9-7950x", "cpu"),
    "Snapdragon 8 Gen3": ("snapdragon-8-gen-3", "cpu"),
    "Dimensity 9300": ("dimensity-9300", "cpu"),
    "M2 Pro": ("m2-pro", "gpu"),
    "M3 Max": ("m3-max", "gpu"),
}
"""The documents' devices. They do not say what computes; llama.cpp uses Apple's GPUs by itself."""


DEFAULTS = {"llama.cpp": "Q4_0", "mnn": "mnn:int4", "mediapipe": "mediapipe:int4"}
"""In 4 bits, as the chapter says of llama.cpp's."""


class Shape(BaseModel):
    """A model by its published configuration."""

    model_config = ConfigDict(extra="forbid")

    title: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool

    def decoder(self) -> Decoder:
        """Its sizes."""
        return Decoder(
            name=self.title,
            layers=self.layers,
            hidden=self.hidden,
            intermediate=self.intermediate,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_size=self.head_size,
            vocabulary=self.vocabulary,
            layer_vector_weights=2 * self.hidden,
            tied=self.tied,
        )


class Rate(BaseModel):
    """A published rate."""

    model_config = ConfigDict(extra="forbid")

    device: str | None = None
    name: str | None = None
    bandwidth: float | None = None
    processor: Processor = "cpu"
    model: str
    format: str
    decode: float | None = None
    prefill: float | None = None
    prompt: int = CONTEXT
    source: str
    assumed: str = ""


class Published(BaseModel):
    """The file of them."""

    model_config = ConfigDict(extra="forbid")

    shapes: dict[str, Shape]
    sources: dict[str, str]
    rates: list[Rate]
    held_out: list[Rate]

    def decoder(self, name: str) -> Decoder:
        """A model by its key, here or among the well-known ones."""
        return self.shapes[name].decoder() if name in self.shapes else decoder_of(name)


@dataclass(frozen=True, slots=True)
class Check:
    """A figure beside its prediction.

    Attributes:
        cells: of the row of the table.
        inside: whether the figure lies in the range; None where nothing is predicted.
        possible: whether it lies below the bound.
    """

    cells: tuple[str, ...]
    inside: bool | None
    possible: bool


def main() -> None:
    """Print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN_DIR")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    text = "\n".join(_everything(asked.runs))
    print(text)
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN, 1)
        _old, after = rest.split(END, 1)
        asked.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def _everything(runs: Sequence[Path]) -> Iterator[str]:
    plain = YAML(typ="safe").load(DATA.read_text(encoding="utf-8"))
    published = Published.model_validate(plain)
    head = ("device", "model", "what", "predicted", "at most", "published", "error", "")
    yield "### Rates that the ranges were chosen by\n"
    checks = [_published(published, each) for each in published.rates]
    yield from _table(head, checks)
    yield f"\n{_counted(checks)}\n"
    yield "### Rates that were found afterwards\n"
    checks = [_published(published, each) for each in published.held_out]
    yield from _table(head, checks)
    yield f"\n{_counted(checks)}\n"
    yield f"Sources: {', '.join(f'[{key}]({url})' for key, url in published.sources.items())}.\n"
    yield "### The documents' platforms\n"
    checks = [_platform(name) for name in PLATFORMS]
    yield from _table(head, checks)
    yield f"\n{_counted(checks)}\n"
    yield "### The documents' frameworks\n"
    yield from _frameworks()
    yield "### The documents' formats\n"
    yield from _formats()
    for folder in runs:
        yield from _run(folder)


def _table(head: Sequence[str], checks: Sequence[Check]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for each in checks:
        yield f"| {' | '.join(each.cells)} |"


def _counted(checks: Sequence[Check]) -> str:
    known = [each for each in checks if each.inside is not None]
    inside = sum(bool(each.inside) for each in known)
    impossible = sum(not each.possible for each in known)
    return (
        f"{inside} of {len(known)} lie inside the range that was predicted; {impossible} lie above "
        "the bound and can't be right as they stand."
    )


def _published(published: Published, rate: Rate) -> Check:
    facts = _facts(rate)
    found = predict(
        Request(
            model=published.decoder(rate.model),
            form=parse_format(rate.format),
            device=facts,
            context=max(CONTEXT, rate.prompt),
            prompt=rate.prompt,
        )
    )
    value = rate.decode if rate.decode is not None else rate.prefill
    assert value is not None
    what = "decode" if rate.decode is not None else f"prefill of {rate.prompt}"
    return _check(
        (f"{facts.name}, {rate.processor.upper()}", f"{found.model}, {rate.format}", what),
        *_of(found, "decode" if rate.decode is not None else "prefill"),
        value,
        f"{rate.source}{'; assumed: ' if rate.assumed else ''}{rate.assumed}",
    )


def _facts(rate: Rate) -> DeviceFacts:
    if rate.device is not None:
        facts = facts_of(find_profile(rate.device), rate.processor)
        if rate.bandwidth is not None:
            known = Known(rate.bandwidth, "as the source says")
            facts = replace(facts, bandwidth=known)
        return facts
    nothing = Known(None, "no profile")
    return DeviceFacts(
        key="",
        name=rate.name or "",
        kind="laptop",
        processor=rate.processor,
        bandwidth=Known(rate.bandwidth, "Apple's specifications"),
        ram=nothing,
        fp32=nothing,
        int8=nothing,
        tdp_w=nothing,
        sustained_w=nothing,
    )


def _of(found: Prediction, what: str) -> tuple[Estimate, Estimate]:
    if what == "decode":
        return found.decode_rate, found.decode_bound
    return found.prefill_rate, found.prefill_bound


def _check(
    names: tuple[str, ...], expected: Estimate, bound: Estimate, value: float, note: str
) -> Check:
    if expected.low is None or expected.high is None or bound.high is None:
        why = expected.reason or bound.reason
        return Check(
            (*names, "–", span(bound), f"{value:g}", "–", f"{why} ({note})"), None, possible=True
        )
    # Of the nearer end: nothing where the figure is inside.
    end = min(max(value, expected.low), expected.high)
    error = "inside" if end == value else f"{100 * (end / value - 1):+.0f} %"
    possible = value <= bound.high
    notes = note if possible else f"**impossible**: above the bound ({note})"
    cells = (*names, span(expected), number(bound.high), f"{value:g}", error, notes)
    return Check(cells, end == value, possible=possible)


def _platform(name: str) -> Check:
    key, processor = PLATFORMS[name]
    table = published_platforms()
    row = next(each for each in table.rows if each.device == name)
    facts = facts_of(find_profile(key), processor)
    form = Format("llama.cpp", table.quantization)
    request = Request(decoder_of("llama2-7b"), form, facts, context=CONTEXT, prompt=CONTEXT)
    found = predict(request)
    names = (f"{name}, {processor.upper()}", f"{found.model}, {form}", "decode")
    value = row.decode_rate.middle
    return _check(names, found.decode_rate, found.decode_bound, value, "chapter")


def _frameworks() -> Iterator[str]:
    """They name no device, so that a rate can only be turned into the bandwidth that it takes."""
    yield (
        "| framework | memory, GB: predicted for 512 to 2048 tokens | published | "
        "tokens/s published | bandwidth that takes, GB/s |"
    )
    yield "|---|---|---|---|---|"
    model = decoder_of("llama2-7b")
    phone = facts_of(find_profile("snapdragon-8-gen-3"))
    for row in published_frameworks().rows:
        form = parse_format(DEFAULTS[row.framework])
        walls = [
            predict(Request(model, form, phone, context=each, prompt=1)).memory
            for each in (512, 2048)
        ]
        read = weight_bytes(model, form).read / 1e9
        rate = row.decode_rate
        ends = [(rate.low or rate.middle) * read, (rate.high or rate.middle) * read]
        yield (
            f"| {row.framework}, {form} | {walls[0].needed / 1e9:.1f} to "
            f"{walls[1].needed / 1e9:.1f} | {row.peak_memory.text} | {rate.text} | "
            f"{ends[0]:.0f} to {ends[1]:.0f} |"
        )
    yield ""


def _formats() -> Iterator[str]:
    table = published_formats()
    model = decoder_of("llama2-7b")
    base = weight_bytes(model, parse_format("F16"))
    yield "| format | size, GB | published | error | speed-up at most | published |"
    yield "|---|---|---|---|---|---|"
    for row in table.rows:
        form = parse_format("F16" if row.format == table.base else row.format)
        found = weight_bytes(model, form)
        size, said = found.total / 1e9, row.model_size.middle / 1e9
        yield (
            f"| {row.format} | {size:.2f} | {said:g} | {100 * (size / said - 1):+.1f} % | "
            f"{base.read / found.read:.2f} | {row.relative_speed.text} |"
        )


def _run(folder: Path) -> Iterator[str]:
    data = load_report_data(folder)
    machine = data.record.machine
    # The fastest repetition, as the profile of a machine that was probed has it.
    peaks = [sample for each in data.record.bandwidth for sample in each.samples]
    yield f"\n### Measured: {machine.cpu_model}, {machine.logical_cpus} CPUs\n"
    yield (
        f"Bandwidth: {max(peaks) / 1e9:.1f} GB/s, the fastest repetition that was measured; rates "
        "are set against the range of it."
        if peaks
        else "Its bandwidth was not measured, so that only sizes are set against predictions."
    )
    yield (
        "\n| variant | weights a token reads, MB: predicted | measured | error | "
        "memory, MiB: predicted | peak measured | decode, tokens/s: predicted | measured |"
    )
    yield f"|{'---|' * 8}"
    for variant in data.record.variants:
        cells = _variant(data, variant.id, max(peaks) if peaks else None)
        if cells:
            yield f"| {' | '.join((variant.id, *cells))} |"


def _variant(data: ReportData, name: str, peak: float | None) -> tuple[str, ...] | None:
    record = next(each for each in data.record.variants if each.id == name)
    artifact = record.artifact
    if artifact is None or artifact.weight_bytes_per_token is None:
        return None
    if record.options.get("output_quantization") is not None:
        return None
    model = decoder_of("smollm2-135m")
    text = "Q4_1" if record.quantization == "source" else record.quantization
    if record.runner == "mnn" and text == "int4" and record.options.get("block_size") == 32:
        text = "int4-b32"
    try:
        form = parse_format(f"{record.runner}:{text}")
    except EdgebenchError:
        return None
    workload = data.workload_names[0]
    nothing = Known(None, "")
    facts = DeviceFacts(
        key="here",
        name="here",
        kind="vm",
        processor="cpu",
        bandwidth=Known(peak, "measured"),
        ram=nothing,
        fp32=nothing,
        int8=nothing,
        tdp_w=nothing,
        sustained_w=nothing,
    )
    context = record.context_tokens or CONTEXT
    found = predict(Request(model, form, facts, context=context, prompt=1))
    read, measured = weight_bytes(model, form).read, artifact.weight_bytes_per_token
    memory = data.summary(workload, name, "peak_rss_bytes")
    rate = data.summary(workload, name, "decode_rate")
    return (
        f"{read / 1e6:.2f}",
        f"{measured / 1e6:.2f}",
        f"{100 * (read / measured - 1):+.2f} %",
        f"{found.memory.needed / 2**20:.0f}",
        "–" if memory is None or memory.median is None else f"{memory.median / 2**20:.0f}",
        span(found.decode_rate),
        "–" if peak is None or rate is None or rate.median is None else f"{rate.median:.1f}",
    )


if __name__ == "__main__":
    main()
