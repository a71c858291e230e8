"""What a model's functions are scheduled by: every product by a rule of its own."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.mlc


@pytest.mark.transformers
@pytest.mark.parametrize(
    ("family", "quantization"),
    [("llama", "q4f32_1"), ("llama", "q0f16"), ("qwen2", "q0f32"), ("qwen3", "q4f32_1")],
)
def test_every_product_of_a_model_gets_a_schedule_of_its_own(
    host: Any, tmp_path: Any, family: str, quantization: str
) -> None:
    """No function falls back because a rule failed, and none that multiplies weights is left."""
    from tiny_models import tiny_folder

    from edgebench.models.canonical import open_model
    from edgebench.runners import tvm_build
    from edgebench.runners.mlc_layout import OWN
    from edgebench.runners.tvm_model import Decoder

    tiny_folder(tmp_path / "model", family)
    architecture = open_model(tmp_path / "model").architecture
    decoder = Decoder(architecture, OWN[quantization], host)
    module, _, _ = decoder.export_tvm(spec=decoder.functions(), allow_extern=True)
    notes: dict[str, str] = {}
    with host:
        tvm_build._passes(host, 64, notes)(module)
    assert not [note for note in notes.values() if note.startswith("none: ")]
    products = {name: note for name, note in notes.items() if "matmul" in name}
    assert set(products.values()) == (
        {"words", "matmul"} if quantization == "q4f32_1" else {"gemv", "matmul"}
    )
