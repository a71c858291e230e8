"""NVIDIA's management library, as far as power needs it.

It comes with the driver and is called by name, so that a machine without any package for Python
has its meters too. Names, units and results: NVIDIA's NVML API reference (energy in millijoules
since the driver was loaded, from Volta on; power in milliwatts).
"""

from __future__ import annotations

import ctypes
import errno
from typing import Protocol

LIBRARY = "libnvidia-ml.so.1"
DRIVER_NOT_LOADED = 9
_NOT_SUPPORTED = 3
_NO_PERMISSION = 4
_VERSIONS_DIFFER = 18


class NvmlError(OSError):
    """A call failed.

    Attributes:
        code: NVML's own.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(errno.EIO, text)
        self.code = code

    @property
    def is_unsupported(self) -> bool:
        """Whether this GPU does not offer it."""
        return self.code == _NOT_SUPPORTED

    @property
    def is_forbidden(self) -> bool:
        """Whether this user may not ask."""
        return self.code == _NO_PERMISSION

    @property
    def is_old_driver(self) -> bool:
        """Whether the loaded driver is not the installed one: after an update, before a restart."""
        return self.code == _VERSIONS_DIFFER


class Nvml(Protocol):
    """What is asked of the GPUs; all raise `NvmlError`."""

    def count(self) -> int:
        """How many GPUs this process may see."""

    def energy_mj(self, index: int) -> int:
        """Millijoules since the driver was loaded."""

    def power_mw(self, index: int) -> int:
        """Milliwatts now, or over the last second, as the GPU's generation has it."""

    def is_split(self, index: int) -> bool:
        """Whether the GPU is split into instances (MIG)."""


class NvmlLibrary:
    """The real one; loads and starts the library.

    Args:
        library: its file name.

    Raises:
        NvmlError: it does not start, with the reason; the driver is not loaded, for one.
        OSError: there is no such library.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(library)
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self._handles: dict[int, ctypes.c_void_p] = {}
        self._call("nvmlInit_v2")

    def count(self) -> int:
        """How many GPUs this process may see."""
        number = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(number))
        return number.value

    def energy_mj(self, index: int) -> int:
        """Millijoules since the driver was loaded."""
        number = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", self._device(index), ctypes.byref(number))
        return number.value

    def power_mw(self, index: int) -> int:
        """Milliwatts."""
        number = ctypes.c_uint()
        self._call("nvmlDeviceGetPowerUsage", self._device(index), ctypes.byref(number))
        return number.value

    def is_split(self, index: int) -> bool:
        """Whether the GPU is split into instances; no, where it can't be."""
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        try:
            self._call(
                "nvmlDeviceGetMigMode",
                self._device(index),
                ctypes.byref(current),
                ctypes.byref(pending),
            )
        except NvmlError:
            return False
        return current.value == 1

    def _device(self, index: int) -> ctypes.c_void_p:
        if index not in self._handles:
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            self._handles[index] = handle
        return self._handles[index]

    def _call(self, name: str, *arguments: object) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise NvmlError(_NOT_SUPPORTED, f"this driver has no {name}") from None
        code = function(*arguments)
        if code:
            text: bytes = self._library.nvmlErrorString(code) or b"unknown error"
            raise NvmlError(code, text.decode("utf-8", "replace"))
