"""A compiled library in TVM's virtual machine, and what to say where TVM can't take it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_library import check_file, is_for_older_tvm, parse_metadata
from edgebench.runners.tvm_library import DEVICE_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.runners.base import Reason
    from edgebench.runners.mlc_folder import Folder
    from edgebench.runners.mlc_library import Metadata
    from edgebench.runners.tvm_library import Tvm

POOLED = 2
"""TVM's number for its allocator that keeps what was freed."""

OTHER_DEVICE = re.compile(r"created using \{(\w+)\} but a loader")
"""What TVM says of a library with kernels for a kind of device that its build does not know."""


class Library:
    """A compiled library, loaded into TVM; it computes nothing yet.

    Args:
        tvm: the runtime.
        folder: where it is.
        device: a kind of device.

    Raises:
        RunnerFailure: it can't be loaded here: another machine's, another TVM's, or none at all.
    """

    def __init__(self, tvm: Tvm, folder: Folder, device: str) -> None:
        self._path = folder.library
        check_file(self._path)
        cpu = DEVICE_NUMBERS["cpu"]
        places = [DEVICE_NUMBERS[device], 0, POOLED]
        if device != "cpu":
            places += [cpu, 0, POOLED]
        try:
            module = tvm.ffi.load_module(str(self._path))
            known = module.implements_function("vm_load_executable")
            if known:
                self._machine: Any = module["vm_load_executable"]()
                self._machine["vm_initialization"](*places)
                known = self._machine.implements_function("_metadata")
            text = str(self._machine["_metadata"]()) if known else ""
        except Exception as error:
            if other := OTHER_DEVICE.search(str(error)):
                has = ", ".join(["cpu", *tvm.devices()])
                msg = f"{self._path} was compiled for {other[1]}, and TVM {tvm.version} has: {has}"
                raise RunnerFailure(msg, reason="unavailable") from error
            msg = (
                f"TVM {tvm.version} can't load {self._path} ({reason(error)}): compile the model "
                "for this TVM, or install the one that it was compiled with"
            )
            raise RunnerFailure(msg) from error
        if not known:
            raise self._foreign(tvm)
        self.metadata: Metadata = parse_metadata(text, self._path)

    def function(self, *names: str) -> Callable[..., Any] | None:
        """The first of these functions that the library has."""
        for name in names:
            if self._machine.implements_function(name):
                return self._machine[name]  # type: ignore[no-any-return]
        return None

    def needed(self, *names: str) -> Callable[..., Any]:
        """As `function`; raises `RunnerFailure` (unsupported) where there is none."""
        found = self.function(*names)
        if found is None:
            msg = f"{self._path} has no function {' or '.join(names)}: it is no model that chats"
            raise RunnerFailure(msg, reason="unsupported")
        return found

    def _foreign(self, tvm: Tvm) -> RunnerFailure:
        if is_for_older_tvm(self._path):
            msg = f"{self._path} was compiled for an older TVM than {tvm.version}: compile it again"
        else:
            msg = f"{self._path} is no model library of MLC's: it lacks MLC's functions"
        return RunnerFailure(msg, reason="invalid")


def failed(what: str, error: Exception) -> RunnerFailure:
    """What to say where TVM raised an error."""
    memory = "out of memory" in str(error).lower() or "bad_alloc" in str(error)
    kind: Reason = "out_of_memory" if memory or isinstance(error, MemoryError) else "framework"
    return RunnerFailure(f"{what}: {reason(error)}", reason=kind)


def reason(error: Exception) -> str:
    """The line of an error of TVM's that tells what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
