"""The programs that make a model's folder, with MLC's options and what they leave.

``MLC_LLM_STAND_IN`` may hold ``SUBCOMMAND:PYTHON``, which one of them runs before it writes.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

QUANTIZATIONS = (
    "q0f16", "q0bf16", "q0f32", "q3f16_0", "q3f16_1", "q4f16_0", "q4f16_1", "q4bf16_0", "q4bf16_1",
    "q4f32_1", "q4f16_2", "q4f16_autoawq", "q4f16_ft",
)  # fmt: skip
TEMPLATES = ("LM", "chatml", "llama-2", "llama-3", "llama_default", "qwen2")
MODELS = ("auto", "llama", "mistral", "qwen2", "qwen3")
TOKENIZER_FILES = (
    "tokenizer.model", "tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json",
    "tokenizer_config.json",
)  # fmt: skip


def run(subcommand: str, argv: list[str]) -> None:
    """One of them."""
    told, _, code = os.environ.get("MLC_LLM_STAND_IN", "").partition(":")
    made = {"convert_weight": convert_weight, "gen_config": gen_config, "compile": compile_}
    sys.stdout.write(f"running {subcommand}\n")
    sys.stdout.flush()
    parsed, work = made[subcommand](argv)
    if told == subcommand:
        exec(code, {"parsed": parsed})
    work()


def _common(positional: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument(positional, type=Path)
    parser.add_argument("--quantization", choices=QUANTIZATIONS, required=positional == "config")
    parser.add_argument("--model-type", default="auto", choices=MODELS)
    return parser


def convert_weight(argv):  # type: ignore[no-untyped-def]
    """Weights."""
    parser = _common("config")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--source", default="auto")
    parser.add_argument("--source-format", default="auto")
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--lora-adapter", type=Path)
    parsed = parser.parse_args(argv)

    def work() -> None:
        config = json.loads((parsed.config / "config.json").read_text("utf-8"))
        assert config["model_type"] in MODELS, f"Unknown model type: {config['model_type']}"
        weights = parsed.config / "model.safetensors"
        # MLC writes this beside the weights, wherever they are.
        index = {"weight_map": {"all of them": weights.name}}
        index_file = parsed.config / "model.safetensors.index.json"
        index_file.write_text(json.dumps(index), encoding="utf-8")
        parsed.output.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(weights, parsed.output / "params_shard_0.bin")
        told = {"metadata": {}, "records": [], "given": _given(parsed)}
        (parsed.output / "tensor-cache.json").write_text(json.dumps(told), encoding="utf-8")

    return parsed, work


def gen_config(argv):  # type: ignore[no-untyped-def]
    """Configuration and tokenizer."""
    parser = _common("config")
    parser.add_argument("--conv-template", required=True, choices=TEMPLATES)
    for name in (
        "context-window-size", "sliding-window-size", "prefill-chunk-size", "attention-sink-size",
        "tensor-parallel-shards", "pipeline-parallel-stages",
    ):  # fmt: skip
        parser.add_argument("--" + name, type=int)
    parser.add_argument("--disaggregation", type=bool)
    parser.add_argument("--max-batch-size", type=int, default=128)
    parser.add_argument("--output", "-o", type=Path, required=True)
    parsed = parser.parse_args(argv)

    def work() -> None:
        for name in TOKENIZER_FILES:
            if (parsed.config / name).is_file():
                shutil.copy(parsed.config / name, parsed.output / name)
        told = {"given": _given(parsed), "quantization": parsed.quantization}
        (parsed.output / "mlc-chat-config.json").write_text(json.dumps(told), encoding="utf-8")

    return parsed, work


def compile_(argv):  # type: ignore[no-untyped-def]
    """The library."""
    parser = _common("model")
    for name in ("device", "host", "opt", "system-lib-prefix", "overrides"):
        parser.add_argument("--" + name, default="auto")
    parser.add_argument("--enable-subgroups", action="store_true")
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--debug-dump", type=Path)
    parsed = parser.parse_args(argv)

    def work() -> None:
        assert (parsed.model / "mlc-chat-config.json").is_file()
        parsed.output.write_text(json.dumps(_given(parsed)), encoding="utf-8")

    return parsed, work


def _given(parsed: argparse.Namespace) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(parsed).items()
    }
