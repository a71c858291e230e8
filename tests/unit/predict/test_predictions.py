"""The memory wall, the roofs and what is expected below them: by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgebench.harness.device_profiles import find_profile, list_profiles
from edgebench.harness.errors import UsageError
from edgebench.harness.predict.decoder import Decoder, decoder_of
from edgebench.harness.predict.device import DeviceFacts, Known, facts_of
from edgebench.harness.predict.efficiency import (
    DECODE,
    PREFILL_FP32,
    PREFILL_INT8,
    Efficiency,
    own_decode,
)
from edgebench.harness.predict.estimate import Estimate
from edgebench.harness.predict.formats import parse_format
from edgebench.harness.predict.memory import (
    RESERVES,
    activation_bytes,
    kv_cache_bytes,
    kv_read_bytes,
    reserved_bytes,
)
from edgebench.harness.predict.predict import Request, predict, prefill_operations

GIB = 2**30
LLAMA = decoder_of("llama2-7b")

BOARD = DeviceFacts(
    key="board",
    name="A board",
    kind="board",
    processor="cpu",
    bandwidth=Known(20e9, "its data sheet"),
    ram=Known(8 * GIB, "its data sheet"),
    fp32=Known(100e9, "derived"),
    int8=Known(400e9, "derived"),
    tdp_w=Known(20.0, "its data sheet"),
    sustained_w=Known(10.0, "its data sheet"),
)


def asked(quantization: str = "Q4_0", device: DeviceFacts = BOARD, **changes: object) -> Request:
    """Llama 2 7B on a board."""
    return replace(Request(LLAMA, parse_format(quantization), device), **changes)


def test_the_kv_cache_of_2048_tokens_takes_a_gibibyte() -> None:
    """2 x 32 layers x 4096 numbers x 2048 tokens x 2 bytes."""
    assert kv_cache_bytes(LLAMA, 2048, 2) == GIB
    assert predict(asked()).memory.kv_cache == GIB


def test_shared_heads_of_keys_make_the_cache_smaller() -> None:
    """TinyLlama keeps 4 heads of 64 numbers in 22 layers."""
    assert kv_cache_bytes(decoder_of("tinyllama-1.1b"), 2048, 2) == 2 * 22 * 256 * 2048 * 2


def test_activations_are_what_llama_cpp_logs() -> None:
    """It logs 70.50 MiB for Llama 2 7B at 512 tokens with fused attention, 164 at 2048 without."""
    assert activation_bytes(LLAMA, 512) == pytest.approx(70.5 * 2**20, rel=0.001)
    assert activation_bytes(LLAMA, 2048) == pytest.approx(164 * 2**20, rel=0.001)


def test_seven_billion_halves_do_not_fit_eight_gibibytes() -> None:
    """By how much is said, and nothing is expected of what does not fit."""
    found = predict(asked("F16"))
    wall = found.memory
    assert wall.fits is False
    assert wall.available == 8 * GIB - 600 * 2**20
    assert wall.spare == wall.available - wall.needed
    # 12.55 GiB of weights, 1 of keys and values, some for the rest.
    assert wall.spare / GIB == pytest.approx(7.41 - 13.77, abs=0.01)
    assert found.decode_rate.low is None
    assert "does not fit" in found.decode_rate.reason
    assert found.decode_bound.high is not None


def test_four_bits_fit_eight_gibibytes() -> None:
    """What is left over is said too."""
    wall = predict(asked()).memory
    assert wall.fits is True
    assert wall.needed == wall.weights + wall.kv_cache + wall.activations + wall.runtime
    assert wall.spare > 2 * GIB


def test_what_others_take_can_be_said() -> None:
    """It then takes the place of the assumption, and the assumptions say so."""
    found = predict(asked(reserved=4 * GIB))
    assert found.memory.reserved == 4 * GIB
    assert found.memory.fits is False
    assert "Other programs: as you said." in found.assumptions


def test_decoding_is_bound_by_what_a_token_reads() -> None:
    """Weights without the embedding but for a row, and the cache of the whole context."""
    found = predict(asked())
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    outer = 32000 * 4096
    read = (layers + 4096) // 32 * 18 + outer // 256 * 210 + 65 * 4096 * 4 + GIB
    assert found.read_per_token == read
    assert found.decode_bound.high == pytest.approx(20e9 / read)
    assert found.decode_rate.low == pytest.approx(DECODE["cpu"].low * 20e9 / read)
    assert found.decode_rate.high == pytest.approx(DECODE["cpu"].high * 20e9 / read)


def test_operations_of_a_prompt_by_hand() -> None:
    """Two a weight and token, the output once, and each token meets those before it."""
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert prefill_operations(LLAMA, 1) == 2 * layers + 4 * 32 * 4096 + 2 * 32000 * 4096
    # Three tokens meet 1 + 2 + 3.
    assert prefill_operations(LLAMA, 3) == 6 * layers + 4 * 32 * 4096 * 6 + 2 * 32000 * 4096


def test_a_long_prompt_is_bound_by_arithmetic() -> None:
    """Integers where the weights are, float32 where they are that."""
    found = predict(asked(prompt=512))
    assert found.prefill_bound.high == pytest.approx(512 / (prefill_operations(LLAMA, 512) / 400e9))
    large = replace(BOARD, ram=Known(64 * GIB, "made up"))
    floats = predict(asked("F32", large, prompt=512))
    assert floats.prefill_bound.high == pytest.approx(
        512 / (prefill_operations(LLAMA, 512) / 100e9)
    )


@pytest.mark.parametrize(
    ("quantization", "changes", "said"),
    [
        ("F16", {"ram": Known(64 * GIB, "made up")}, "16-bit floats"),
        ("Q4_0", {"int8": Known(None, "nobody says it")}, "8-bit integers"),
    ],
)
def test_no_bound_comes_of_a_unit_that_is_not_the_one(quantization, changes, said) -> None:
    """Half-precision or integer units may be faster than float32, so that it bounds nothing."""
    found = predict(asked(quantization, replace(BOARD, **changes)))
    assert found.prefill_bound.low is None
    assert said in found.prefill_bound.reason
    assert found.prefill_rate.low is not None


def test_a_short_prompt_is_read_no_faster_than_decoding_reads() -> None:
    """One token's weights: 35 to 80 % of 20 GB/s, and never all of it."""
    quick = replace(BOARD, int8=Known(1e15, "made up"))
    found = predict(asked(device=quick, prompt=1))
    weights = found.read_per_token - found.memory.kv_cache
    assert found.prefill_rate.high == pytest.approx(0.80 * 20e9 / weights)
    assert found.prefill_rate.low == pytest.approx(0.35 * 20e9 / weights, rel=0.01)


def test_nothing_is_expected_of_a_prompt_where_the_bandwidth_is_not_known() -> None:
    """What a prompt reads takes an unknown time then, not none."""
    found = predict(asked(device=replace(BOARD, bandwidth=Known(None, "nobody says it"))))
    assert found.ttft.low is None
    assert "nobody says it" in found.ttft.reason
    assert found.prefill_bound.high is not None


def test_a_measured_bandwidth_is_no_theoretical_peak() -> None:
    """A framework may read as fast as reading alone does: up to all of it, and it is said so."""
    measured = replace(BOARD, bandwidth=Known(20e9, "Measured by edgebench", measured=True))
    found = predict(asked(device=measured))
    assert found.decode_rate.high == pytest.approx(found.decode_bound.high)
    said = " ".join(found.assumptions)
    assert "20.0 GB/s, measured (" in said
    assert "20.0 GB/s, the theoretical peak (" not in said


def test_a_gpu_is_not_bound_by_what_the_cores_measured() -> None:
    """The probe reads with the CPU's threads; a GPU beside them may read faster."""
    profile = find_profile("jetson-orin-nano")
    figure = profile.memory.bandwidth_bytes_per_s.model_copy(update={"basis": "measured"})
    memory = profile.memory.model_copy(update={"bandwidth_bytes_per_s": figure})
    facts = facts_of(profile.model_copy(update={"memory": memory}), "gpu")
    assert facts.bandwidth.value is None
    assert "CPU" in facts.bandwidth.said


def test_layers_with_a_window_read_no_more_than_that() -> None:
    """Gemma 2: of 26 layers 13 see 4096 of 8192 tokens; 4 heads of 256 numbers, 2 bytes each."""
    gemma = decoder_of("gemma2-2b")
    per_layer_and_token = 2 * 4 * 256 * 2
    assert kv_read_bytes(gemma, 8192, 2) == per_layer_and_token * (13 * 8192 + 13 * 4096)
    assert kv_read_bytes(gemma, 4096, 2) == kv_cache_bytes(gemma, 4096, 2)
    found = predict(replace(asked(), model=gemma, context=8192))
    assert any("13 of 26 layers" in each for each in found.assumptions)


def test_a_prompt_of_one_token_is_bound_by_reading() -> None:
    """The weights have to be read whatever is computed."""
    quick = replace(BOARD, int8=Known(1e15, "made up"))
    found = predict(asked(device=quick, prompt=1))
    assert found.prefill_bound.high == pytest.approx(
        20e9 / (found.read_per_token - found.memory.kv_cache)
    )


def test_the_first_token_comes_after_the_prompt() -> None:
    """The prompt's length over the rate, so that the slow end is the late one."""
    found = predict(asked(prompt=256))
    assert found.ttft.low == pytest.approx(256 / found.prefill_rate.high)
    assert found.ttft.high == pytest.approx(256 / found.prefill_rate.low)


def test_energy_is_the_sustained_power_over_the_rate_that_it_leaves() -> None:
    """10 W of a TDP of 20 W leave half the rate; without a TDP, or at all of it, the whole."""
    found = predict(asked())
    assert found.energy_per_token.low == pytest.approx(10 / (found.decode_rate.high / 2))
    assert found.energy_per_token.high == pytest.approx(10 / (found.decode_rate.low / 2))
    assert "over the rate once hot" in " ".join(found.assumptions)
    for tdp_w in (Known(None, "nobody says"), Known(10.0, "its data sheet")):
        found = predict(asked(device=replace(BOARD, tdp_w=tdp_w)))
        assert found.energy_per_token.low == pytest.approx(10 / found.decode_rate.high)
        assert "over the expected rate" in " ".join(found.assumptions)


def test_halves_are_floats_however_large_the_embedding_is() -> None:
    """Of an embedding that is kept apart a token reads a row: two bytes a weight that is read.

    256 000 tokens of 1024 numbers, twice, and 12 million weights in the layer.
    """
    model = Decoder(
        name="wide", layers=1, hidden=1024, intermediate=2048, heads=8, kv_heads=8, head_size=128,
        vocabulary=256_000, layer_vector_weights=2048, tied=False,
    )  # fmt: skip
    assert model.read_weights == model.parameters - 255_999 * 1024
    found = predict(replace(asked("F16"), model=model))
    assert found.prefill_bound.low is None
    assert "16-bit floats" in found.prefill_bound.reason
    assert any(each.startswith("Prefill: computed in float32") for each in found.assumptions)


def test_one_token_is_no_tokens() -> None:
    """One token of context, in the words of the assumptions."""
    said = " ".join(predict(asked(context=1, prompt=1)).assumptions)
    assert "x 1 token x" in said
    assert "batches of 1 token without" in said
    assert "1 tokens" not in said


def test_heat_follows_the_documents_formula() -> None:
    """Theoretical x min(1, sustained power / TDP): half, and never more than all."""
    found = predict(asked())
    assert found.sustained_decode_rate.high == pytest.approx(found.decode_rate.high / 2)
    cool = replace(BOARD, sustained_w=Known(30.0, "made up"))
    found = predict(asked(device=cool))
    assert found.sustained_decode_rate.high == found.decode_rate.high


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("bandwidth", "decode_rate"),
        ("sustained_w", "energy_per_token"),
        ("tdp_w", "sustained_decode_rate"),
    ],
)
def test_what_is_not_known_is_null_with_the_profiles_reason(field: str, result: str) -> None:
    """Nothing stands in for a figure that nobody publishes."""
    device = replace(BOARD, **{field: Known(None, "nobody says")})
    found: Estimate = getattr(predict(asked(device=device)), result)
    assert found.low is None
    assert found.high is None
    assert found.reason.endswith("nobody says")


def test_without_arithmetic_there_is_no_prefill() -> None:
    """Decoding is predicted all the same."""
    device = replace(BOARD, int8=Known(None, "no"), fp32=Known(None, "no clocks"))
    found = predict(asked(device=device))
    assert found.prefill_rate.reason == "what its CPU computes is not known: no clocks"
    assert found.ttft.low is None
    assert found.decode_rate.low is not None


def test_without_its_memorys_size_nothing_is_said_of_fitting() -> None:
    """It is neither yes nor no."""
    wall = predict(asked(device=replace(BOARD, ram=Known(None, "sold with any")))).memory
    assert wall.fits is None
    assert wall.spare is None
    assert wall.reason == "sold with any"


def test_everything_is_marked_as_predicted() -> None:
    """No number of it can be taken for a measurement."""
    found = predict(asked())
    assert found.source == "predicted"
    for name in ("decode_bound", "decode_rate", "prefill_rate", "ttft", "energy_per_token"):
        assert getattr(found, name).source == "predicted"


def test_a_context_beyond_the_training_is_said() -> None:
    """It runs, and what it says is another matter."""
    found = predict(asked(context=8192))
    assert any("8192 tokens are more than the 4096" in each for each in found.assumptions)
    assert not any(each.startswith("Context") for each in predict(asked()).assumptions)


def test_every_profile_gives_a_prediction() -> None:
    """Whatever is published of a device, and whatever is not."""
    for profile in list_profiles():
        found = predict(asked(device=facts_of(profile)))
        assert found.device == profile.key
        assert found.assumptions


def test_a_gpu_is_its_own_processor() -> None:
    """Its peaks are its own, and its range of efficiency; a device without one is refused."""
    facts = facts_of(find_profile("jetson-agx-orin"), "gpu")
    found = predict(asked(device=facts))
    assert found.processor == "gpu"
    # 204.8 GB/s of its data sheet, and what GPUs were seen to reach of theirs.
    assert found.decode_bound.high == pytest.approx(204.8e9 / found.read_per_token)
    assert found.decode_rate.low == pytest.approx(0.40 * 204.8e9 / found.read_per_token)
    assert found.decode_rate.high == pytest.approx(0.90 * 204.8e9 / found.read_per_token)
    on_cpu = predict(asked(device=facts_of(find_profile("jetson-agx-orin"), "cpu")))
    assert on_cpu.processor == "cpu"
    assert on_cpu.decode_rate.high == pytest.approx(0.80 * 204.8e9 / found.read_per_token)
    with pytest.raises(UsageError, match="has no GPU"):
        facts_of(find_profile("vm"), "gpu")


def test_a_runs_own_efficiency_is_carried_over_with_its_spread() -> None:
    """Of a measured bandwidth, which is less than the theoretical one; never more than all."""
    found = own_decode(0.5, 0.8)
    assert (found.low, found.high) == (pytest.approx(0.30), pytest.approx(0.72))
    assert own_decode(0.9, 1.3).high == pytest.approx(0.9)


@pytest.mark.parametrize("table", [DECODE, PREFILL_FP32, PREFILL_INT8])
def test_ranges_are_ranges(table: dict[str, Efficiency]) -> None:
    """None is one number, and none is above the peak."""
    for each in table.values():
        assert 0 < each.low < each.high <= 1


def test_an_estimate_has_a_range_or_a_reason() -> None:
    """Never both, never neither, never what is no number."""
    assert Estimate.of("s", 2.0, 1.0) == Estimate(1.0, 2.0, "s")
    assert Estimate.of("s", 2.0, 4.0).over(8.0, "1") == Estimate(2.0, 4.0, "1")
    for wrong in ((None, None, "s", ""), (1.0, None, "s", ""), (1.0, 2.0, "s", "why")):
        with pytest.raises(ValueError, match="a reason for having none"):
            Estimate(*wrong)
    with pytest.raises(ValueError, match="finite"):
        Estimate(1.0, float("inf"), "s")


def test_a_share_is_reserved_where_it_is_more() -> None:
    """Phones keep two fifths, and two gibibytes at least."""
    assert reserved_bytes("phone", 10 * GIB) == 4 * GIB
    assert reserved_bytes("phone", 3 * GIB) == 2 * GIB
    assert set(RESERVES) == {"phone", "board", "laptop", "desktop", "server", "vm"}
