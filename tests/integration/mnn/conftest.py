"""Artifacts for MNN that several tests share, and a session with one of them loaded."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from loaded_model import SMOLLM2, Tiny, loaded
from tiny_models import tiny_folder

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Load a folder in a process of its own: ``open_model(path, threads=1)``."""

    def opened(path: Path, context: int = 256, **options: Any) -> Any:
        log = tmp_path_factory.mktemp("logs") / "mnn.log"
        return loaded("mnn", log, path, context, {"threads": 1, **options})

    return opened


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """Make a random Llama and its fp32 artifact; keywords change its configuration."""
    from edgebench.runners.mnn_convert import convert

    def made(**changes: Any) -> Tiny:
        folder = tmp_path_factory.mktemp("tiny")
        source, artifact = folder / "source", folder / "artifact"
        model = tiny_folder(source, "llama", **changes)
        convert(ConvertRequest(str(source), "fp32", str(artifact)))
        return Tiny(source, artifact, model)

    return made


@pytest.fixture(scope="session")
def tiny(make_tiny: Callable[..., Tiny]) -> Tiny:
    """One that nobody changes."""
    return make_tiny()


@pytest.fixture
def artifact(tiny: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny artifact, to be damaged."""
    folder = tmp_path / "artifact"
    shutil.copytree(tiny.artifact, folder)
    return folder


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 with int8 weights, as a folder of MNN's."""
    from edgebench.runners.mnn_convert import convert

    folder = tmp_path_factory.mktemp("smollm2")
    source = ModelStore(folder / "cache").fetch(parse_source(SMOLLM2)).path
    convert(ConvertRequest(str(source), "int8", str(folder / "int8")))
    return folder / "int8"
