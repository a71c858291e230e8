"""What is said of the ranges is what the published rates at hand say."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ruamel.yaml import YAML

from edgebench.harness.predict.efficiency import (
    DECODE,
    DECODE_MEASURED,
    PREFILL_FP32,
    PREFILL_INT8,
    Efficiency,
)
from edgebench.harness.predict.formats import parse_format, weight_bytes

if TYPE_CHECKING:
    from types import ModuleType

    from edgebench.harness.predict.device import Processor

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that makes the tables of docs/predict.md."""
    path = BENCHMARKS / "prediction_errors.py"
    spec = importlib.util.spec_from_file_location("prediction_errors", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def shares(script: ModuleType, processor: Processor) -> list[float]:
    """Of each published decode rate of a processor: what it reads a second, of the bandwidth."""
    plain = YAML(typ="safe").load(script.DATA.read_text(encoding="utf-8"))
    published = script.Published.model_validate(plain)
    found = []
    for rate in (*published.rates, *published.held_out):
        if rate.decode is None or rate.processor != processor:
            continue
        model = published.decoder(rate.model)
        # Keys and values of 128 tokens in two bytes, beside the weights.
        cache = 2 * model.layers * model.kv_heads * model.head_size * 128 * 2
        read = weight_bytes(model, parse_format(rate.format)).read + cache
        found.append(rate.decode * read / script._facts(rate).bandwidth.value)
    return found


@pytest.mark.parametrize("processor", ["cpu", "gpu"])
def test_as_many_rates_lie_in_a_range_as_is_said(script: ModuleType, processor: Processor) -> None:
    """Counted anew, and each that lies outside is named by its share."""
    expected = DECODE[processor]
    found = shares(script, processor)
    inside = [each for each in found if expected.low <= each <= expected.high]
    assert (expected.inside, expected.published) == (len(inside), len(found))
    said = re.sub(r"[()]", "", expected.why)
    assert said.startswith(f"{len(inside)} of {len(found)} published rates")
    outside = {round(100 * each) for each in set(found) - set(inside)}
    assert {int(each) for each in re.findall(r"(\d+) %", said)} == outside
    if processor == "cpu":
        assert f"{len(inside)} of {len(found)} published rates" in DECODE_MEASURED.why


@pytest.mark.parametrize(
    ("table", "unit"), [(PREFILL_INT8, "int8"), (PREFILL_FP32, "fp32")]
)  # fmt: skip
def test_what_prompts_reached_is_what_is_said(
    script: ModuleType, table: dict[Processor, Efficiency], unit: str
) -> None:
    """Four rates of CPUs: two operations a weight of the layers and token, over the peak."""
    plain = YAML(typ="safe").load(script.DATA.read_text(encoding="utf-8"))
    published = script.Published.model_validate(plain)
    found = []
    for rate in (*published.rates, *published.held_out):
        if rate.prefill is None or rate.processor != "cpu":
            continue
        peak = getattr(script._facts(rate), unit).value
        found.append(2 * published.decoder(rate.model).layer_weights * rate.prefill / peak)
    assert len(found) == 4
    said = re.search(r"four published rates reached (\d+) to (\d+) %", table["cpu"].why)
    assert said is not None
    # The attention of a prompt adds some to what the layers take.
    assert int(said[1]) / 100 == pytest.approx(min(found), abs=0.015)
    assert int(said[2]) / 100 == pytest.approx(max(found), abs=0.015)
    assert table["cpu"].low <= min(found) <= max(found) <= table["cpu"].high
