"""Bytes of weights in each framework's formats, against published files and counts by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import ModelError, UsageError
from edgebench.harness.predict.decoder import Decoder, decoder_of, of_model
from edgebench.harness.predict.formats import Format, formats, parse_format, weight_bytes
from edgebench.harness.predict.gguf_types import row_bytes
from edgebench.models.architecture import Architecture
from edgebench.models.canonical import CanonicalModel
from edgebench.models.rope import default_rope
from edgebench.models.shapes import SHAPES
from edgebench.reports.physics import published_bytes_per_token

if TYPE_CHECKING:
    import numpy as np

GGUF_FILE = 3_825_807_296
"""Of llama-2-7b.Q4_0.gguf as it was published; it holds the vocabulary too."""

VOCABULARY = 1_000_000
"""What a vocabulary of 32,000 tokens and the header take at most."""

LISTED = {
    "F16": 12.55,
    "Q8_0": 6.67,
    "Q6_K": 5.15,
    "Q5_K_M": 4.45,
    "Q5_K_S": 4.33,
    "Q5_0": 4.33,
    "Q4_K_M": 3.80,
    "Q4_K_S": 3.59,
    "Q4_0": 3.56,
    "Q3_K_L": 3.35,
    "Q3_K_M": 3.07,
    "Q3_K_S": 2.75,
}
"""GiB of LLaMA 7B's tensors, as llama.cpp's own tables and logs give them."""


def small(*, tied: bool = False) -> Decoder:
    """One layer, small enough to count by hand: rows of 256 and 512."""
    return Decoder(
        name="small",
        layers=1,
        hidden=256,
        intermediate=512,
        heads=4,
        kv_heads=2,
        head_size=64,
        vocabulary=100,
        layer_vector_weights=512,
        tied=tied,
    )


def test_llama2_7b_in_q4_0_is_the_published_file() -> None:
    """The tensors take what the file takes, less its vocabulary."""
    total = weight_bytes(decoder_of("llama2-7b"), Format("llama.cpp", "Q4_0")).total
    # 32 layers of 4 x 4096^2 + 3 x 4096 x 11008 and the embedding at 18 bytes for 32 weights, the
    # output layer at 210 for 256, 65 norms in float32.
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    outer = 32000 * 4096
    by_hand = (layers + outer) // 32 * 18 + outer // 256 * 210 + 65 * 4096 * 4
    assert total == by_hand
    assert 0 < GGUF_FILE - total < VOCABULARY


@pytest.mark.parametrize("name", LISTED)
def test_mixes_are_as_large_as_llama_cpp_lists_them(name: str) -> None:
    """Each mix gives some matrices more bits, as many as llama.cpp does."""
    total = weight_bytes(decoder_of("llama2-7b"), Format("llama.cpp", name)).total
    assert total / 2**30 == pytest.approx(LISTED[name], abs=0.006)


def test_what_a_token_reads_is_what_the_reports_count() -> None:
    """Two counts of the published platforms' model, made apart, agree."""
    found = weight_bytes(decoder_of("llama2-7b"), Format("llama.cpp", "Q4_0"))
    assert found.read == pytest.approx(published_bytes_per_token())
    assert found.total - found.read == 31_999 * 4096 // 32 * 18


LAYER = 256 * 256 + 2 * 128 * 256 + 256 * 256 + 2 * 512 * 256 + 256 * 512
OUTER = 100 * 256
NORMS = 512 + 256


@pytest.mark.parametrize(
    ("name", "total"),
    [
        # A scale and a zero in float16 for 64; the embedding in bfloat16; norms with a bias.
        ("mnn:int4", (LAYER + OUTER) // 64 * (32 + 4) + OUTER * 2 + NORMS * 8),
        ("mnn:int4-b32", (LAYER + OUTER) // 32 * (16 + 4) + OUTER * 2 + NORMS * 8),
        ("mnn:int8", (LAYER + OUTER) // 64 * (64 + 4) + OUTER * 2 + NORMS * 8),
        # Blocks of 32 with a scale in float16; output and embedding int8 with one a row.
        ("mediapipe:int4", LAYER // 32 * (16 + 2) + 2 * (OUTER + 100 * 4) + NORMS * 4),
        # A float32 a row: q, k, v, o have 256 + 128 + 128 + 256 rows, the MLP 2 x 512 + 256.
        (
            "mediapipe:int8",
            LAYER + (256 + 128 + 128 + 256 + 2 * 512 + 256) * 4 + 2 * (OUTER + 400) + NORMS * 4,
        ),
        ("q4f16_1", (LAYER + 2 * OUTER) // 32 * (16 + 2) + NORMS * 2),
        ("q4f32_1", (LAYER + 2 * OUTER) // 32 * (16 + 4) + NORMS * 4),
        ("q0f16", (LAYER + 2 * OUTER + NORMS) * 2),
    ],
)
def test_other_frameworks_formats_by_hand(name: str, total: int) -> None:
    """Codes, scales and zeros, the output layer, the embedding and the norms."""
    assert weight_bytes(small(), parse_format(name)).total == total


def test_tied_embeddings_are_read_whole() -> None:
    """The output layer is the embedding: there is one, and each token reads all of it."""
    found = weight_bytes(small(tied=True), parse_format("Q4_0"))
    # As an output layer it is Q6_K.
    assert found.total == LAYER // 32 * 18 + OUTER // 256 * 210 + NORMS * 4
    assert found.read == found.total


def test_an_odd_width_falls_back_to_smaller_blocks() -> None:
    """Rows of 576 weights have no blocks of 256: SmolLM2's output layer in Q4_0 is Q8_0."""
    model = decoder_of("smollm2-135m")
    found = weight_bytes(model, parse_format("Q4_0"))
    outer = model.vocabulary * model.hidden
    assert found.total == (
        model.layer_weights // 32 * 18 + outer // 32 * 34 + model.vector_weights * 4
    )


def test_a_model_that_is_there_is_counted_as_it_is() -> None:
    """Of a file, each tensor by its own type; of the embedding a token reads a row."""

    class Tensor:
        def __init__(self, shape: tuple[int, ...], stored_as: str) -> None:
            self.shape, self.stored_as = shape, stored_as

        def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
            raise NotImplementedError

    shape = Architecture("llama", 1, 64, 96, 2, 1, 32, 50, 128, 1e-5, default_rope(32, 10_000.0))
    weights = {
        name: Tensor(each, "Q8_0" if len(each) > 1 else "F32")
        for name, each in shape.tensor_shapes().items()
    }
    found = of_model(CanonicalModel(Path("tiny.gguf"), shape, weights, lambda: None))
    matrices = 2 * 50 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64
    assert found.stored is not None
    assert found.stored.total == matrices // 32 * 34 + 3 * 64 * 4
    assert found.stored.total - found.stored.read == 49 * 64 // 32 * 34
    assert found.stored_as == "Q8_0"
    assert weight_bytes(found, parse_format("source")) == found.stored
    assert found.layer_vector_weights == 2 * 64


@pytest.mark.parametrize("key", SHAPES)
def test_every_well_known_model_has_all_its_weights(key: str) -> None:
    """In float32 a weight takes four bytes, so that the total is four times the parameters."""
    model = decoder_of(key)
    assert model.parameters == SHAPES[key].parameters
    assert weight_bytes(model, parse_format("F32")).total == 4 * SHAPES[key].parameters


def test_an_unknown_model_is_refused_with_what_is_known() -> None:
    """A near miss is named."""
    with pytest.raises(UsageError, match=r"Did you mean llama2-7b\?"):
        decoder_of("llama2-7B")
    with pytest.raises(UsageError, match=r"Known by name: llama2-7b, tinyllama-1\.1b"):
        decoder_of("something-else-entirely")
    with pytest.raises(UsageError, match="not read from the net"):
        decoder_of("hf:owner/name")


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    """What it is not is said, and nothing breaks."""
    path = tmp_path / "notes.txt"
    path.write_text("no model")
    with pytest.raises(ModelError, match="neither a GGUF file nor a folder"):
        decoder_of(str(path))


def test_an_unknown_quantisation_is_refused_with_what_is_known() -> None:
    """A near miss is named; one that several frameworks have is asked back."""
    with pytest.raises(UsageError, match=r"Did you mean Q4_K_M\?"):
        parse_format("Q4_KM")
    with pytest.raises(UsageError, match="Write mnn:int4 or mediapipe:int4"):
        parse_format("int4")
    with pytest.raises(UsageError, match=r"no quantisation 'tvm:int4'"):
        parse_format("tvm:int4")


def test_quantisations_are_found_whatever_their_case() -> None:
    """People write q4_0 and Q4_K_M and mlc:q4f16-1."""
    assert parse_format("q4_k_m") == Format("llama.cpp", "Q4_K_M")
    assert parse_format("llama.cpp:q4_0") == Format("llama.cpp", "Q4_0")
    assert parse_format("mlc:q4f16-1") == Format("mlc", "q4f16_1")


def test_every_format_is_written_so_that_it_is_read_back() -> None:
    """What is shown can be typed in."""
    for form in formats():
        assert parse_format(str(form)) == form


def test_weights_as_they_are_need_a_file() -> None:
    """A model that is known by its shape has none."""
    with pytest.raises(UsageError, match="known by its shape alone"):
        weight_bytes(decoder_of("llama2-7b"), parse_format("source"))


def test_an_unknown_type_has_no_size() -> None:
    """Nothing is guessed."""
    with pytest.raises(ModelError, match="type NVFP4"):
        row_bytes("NVFP4", 256)
    with pytest.raises(ModelError, match="no whole blocks of Q6_K"):
        row_bytes("Q6_K", 100)
