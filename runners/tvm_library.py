"""TVM's runtime: what runs a compiled library, without what compiles one.

The package ``tvm`` would bring TVM's compiler in too: 0.2 GB and more than a second of CPU time.
Its runtime is a library of its own, whose functions ``tvm_ffi`` finds by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from importlib import metadata, util
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_settings import PIP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEVICE_NUMBERS = MappingProxyType(
    {"cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10}
)
"""DLPack's numbers for kinds of devices."""

RUNTIME = {"darwin": "libtvm_runtime.dylib", "win32": "tvm_runtime.dll"}
BIG_CORES = 1
"""A mode of TVM's pool; with a number of threads it takes that many, of whatever cores."""

THREADS, BIND = "TVM_NUM_THREADS", "TVM_BIND_THREADS"


class Tvm:
    """TVM's runtime, imported.

    Raises:
        RunnerFailure: it is not installed, or can't be loaded (unavailable).
    """

    def __init__(self) -> None:
        # TVM reads this when its pool is made, and numbers CPUs as if all were allowed: bound, a
        # process that may use CPU 3 only is moved to CPU 0. Even asking for the number of threads
        # makes the pool.
        os.environ[BIND] = "0"
        try:
            import numpy as np  # noqa: PLC0415

            with _without_torch():
                import tvm_ffi  # noqa: PLC0415

            self.version = _version()
            self._load_runtime()
        except (ImportError, OSError) as error:
            raise not_imported(error) from error
        self.ffi: Any = tvm_ffi
        self.numpy: Any = np

    @staticmethod
    def _load_runtime() -> None:
        """Load the library; GPU back ends beside it register themselves if their drivers are there.

        A TVM that is laid out otherwise is imported whole, also an older one, whose ``libtvm.so``
        holds the runtime once more: MLC's package would load it beside.
        """
        place = util.find_spec("tvm")
        if place is None or place.origin is None:
            msg = "No module named 'tvm'"
            raise ImportError(msg)
        package = Path(place.origin).parent
        name = RUNTIME.get(sys.platform, "libtvm_runtime.so")
        for folder in (package / "lib", package):
            older = (folder / name.replace("_runtime", "")).exists()
            if (folder / name).is_file() and not older:
                ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
                for other in sorted(folder.glob(name.replace("runtime", "runtime_*"))):
                    _load_backend(other)
                return
        import tvm  # noqa: F401, PLC0415

    def has(self, name: str) -> bool:
        """Whether TVM has a global function."""
        return self.ffi.get_global_func(name, allow_missing=True) is not None

    def function(self, name: str) -> Callable[..., Any]:
        """One of TVM's global functions; raises `RunnerFailure` (unsupported) without it."""
        found = self.ffi.get_global_func(name, allow_missing=True)
        if found is None:
            msg = f"TVM {self.version} has no function {name}: this edgebench does not know it"
            raise RunnerFailure(msg, reason="unsupported")
        return found  # type: ignore[no-any-return]

    def devices(self) -> tuple[str, ...]:
        """Kinds of devices beside the CPU that this build has, and that are there."""
        return tuple(name for name in DEVICE_NUMBERS if name != "cpu" and self._has(name))

    def check_device(self, device: str) -> None:
        """Raises `RunnerFailure` (unavailable) where this build of TVM has not that device."""
        if device == "cpu" or self._has(device):
            return
        has = ", ".join(["cpu", *self.devices()])
        msg = (
            f"this build of TVM can't use {device}, or there is none; it has: {has}; choose one of "
            f"these as device, or install a TVM, or MLC's packages, that can use {device}"
        )
        raise RunnerFailure(msg, reason="unavailable")

    def _has(self, device: str) -> bool:
        if not self.has(f"device_api.{device}"):
            return False
        exists = 0
        """TVM's number for the question whether a device is there."""
        return bool(self.function("runtime.GetDeviceAttr")(DEVICE_NUMBERS[device], 0, exists))

    def use_threads(self, asked: int, *, bind: bool) -> int:
        """Make the pool of threads, or use fewer of its threads.

        Args:
            asked: how many, the calling thread among them.
            bind: each to a CPU, counted from the first one of the machine.

        Returns:
            How many TVM uses, by its own account.

        Raises:
            RunnerFailure: TVM uses another number, since a smaller pool was made before in this
                process, which can't grow (unsupported).
        """
        set_threads(asked, bind=bind)
        # With a number, TVM does not limit it to how many of the fastest kind of core there are.
        self.function("runtime.config_threadpool")(BIG_CORES, asked)
        used = int(self.function("runtime.NumThreads")())
        if used != asked:
            msg = (
                f"{asked} threads are asked for and TVM uses {used}: its pool was made before, in "
                "this process, and can't grow; load in a process of its own"
            )
            raise RunnerFailure(msg, reason="unsupported")
        return used


def set_threads(asked: int, *, bind: bool) -> None:
    """Say how many threads each pool has that TVM makes from now on.

    MLC's engine has a thread, and with it a pool, of its own, made when it is first used.
    """
    os.environ[THREADS] = str(asked)
    os.environ[BIND] = "1" if bind else "0"


def not_imported(error: Exception) -> RunnerFailure:
    """What to say where TVM, or what it needs, can't be imported: which interpreter lacks it."""
    msg = (
        f"TVM can't be imported by {sys.executable} ({error}); install it there with: "
        f"pip install '{PIP}'"
    )
    return RunnerFailure(msg, reason="unavailable")


@contextlib.contextmanager
def _without_torch() -> Iterator[None]:
    """Hide PyTorch, which ``tvm_ffi`` imports where it is installed, and builds an extension for.

    It has no use here, and would stand in this engine's memory and time: 0.2 GB, 2 s.
    """
    os.environ.setdefault("TVM_FFI_DISABLE_TORCH_C_DLPACK", "1")
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment] # to Python: there is none
    try:
        yield
    finally:
        if hidden:
            del sys.modules["torch"]


def _load_backend(path: Path) -> None:
    """A GPU's part of TVM's runtime; without the GPU's driver it can't be loaded."""
    try:
        ctypes.CDLL(str(path))
    except OSError:
        return


def _version() -> str:
    """TVM's, from whichever package brought it: PyPI's, or MLC's own."""
    try:
        return metadata.version("apache-tvm")
    except metadata.PackageNotFoundError:
        names = metadata.packages_distributions().get("tvm") or [""]
        try:
            return metadata.version(names[0])
        except (metadata.PackageNotFoundError, ValueError):
            return "of an unknown version"
