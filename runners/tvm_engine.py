"""A compiled model in TVM's virtual machine: prefill in chunks, then one call a token.

What a library offers is MLC's: ``embed(ids)``, ``prefill`` and ``decode`` (or ``batch_prefill`` and
``batch_decode``), ``batch_verify`` with the logits of every position, and a function that makes the
paged KV cache.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import Generation, LoadedModel, RunnerFailure
from edgebench.runners.mlc_check import check_agreement, check_context, prefill_chunk
from edgebench.runners.mlc_facts import known_facts
from edgebench.runners.mlc_folder import index_named
from edgebench.runners.mlc_library import check_target
from edgebench.runners.mlc_names import INDEXES, PAGE
from edgebench.runners.mlc_settings import TVM
from edgebench.runners.tvm_library import DEVICE_NUMBERS
from edgebench.runners.tvm_module import failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.base import GenerateRequest
    from edgebench.runners.mlc_folder import Folder
    from edgebench.runners.mlc_settings import Chosen
    from edgebench.runners.tvm_library import Tvm
    from edgebench.runners.tvm_module import Library

SEQUENCE = 0
"""The only text in the cache."""

NO_LOGIT = float("inf")

BAD = "its weights are damaged, or it was compiled wrongly"
"""What to think where it computes what is no number."""

CACHES = ("create_flashinfer_paged_kv_cache", "create_tir_paged_kv_cache")
"""Functions that make the cache, in the order in which MLC looks for them."""


class Model:
    """A loaded model.

    Args:
        tvm: the runtime.
        folder: the model, whose sizes were checked.
        library: its library, loaded.
        chosen: how to run it.

    Raises:
        RunnerFailure: library and folder do not belong together, or TVM refuses.
    """

    def __init__(self, tvm: Tvm, folder: Folder, library: Library, chosen: Chosen) -> None:
        metadata = library.metadata
        check_target(metadata, folder.library, chosen.device)
        check_agreement(folder, metadata)
        check_context(folder, metadata, chosen.context_tokens)
        self._tvm, self._np = tvm, tvm.numpy
        self._folder, self._metadata, self._chosen = folder, metadata, chosen
        self._device = DEVICE_NUMBERS[chosen.device]
        self._on_cpu = chosen.device == "cpu"
        self.vocabulary_size = folder.config.vocabulary_size
        self.chunk = prefill_chunk(metadata, chosen)
        self._room = -(-chosen.context_tokens // PAGE) * PAGE
        self._threads = tvm.use_threads(chosen.threads, bind=chosen.thread_binding)
        self._find_functions(library)
        try:
            self._params: Any = self._load_weights()
            # One token tells the width and the type of everything that is computed.
            width = self._embed(self._tensor([0]), self._params)
            self._width, self._dtype = int(width.shape[-1]), str(width.dtype)
            self._token_shape = self._shape([1, 1, self._width])
            self._cache: Any = self._make_cache(library)
        except RunnerFailure:
            raise
        except Exception as error:
            what = f"TVM can't load {folder.path}"
            raise failed(what, error) from error

    def _find_functions(self, library: Library) -> None:
        shape, find = self._tvm.ffi.Shape, self._tvm.function
        self._shape = shape
        self._embed = library.needed("embed")
        self._prefill = library.function("prefill")
        self._batch_prefill = library.function("batch_prefill")
        if self._prefill is None and self._batch_prefill is None:
            library.needed("prefill", "batch_prefill")
        self._decode = library.needed("decode", "batch_decode")
        self._verify = library.function("batch_verify")
        self._clear = find("vm.builtin.kv_state_clear")
        self._add = find("vm.builtin.kv_state_add_sequence")
        self._begin = find("vm.builtin.kv_state_begin_forward")
        self._end = find("vm.builtin.kv_state_end_forward")
        self._reshape = find("vm.builtin.reshape")
        self._to_device = find("vm.builtin.to_device")
        self._one, self._first = shape([1]), shape([SEQUENCE])
        self._token = self._np.zeros(1, dtype=self._np.int32)
        self._token_tensor = self._tvm.ffi.from_dlpack(self._token)  # the same memory

    def _load_weights(self) -> Any:  # noqa: ANN401 - TVM's array of tensors
        """All parameters in the library's order; TVM's own list of them is emptied after."""
        find = self._tvm.function
        newer = self._tvm.has("vm.builtin.tensor_cache.load")
        kind = "tensor_cache" if newer else "ndarray_cache"
        load, clear = find(f"vm.builtin.{kind}.load"), find(f"vm.builtin.{kind}.clear")
        by_name = find("vm.builtin.param_array_from_cache_by_name")
        try:
            with index_named(self._folder, INDEXES[0] if newer else INDEXES[1]) as place:
                load(str(place), self._device, 0)
            return by_name([name for name, _, _ in self._metadata.parameters])
        finally:
            clear()

    def _make_cache(self, library: Library) -> Any:  # noqa: ANN401 - TVM's cache
        """With room for the longest workload, not for all that the model was trained for."""
        shape = self._shape
        sizes = (1, self._room, self.chunk, PAGE, 0)
        return library.needed(*CACHES)(*(shape([size]) for size in sizes))

    def facts(self) -> LoadedModel:
        """What was loaded; what can be read back from TVM is."""
        version = self._tvm.version
        ours = self._metadata.built_by is not None
        known = known_facts(self._folder, self._metadata, self._chosen)
        options = {
            **known.effective_options,
            "engine": TVM,
            "threads": self._threads,
            "prefill_chunk": self.chunk,
            "kv_cache_type": self._dtype,
            "kv_cache_tokens": self._room,
        }
        return replace(
            known,
            effective_options=options,
            engine="TVM, built by edgebench" if ours else "MLC LLM (library on TVM)",
            engine_version=f"TVM {version}",
        )

    def generate(self, request: GenerateRequest) -> Generation:
        """Empty the cache, fill the depth, then measure prefill and each token."""
        prompt = [int(number) for number in request.prompt_ids]
        try:
            self.restart()
            self.fill(request.depth_ids)
            now, decode, likeliest = time.perf_counter_ns, self.decode, self._likeliest
            submitted = now()
            row = self.prefill(prompt)
            prefilled = now()
            token = likeliest(row)
            made, stamps = [token], [now()]
            for _ in range(request.max_tokens - 1):
                token = likeliest(decode(token))
                stamps.append(now())
                made.append(token)
        except RunnerFailure:
            raise
        except Exception as error:
            what = "TVM failed while generating"
            raise failed(what, error) from error
        return Generation(
            token_ids=made,
            submitted_ns=submitted,
            prefilled_ns=prefilled,
            token_ns=stamps,
            prompt_tokens=len(prompt),
            depth_tokens=len(request.depth_ids),
            finish_reason="length",
        )

    def restart(self) -> None:
        """Empty the KV cache."""
        self._clear(self._cache)
        self._add(self._cache, SEQUENCE)

    def fill(self, ids: Sequence[int]) -> None:
        """Take tokens into the cache; no tokens no pass."""
        if ids:
            self.prefill([int(number) for number in ids])

    def prefill(self, ids: list[int]) -> NDArray[np.float32]:
        """Take `ids` into the cache in chunks; the logits after the last, (vocabulary,)."""
        logits = None
        for first in range(0, len(ids), self.chunk):
            logits = self._take(ids[first : first + self.chunk])
        return self._last(logits)

    def decode(self, token: int) -> NDArray[np.float32]:
        """Take one token into the cache; the logits after it, (vocabulary,).

        They are TVM's memory, good until the next call. What can be made before is: with all caches
        of the CPU full of weights, each line of Python here costs some ten microseconds.
        """
        self._token[0] = token
        tensor = self._token_tensor
        if not self._on_cpu:
            tensor = self._to_device(tensor, self._device, 0)
        hidden = self._reshape(self._embed(tensor, self._params), self._token_shape)
        self._begin(self._cache, self._first, self._one)
        logits = self._decode(hidden, self._cache, self._params)[0]
        self._end(self._cache)
        return self._last(logits)

    @property
    def verifies(self) -> bool:
        """Whether the library gives the logits of every position."""
        return self._verify is not None

    def all_logits(self, ids: list[int]) -> NDArray[np.float32]:
        """Take at most `chunk` tokens into the cache; the logits after each, (tokens, vocabulary).

        Only where it `verifies`. They are TVM's memory, good until the next call.
        """
        hidden = self._embedded(ids)
        self._begin(self._cache, self._first, self._shape([len(ids)]))
        assert self._verify is not None
        logits = self._verify(hidden, self._cache, self._params)[0]
        self._end(self._cache)
        rows: NDArray[np.float32] = self._read(logits)[0]
        if len(rows) != len(ids):
            msg = f"the library gave logits of {len(rows)} positions for {len(ids)} tokens"
            raise RunnerFailure(msg)
        return rows

    @staticmethod
    def _check_logit(highest: float) -> None:
        """Raises `RunnerFailure` where the highest of a row is no number."""
        if not -NO_LOGIT < highest < NO_LOGIT:  # nor is a NaN
            msg = f"the library computed {highest:g} as the highest logit: {BAD}"
            raise RunnerFailure(msg)

    def close(self) -> None:
        """Free weights and cache."""
        self._cache = self._params = None
        self._embed = self._decode = _closed
        self._prefill = self._batch_prefill = self._verify = None

    def _take(self, ids: list[int]) -> Any:  # noqa: ANN401 - TVM's tensor
        """One chunk into the cache; the logits after its last token, on the device."""
        hidden = self._embedded(ids)
        self._begin(self._cache, self._first, self._shape([len(ids)]))
        if self._prefill is not None:
            logits = self._prefill(hidden, self._cache, self._params)[0]
        else:
            assert self._batch_prefill is not None
            last = self._tensor([len(ids) - 1])
            logits = self._batch_prefill(hidden, last, self._cache, self._params)[0]
        self._end(self._cache)
        return logits

    def _embedded(self, ids: list[int]) -> Any:  # noqa: ANN401 - TVM's tensor
        """Of token ids, (1, tokens, width)."""
        hidden = self._embed(self._tensor(ids), self._params)
        return self._reshape(hidden, self._shape([1, len(ids), self._width]))

    def _tensor(self, ids: list[int]) -> Any:  # noqa: ANN401 - TVM's tensor
        tensor = self._tvm.ffi.from_dlpack(self._np.array(ids, dtype=self._np.int32))
        return tensor if self._on_cpu else self._to_device(tensor, self._device, 0)

    def _read(self, logits: Any) -> NDArray[np.float32]:  # noqa: ANN401 - TVM's tensor
        """Logits, (1, positions, vocabulary), where TVM left them if that is the CPU.

        Raises:
            RunnerFailure: there are more or fewer in a row than words in the vocabulary.
        """
        if not self._on_cpu:
            logits = self._to_device(logits, DEVICE_NUMBERS["cpu"], 0)
        rows: NDArray[np.float32] = self._np.from_dlpack(logits)
        if rows.shape[-1] != self.vocabulary_size:
            msg = (
                f"the library gave {rows.shape[-1]} logits for a vocabulary of "
                f"{self.vocabulary_size}: its configuration is another model's"
            )
            raise RunnerFailure(msg, reason="invalid")
        return rows

    def _last(self, logits: Any) -> NDArray[np.float32]:  # noqa: ANN401 - TVM's tensor
        row: NDArray[np.float32] = self._read(logits)[0, -1]
        return row

    def _likeliest(self, row: NDArray[np.float32]) -> int:
        """The first of the highest logits."""
        token = int(row.argmax())  # of a NaN, if there is one
        self._check_logit(row[token])
        return token


def _closed(*_: object) -> Any:  # noqa: ANN401 - takes a function's place
    msg = "no model is loaded"
    raise RunnerFailure(msg, reason="invalid")
