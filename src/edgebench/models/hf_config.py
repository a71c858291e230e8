"""A Hugging Face ``config.json`` as an `Architecture`; what is not understood is refused by name.

A key that is passed over in silence is how a converter makes a model that is almost right. So
every key is used, known not to change the forward pass, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from edgebench.models.architecture import LARGEST_HEAD, Architecture, Family
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import shown
from edgebench.models.hf_rope import rope_of

if TYPE_CHECKING:
    from edgebench.models.fields import Fields

FAMILIES: tuple[Family, ...] = get_args(Family)

# They say how a model was made, is stored, trained, split over devices, or sampled from.
_HARMLESS_NAMES = (
    "_attn_implementation _attn_implementation_autoset _commit_hash _flash_attn_2_enabled "
    "_name_or_path _unsloth_fix add_cross_attention architectures attention_dropout "
    "attn_implementation bad_words_ids begin_suppress_tokens bos_token_id "
    "chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id "
    "diversity_penalty do_sample dtype early_stopping encoder_no_repeat_ngram_size "
    "eos_token_id exponential_decay_length_penalty finetuning_task forced_bos_token_id "
    "forced_eos_token_id hidden_dropout id2label initializer_range is_decoder "
    "is_encoder_decoder is_llama_config keys_to_ignore_at_inference label2id length_penalty "
    "max_length max_window_layers min_length model_type no_repeat_ngram_size num_beam_groups "
    "num_beams num_return_sequences output_attentions output_hidden_states output_scores "
    "pad_token_id prefix pretraining_tp problem_type pruned_heads remove_invalid_values "
    "repetition_penalty return_dict return_dict_in_generate sep_token_id suppress_tokens "
    "task_specific_params temperature tf_legacy_loss tie_encoder_decoder tokenizer_class "
    "top_k top_p torch_dtype torchscript transformers.js_config transformers_version "
    "typical_p unsloth_fixed unsloth_version use_bfloat16 use_cache "
)
HARMLESS = frozenset(_HARMLESS_NAMES.split())

# They may stand there as long as they say what is done anyway.
FIXED: dict[str, object] = {
    "use_mrope": False,
    "rope_interleaved": False,
    "num_local_experts": 1,
    "qkv_bias": True,  # some conversions of Qwen2 repeat what is always so there
    "is_causal": True,
}


@dataclass(frozen=True, slots=True)
class Config:
    """What a ``config.json`` says.

    Attributes:
        end_ids: the tokens that it says end a text.
    """

    architecture: Architecture
    end_ids: tuple[int, ...]


def parse_config(config: Fields) -> Config:
    """Make a configuration into an architecture.

    Raises:
        UnsupportedModelError: it holds something that is not understood, which is named.
        ModelFormatError: a value is missing, of the wrong type, or doesn't go with the others.
    """
    family = _family(config)
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    head_size = _head_size(config, family, hidden, heads)
    kv_heads = config.integer("num_key_value_heads", 8 if family == "mistral" else heads)
    layers, context = config.integer("num_hidden_layers"), config.integer("max_position_embeddings")
    _check_heads(config, heads, kv_heads, head_size)
    biases = _biases(config, family)
    architecture = Architecture(
        family=family,
        layers=layers,
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocabulary_size=config.integer("vocab_size"),
        context_tokens=context,
        norm_epsilon=config.number("rms_norm_eps", 1e-6),
        rope=rope_of(config, head_size, context),
        attention_bias=biases[0],
        output_bias=biases[1],
        mlp_bias=biases[2],
        qk_norm=family == "qwen3",
        tied_embeddings=config.flag("tie_word_embeddings", default=False),
    )
    _refuse_activation(config)
    _refuse_window(config, family, layers, context)
    _refuse_unused(config)
    return Config(architecture, token_ids(config, "eos_token_id"))


def token_ids(fields: Fields, key: str) -> tuple[int, ...]:
    """The token, or the list of tokens, under a key.

    Raises:
        ModelFormatError: it is something else.
    """
    value = fields.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(token) is int and token >= 0 for token in ids):
        msg = f"{fields.where}: {key} should be a token id or a list of them, not {shown(value)}"
        raise ModelFormatError(msg)
    return tuple(ids)


def _family(config: Fields) -> Family:
    name = config.get("model_type")
    for family in FAMILIES:
        if name == family:
            return family
    if name is None:
        msg = f"{config.where} names no model_type: this is not Hugging Face's layout"
        raise UnsupportedModelError(msg)
    msg = (
        f"{config.where}: models of the type {shown(name)} are not understood; understood are "
        f"{', '.join(FAMILIES)}"
    )
    raise UnsupportedModelError(msg)


def _head_size(config: Fields, family: Family, hidden: int, heads: int) -> int:
    if config.get("head_dim") is not None:
        return config.integer("head_dim", most=LARGEST_HEAD)
    if family == "qwen3":
        return 128
    if hidden % heads:
        msg = (
            f"{config.where}: hidden_size {hidden} can't be shared among {heads} heads, and there "
            "is no head_dim; the file is damaged or wrong"
        )
        raise ModelFormatError(msg)
    if hidden // heads > LARGEST_HEAD:
        msg = f"{config.where}: heads of {hidden // heads} numbers; the file is damaged or wrong"
        raise ModelFormatError(msg)
    return hidden // heads


def _check_heads(config: Fields, heads: int, kv_heads: int, head_size: int) -> None:
    if heads % kv_heads:
        msg = (
            f"{config.where}: {heads} heads can't share {kv_heads} key-value heads; the file is "
            "damaged or wrong"
        )
        raise ModelFormatError(msg)
    if head_size % 2:
        msg = f"{config.where}: heads of the odd size {head_size} can't be rotated"
        raise UnsupportedModelError(msg)


def _biases(config: Fields, family: Family) -> tuple[bool, bool, bool]:
    """Whether queries, keys and values; the attention's output; and the MLP have biases."""
    if family == "qwen2":
        return True, False, False
    if family == "mistral":
        return False, False, False
    attention = config.flag("attention_bias", default=False)
    mlp = config.flag("mlp_bias", default=False) if family == "llama" else False
    return attention, attention, mlp


def _refuse_activation(config: Fields) -> None:
    name = config.text("hidden_act", "silu")
    if name != "silu":
        msg = f"{config.where}: hidden_act {shown(name)} is not understood; understood is silu"
        raise UnsupportedModelError(msg)


def _refuse_window(config: Fields, family: Family, layers: int, context: int) -> None:
    """Refuse attention to a window, where it would be shorter than the context."""
    default = 4096 if family == "mistral" and "sliding_window" not in config.values else None
    window = default
    if config.get("sliding_window") is not None:
        window = config.integer("sliding_window")
    kinds = config.get("layer_types")
    slides = config.integer("max_window_layers", 28, least=0) < layers
    if kinds is not None:
        # Counted and not written out to compare: a damaged number of layers may be anything.
        whole = isinstance(kinds, list) and kinds.count("full_attention") == len(kinds) == layers
        slides = not whole
    # In the first Mistral 7B, every layer has it, whatever else is said.
    slides = family == "mistral" or (config.flag("use_sliding_window", default=False) and slides)
    if slides and window is not None and window < context:
        msg = (
            f"{config.where}: sliding_window = {window} is shorter than max_position_embeddings = "
            f"{context}: attention to a window is not understood. For prompts and texts that stay "
            f"within {window} tokens it changes nothing: set max_position_embeddings to {window} "
            "in a copy of the folder"
        )
        raise UnsupportedModelError(msg)


def _refuse_unused(config: Fields) -> None:
    if config.get("quantization_config") is not None or config.get("quantization") is not None:
        msg = (
            f"{config.where}: the weights are quantised already (quantization_config); use the "
            "release of the model that is not"
        )
        raise UnsupportedModelError(msg)
    unknown = {
        key: value
        for key, value in config.unused().items()
        if key not in HARMLESS and not (key in FIXED and value == FIXED[key])
    }
    if unknown:
        named = ", ".join(f"{key} = {shown(value)}" for key, value in unknown.items())
        msg = (
            f"{config.where}: {named} is not understood, and may change what the model computes; "
            "where you know that it does not, leave it out in a copy of the folder"
        )
        raise UnsupportedModelError(msg)
