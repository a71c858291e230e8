"""Small random models in Hugging Face's layout, made by transformers, which is what tests trust."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import torch

VOCABULARY = 320
TEXT = "It was the best of times 1789, it was the worst of times; naïve café, don't you think so? "

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    # Large enough that the distributions have peaks, so that a fault shows.
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "tie_word_embeddings": False,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@lru_cache(maxsize=1)
def byte_level_tokenizer() -> str:
    """A tokenizer.json: byte-level BPE, cut as GPT-2's is, with two special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    return tokenizer.to_str()


def tiny_folder(folder: Path, family: str, *, dtype: str = "float32", **changes: Any) -> Any:
    """Write a random model and its tokenizer to `folder`; gives transformers' model in float32.

    Args:
        folder: need not exist.
        family: transformers' model type.
        dtype: how the weights are stored; the model that is returned has them as stored.
        changes: of the configuration; `rope` is merged into rope_parameters.
    """
    import torch
    import transformers

    rope = {"rope_theta": 10_000.0, "rope_type": "default", **changes.pop("rope", {})}
    config = transformers.AutoConfig.for_model(
        family, **{**SIZES, "rope_parameters": rope, **changes}
    )
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                weight.add_(0.2 * torch.randn_like(weight))  # they begin as zeros and ones
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_level_tokenizer(), encoding="utf-8")
    # From the folder: the frequencies of the model that was cast are rounded, too.
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return loaded.eval()


def log_likelihoods(model: Any, ids: list[int]) -> list[float]:
    """Natural logarithms of how likely each of ``ids[1:]`` is, by transformers."""
    import torch

    with torch.no_grad():
        logits: torch.Tensor = model(torch.tensor([ids])).logits[0].double()
    rated = torch.log_softmax(logits, dim=-1)
    return [float(rated[place, token]) for place, token in enumerate(ids[1:])]
