"""Whether MLC's own package is installed, told without importing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mlc_llm_call import STAND_IN, VERSION, call

from edgebench.runners.mlc_settings import INSTALL_MLC_LLM

if TYPE_CHECKING:
    from pathlib import Path

ASK = """
from edgebench.runners import mlc_package
answer = {
    "installed": mlc_package.installed(),
    "why_not": mlc_package.why_not(),
    "conflict": mlc_package.conflict(),
    "imported": [name for name in sys.modules if name.startswith("mlc_llm")],
}
"""
REQUIRE = "from edgebench.runners import mlc_package; answer = mlc_package.require()"
IMPORT = "from edgebench.runners import mlc_package; answer = mlc_package.import_package().__name__"


def distribution(folder: Path, name: str, version: str, *files: str) -> None:
    """An installed package, as pip leaves it."""
    kept = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    kept.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (kept / "METADATA").write_text(text, encoding="utf-8")
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    (kept / "RECORD").write_text("".join(f"{file},,\n" for file in files), encoding="utf-8")


def test_the_version_of_mlc_llm_is_told_without_importing_it() -> None:
    """It takes seconds to import, and to know whether it is there must cost nothing."""
    told = call(ASK).value
    assert told["installed"] == VERSION
    assert told["imported"] == []
    assert call(REQUIRE).value == VERSION
    assert call(IMPORT).value == "mlc_llm"


def test_where_it_is_missing_the_command_is_told(tmp_path: Path) -> None:
    """MLC's own index is no default of pip's."""
    told = call(ASK, path=str(tmp_path)).value
    assert told["installed"] is None
    assert told["why_not"] == (
        "mlc_llm is not installed; install MLC's own into an environment without apache-tvm, and "
        f"name that Python in python: {INSTALL_MLC_LLM}"
    )
    refused = call(REQUIRE, path=str(tmp_path)).value
    assert refused == {"failed": told["why_not"], "reason": "unavailable"}


@pytest.mark.parametrize("name", ["mlc-llm-cpu", "mlc-llm-nightly-cpu"])
def test_the_placeholders_of_pypi_are_recognised(name: str, tmp_path: Path) -> None:
    """They hold an empty module ``mlc``, and are what `pip install` finds by itself."""
    distribution(tmp_path, name, "0.1", "mlc/__init__.py")
    told = call(ASK, path=str(tmp_path)).value
    assert told["installed"] is None
    assert told["why_not"] == (
        f"{name} 0.1 is an empty placeholder; install MLC's own into an environment without "
        f"apache-tvm, and name that Python in python: {INSTALL_MLC_LLM}"
    )


def test_a_placeholder_beside_the_real_one_does_not_lend_its_version(tmp_path: Path) -> None:
    """The version is of the distribution that the module is of."""
    distribution(tmp_path, "mlc-llm-cpu", "0.1", "mlc/__init__.py")
    assert call(ASK, path=f"{tmp_path}:{STAND_IN}").value["installed"] == VERSION


def test_a_build_from_source_tells_its_own_version(tmp_path: Path) -> None:
    """MLC's file libinfo.py says it, without anything installed by pip."""
    package = tmp_path / "mlc_llm"
    (package / "serve").mkdir(parents=True)
    (package / "serve" / "engine.py").touch()
    (package / "__init__.py").touch()
    assert call(ASK, path=str(tmp_path)).value["installed"] == "unknown"
    (package / "libinfo.py").write_text('import os\n__version__ = "0.1.dev0"\n', encoding="utf-8")
    assert call(ASK, path=str(tmp_path)).value["installed"] == "0.1.dev0"
    refused = call(IMPORT, path=str(tmp_path)).value
    assert "mlc_llm 0.1.dev0 has no MLCEngine; install MLC's own" in refused["failed"]


def test_another_folder_of_that_name_is_not_taken_for_it(tmp_path: Path) -> None:
    """Such as a user's own, in the current folder."""
    (tmp_path / "mlc_llm").mkdir()
    told = call(ASK, path=str(tmp_path)).value
    assert told["installed"] is None
    assert (
        f"{tmp_path / 'mlc_llm'} is not MLC's package: it has no serve/engine.py"
        in (told["why_not"])
    )


def test_a_package_that_can_not_be_imported_says_why(tmp_path: Path) -> None:
    """As where its own library is missing, which is no ImportError."""
    package = tmp_path / "mlc_llm"
    (package / "serve").mkdir(parents=True)
    (package / "serve" / "engine.py").touch()
    text = "raise RuntimeError('Cannot find libraries: libmlc_llm.so\\nList of candidates:')"
    (package / "__init__.py").write_text(text, encoding="utf-8")
    refused = call(IMPORT, path=str(tmp_path)).value
    assert refused["reason"] == "unavailable"
    assert (
        "can't be imported (RuntimeError: Cannot find libraries: libmlc_llm.so); choose engine: tvm"
        in (refused["failed"])
    )


def test_two_packages_that_bring_a_tvm_are_a_conflict(tmp_path: Path) -> None:
    """MLC's wheels bring one of their own, and the one installed last overwrote the other's."""
    distribution(tmp_path, "apache-tvm", "0.27.0", "tvm/__init__.py")
    distribution(tmp_path, "apache-tvm-ffi", "0.1.15", "tvm_ffi/__init__.py")
    path = f"{tmp_path}:{STAND_IN}"
    assert call(ASK, path=path).value["conflict"] is None
    distribution(tmp_path, "mlc-ai-nightly-cpu", "0.20.dev9", "tvm/__init__.py")
    told = call(ASK, path=path).value["conflict"]
    assert told == (
        "apache-tvm 0.27.0 and mlc-ai-nightly-cpu 0.20.dev9 overwrite each other's module tvm; "
        "install mlc_llm into an environment of its own, and name its interpreter with `python:`"
    )
    assert call(REQUIRE, path=path).value == {"failed": told, "reason": "unavailable"}


def test_the_placeholder_of_mlcs_tvm_is_no_conflict(tmp_path: Path) -> None:
    """It holds no module ``tvm``."""
    distribution(tmp_path, "apache-tvm", "0.27.0", "tvm/__init__.py")
    distribution(tmp_path, "mlc-ai-nightly-cpu", "0.1", "mlc/__init__.py")
    assert call(ASK, path=str(tmp_path)).value["conflict"] is None
