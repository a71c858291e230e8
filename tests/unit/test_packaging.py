"""The distribution's list of packages and links, and which way dependencies point."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("harness", "runners", "devices", "reports", "scenarios")

SOURCE = ROOT / "src" / "edgebench"

# What each part may import of the others. Runners read models too, late: see below.
ALLOWED = {
    "models": set(),
    "runners": {"models"},
    "devices": set(),
    "scenarios": set(),
    "harness": {"devices", "runners", "models"},
    "reports": {"devices", "harness"},
}


def modules(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if "__pycache__" not in path.parts]


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also late and for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


def test_every_package_is_listed() -> None:
    """A folder with an __init__.py that pyproject.toml forgot would be missing after install."""
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    there = {
        ".".join(("edgebench", *path.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    there |= {
        ".".join(("edgebench", *path.parent.relative_to(SOURCE).parts))
        for path in SOURCE.rglob("__init__.py")
        if path.relative_to(SOURCE).parts[0] not in FOLDERS
    }
    assert listed == there


@pytest.mark.parametrize("folder", FOLDERS)
def test_type_checkers_see_one_tree(folder: str) -> None:
    """src/edgebench/NAME is a relative link to the folder at the top."""
    link = ROOT / "src" / "edgebench" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("../..") / folder


@pytest.mark.parametrize("folder", ALLOWED)
def test_dependencies_point_one_way(folder: str) -> None:
    """Models, runners and devices know nothing of the rest; only the command line knows all."""
    # The links in src/edgebench show the top-level folders.
    for path in modules(SOURCE / folder):
        for name in imports(path):
            package, _, rest = name.partition(".")
            part = rest.partition(".")[0]
            if package == "edgebench" and part in {*FOLDERS, "models", "cli"}:
                assert part == folder or part in ALLOWED[folder], f"{path} imports {name}"


def imports_at_top(path: Path) -> set[str]:
    """Every module that is imported together with this one."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_runners_need_the_standard_library_only() -> None:
    """A runner's module imports at its top what Python brings, so that a bare board runs it.

    Where classes of TVM's are written, TVM is needed; nothing else imports those at its top.
    """
    for path in modules(ROOT / "runners"):
        writes_for_tvm = path.name.startswith("tvm_")
        for name in imports_at_top(path):
            top = name.partition(".")[0]
            assert (
                top in sys.stdlib_module_names
                or name.startswith("edgebench.runners")
                or (writes_for_tvm and top in {"numpy", "tvm", "tvm_ffi"})
            ), f"{path} imports {name}"
            needs_tvm = name.startswith("edgebench.runners.tvm_") and any(
                each.partition(".")[0] in {"numpy", "tvm", "tvm_ffi"}
                for each in imports_at_top(ROOT / "runners" / f"{name.rpartition('.')[2]}.py")
            )
            assert writes_for_tvm or not needs_tvm, f"{path} imports {name}"


def test_models_need_numpy_only() -> None:
    """What reads a tokenizer or a GGUF file is imported when one is read, and may be absent."""
    for path in modules(SOURCE / "models"):
        for name in imports_at_top(path):
            top = name.partition(".")[0]
            allowed = top in {*sys.stdlib_module_names, "numpy"} or name.startswith(
                "edgebench.models"
            )
            assert allowed, f"{path} imports {name}"
