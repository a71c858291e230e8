"""A model library driven by hand, and its weights as TVM's own reader of tensor caches gives them.

Written apart from edgebench's runner: what it computes is to be compared.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PAGE = 16


class Driver:
    """A folder of MLC's, loaded.

    Args:
        folder: with ``lib.so`` and the weights.
        context: the most tokens.
    """

    def __init__(self, folder: Path, context: int = 256) -> None:
        import tvm
        from tvm_ffi import Shape

        self.tvm, self.shape = tvm, Shape
        module = tvm.runtime.load_module(str(folder / "lib.so"))
        self.machine = tvm.relax.VirtualMachine(module, tvm.cpu())
        self.metadata: dict[str, Any] = json.loads(self.machine["_metadata"]())
        weights = _loaded(folder)
        self.parameters = [weights[each["name"]] for each in self.metadata["params"]]
        chunk = self.metadata["prefill_chunk_size"]
        sizes = [Shape([size]) for size in (1, context, chunk, PAGE, 0)]
        self.cache = self.machine["create_tir_paged_kv_cache"](*sizes)

    def logits(self, ids: Sequence[int], steps: Sequence[int]) -> NDArray[np.float32]:
        """The logits of all positions from the last step on, (n, vocabulary).

        Args:
            ids: tokens.
            steps: how many of them go in at once, at first; the remaining ones go one by one.
        """
        self._state("clear", self.cache)
        self._state("add_sequence", self.cache, 0)
        rows, done = [], 0
        for count in steps:
            rows = [self._step("prefill", ids[done : done + count])]
            done += count
        rows += [self._step("decode", [token]) for token in ids[done:]]
        return np.concatenate(rows)

    def verified(self, ids: Sequence[int], steps: Sequence[int]) -> NDArray[np.float32]:
        """The logits of all positions, (n, vocabulary), some positions at once."""
        self._state("clear", self.cache)
        self._state("add_sequence", self.cache, 0)
        rows, done = [], 0
        for count in steps:
            rows.append(self._step("batch_verify", ids[done : done + count]))
            done += count
        return np.concatenate(rows)

    def _step(self, name: str, ids: Sequence[int]) -> NDArray[np.float32]:
        given = self.tvm.runtime.tensor(np.asarray(ids, np.int32))
        state = self.machine["embed"](given, self.parameters)
        reshape = self.tvm.get_global_func("vm.builtin.reshape")
        state = reshape(state, self.shape([1, len(ids), state.shape[-1]]))
        self._state("begin_forward", self.cache, self.shape([0]), self.shape([len(ids)]))
        logits, _ = self.machine[name](state, self.cache, self.parameters)
        self._state("end_forward", self.cache)
        rows: NDArray[np.float32] = logits.numpy()[0]
        return rows

    def _state(self, name: str, *arguments: Any) -> None:
        self.tvm.get_global_func(f"vm.builtin.kv_state_{name}")(*arguments)


def kept_tensors(folder: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of a cache by MLC's name, read by TVM."""
    return {name: tensor.numpy() for name, tensor in _loaded(folder).items()}


def _loaded(folder: Path) -> dict[str, Any]:
    import tvm
    from tvm.contrib import tvmjs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # TVM leaves files open
        tensors: dict[str, Any] = tvmjs.load_tensor_cache(str(folder), tvm.cpu())[0]
    return tensors


def kept_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Every parameter by MLC's name in float32, codes of 4 bits worked out one by one."""
    tensors, weights = kept_tensors(folder), {}
    for name, values in tensors.items():
        if name.endswith("q_weight"):
            stem = name.removesuffix("q_weight")
            weights[stem + "weight"] = unpacked(values, tensors[stem + "q_scale"])
        elif not name.endswith("q_scale"):
            weights[name] = values.astype(np.float32)
    return weights


def unpacked(words: NDArray[np.uint32], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights of 8 codes to a word, the first in its lowest bits, 32 to a scale."""
    codes = [[(word >> 4 * place) & 15 for word in row for place in range(8)] for row in
             words.tolist()]  # fmt: skip
    return (np.array(codes, np.float32) - 7) * np.repeat(scales, 32, axis=1)


def put_in(model: Any, folder: Path) -> None:
    """Give transformers' model the weights as a folder keeps them."""
    import torch

    kept = kept_weights(folder)
    config = model.config
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    places = {
        "q_proj": (("qkv_proj", "c_attn"), slice(queries)),
        "k_proj": (("qkv_proj", "c_attn"), slice(queries, queries + keys)),
        "v_proj": (("qkv_proj", "c_attn"), slice(queries + keys, None)),
        "gate_proj": (("gate_up_proj",), slice(config.intermediate_size)),
        "up_proj": (("gate_up_proj",), slice(config.intermediate_size, None)),
    }
    with torch.no_grad():
        for name, weight in model.named_parameters():
            *_, layer, _ = name.split(".")
            others, rows = places.get(layer, ((layer,), slice(None)))
            found = [kept[each] for other in others if (each := name.replace(layer, other)) in kept]
            assert len(found) == 1, name
            values = found[0][rows]
            if weight.ndim > 1:
                values = values[:, : weight.shape[1]]  # a last group is filled up
            weight.copy_(torch.from_numpy(values.copy()))
