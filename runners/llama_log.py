"""What llama.cpp says while it loads: to the log, and kept where it is the only way to know."""

from __future__ import annotations

import sys
from typing import Any, ClassVar


class LlamaLog:
    """llama.cpp's messages: to the log, without its debugging ones, and kept while it loads."""

    DEBUG, ERROR, CONTINUED = 1, 4, 5  # ggml_log_level

    _handed_over: ClassVar[list[Any]] = []
    """Callbacks that llama.cpp may still call after their runner is gone."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []
        self._keeping = False
        self._level = 0
        self._callback: Any = None

    def keep(self, lib: Any) -> None:  # noqa: ANN401
        """Start to remember messages."""
        self._lines.clear()
        self._keeping = True
        self._set(lib)

    def release(self, lib: Any) -> None:  # noqa: ANN401
        """Stop remembering; go on writing."""
        self._keeping = False
        self._set(lib)

    def find(self, text: str) -> str | None:
        """The first kept message that holds `text`, in one line."""
        return next((line.strip() for _, line in self._lines if text in line), None)

    def last_error(self) -> str:
        """The last kept error, or where to look."""
        errors = [line.strip() for level, line in self._lines if level == self.ERROR]
        return errors[-1] if errors else "it gave no reason; see the log"

    def _set(self, lib: Any) -> None:  # noqa: ANN401
        if self._callback is None:

            @lib.llama_log_callback  # type: ignore[untyped-decorator]
            def callback(level: int, text: bytes, _: object) -> None:
                if level != self.CONTINUED:
                    self._level = level
                if self._level == self.DEBUG:
                    return
                line = text.decode("utf-8", "replace")
                sys.stderr.write(line)
                if self._keeping:
                    self._lines.append((self._level, line))

            self._callback = callback
            self._handed_over.append(callback)
        lib.llama_log_set(self._callback, None)
