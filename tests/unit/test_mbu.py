"""How much of the memory's bandwidth a decode rate takes: by hand, and null with a reason."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from edgebench.harness.bandwidth import DISTURBED, OFF
from edgebench.harness.mbu import CacheShape, Utilization, cache_shape, is_above
from edgebench.harness.results.device import BandwidthRecord
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.model import VariantRecord
from edgebench.harness.results.trial import Tokens, Trial

WEIGHTS = 94_000_000
SMOL = CacheShape(30 * 3 * 64)


def roof(gigabytes: float = 20.0, threads: int = 2, **changes) -> BandwidthRecord:
    fields = {
        "bytes_per_s": gigabytes * 1e9, "samples": [gigabytes * 1e9], "threads": threads,
        "array_bytes": 1, "reader": "x", "measured_at": "", "fingerprint": "f", **changes,
    }  # fmt: skip
    return BandwidthRecord.model_validate(fields)


def trial(kind: str, **fields) -> Trial:
    common = {
        "kind": kind, "variant": "v", "workload": None if kind == "load" else "w", "block": 0,
        "repetition": 0, "phase": "measured", "status": "ok", "started_at": "", "duration_s": 1.0,
    }  # fmt: skip
    return Trial.model_validate(common | fields)


def load(weights: int | None = WEIGHTS, **options) -> Trial:
    used = {"threads": 2, "kv_cache_type_k": "f16", "kv_cache_type_v": "f16"} | options
    return trial("load", weight_bytes_per_token=weights, effective_options=used)


def generation(rate: float | None = 100.0, *, block: int = 0, **metrics) -> Trial:
    decode = (
        Measured(value=rate, unit="token/s", source="derived")
        if rate is not None
        else Measured.missing("token/s", "one token has no gap to another", "derived")
    )
    tokens = Tokens(
        prompt_tokens=8, depth_tokens=4, generated_ids=[1] * 16, token_ns=[1] * 16,
        finish_reason="length",
    )  # fmt: skip
    return trial("generate", tokens=tokens, metrics={"decode_rate": decode, **metrics}, block=block)


def judged(loaded: Trial, made: Trial, *records: BandwidthRecord, cache=SMOL, why=OFF):
    utilization = Utilization(records, cache, why)
    assert utilization.judged(loaded) is loaded
    return utilization.judged(made).metrics


def test_mbu_by_hand():
    """SmolLM2: 94 MB of weights, and of the cache the mean of 20 tokens of 30 x 3 x 64 x 2 x 2 B.

    (94,000,000 + 460,800) x 100 / 20e9.
    """
    found = judged(load(), generation(), roof())
    assert found["kv_bytes_per_token"].value == 20 * 5760 * 4
    assert found["mbu"].value == pytest.approx(0.472304)
    assert (found["mbu"].unit, found["mbu"].source) == ("1", "derived")


@pytest.mark.parametrize(
    ("options", "each"),
    [
        ({"kv_cache_type_k": "q8_0", "kv_cache_type_v": "q4_0"}, 34 / 32 + 18 / 32),
        ({"kv_cache_type_k": "f32", "kv_cache_type_v": "f16"}, 6),
    ],
)
def test_the_caches_types_count(options, each):
    """ggml's Q8_0 takes 34 bytes for 32 numbers, Q4_0 takes 18."""
    found = judged(load(**options), generation(), roof())
    assert found["kv_bytes_per_token"].value == 20 * 5760 * each


def test_one_type_may_be_told_for_both():
    """As TVM's engines tell it."""
    loaded = trial(
        "load",
        weight_bytes_per_token=WEIGHTS,
        effective_options={"threads": 2, "kv_cache_type": "float32"},
    )
    assert judged(loaded, generation(), roof())["kv_bytes_per_token"].value == 20 * 5760 * 8


def test_an_unknown_cache_is_left_out():
    """The weights alone are held against the roof; the cache is null with its reason."""
    found = judged(load(kv_cache_type_k="tq3"), generation(), roof())
    assert "does not tell in which type" in (found["kv_bytes_per_token"].reason or "")
    assert found["mbu"].value == pytest.approx(0.47)
    found = judged(load(), generation(), roof(), cache=None)
    assert "layers and heads" in (found["kv_bytes_per_token"].reason or "")


@pytest.mark.parametrize(
    ("loaded", "made", "records", "reason"),
    [
        (load(None), generation(), [roof()], "does not tell how many bytes of weights"),
        (load(), generation(), [], OFF),
        (load(threads=4), generation(), [roof()], "was not measured with 4 threads"),
        (load(), generation(), [roof(disturbed=True)], DISTURBED),
        (load(threads=4), generation(), [roof(), roof(threads=4, disturbed=True)], DISTURBED),
        (load(), generation(None), [roof()], "one token has no gap to another"),
        (load(gpu_layers=7), generation(), [roof()], "7 layers run on a GPU"),
        (load(backend="gpu"), generation(), [roof()], "it runs on gpu"),
    ],
)
def test_what_is_not_known_is_null_with_its_reason(loaded, made, records, reason):
    """Never 0, and never a share of another memory."""
    found = judged(loaded, made, *records)["mbu"]
    assert found.value is None
    assert reason in (found.reason or "")


def test_only_generations_are_judged():
    """A failed one, a task and a load are as they were."""
    utilization = Utilization([roof()], SMOL)
    utilization.judged(load())
    for each in (
        trial("task"),
        trial("generate", status="failed"),
        trial("generate", metrics={}),
    ):
        assert utilization.judged(each) is each


def cell(values: list[float], *, samples: tuple[float, ...] = (20e9,), **changes) -> bool:
    variant = VariantRecord(id="v", runner="r", quantization="q", effective_options={"threads": 2})
    memory = roof(samples=list(samples), **changes)
    record = SimpleNamespace(bandwidth=[memory], variants=[variant])
    measured = [
        generation(block=place, mbu=Measured(value=value, unit="1", source="derived"))
        for place, value in enumerate(values)
    ]
    return is_above(record, "v", measured)


def test_a_cell_above_the_roof_is_broken():
    """Its whole interval is; where one end of it is below, it may be right."""
    assert cell([1.2, 1.21, 1.22, 1.2, 1.21])
    assert not cell([0.9, 1.21, 1.22, 1.2, 0.8])
    assert not cell([0.5] * 5)
    assert not cell([])


def test_the_fastest_repetition_is_the_roof():
    """Memory that was once read at 25 GB/s can be: 1.2 of 20 GB/s is less, 1.3 is more."""
    assert not cell([1.2] * 5, samples=(18e9, 20e9, 25e9))
    assert cell([1.3] * 5, samples=(18e9, 20e9, 25e9))


def test_too_few_blocks_for_an_interval_need_all_repetitions_above():
    """Of two repetitions, the lower one decides."""
    assert cell([1.5, 1.6])
    assert not cell([1.5, 0.9])


def test_the_cache_of_a_shape(tmp_path):
    """Llama 2 7B: 32 layers of 32 heads of 128; a model that is not understood has none."""
    assert cache_shape(None, "llama2-7b") == CacheShape(32 * 32 * 128)
    (tmp_path / "model.bin").write_bytes(b"nothing that is known")
    assert cache_shape(tmp_path / "model.bin") is None
    assert cache_shape(tmp_path / "missing") is None
    assert cache_shape(None) is None


def test_layers_with_a_window_cache_no_more_than_that():
    """Gemma 2 at 6000 tokens: 13 layers see 6000 and 13 see 4096, 4 heads of 256 numbers each."""
    shape = cache_shape(None, "gemma2-2b")
    assert shape is not None
    assert shape.read(6000) == 1024 * (13 * 6000 + 13 * 4096)
    assert shape.read(100) == 1024 * 26 * 100


def stretch(burst: float | None, last: float | None) -> Trial:
    rates = {
        key: Measured(value=value, unit="token/s", source="derived")
        if value is not None
        else Measured.missing("token/s", "no token was decoded", "derived")
        for key, value in (("burst_rate", burst), ("sustained_rate", last))
    }
    return trial("sustained", metrics=rates)


@pytest.mark.parametrize(("burst", "last"), [(200.0, 100.0), (100.0, 200.0), (200.0, None)])
def test_sustained_work_is_judged_by_its_faster_end(burst, last):
    """94 MB of weights 200 times a second, of 20 GB/s; the cache is not counted."""
    found = judged(load(), stretch(burst, last), roof())
    assert found["mbu"].value == pytest.approx(0.94)
    assert "the KV cache is not counted" in (found["kv_bytes_per_token"].reason or "")
    assert judged(load(), stretch(None, None), roof())["mbu"].reason == "no token was decoded"


def test_sustained_work_above_the_roof_is_broken():
    """1000 times a second would be 94 GB/s of 20; 200 times a second are not."""
    for rate, broken in ((1000.0, True), (200.0, False)):
        metrics = judged(load(), stretch(rate, rate), roof())
        made = trial("sustained", metrics=metrics)
        variant = VariantRecord(
            id="v", runner="r", quantization="q", effective_options={"threads": 2}
        )
        record = SimpleNamespace(bandwidth=[roof()], variants=[variant])
        assert is_above(record, "v", [made]) is broken


@pytest.mark.parametrize(("rate", "broken"), [(400.0, False), (450.0, True)])
def test_a_disturbed_reading_still_has_a_bound(rate, broken):
    """Read at 10 GB/s with a quarter of the CPUs: 40 GB/s at most, 425 times 94 MB."""
    memory = roof(10.0, disturbed=True, at_most_bytes_per_s=40e9)
    variant = VariantRecord(id="v", runner="r", quantization="q", effective_options={"threads": 2})
    record = SimpleNamespace(bandwidth=[memory], variants=[variant])
    assert is_above(record, "v", [generation(rate)] * 3, [load()]) is broken
    assert not is_above(record, "v", [generation(rate)] * 3, [])
