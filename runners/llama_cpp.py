"""llama.cpp through its C API, by way of the bindings in ``llama-cpp-python``.

The bindings' own ``Llama`` class is not used: its work per token, in Python and numpy, would be
part of every figure. Here a token costs one ``llama_decode`` and one argmax of its logits.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from edgebench.runners.base import (
    Capabilities,
    ConvertRequest,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadRequest,
    Option,
    RunnerFailure,
    Scalar,
    ScoreRequest,
    Scores,
)
from edgebench.runners.checked_request import check_generation, check_scoring
from edgebench.runners.llama_api import (
    cpus,
    greedy,
    kv_type,
    meta,
    token_array,
    token_text,
)
from edgebench.runners.llama_convert import QUANTIZATIONS, convert
from edgebench.runners.llama_log import LlamaLog
from edgebench.runners.llama_score import KEEP_DATA, score
from edgebench.runners.llama_weights import StoredTensor, stored_tensors, weight_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

# Names for what the C functions take as bare truth values.
ADD_SPECIAL = UNPARSE_SPECIAL = True
REMOVE_SPECIAL = False


class LlamaCppRunner:
    """Prefill, greedy decoding, scoring and quantising with llama.cpp."""

    OPTIONS: ClassVar[Mapping[str, Option]] = MappingProxyType(
        {
            "threads": Option(
                "int", "Threads for decoding; the CPUs allowed where unset.", minimum=1
            ),
            "threads_batch": Option("int", "Threads for the prompt; as `threads`.", minimum=1),
            "batch_size": Option("int", "Most tokens a call.", default=2048, minimum=1),
            "ubatch_size": Option("int", "Most tokens a step inside.", default=512, minimum=1),
            "kv_cache_type_k": Option(
                "str", "Type of cached keys.", default="f16", choices=KV_TYPES
            ),
            "kv_cache_type_v": Option(
                "str", "Type of cached values.", default="f16", choices=KV_TYPES
            ),
            "flash_attention": Option(
                "str", "Fused attention.", default="auto", choices=("auto", "on", "off")
            ),
            "mmap": Option("bool", "Map the file instead of reading it.", default=True),
            "mlock": Option("bool", "Hold the weights in memory.", default=False),
            "gpu_layers": Option("int", "Layers on the GPU.", default=0, minimum=0),
        }
    )
    QUANTIZATIONS: ClassVar[tuple[str, ...]] = QUANTIZATIONS
    ARTIFACT_SUFFIX: ClassVar[str] = ".gguf"
    PIP: ClassVar[str] = "edgebench[llama-cpp]"

    def __init__(self) -> None:
        self._lib: Any = None
        self._log = LlamaLog()
        self._model: Any = None
        self._context: Any = None
        self._vocab: Any = None
        self._batch_size = 0
        self._stored: tuple[str, list[StoredTensor]] = ("", [])

    def describe(self) -> Description:
        """Import the bindings; name them and llama.cpp's own version."""
        lib = self._import()
        info = lib.llama_print_system_info().decode("utf-8", "replace")
        gpu = ("gpu",) if lib.llama_supports_gpu_offload() else ()
        return Description(
            engine="llama.cpp",
            engine_version=f"{lib.llama_version().decode()} (llama-cpp-python {lib.__version__})",
            capabilities=Capabilities(
                token_ids_in=True,
                token_ids_out=True,
                token_timestamps=True,
                ignores_end_of_text=True,
                threads=True,
                tokenizer=True,
                chat_template=True,
                scoring=True,
                top_k_logits=True,
                kv_cache_types=KV_TYPES,
                gpu_backends=gpu,
            ),
            build={"system_info": info.strip()},
        )

    def prepare(self, request: LoadRequest) -> list[str]:
        """Read from the file's header how large each tensor is, which takes as long as a load."""
        self._stored = request.model_path, stored_tensors(self._import(), request.model_path)
        return []

    def load(self, request: LoadRequest) -> LoadedModel:
        """Load the GGUF file and make a context of the length asked for."""
        lib = self._import()
        self.close()
        self._log.keep(lib)
        try:
            self._load_model(lib, request)
            effective = {} if request.vocab_only else self._make_context(lib, request)
        finally:
            self._log.release(lib)
        if self._stored[0] != request.model_path and not request.vocab_only:
            self.prepare(request)
        return self._facts(lib, effective)

    def generate(self, request: GenerateRequest) -> Generation:
        """Empty the cache, fill the depth, then measure prefill and each token."""
        lib, context = self._loaded()
        size = lib.llama_vocab_n_tokens(self._vocab)
        check_generation(request, size, lib.llama_n_ctx(context))
        prompt = token_array(lib, request.prompt_ids)
        memory = lib.llama_get_memory(context)
        lib.llama_memory_clear(memory, KEEP_DATA)
        if request.depth_ids:
            self._decode(token_array(lib, request.depth_ids), len(request.depth_ids))
            lib.llama_synchronize(context)

        now = time.perf_counter_ns
        submitted = now()
        tokenized = None
        if request.prompt_text is not None:
            ids = self.tokenize(request.prompt_text)
            tokenized = now()
            if ids != list(request.prompt_ids):
                msg = "llama.cpp tokenizes the prompt's text to other ids than those asked for"
                raise RunnerFailure(msg, reason="invalid")
        self._decode(prompt, len(request.prompt_ids))
        lib.llama_synchronize(context)
        prefilled = now()

        pick, decode = greedy(lib, context, size), lib.llama_decode
        one = (lib.llama_token * 1)()
        batch = lib.llama_batch_get_one(one, 1)
        token = pick()
        ids_out, stamps = [token], [now()]
        for _ in range(request.max_tokens - 1):
            one[0] = token
            if decode(context, batch):
                msg = f"llama_decode failed after {len(ids_out)} generated tokens"
                raise RunnerFailure(msg)
            token = pick()
            stamps.append(now())
            ids_out.append(token)
        return Generation(
            token_ids=ids_out,
            submitted_ns=submitted,
            tokenized_ns=tokenized,
            prefilled_ns=prefilled,
            token_ns=stamps,
            prompt_tokens=len(request.prompt_ids),
            depth_tokens=len(request.depth_ids),
            finish_reason="length",
        )

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Ids of `text`, with the start token if the model wants one."""
        lib = self._lib
        data = text.encode()
        room = len(data) + 8
        buffer = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, data, len(data), buffer, room, ADD_SPECIAL, special)
        if count < 0:
            msg = f"llama.cpp could not tokenize a text of {len(data)} bytes"
            raise RunnerFailure(msg)
        return list(buffer[:count])

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens written out; a start token that is due is left out."""
        lib = self._lib
        bos = lib.llama_vocab_bos(self._vocab)
        if ids and ids[0] == bos and lib.llama_vocab_get_add_bos(self._vocab):
            ids = ids[1:]
        tokens = token_array(lib, ids)
        flags = (REMOVE_SPECIAL, UNPARSE_SPECIAL)
        room = 32 * len(ids) + 64
        buffer = ctypes.create_string_buffer(room)
        size = lib.llama_detokenize(self._vocab, tokens, len(ids), buffer, room, *flags)
        if size < 0:
            room = -size
            buffer = ctypes.create_string_buffer(room)
            size = lib.llama_detokenize(self._vocab, tokens, len(ids), buffer, room, *flags)
        return buffer.raw[:size].decode("utf-8", "replace")

    def score(self, request: ScoreRequest) -> Scores:
        """Log-likelihoods of ``ids[start:]`` from the logits of the positions before them."""
        lib, context = self._loaded()
        vocabulary = lib.llama_vocab_n_tokens(self._vocab)
        check_scoring(request, vocabulary, lib.llama_n_ctx(context))
        return score(lib, context, vocabulary, self._batch_size, request)

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """Quantise a GGUF file, or make one of a folder in Hugging Face's layout."""
        lib = self._import()
        return convert(lib, self._log, self.describe().engine_version, request)

    def close(self) -> None:
        """Free the context and the model."""
        lib = self._lib
        if self._context:
            lib.llama_free(self._context)
        if self._model:
            lib.llama_model_free(self._model)
        self._context = self._model = self._vocab = None

    def _import(self) -> Any:  # noqa: ANN401 - a module without types
        if self._lib is None:
            try:
                import llama_cpp  # noqa: PLC0415
            except ImportError as error:
                msg = (
                    f"llama-cpp-python can't be imported ({error}); "
                    f"install it with: pip install '{self.PIP}'"
                )
                raise RunnerFailure(msg, reason="unavailable") from error
            llama_cpp.llama_backend_init()
            self._lib = llama_cpp
            self._log.release(llama_cpp)
        return self._lib

    def _load_model(self, lib: Any, request: LoadRequest) -> None:  # noqa: ANN401
        options = request.options
        _check_is_file(request.model_path)
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = request.vocab_only
        parameters.n_gpu_layers = int(options.get("gpu_layers") or 0)
        parameters.load_mode = self._load_mode(lib, options)
        if parameters.n_gpu_layers and not lib.llama_supports_gpu_offload():
            msg = "gpu_layers is set, but this llama-cpp-python was built without a GPU back end"
            raise RunnerFailure(msg, reason="unsupported")
        self._model = lib.llama_model_load_from_file(os.fsencode(request.model_path), parameters)
        if not self._model:
            msg = f"llama.cpp can't load {request.model_path}: {self._log.last_error()}"
            raise RunnerFailure(msg)
        self._vocab = lib.llama_model_get_vocab(self._model)

    @staticmethod
    def _load_mode(lib: Any, options: Mapping[str, Scalar]) -> int:  # noqa: ANN401
        if options.get("mlock"):
            return int(lib.LLAMA_LOAD_MODE_MLOCK)
        if options.get("mmap", True):
            return int(lib.LLAMA_LOAD_MODE_MMAP)
        return int(lib.LLAMA_LOAD_MODE_NONE)

    def _make_context(self, lib: Any, request: LoadRequest) -> dict[str, Scalar]:  # noqa: ANN401
        options = request.options
        threads = int(options.get("threads") or cpus())
        parameters = lib.llama_context_default_params()
        parameters.n_ctx = request.context_tokens
        parameters.n_batch = int(options.get("batch_size") or 2048)
        parameters.n_ubatch = int(options.get("ubatch_size") or 512)
        parameters.n_threads = threads
        parameters.n_threads_batch = int(options.get("threads_batch") or threads)
        parameters.type_k = kv_type(lib, options.get("kv_cache_type_k"))
        parameters.type_v = kv_type(lib, options.get("kv_cache_type_v"))
        flash = str(options.get("flash_attention") or "auto")
        names = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}
        parameters.flash_attn_type = getattr(lib, f"LLAMA_FLASH_ATTN_TYPE_{names[flash]}")
        parameters.no_perf = True
        self._context = lib.llama_init_from_model(self._model, parameters)
        if not self._context:
            msg = f"llama.cpp can't make a context: {self._log.last_error()}"
            raise RunnerFailure(msg)
        self._batch_size = int(lib.llama_n_batch(self._context))
        return {
            "context": int(lib.llama_n_ctx(self._context)),
            "batch_size": self._batch_size,
            "ubatch_size": int(lib.llama_n_ubatch(self._context)),
            "threads": int(lib.llama_n_threads(self._context)),
            "threads_batch": int(lib.llama_n_threads_batch(self._context)),
            "kv_cache_type_k": str(options.get("kv_cache_type_k") or "f16"),
            "kv_cache_type_v": str(options.get("kv_cache_type_v") or "f16"),
            "flash_attention": self._effective_flash(),
            "load_mode": self._effective_load_mode(),
            "gpu_layers": int(options.get("gpu_layers") or 0),
        }

    def _effective_flash(self) -> str:
        """Whether attention is fused, which llama.cpp tells in its log only.

        The context's own line has what was decided from the options; of ``auto``, another line
        tells what came of it.
        """
        line = self._log.find("flash_attn  ") or ""  # a table: name, blanks, = value
        decided = line.rpartition("=")[2].strip()
        if decided == "auto":
            decided = "enabled" if self._log.find("Flash Attention enabled") else "disabled"
        return {"enabled": "on", "disabled": "off"}.get(decided, "not told")

    def _effective_load_mode(self) -> str:
        line = self._log.find("load_mode = ")
        return line.rpartition("load_mode = ")[2].rstrip(")") if line else "not told"

    def _facts(self, lib: Any, effective: dict[str, Scalar]) -> LoadedModel:  # noqa: ANN401
        model, vocab = self._model, self._vocab
        template = lib.llama_model_chat_template(model, None)
        return LoadedModel(
            effective_options=effective,
            vocabulary_size=int(lib.llama_vocab_n_tokens(vocab)),
            architecture=meta(lib, model, "general.architecture"),
            parameters=int(lib.llama_model_n_params(model)) or None,
            trained_context_tokens=int(lib.llama_model_n_ctx_train(model)) or None,
            chat_template=template.decode("utf-8", "replace") if template else None,
            bos_text=token_text(lib, vocab, lib.llama_vocab_bos(vocab)),
            eos_text=token_text(lib, vocab, lib.llama_vocab_eos(vocab)),
            weight_bytes_per_token=weight_bytes_per_token(lib, model, self._stored[1])
            if effective
            else None,
        )

    def _loaded(self) -> tuple[Any, Any]:
        if not self._context:
            msg = "no model is loaded"
            raise RunnerFailure(msg, reason="invalid")
        return self._lib, self._context

    def _decode(self, tokens: Any, count: int) -> None:  # noqa: ANN401
        lib, step = self._lib, self._batch_size
        for first in range(0, count, step):
            size = min(step, count - first)
            part = (lib.llama_token * size).from_buffer(
                tokens, first * ctypes.sizeof(lib.llama_token)
            )
            if lib.llama_decode(self._context, lib.llama_batch_get_one(part, size)):
                msg = f"llama_decode failed at prompt token {first}"
                raise RunnerFailure(msg)


def _check_is_file(path: str) -> None:
    if Path(path).is_dir():
        msg = (
            f"llama.cpp reads GGUF files, and {path} is a folder; choose another quantization "
            "than source, such as F16, to have a file made of it"
        )
        raise RunnerFailure(msg, reason="unsupported")
