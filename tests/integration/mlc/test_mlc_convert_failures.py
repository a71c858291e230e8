"""What a conversion for MLC refuses, and how it fails."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import tiny_folder

from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.mlc_convert import convert
from edgebench.runners.tvm_build import has_halves
from edgebench.runners.tvm_link import link_command

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small random Llama's folder."""
    tiny_folder(tmp_path / "source", "llama")
    return tmp_path / "source"


def make(source: Path, quantization: str = "q0f32", **options: Any) -> dict[str, str]:
    target = str(source.parent / "made")
    options = {"compiler": "edgebench", **options}
    return convert(ConvertRequest(str(source), quantization, target, options))


def change(source: Path, **changes: Any) -> None:
    """Change the model's configuration."""
    path = source / "config.json"
    config = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**config, **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("quantization", "options", "reason", "words"),
    [
        ("q9", {}, "unsupported", "quantization is q9; for MLC there are q0f32, q0f16, q4f32_1, q"),
        ("q4f16_1", {}, "unsupported",
         "q4f16_1 takes MLC's own compiler, .* q0f32, q0f16, q4f32_1; install .*: pip install"),
        ("q3f16_1", {"compiler": "auto"}, "unsupported", "q3f16_1 takes MLC's own compiler"),
        ("q0f32", {"compiler": "gcc"}, "unsupported", "compiler is gcc; for MLC there are auto"),
        ("q0f32", {"compiler": "mlc_llm"}, "unavailable", "mlc_llm is not installed; install"),
        ("q0f32", {"compile_for": "cuda"}, "unsupported", "builds libraries for the CPU only"),
    ],
)  # fmt: skip
def test_what_is_not_made_is_named_before_anything_is_written(
    quantization: str, options: dict[str, Any], reason: str, words: str, source: Path
) -> None:
    """With what would do."""
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, quantization, **options)
    assert failure.value.reason == reason
    assert not list(source.parent.glob("*made*"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"logit_scale": 0.5}, "logit_scale = 0.5 is not understood"),
        ({"model_type": "mistral", "sliding_window": 32}, "sliding_window = 32"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    changes: dict[str, Any], words: str, source: Path
) -> None:
    """As for every framework."""
    change(source, **changes)
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source)
    assert failure.value.reason == "unsupported"


@pytest.mark.parametrize("compiler", ["edgebench", "mlc_llm", "auto"])
def test_a_folder_of_mlcs_is_no_source(compiler: str, source: Path) -> None:
    """It is what is made; told is how it is run as it is."""
    (source / "mlc-chat-config.json").write_text("{}", encoding="utf-8")
    words = "source is a folder of MLC's own: set quantization: source"
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, compiler=compiler)
    assert failure.value.reason == "unsupported"


def test_weights_that_are_cut_off_are_a_clear_failure(source: Path) -> None:
    """What the reader of models says of it, as the fault of the source."""
    path = source / "model.safetensors"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(RunnerFailure, match=r"model\.safetensors") as failure:
        make(source)
    assert failure.value.reason == "invalid"


def test_without_a_linker_nothing_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for first; what is missing is named."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerFailure, match=r"no linker was found .* name one as CC") as failure:
        make(source)
    assert failure.value.reason == "unavailable"
    assert not (tmp_path / "made").exists()


def test_a_linker_that_fails_is_quoted(tmp_path: Path) -> None:
    """With its last words, or that it had none; and one that can't be run at all."""
    library = str(tmp_path / "lib.so")
    with pytest.raises(RunnerFailure, match=r"the linker cc failed .*: .*missing\.o"):
        link_command(["cc"])(library, [str(tmp_path / "missing.o")])
    with pytest.raises(RunnerFailure, match=r"the linker false failed .*: no word of why"):
        link_command(["false"])(library, [])
    with pytest.raises(RunnerFailure, match=r"can't be run: No such file") as failure:
        link_command([str(tmp_path / "nothing")])(library, [])
    assert failure.value.reason == "unavailable"


def test_binutils_alone_will_do(tmp_path: Path) -> None:
    """No compiler is needed: ``ld`` links what TVM compiled, and the library runs."""
    import numpy as np
    import tvm
    from tvm import relax, te

    linker = shutil.which("ld")
    assert linker is not None
    builder = relax.BlockBuilder()
    variable = relax.Var("x", relax.TensorType((8,), "float32"))
    with builder.function("main", [variable]):
        made = builder.emit_te(
            lambda given: te.compute((8,), lambda i: te.exp(given[i]), name="made"), variable
        )
        builder.emit_func_output(made)
    target = tvm.target.Target({"kind": "llvm"})
    library = tmp_path / "lib.so"
    executable = relax.build(builder.finalize(), target=target)
    executable.export_library(str(library), fcompile=link_command([linker]))
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    values = np.linspace(-1, 1, 8, dtype=np.float32)
    assert np.allclose(machine["main"](tvm.runtime.tensor(values)).numpy(), np.exp(values))


def test_a_full_disk_is_a_clear_failure(source: Path) -> None:
    """The system's own words, and where; here a limit on a file's size stands in for the disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(RunnerFailure, match=r"failed in .*made: File too large"):
            make(source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_missing_package_is_named_with_what_to_install(source: Path) -> None:
    """One sentence, as for every framework."""
    script = (
        "import sys; sys.modules['tvm'] = None\n"
        "from edgebench.runners.base import ConvertRequest, RunnerFailure\n"
        "from edgebench.runners.mlc_convert import convert\n"
        f"request = ConvertRequest({str(source)!r}, 'q0f32', {str(source.parent / 'made')!r})\n"
        "try:\n    convert(request)\n"
        "except RunnerFailure as failure:\n    print(failure.reason, failure)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"unavailable TVM can't be imported by {sys.executable} (")
    assert "install it there with: pip install 'edgebench[mlc]'" in done.stdout


def test_float16_takes_a_cpu_that_converts_it() -> None:
    """Without such instructions LLVM calls functions that TVM's libraries lack."""
    x86: dict[str, Any] = {"arch": "x86_64", "mcpu": "core2", "features": ["sse2", "ssse3"]}
    assert not has_halves(x86)
    assert has_halves({**x86, "features": ["avx", "f16c", "sse2"]})
    assert has_halves({"arch": "aarch64", "mcpu": "cortex-a53", "features": ["neon"]})
