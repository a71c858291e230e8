"""A board reached by SSH: runners run there, models are copied there, the meters are its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from edgebench.devices.power import PowerSettings
from edgebench.devices.reading import Reading
from edgebench.harness.board import Meters
from edgebench.harness.errors import (
    BoardError,
    BoardLinkError,
    BoardUnfitError,
    ModelError,
    RunnerError,
    RunnerRefusedError,
    RunnerTimeoutError,
    RunnerUnavailableError,
)
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.connection import AgentSession, SshSession
from edgebench.harness.ssh.contact import Contact
from edgebench.harness.ssh.copying import copy_model, parts_of
from edgebench.harness.ssh.diagnosis import naming
from edgebench.harness.ssh.watch import RemoteWatch
from edgebench.harness.ssh.words import one_line
from edgebench.harness.temporary import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from edgebench.devices.bandwidth import Bandwidth
    from edgebench.devices.check import Check
    from edgebench.devices.machine import Machine
    from edgebench.harness.session import Launch, Session
    from edgebench.harness.ssh.command import Remote
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.store import StoredFile

T = TypeVar("T")

OF_A_WATCH = frozenset({"board.begin", "board.end", "board.current_rss", "board.unwatch"})
"""What makes no sense in another connection than that which began to watch; all else changes
nothing on a board, and may be asked again."""

ANSWER_S = 60.0
MEASURING_S = 300.0
"""Meters prove themselves, bandwidth is read again and again: an answer takes its time."""


class SshBoard:
    """A board.

    Each runner has a connection of its own. One more is for all that is asked of the board itself;
    it is opened when it is needed, and anew where it broke: that it did is noticed by the next
    question only, which is asked once more.

    Args:
        remote: how it is reached.
        power: which of its meters to use.
        contact: what is known of its connections; how long things may take.
    """

    def __init__(
        self, remote: Remote, power: PowerSettings | None = None, contact: Contact | None = None
    ) -> None:
        self._remote = remote
        self._power = power or PowerSettings()
        self._contact = contact or Contact()
        self._agent: AgentSession | None = None
        self._placed: dict[str, str] = {}
        self._meters: Meters | None = None
        self._scratch = TemporaryFolder("edgebench-board-")

    @property
    def name(self) -> str:
        """Its address."""
        return self._remote.address

    @property
    def remote(self) -> bool:
        """It is another machine."""
        return True

    def open(self, launch: Launch) -> Session:
        """A runner's process there; `launch.python` is a path there."""
        return SshSession(self._remote, self._contact, launch)

    def watch(self, session: Session) -> RemoteWatch:
        """Watch it from the board."""
        return RemoteWatch(self._ask, session.pid, self._power)

    def place(self, file: StoredFile, tell: Progress) -> str:
        """The path there of a model; copied where it is not there yet.

        Raises:
            BoardError: it can't be copied.
        """
        if file.sha256 not in self._placed:
            try:
                parts = parts_of(file, tell)
            except ModelError as error:
                raise BoardUnfitError(error.message, remedy=error.remedy) from error
            self._placed[file.sha256] = copy_model(
                self._remote, self._contact, self._log(), file, parts, tell
            )
        return self._placed[file.sha256]

    def evict(self, path: str) -> str:
        """Drop a file there from the page cache; why it is not gone, or nothing."""
        try:
            return self._asked("board.evict", {"path": path}, parsed.reason)
        except RunnerError as error:
            return error.message

    def machine(self) -> Machine:
        """Which machine it is."""
        return self._asked("board.machine", {}, parsed.machine)

    def meters(self) -> Meters:
        """Its meters; looked for once, and again where it could not be asked."""
        if self._meters is None:
            try:
                self._meters = self._asked(
                    "board.meters", self._power_asked(), _meters, MEASURING_S
                )
            except RunnerError as error:
                return Meters((), (error.message,))
        return self._meters

    def idle_watts(self, seconds: float) -> tuple[Reading, ...]:
        """What it draws with nothing of ours running, in watts, a reading for each meter."""
        try:
            asked = {**self._power_asked(), "seconds": seconds}
            return self._asked("board.idle", asked, _watts, MEASURING_S + seconds)
        except RunnerError as error:
            return tuple(Reading.missing(error.message) for _ in self.meters().found)

    def temperature(self) -> Reading:
        """Its processor's temperature now, in degrees Celsius."""
        try:
            return self._asked("board.temperature", {}, parsed.reading)
        except RunnerError as error:
            return Reading.missing(error.message)

    def bandwidth(self, threads: int) -> Bandwidth:
        """How fast so many threads read its memory; a reason where that can't be measured."""
        return self._asked("board.bandwidth", {"threads": threads}, parsed.bandwidth, MEASURING_S)

    def doctor(self) -> tuple[Check, ...]:
        """What will spoil a measurement there."""
        return self._asked("board.doctor", {}, _checks, MEASURING_S)

    def close(self) -> None:
        """End the connections; what runs there ends with them."""
        self._drop()
        self._scratch.cleanup()

    def _power_asked(self) -> dict[str, object]:
        return {"power": asdict(self._power)}

    def _asked(
        self,
        method: str,
        params: dict[str, object],
        take: Callable[[Mapping[str, object]], T],
        timeout_s: float = ANSWER_S,
    ) -> T:
        """What the agent answers, parsed.

        Raises:
            BoardError: it does not answer, or can't do it.
            RunnerProtocolError: what it answers is malformed.
        """
        with naming(self._remote):
            return take(self._ask(method, params, timeout_s))

    def _ask(
        self, method: str, params: dict[str, object], timeout_s: float = ANSWER_S
    ) -> dict[str, object]:
        """The agent's answer.

        The connection may have broken since the last question, for the one that broke the runner's
        broke this one as well. That is no failure of what is asked now.

        Raises:
            BoardError: it does not answer, or can't do it.
        """
        again = self._agent is not None and method not in OF_A_WATCH
        while True:
            try:
                return self._ask_once(method, params, timeout_s)
            except RunnerTimeoutError as error:
                raise BoardLinkError(error.message, remedy=error.remedy) from error
            except BoardLinkError:
                if not again:
                    raise
                again = False

    def _ask_once(
        self, method: str, params: dict[str, object], timeout_s: float
    ) -> dict[str, object]:
        if self._agent is None:
            agent = AgentSession(self._remote, self._contact, self._log())
            agent.__enter__()
            self._agent = agent
        try:
            return self._agent.call(method, params, timeout_s=timeout_s)
        except (RunnerRefusedError, RunnerUnavailableError) as error:
            msg = f"{self.name} can't answer {method}: {one_line(error.message)}"
            raise BoardError(msg) from error
        except RunnerError:
            self._drop()
            raise

    def _drop(self) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            agent.stop()

    def _log(self) -> Path:
        return self._scratch.path / "board.log"


def _meters(answer: Mapping[str, object]) -> Meters:
    return Meters(parsed.meter_facts(answer.get("found")), parsed.texts(answer.get("refusals")))


def _watts(answer: Mapping[str, object]) -> tuple[Reading, ...]:
    return parsed.readings(answer.get("watts"))


def _checks(answer: Mapping[str, object]) -> tuple[Check, ...]:
    return parsed.checks(answer.get("checks"))
