"""MLC's models that several tests share, and a session with one of them loaded."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from loaded_model import Tiny, loaded
from tiny_models import tiny_folder

from edgebench.runners.base import ConvertRequest
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Load a folder in a process of its own: ``open_model(path, threads=1)``."""

    def opened(path: Path, context: int = 256, **options: Any) -> Any:
        log = tmp_path_factory.mktemp("logs") / "mlc.log"
        return loaded("mlc", log, path, context, options)

    return opened


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """Make a random model and its artifact; keywords change its configuration.

    Compiling one takes some seconds: share it.
    """

    def made(
        family: str = "llama",
        quantization: str = "q0f32",
        options: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Tiny:
        folder = tmp_path_factory.mktemp("tiny")
        source, artifact = folder / "source", folder / "artifact"
        model = tiny_folder(source, family, **changes)
        convert = {"compiler": "edgebench", **(options or {})}
        MlcRunner().convert(ConvertRequest(str(source), quantization, str(artifact), convert))
        return Tiny(source, artifact, model)

    return made


@pytest.fixture(scope="session")
def tiny(make_tiny: Callable[..., Tiny]) -> Tiny:
    """A Llama in float32 that nobody changes."""
    return make_tiny()


@pytest.fixture
def artifact(tiny: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny artifact, to be damaged."""
    folder = tmp_path / "artifact"
    shutil.copytree(tiny.artifact, folder)
    return folder


@pytest.fixture(scope="session")
def make_library() -> Callable[..., None]:
    """Compile a library that says something in ``_metadata()``, and otherwise adds one."""

    def made(path: Path, says: dict[str, Any], kind: str = "llvm") -> None:
        MlcRunner().describe()
        import tvm
        from tvm import relax, te
        from tvm.s_tir import dlight

        def plus_one(numbers: Any) -> Any:
            return te.compute((64,), lambda place: numbers[place] + 1, name="plus_one")

        builder = relax.BlockBuilder()
        numbers = relax.Var("numbers", relax.TensorType((64,), "float32"))
        with builder.function("plus_one", [numbers]):
            builder.emit_func_output(builder.emit_te(plus_one, numbers))
        with builder.function("_metadata", params=[]):
            builder.emit_func_output(tvm.ir.StringImm(json.dumps(says)))
        module = builder.finalize()
        target = tvm.target.Target({"kind": kind})
        if kind != "llvm":
            target = tvm.target.Target({"kind": kind, "host": {"kind": "llvm"}})
            with target:
                module = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(module)
        relax.build(module, target=target).export_library(str(path))

    return made


@pytest.fixture(scope="session")
def host() -> Any:
    """This machine's target; TVM is imported by then."""
    MlcRunner().describe()
    from edgebench.runners.tvm_target import host_target

    return host_target()


@pytest.fixture
def two_threads(host: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Calls functions so that they share parallel loops among two threads.

    TVM makes a pool for each thread that calls it, of as many as the environment says then.
    """
    import tvm

    monkeypatch.setenv("TVM_NUM_THREADS", "2")
    with ThreadPoolExecutor(1) as caller:

        def called(function: Callable[..., Any], *arguments: Any) -> Any:
            return caller.submit(function, *arguments).result()

        assert called(tvm.get_global_func("runtime.NumThreads")) == 2
        yield called
