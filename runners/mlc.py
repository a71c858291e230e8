"""MLC's models: compiled libraries, run by MLC's own engine or by TVM's virtual machine.

Which of the two ran, and who compiled the library, stands in every result. See docs/mlc.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgebench.runners.base import (
    Capabilities,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadRequest,
    Option,
    RunnerFailure,
    ScoreRequest,
    Scores,
)
from edgebench.runners.checked_request import check_generation, check_scoring
from edgebench.runners.mlc_check import check_context, prefill_chunk
from edgebench.runners.mlc_cpu import host_name
from edgebench.runners.mlc_facts import known_facts
from edgebench.runners.mlc_folder import check_sums, read_folder
from edgebench.runners.mlc_library import check_file
from edgebench.runners.mlc_package import conflict, import_package, installed, require, why_not
from edgebench.runners.mlc_settings import MLC_LLM, OPTIONS, PIP, QUANTIZATIONS, choose
from edgebench.runners.tvm_engine import Model
from edgebench.runners.tvm_library import Tvm, set_threads
from edgebench.runners.tvm_module import Library
from edgebench.runners.tvm_score import score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.base import ConvertRequest
    from edgebench.runners.mlc_folder import Folder
    from edgebench.runners.mlc_settings import Chosen, LoadedEngine

CONVERTER = 2
"""To be raised where the same request gives another artifact than before."""


class MlcRunner:
    """Prefill, greedy decoding, scoring and converting of MLC's models."""

    OPTIONS: ClassVar[Mapping[str, Option]] = OPTIONS
    QUANTIZATIONS: ClassVar[tuple[str, ...]] = QUANTIZATIONS
    PIP: ClassVar[str] = PIP

    def __init__(self) -> None:
        self._tvm: Tvm | None = None
        self._has_mlc_llm = False
        self._lacks = ""
        self._engine: LoadedEngine | None = None
        self._scorer: Model | None = None
        self._loaded: tuple[Folder, Library, Chosen] | None = None
        self._checked: list[tuple[str, int, int]] = []
        self._vocabulary_size = 0

    @property
    def CONVERTER_VERSION(self) -> str:  # noqa: N802 - the contract's name
        """Another one on another kind of CPU, whose instructions a library is compiled for."""
        return f"{CONVERTER}, {host_name()}"

    def describe(self) -> Description:
        """Import TVM's runtime, and name what would run: MLC's engine where it is installed."""
        tvm = self._import()
        devices = tvm.devices()
        build = {"TVM": tvm.version, "devices": ", ".join(["cpu", *devices])}
        missing = not self._has_mlc_llm
        unusable = "not installed" if installed() is None else "can't be used"
        return Description(
            engine="TVM" if missing else "MLC LLM",
            engine_version=tvm.version if missing else str(installed()),
            capabilities=Capabilities(
                token_ids_in=True,
                token_ids_out=True,
                token_timestamps=True,
                ignores_end_of_text=True,
                threads=True,
                chat_template=True,
                scoring=True,
                top_k_logits=True,
                gpu_backends=devices,
            ),
            build={**build, "mlc_llm": unusable} if missing else build,
            notes=(self._lacks,) if missing else (),
        )

    def prepare(self, request: LoadRequest) -> list[str]:
        """Compare files with their checksums, and import MLC's engine if it runs; not measured.

        Returns:
            The model library's path, which may lie outside the model's folder.

        Raises:
            RunnerFailure: a file is missing or damaged (invalid), or MLC's engine is not there
                (unavailable).
        """
        self._import()
        folder = self._folder(request)
        self._check_sums(folder)
        # What the library itself says is known when it is loaded: it is not to be mapped before.
        ours = folder.library_sha256 is not None
        chosen = choose(request, built_by_edgebench=ours, has_mlc_llm=self._has_mlc_llm)
        if chosen.engine == MLC_LLM:
            set_threads(chosen.threads, bind=chosen.thread_binding)
            import_package()
        return [str(folder.library)]

    def load(self, request: LoadRequest) -> LoadedModel:
        """Check that folder and library belong together and fit this machine, and load them."""
        tvm = self._import()
        self.close()
        folder = self._folder(request)
        self._check_sums(folder)
        device = str(request.options.get("device") or "cpu")
        tvm.check_device(device)
        library = Library(tvm, folder, device)
        ours = library.metadata.built_by is not None
        chosen = choose(request, built_by_edgebench=ours, has_mlc_llm=self._has_mlc_llm)
        self._loaded = folder, library, chosen
        self._vocabulary_size = folder.config.vocabulary_size
        if chosen.engine == MLC_LLM:
            self._engine = self._mlc_engine(folder, library, chosen)
        else:
            self._engine = self._scorer = Model(tvm, folder, library, chosen)
        return self._engine.facts()

    def _mlc_engine(self, folder: Folder, library: Library, chosen: Chosen) -> LoadedEngine:
        """MLC's own engine, with the model.

        Raises:
            RunnerFailure: it is not installed (unavailable), or the library is edgebench's
                (unsupported).
        """
        from edgebench.runners.mlc_engine import MlcEngine, refuse_own  # noqa: PLC0415

        require()
        if library.metadata.built_by is not None:
            raise refuse_own(folder.library)
        check_context(folder, library.metadata, chosen.context_tokens)
        prefill_chunk(library.metadata, chosen)
        set_threads(chosen.threads, bind=chosen.thread_binding)
        known = known_facts(folder, library.metadata, chosen)
        return MlcEngine(folder.path, folder.library, chosen, known)

    def generate(self, request: GenerateRequest) -> Generation:
        """Empty the cache, fill the depth, then measure prefill and each token."""
        engine = self.engine
        assert self._loaded is not None
        check_generation(request, self._vocabulary_size, self._loaded[2].context_tokens)
        return engine.generate(request)

    @property
    def engine(self) -> LoadedEngine:
        """What is loaded; RunnerFailure (invalid) where nothing is."""
        if self._engine is None:
            msg = "no model is loaded"
            raise RunnerFailure(msg, reason="invalid")
        return self._engine

    def score(self, request: ScoreRequest) -> Scores:
        """Log-likelihoods of ``ids[start:]``, by TVM whichever engine generates.

        MLC's engine gives the logits of nothing but what it makes; the same library, loaded once
        more on TVM, gives those of every position.
        """
        _ = self.engine
        assert self._loaded is not None
        folder, library, chosen = self._loaded
        check_scoring(request, self._vocabulary_size, chosen.context_tokens)
        if self._scorer is None:
            self._scorer = Model(self._import(), folder, library, chosen)
        return score(self._scorer, request)

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """Make a folder of MLC's from a GGUF file or a folder of Hugging Face's."""
        self._import()
        from edgebench.runners.mlc_convert import convert  # noqa: PLC0415 - needs models and TVM

        return convert(request)

    def close(self) -> None:
        """Free weights and caches."""
        for each in (self._engine, self._scorer):
            if each is not None:
                each.close()
        self._engine = self._scorer = self._loaded = None

    def _import(self) -> Tvm:
        """TVM's runtime alone; MLC's own package would bring all of TVM."""
        if self._tvm is None:
            self._tvm = Tvm()
            self._lacks = why_not() if installed() is None else conflict() or ""
            self._has_mlc_llm = not self._lacks
        return self._tvm

    @staticmethod
    def _folder(request: LoadRequest) -> Folder:
        library = request.options.get("library")
        return read_folder(request.model_path, None if library is None else str(library))

    def _check_sums(self, folder: Folder) -> None:
        """Once for files that did not change: what `prepare` read, `load` does not read again."""
        check_file(folder.library)
        paths = [*(each.path for each in folder.shards), folder.library]
        files = [(path, path.stat()) for path in paths]
        seen = [(str(path), status.st_size, status.st_mtime_ns) for path, status in files]
        if seen != self._checked:
            check_sums(folder)
            self._checked = seen
