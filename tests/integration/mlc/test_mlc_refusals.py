"""What MLC's runner is asked for and can't do, told in one sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mlc_damage import CONFIG, INDEX, SHARD, change, change_shard, refused
from tiny_models import log_likelihoods

from edgebench.harness.errors import RunnerRefusedError
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    RunnerFailure,
    ScoreRequest,
)
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

PROMPT = list(range(5, 35))


def test_a_context_longer_than_compiled_is_refused(artifact: Path) -> None:
    """And one that the folder's configuration lowered."""
    assert "takes 257 tokens" in str(refused(artifact, context=257))
    change(artifact / CONFIG, context_window_size=100)
    failure = refused(artifact, context=101)
    assert "takes 101 tokens" in str(failure)
    assert "for 100" in str(failure)
    assert failure.reason == "invalid"


def test_a_longer_chunk_than_compiled_is_refused(artifact: Path) -> None:
    """TVM's memory is planned for those of the library."""
    assert "prefill_chunk is 300" in str(refused(artifact, prefill_chunk=300))


def test_logits_that_are_no_numbers_are_a_failure(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """The token of a NaN would be a result like any other."""
    change_shard(artifact)  # nothing, but the checksum goes below
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    size = index["records"][0]["nbytes"]
    del index["records"][0]["md5sum"]
    (artifact / INDEX).write_text(json.dumps(index), encoding="utf-8")
    (artifact / SHARD).write_bytes(np.full(size // 4, np.nan, dtype=np.float32).tobytes())
    with open_model(artifact) as each:
        with pytest.raises(RunnerRefusedError, match="nan as the highest logit"):
            each.generate(PROMPT, 4)
        with pytest.raises(RunnerRefusedError, match=r"as nan, for position 7 of 30 .*damaged"):
            each.score(PROMPT, 7)


def test_the_position_of_what_is_no_number_is_named(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """One row of the embedding is damaged: the token behind that token can't be rated.

    TVM's attention multiplies the values of later tokens of the same pass with zero, so those
    before it may be hit as well; in a pass without that token they are rated as before.
    """
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    (shard,) = index["records"]
    (place,) = (each for each in shard["records"] if each["name"] == "model.embed_tokens.weight")
    del shard["md5sum"]
    (artifact / INDEX).write_text(json.dumps(index), encoding="utf-8")
    data = np.fromfile(artifact / SHARD, np.float32)
    width = place["shape"][1]
    first = place["byteOffset"] // 4 + PROMPT[20] * width
    data[first : first + width] = np.nan
    data.tofile(artifact / SHARD)
    with open_model(artifact) as each:
        with pytest.raises(RunnerRefusedError, match=r"as nan, for position 21 of 30") as told:
            each.score(PROMPT, 21)
        assert told.value.reason == "framework"
        with pytest.raises(RunnerRefusedError, match=r"for position (9|1\d|2[01]) of 30"):
            each.score(PROMPT, 9)
        found = each.score(PROMPT[:21], 9).log_likelihoods
    assert found == pytest.approx(log_likelihoods(tiny.model, PROMPT[:21])[8:], abs=1e-4)


@pytest.mark.parametrize("device", ["cuda", "metal"])
def test_a_device_that_is_not_there_is_refused(artifact: Path, device: str) -> None:
    """TVM would name a function that it lacks."""
    if device in MlcRunner().describe().capabilities.gpu_backends:
        pytest.skip("it is there")
    failure = refused(artifact, device=device)
    assert f"can't use {device}, or there is none; it has: cpu" in str(failure)
    assert (
        f"choose one of these as device, or install a TVM, or MLC's packages, that can use {device}"
        in str(failure)
    )
    assert failure.reason == "unavailable"


def test_mlcs_engine_has_to_be_installed(artifact: Path) -> None:
    """How is told, in the description, too; the library is another question."""
    description = MlcRunner().describe()
    if description.engine == "MLC LLM":
        pytest.skip("it is installed")
    assert description.engine == "TVM"
    assert "mlc-llm-nightly-cpu" in description.notes[0]
    failure = refused(artifact, engine="mlc_llm")
    assert "mlc-llm-nightly-cpu" in str(failure)
    assert failure.reason == "unavailable"


def test_more_threads_than_were_made_are_refused(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """TVM makes its threads once in a process, so another load may use fewer of them only."""
    from edgebench.runners.base import to_wire

    with open_model(artifact, threads=2) as each:
        for count, fits in ((1, True), (2, True), (3, False)):
            request = to_wire(LoadRequest(str(artifact), 64, {"threads": count}))
            if fits:
                answer: Any = each.session.call("load", request, timeout_s=60)
                assert answer["model"]["effective_options"]["threads"] == count
                continue
            with pytest.raises(RunnerRefusedError, match="3 threads are asked for and TVM uses 2"):
                each.session.call("load", request, timeout_s=60)


def test_nothing_is_generated_before_a_model_is_loaded() -> None:
    """TVM's functions are not there yet."""
    for call in (
        lambda runner: runner.generate(GenerateRequest([1], 1)),
        lambda runner: runner.score(ScoreRequest([1, 2])),
    ):
        with pytest.raises(RunnerFailure, match="no model is loaded"):
            call(MlcRunner())


def test_quantizations_that_take_mlcs_compiler_say_so(tiny: Any, tmp_path: Path) -> None:
    """Where it is not installed, its command is told."""
    if MlcRunner().describe().engine == "MLC LLM":
        pytest.skip("it is installed")
    request = ConvertRequest(str(tiny.source), "q4f16_1", str(tmp_path / "made"))
    with pytest.raises(RunnerFailure, match="mlc-llm-nightly-cpu") as caught:
        MlcRunner().convert(request)
    assert caught.value.reason in ("unsupported", "unavailable")
