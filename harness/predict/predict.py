"""The prediction: the memory wall, the two roofs, and what is expected below them.

Source of the roofs: Williams, Waterman and Patterson, Roofline, 2009. To decode a token of one
sequence, each weight and the keys and values of the context are read once; to prefill, each weight
of the layers is multiplied and added once a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.predict.device import Known
from edgebench.harness.predict.efficiency import PREFILL_FP32, PREFILL_INT8, decode_efficiency
from edgebench.harness.predict.estimate import PREDICTED, Estimate, tokens_in_words
from edgebench.harness.predict.formats import SOURCE, TITLES, weight_bytes
from edgebench.harness.predict.memory import (
    BATCH,
    RESERVES,
    MemoryWall,
    kv_read_bytes,
    memory_wall,
)

if TYPE_CHECKING:
    from edgebench.harness.predict.decoder import Decoder
    from edgebench.harness.predict.device import DeviceFacts
    from edgebench.harness.predict.efficiency import Efficiency
    from edgebench.harness.predict.formats import Format

RATE = "token/s"

KINDS = {"vm": "virtual machine"}

FLOATS_FROM = 1.5
"""Bytes a weight, above which weights are no integers."""

FULL_FLOATS_FROM = 3.0
"""Bytes a weight, above which they are float32."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked.

    Attributes:
        model: its sizes.
        form: how its weights are kept.
        device: what it is to run on.
        context: tokens in the KV cache, at least 1.
        prompt: tokens of the prompt, at least 1 and at most `context`.
        kv_number_bytes: of a number in the cache; the framework's default where None.
        reserved: bytes that other programs take; assumed where None.
        efficiency: what is reached of the bandwidth; of the kind of processor where None.
    """

    model: Decoder
    form: Format
    device: DeviceFacts
    context: int = 2048
    prompt: int = 512
    kv_number_bytes: float | None = None
    reserved: float | None = None
    efficiency: Efficiency | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected of a model on a device; no number of it was measured.

    Attributes:
        source: always ``predicted``.
        device, device_name, processor: what it would run on.
        model, quantization, runner: what would run.
        context, prompt: in tokens.
        memory: whether it fits.
        read_per_token: bytes of weights, and of keys and values of the whole context.
        decode_bound: what no decode rate can be above, at the end of the context.
        decode_rate: what is expected there.
        sustained_decode_rate: the same once it is hot, by the documents' formula; the same
            number where the sustained power is not below the TDP.
        prefill_bound: what no prefill rate of the prompt can be above.
        prefill_rate: what is expected.
        ttft: from the prompt to the first token.
        energy_per_token: at the sustained power, and the rate that it leaves once it is hot.
        assumptions: what all this rests on, a sentence each.
    """

    source: str
    device: str
    device_name: str
    processor: str
    model: str
    quantization: str
    runner: str
    context: int
    prompt: int
    memory: MemoryWall
    read_per_token: int
    decode_bound: Estimate
    decode_rate: Estimate
    sustained_decode_rate: Estimate
    prefill_bound: Estimate
    prefill_rate: Estimate
    ttft: Estimate
    energy_per_token: Estimate
    assumptions: tuple[str, ...]


def predict(request: Request) -> Prediction:
    """Predict.

    Raises:
        UsageError: the weights are asked for as they are, and the model is known by shape alone.
    """
    model, device = request.model, request.device
    weights = weight_bytes(model, request.form)
    kv_number = request.kv_number_bytes
    if kv_number is None:
        kv_number = request.form.kv_bytes()
    wall = memory_wall(model, weights.total, device, request.context, kv_number, request.reserved)
    read = weights.read + kv_read_bytes(model, request.context, kv_number)
    efficiency = request.efficiency or decode_efficiency(device)
    decode_bound = _bound(device.bandwidth, read, "bandwidth of its memory")
    decode = decode_bound.times(efficiency.low, efficiency.high)
    prefill_bound, prefill, arithmetic = _prefill(request, weights.read, efficiency)
    ttft = prefill.over(request.prompt, "s")
    if wall.fits is False:
        nothing = "it does not fit into the memory, and reading from storage is far slower"
        decode, prefill, ttft = (
            Estimate.missing(each.unit, nothing) for each in (decode, prefill, ttft)
        )
    hot = _sustained(decode, device)
    return Prediction(
        source=PREDICTED,
        device=device.key,
        device_name=device.name,
        processor=device.processor,
        model=model.name,
        quantization=str(request.form) if model.stored is None else _as_it_is(request),
        runner=request.form.runner,
        context=request.context,
        prompt=request.prompt,
        memory=wall,
        read_per_token=read,
        decode_bound=decode_bound,
        decode_rate=decode,
        sustained_decode_rate=hot,
        prefill_bound=prefill_bound,
        prefill_rate=prefill,
        ttft=ttft,
        energy_per_token=_energy(decode if hot.low is None else hot, device),
        assumptions=_assumptions(request, efficiency, kv_number, arithmetic),
    )


def _as_it_is(request: Request) -> str:
    name = str(request.form)
    return f"as it is, mostly {request.model.stored_as}" if name == SOURCE else name


def _bound(peak: Known, needed: float, what: str) -> Estimate:
    if peak.value is None:
        return Estimate.missing(RATE, f"the {what} is not known: {peak.said}")
    return Estimate.of(RATE, peak.value / needed)


def prefill_operations(model: Decoder, tokens: int) -> float:
    """Multiplications and additions of a prompt.

    Two for each weight of the layers and token; the output layer once, for the last token; and
    the attention, in which a token meets on average half of the prompt, twice.
    """
    layers = 2.0 * model.layer_weights * tokens
    pairs = model.layers * tokens * (tokens + 1) / 2
    if model.window is not None and tokens > model.window:
        beyond = tokens - model.window
        pairs -= model.windowed_layers * beyond * (beyond + 1) / 2
    attention = 4.0 * model.heads * model.head_size * pairs
    return layers + attention + 2.0 * model.output.weights


def _prefill(
    request: Request, weight_read: int, reached: Efficiency
) -> tuple[Estimate, Estimate, str]:
    """The bound, what is expected, and what it rests on."""
    device, tokens = request.device, request.prompt
    # Weights that are floats are multiplied as floats.
    width = weight_read / request.model.read_weights
    integers = Known(None, "weights in floats") if width > FLOATS_FROM else device.int8
    roofs = [
        (known.value, table[device.processor], name)
        for known, table, name in (
            (integers, PREFILL_INT8, "8-bit integers"),
            (device.fp32, PREFILL_FP32, "float32"),
        )
        if known.value is not None
    ]
    processor = device.processor.upper()
    if not roofs:
        why = f"what its {processor} computes is not known: {device.fp32.said}"
        return (Estimate.missing(RATE, why), Estimate.missing(RATE, why), "")
    operations = prefill_operations(request.model, tokens)
    peak, efficiency, name = max(roofs, key=lambda each: each[0])
    bandwidth = device.bandwidth.value
    bound = Estimate.of(
        RATE, tokens / max(operations / peak, weight_read / bandwidth if bandwidth else 0.0)
    )
    # A framework uses what computes fastest: where that is not known, nothing is a bound.
    if FLOATS_FROM < width <= FULL_FLOATS_FROM:
        bound = Estimate.missing(
            RATE,
            f"what its {processor} computes in 16-bit floats is not known, so nothing bounds it",
        )
    elif width <= FLOATS_FROM and integers.value is None:
        bound = Estimate.missing(
            RATE,
            f"what its {processor} computes in 8-bit integers is not known, so nothing bounds it: "
            f"{integers.said}",
        )
    rests_on = (
        f"Prefill: computed in {name}, {peak / 1e9:.0f} billion operations a second at most; "
        f"{efficiency.said()} {efficiency.why}."
    )
    if bandwidth is None:
        why = f"the bandwidth of its memory is not known: {device.bandwidth.said}"
        return bound, Estimate.missing(RATE, why), ""
    # A batch reads the weights once, no faster than decoding does; at the best, one batch is all.
    batches = -(-tokens // BATCH)
    slow = operations / (peak * efficiency.low) + batches * weight_read / (bandwidth * reached.low)
    fast = max(operations / (peak * efficiency.high), weight_read / (bandwidth * reached.high))
    return bound, Estimate.of(RATE, tokens / slow, tokens / fast), rests_on


def _sustained(decode: Estimate, device: DeviceFacts) -> Estimate:
    """The documents' formula: actual = theoretical x min(1, sustained power / TDP)."""
    for known, what in ((device.sustained_w, "sustained power"), (device.tdp_w, "TDP")):
        if known.value is None:
            return Estimate.missing(RATE, f"its {what} is not known: {known.said}")
    return decode.times(device.share_once_hot)


def _energy(rate: Estimate, device: DeviceFacts) -> Estimate:
    power = device.sustained_w
    if power.value is None:
        return Estimate.missing("J/token", f"its sustained power is not known: {power.said}")
    return rate.over(power.value, "J/token")


def _assumptions(
    request: Request, efficiency: Efficiency, kv_number: float, arithmetic: str
) -> tuple[str, ...]:
    model, device = request.model, request.device
    weights = (
        "Weights: the tensors of the file, as they are."
        if request.form.name == SOURCE
        else f"Weights: {request.form} as {TITLES[request.form.runner]} keeps it, scales "
        f"included, of {model.parameters / 1e9:.2f} billion weights."
    )
    cache = (
        f"KV cache: 2 x {model.layers} layers x {model.kv_heads} heads x {model.head_size} numbers "
        f"x {tokens_in_words(request.context)} x {kv_number:g} bytes."
    )
    activations = (
        "Activations: as llama.cpp's CPU backend sets them aside for batches of "
        f"{tokens_in_words(min(BATCH, request.context))} without fused attention, which takes less."
    )
    notes = [weights, cache, activations]
    if request.form.runner == "mediapipe":
        notes.append(
            "LiteRT-LM prepares the weights anew when it loads: its peak holds the file beside "
            "them, which the kernel can drop, and which is not counted here."
        )
    if model.window is not None and request.context > model.window:
        notes.append(
            f"Attention: {model.windowed_layers} of {model.layers} layers look back to "
            f"{model.window} tokens only and read no more; memory is set aside for all of them."
        )
    if model.context_tokens is not None and request.context > model.context_tokens:
        notes.append(
            f"Context: {request.context} tokens are more than the {model.context_tokens} that the "
            "model was trained for."
        )
    if request.reserved is not None:
        notes.append("Other programs: as you said.")
    elif device.ram.value is not None:
        reserve = RESERVES[device.kind]
        share = f", or {100 * reserve.share:.0f} % where that is more" if reserve.share else ""
        notes.append(
            f"Other programs: {reserve.least / 2**30:.1f} GiB{share}, assumed of a "
            f"{KINDS.get(device.kind, device.kind)}: {reserve.why}."
        )
    if device.bandwidth.value is not None:
        kind = "measured" if device.bandwidth.measured else "the theoretical peak"
        notes.append(
            f"Decoding: each token reads all weights and the whole KV cache once, of "
            f"{device.bandwidth.value / 1e9:.1f} GB/s, {kind} "
            f"({device.bandwidth.said.rstrip('.')})."
        )
        notes.append(f"Expected: {efficiency.said()} of that bound; {efficiency.why}.")
    if arithmetic:
        notes.append(arithmetic)
    if device.sustained_w.value is not None:
        slower = device.share_once_hot < 1
        rate = "the rate once hot" if slower else "the expected rate"
        notes.append(
            f"Energy: {device.sustained_w.value:g} W all the time "
            f"({device.sustained_w.said.rstrip('.')}), over {rate}."
        )
        if slower:
            notes.append(
                f"Once hot: expected x min(1, sustained power / TDP), TDP {device.tdp_w.value:g} W."
            )
    return tuple(notes)
