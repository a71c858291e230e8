"""Token ids as MLC's own engine hands them over, each with the time at which it did.

``MLCEngine`` streams texts, and several tokens may make one text, or none. The ids are in what its
background thread passes to `HOOK`, a method of the engine that turns them into texts: it is
watched, and does its work as before.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOOK = "_request_stream_callback_impl"
"""Of ``mlc_llm.serve.engine.MLCEngine``; it takes a list of ``RequestStreamOutput``."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What an output holds, to be had once more: MLC's own can be unpacked once only."""

    content: Any

    def unpack(self) -> Any:  # noqa: ANN401 - as MLC's
        """The request's id, and what it made."""
        return self.content


class TokenStream:
    """The ids of one request at a time.

    Args:
        engine: an ``MLCEngine``, whose method is replaced by one that looks on.

    Raises:
        RunnerFailure: it has no such method (unsupported).
    """

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - a class that edgebench doesn't install
        self._pass_on: Callable[[Sequence[Any]], Any] | None = getattr(engine, HOOK, None)
        if self._pass_on is None:
            msg = (
                f"this mlc_llm's MLCEngine has no {HOOK}, which token ids are taken from; "
                "`engine: tvm` runs the same library"
            )
            raise RunnerFailure(msg, reason="unsupported")
        self._engine = engine
        setattr(engine, HOOK, self._receive)
        self._request = ""
        self.ids: list[int] = []
        self.stamps_ns: list[int] = []

    def begin(self, request: str) -> None:
        """Forget what came before; what is not of this request is not taken."""
        self._request = request
        self.ids, self.stamps_ns = [], []

    def stop(self) -> None:
        """Watch no more; without it the engine, and with it the model, would not be freed."""
        if self._engine is not None:
            delattr(self._engine, HOOK)
            self._engine = self._pass_on = None

    def _receive(self, outputs: Sequence[Any] | BaseException) -> Any:  # noqa: ANN401
        now = time.perf_counter_ns()
        if isinstance(outputs, BaseException):  # from `Watch`
            raise outputs
        opened = []
        for output in outputs:
            request, parts = content = output.unpack()
            opened.append(Opened(content))
            if request != self._request:
                continue
            for token in parts[0].delta_token_ids:
                self.ids.append(int(token))
                self.stamps_ns.append(now)
        assert self._pass_on is not None
        return self._pass_on(opened)


class Watch:
    """Tells of what fails in MLC's background threads, where its callers would wait forever.

    Args:
        tell: takes the exception, in the thread in which it was raised.
    """

    def __init__(self, tell: Callable[[BaseException], None]) -> None:
        self._tell = tell
        self._before = threading.excepthook
        threading.excepthook = self._failed

    def stop(self) -> None:
        """Tell no more."""
        threading.excepthook = self._before

    def _failed(self, told: threading.ExceptHookArgs) -> None:
        self._before(told)  # into the log
        self._tell(told.exc_value or RuntimeError("a background thread ended"))


def construct(made: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
    """An instance of MLC's engine, or the exception for which there is none.

    Its constructor waits for a thread that may have failed, so it runs in one, too; that one is
    left waiting then.

    Raises:
        BaseException: whatever either thread raised.
    """
    engine = made.__new__(made)
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def start() -> None:
        try:
            engine.__init__(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - raised below
            ended.put(error)
        else:
            ended.put(None)

    watch = Watch(ended.put)
    threading.Thread(target=start, daemon=True).start()
    error = ended.get()
    watch.stop()
    if error is not None:
        raise error
    return engine
