"""A canonical model as a GGUF file, tensor by tensor, for llama.cpp to load or to quantise."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from edgebench.models.architecture import Architecture
    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.models.weights import Floats, Tensor

Exact: TypeAlias = Literal["F32", "F16", "BF16"]

FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}
"""What ``general.file_type`` holds, by llama.cpp's own numbering."""

_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OTHER_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def exact_type(model: CanonicalModel) -> Exact:
    """The smallest type that keeps every weight of a source that is not quantised as it is."""
    kinds = {tensor.stored_as for tensor in model.weights.values() if len(tensor.shape) > 1}
    for kind in ("BF16", "F16"):
        if kinds == {kind}:
            return kind
    return "F32"


def file_bytes(model: CanonicalModel, kind: Exact) -> int:
    """About how large the file will be: its weights, that is."""
    return sum(
        _Rows(tensor, kind if len(tensor.shape) > 1 else "F32", 0).nbytes
        for tensor in model.weights.values()
    )


def write_gguf(model: CanonicalModel, target: str, kind: Exact) -> None:
    """Write `model` to the file `target`; matrices as `kind`, vectors as F32.

    Raises:
        RunnerFailure: llama.cpp has no form for something in it, which is named.
    """
    import gguf  # noqa: PLC0415 - only needed to convert

    shape = model.architecture
    writer = gguf.GGUFWriter(target, _family(shape))
    _describe(writer, shape, model.path.name, kind)
    _describe_tokenizer(writer, model.tokenizer, shape.vocabulary_size)
    tensors: list[Any] = []
    if (factors := _rope_factors(writer, shape)) is not None:
        writer.add_tensor_info("rope_freqs.weight", factors.shape, factors.dtype, factors.nbytes)
        tensors.append(factors)
    for name, tensor in model.weights.items():
        rows = _Rows(tensor, kind if len(tensor.shape) > 1 else "F32", _heads(shape, name))
        raw = gguf.GGMLQuantizationType[rows.kind]
        writer.add_tensor_info(gguf_name(name), tensor.shape, None, rows.nbytes, raw_dtype=raw)
        tensors.append(rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for item in tensors:
        writer.write_tensor_data(item)
    writer.close()


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor that has this name in Hugging Face's layout."""
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    layer, _, rest = name.removeprefix("model.layers.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{_LAYER_NAMES[part]}.{kind}"


class _Rows:
    """One tensor, handed to the writer in blocks of rows: it asks for `nbytes` and `tofile` only.

    Args:
        tensor: what to write.
        kind: how to store it.
        heads: how many heads its rows are, where llama.cpp wants them in its own order; else 0.
    """

    def __init__(self, tensor: Tensor, kind: Exact, heads: int) -> None:
        count = 1
        for length in tensor.shape:
            count *= length
        self.kind = kind
        self.nbytes = count * (4 if kind == "F32" else 2)
        self._tensor = tensor
        self._heads = heads

    def tofile(self, file: IO[bytes]) -> None:
        """Write all rows."""
        from edgebench.models.weights import row_blocks  # noqa: PLC0415

        if self._heads:
            # A matrix of queries or keys is small beside the embedding: it is turned as a whole.
            file.write(_encoded(interleave(self._tensor.read(), self._heads), self.kind))
            return
        for block in row_blocks(self._tensor):
            file.write(_encoded(block, self.kind))


def interleave(rows: Floats, heads: int) -> Floats:
    """Queries or keys with the two halves of each head interleaved, as llama.cpp rotates them.

    Args:
        rows: (heads x head size, …), the halves one after the other, as Hugging Face has them.
        heads: how many heads there are.
    """
    import numpy as np  # noqa: PLC0415

    size = rows.shape[0] // heads
    split = rows.reshape(heads, 2, size // 2, *rows.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(rows.shape)


def _encoded(values: Floats, kind: Exact) -> bytes:
    import numpy as np  # noqa: PLC0415

    if kind == "F32":
        return values.tobytes()
    if kind == "F16":
        return values.astype(np.float16).tobytes()
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # to the nearest, ties to even
    return rounded.astype(np.uint16).tobytes()


def _family(shape: Architecture) -> str:
    return "llama" if shape.family in {"llama", "mistral"} else shape.family


def _heads(shape: Architecture, name: str) -> int:
    """The heads whose rows llama.cpp wants interleaved, or 0."""
    if _family(shape) != "llama":
        return 0
    if ".self_attn.q_proj." in name:
        return shape.heads
    return shape.kv_heads if ".self_attn.k_proj." in name else 0


def _describe(writer: Any, shape: Architecture, name: str, kind: Exact) -> None:  # noqa: ANN401
    writer.add_name(name)
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context_tokens)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(shape.rope.theta)
    writer.add_vocab_size(shape.vocabulary_size)


def _rope_factors(writer: Any, shape: Architecture) -> Any:  # noqa: ANN401
    """What each frequency is divided by, as the tensor that llama.cpp reads, or None."""
    import gguf  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    rope = shape.rope
    if rope.kind == "default":
        return None
    plain = rope.theta ** (-np.arange(0, shape.head_size, 2, dtype=np.float64) / shape.head_size)
    factors = plain / np.asarray(rope.inverse_frequencies, dtype=np.float64)
    if rope.kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(float(factors[0]))
        return None
    if _family(shape) != "llama" or rope.attention_factor != 1:
        msg = (
            f"llama.cpp's file of a {shape.family} model can't hold the frequencies of "
            f"{rope.kind} scaling; make it with llama.cpp's own convert_hf_to_gguf.py and "
            "name it as path:"
        )
        raise RunnerFailure(msg, reason="unsupported")
    return factors.astype(np.float32)


def _describe_tokenizer(writer: Any, tokenizer: Tokenizer, size: int) -> None:  # noqa: ANN401
    content = json.loads(tokenizer.json)
    model = content["model"]
    if model.get("type") != "BPE":
        msg = f"llama.cpp's files are made of BPE tokenizers only, not of {model.get('type')}"
        raise RunnerFailure(msg, reason="unsupported")
    tokens, types = _tokens(content, size)
    merges = [item if isinstance(item, str) else " ".join(item) for item in model["merges"]]
    if model.get("byte_fallback"):
        writer.add_tokenizer_model("llama")
        writer.add_token_scores(_scores(tokens, merges))
        writer.add_add_space_prefix(_adds_space(content))
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(_pre(content))
        writer.add_token_merges(merges)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_add_bos_token(tokenizer.start_id is not None)
    ids = {text: number for number, text in enumerate(tokens)}
    start = ids.get(tokenizer.start_text) if tokenizer.start_text else tokenizer.start_id
    if start is not None:
        writer.add_bos_token_id(start)
    if tokenizer.end_ids:
        first, *others = tokenizer.end_ids
        writer.add_eos_token_id(first)
        if others:
            writer.add_eot_token_id(others[0])
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)


def _tokens(content: dict[str, Any], size: int) -> tuple[list[str], list[int]]:
    """Every id's text and llama.cpp's type of it."""
    import gguf  # noqa: PLC0415

    model = content["model"]
    tokens = [f"[PAD{number}]" for number in range(size)]
    types = [int(gguf.TokenType.UNUSED)] * size
    for text, number in model["vocab"].items():
        tokens[number] = text
        types[number] = int(gguf.TokenType.NORMAL)
        if model.get("byte_fallback") and len(text) == 6 and text.startswith("<0x"):  # noqa: PLR2004
            types[number] = int(gguf.TokenType.BYTE)
    for item in content.get("added_tokens", ()):
        tokens[item["id"]] = item["content"]
        kind = gguf.TokenType.CONTROL if item.get("special") else gguf.TokenType.USER_DEFINED
        types[item["id"]] = int(gguf.TokenType.UNKNOWN if item["content"] == "<unk>" else kind)
    return tokens, types


def _scores(tokens: list[str], merges: list[str]) -> list[float]:
    """The earlier a merge, the higher the score of what it makes."""
    rank: dict[str, int] = {}
    for position, merge in enumerate(merges):
        rank.setdefault(merge.replace(" ", "", 1), position)
    last = len(merges)
    return [-float(rank.get(text, last)) for text in tokens]


def _adds_space(content: dict[str, Any]) -> bool:
    """Whether a blank is put before every text: by a normalizer, or by Metaspace's own scheme."""
    steps = content.get("normalizer") or {}
    pre = content.get("pre_tokenizer") or {}
    kinds = {step.get("type") for step in [steps, *steps.get("normalizers", ())]}
    return "Prepend" in kinds or pre.get("prepend_scheme", "never") != "never"


def _pre(content: dict[str, Any]) -> str:
    """llama.cpp's name of the way in which the text is cut up before the merges."""
    from edgebench.models.gguf_tokenizer import pre_tokenizer_name  # noqa: PLC0415

    name = pre_tokenizer_name(content)
    if name is None:
        msg = (
            "llama.cpp has no name that edgebench knows for this tokenizer's pre-tokenizer; make "
            "the file with llama.cpp's own convert_hf_to_gguf.py and name it as path:"
        )
        raise RunnerFailure(msg, reason="unsupported")
    return name
