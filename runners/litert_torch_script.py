"""Run by an interpreter that has litert-torch, never imported: a model's folder to TFLite graphs.

    python litert_torch_script.py SOURCE OUT QUANTIZATION CACHE_LENGTH PREFILL_LENGTHS

It leaves ``graphs.tflite`` and ``made.json`` in the folder OUT.
"""

import importlib
import json
import os
import sys
import types
from importlib import metadata
from pathlib import Path

RECIPES = {
    "fp32": "none",  # where it is left out, litert-torch makes int8
    "int8": "dynamic_wi8_afp32",
    "int8_weight_only": "weight_only_wi8_afp32",
    "int4_32": "dynamic_wi4b32_afp32",
    "int4_64": "dynamic_wi4b64_afp32",
}


def import_export() -> types.ModuleType:
    """litert-torch's exporter.

    litert-torch 0.10.0 imports TFLite's schema from tensorflow, which it doesn't require. The same
    schema is in ai-edge-litert; it is lent under that name while the exporter is imported.
    """
    # These look for tensorflow, and find that there is none.
    for name in ("ai_edge_litert.interpreter", "transformers", "torch._dynamo", "litert_torch"):
        importlib.import_module(name)
    lent: dict[str, types.ModuleType] = {}
    if "tensorflow" not in sys.modules:
        schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        for name in ("tensorflow", "tensorflow.lite", "tensorflow.lite.python"):
            lent[name] = types.ModuleType(name)
            lent[name].__path__ = []
        lent["tensorflow.lite.python"].__dict__["schema_py_generated"] = schema
        lent["tensorflow.lite.python.schema_py_generated"] = schema
    sys.modules.update(lent)
    try:
        return importlib.import_module("litert_torch.generative.export_hf.export")
    finally:
        for name in lent:
            del sys.modules[name]


def half_recipe(place: Path) -> str:
    """A recipe that keeps matrices in float16, as a file: there is none of that name."""
    from ai_edge_quantizer import qtyping, recipe_manager  # noqa: PLC0415

    kept = qtyping.TensorQuantizationConfig(num_bits=16, dtype=qtyping.TensorDataType.FLOAT)
    config = qtyping.OpQuantizationConfig(
        weight_tensor_config=kept,
        compute_precision=qtyping.ComputePrecision.FLOAT,
        explicit_dequantize=True,
    )
    recipe = recipe_manager.RecipeManager()
    names = qtyping.TFLOperationName
    for operation in (names.FULLY_CONNECTED, names.EMBEDDING_LOOKUP):
        recipe.add_quantization_config(
            regex=".*",
            operation_name=operation,
            op_config=config,
            algorithm_key="float_casting",
        )
    path = place / "recipe.json"
    path.write_text(json.dumps(recipe.get_quantization_recipe()), encoding="utf-8")
    return str(path)


def main() -> None:
    """Export, and say with what."""
    source, out, quantization, cache_length, prefill_lengths = sys.argv[1:]
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    place = Path(out)
    export = import_export()
    recipe = half_recipe(place) if quantization == "fp16" else RECIPES[quantization]
    export.export(
        model=source,
        output_dir=str(place / "work"),
        quantization_recipe=recipe,
        cache_length=int(cache_length),
        prefill_lengths=[int(length) for length in prefill_lengths.split(",")],
        bundle_litert_lm=False,
        keep_temporary_files=True,
    )
    quantized = place / "work" / "model_quantized.tflite"
    made = quantized if quantized.is_file() else place / "work" / "model.tflite"
    made.rename(place / "graphs.tflite")
    versions = {name: metadata.version(name) for name in ("litert-torch", "torch", "transformers")}
    (place / "made.json").write_text(json.dumps(versions), encoding="utf-8")


if __name__ == "__main__":
    main()
