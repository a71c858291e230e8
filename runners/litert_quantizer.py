"""Graphs with int8 weights that are computed with in float32, made by Google's ai-edge-quantizer.

It takes graphs in float32 and knows where int8 weights can be widened again; the engine does that
once, when it loads the model. What it makes is what users of Google's tools get.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "ai-edge-quantizer"


def keep_int8(graphs: Path, target: Path) -> str:
    """Quantise the matrices of float32 graphs to int8, a scale for each row.

    Args:
        graphs: a TFLite file.
        target: a new one.

    Returns:
        What did it, with its version.

    Raises:
        RunnerFailure: the package is missing or fails.
        OSError: the disk is full, or the file can't be written.
    """
    library: Any = _library("quantizer")
    recipes: Any = _library("recipe_manager")
    types: Any = _library("qtyping")
    recipe = recipes.RecipeManager()
    names = types.TFLOperationName
    recipe.add_weight_only_config(regex=".*", operation_name=names.FULLY_CONNECTED, num_bits=8)
    # Of what is looked up, only what was found is widened, to the same numbers.
    recipe.add_dynamic_config(regex=".*", operation_name=names.EMBEDDING_LOOKUP, num_bits=8)
    version = metadata.version(PACKAGE)
    try:
        # It reports to the standard output.
        with contextlib.redirect_stdout(sys.stderr):
            made = library.Quantizer(str(graphs))
            made.load_quantization_recipe(recipe.get_quantization_recipe())
            made.quantize().export_model(str(target))
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        msg = f"{PACKAGE} {version} failed to make int8 weights of the graphs: {error}"
        raise RunnerFailure(msg) from error
    return f"{PACKAGE} {version}"


def _library(module: str) -> object:
    try:
        return importlib.import_module(f"ai_edge_quantizer.{module}")
    except ImportError as error:
        msg = (
            f"{PACKAGE} can't be imported ({error}); install it with: "
            "pip install 'edgebench[mediapipe]'"
        )
        raise RunnerFailure(msg, reason="unavailable") from error
