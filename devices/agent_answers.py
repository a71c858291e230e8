"""What a board tells of itself: its machine, its meters, what a process uses there."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebench.devices.agent_lines import RefusedError
from edgebench.devices.bandwidth import measure_bandwidth
from edgebench.devices.idle import idle_watts
from edgebench.devices.machine import describe_machine
from edgebench.devices.monitor import Monitor
from edgebench.devices.pagecache import evict
from edgebench.devices.power import MeterSearch, PowerSettings, find_meters
from edgebench.devices.thermal import find_sensors, maximum, read_hottest_celsius

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Answers:
    """Answers what is asked of the board itself, one request at a time."""

    def __init__(self) -> None:
        self._found: tuple[PowerSettings, MeterSearch] | None = None
        self._monitor: Monitor | None = None
        self._methods: dict[str, Callable[[Mapping[str, Any]], object]] = {
            "board.machine": lambda _: asdict(describe_machine()),
            "board.meters": self._meters,
            "board.idle": self._idle,
            "board.temperature": self._temperature,
            "board.evict": lambda asked: {"reason": evict(Path(asked["path"]))},
            "board.bandwidth": lambda asked: asdict(measure_bandwidth(int(asked["threads"]))),
            "board.doctor": self._doctor,
            "board.watch": self._watch,
            "board.begin": self._begin,
            "board.end": lambda _: asdict(self._open_monitor().end()),
            "board.current_rss": lambda _: asdict(self._open_monitor().current_rss()),
            "board.unwatch": self._unwatch,
        }

    def answer(self, method: str, asked: Mapping[str, Any]) -> object:
        """The answer, as JSON may hold it.

        Raises:
            RefusedError: it can't be done.
            Exception: it failed.
        """
        if method not in self._methods:
            msg = f"the board has no method {method!r}"
            raise RefusedError(msg)
        return self._methods[method](asked)

    def close(self) -> None:
        """Stop watching, and end what meters have started."""
        self._unwatch({})
        if self._found is not None:
            for meter in self._found[1].meters:
                meter.close()
            self._found = None

    def _search(self, asked: Mapping[str, Any]) -> MeterSearch:
        """The meters; looked for once, for that may take a while."""
        settings = PowerSettings(**asked["power"])
        if self._found is None:
            self._found = settings, find_meters(settings=settings)
        elif self._found[0] != settings:
            msg = "a connection is for one choice of meters"
            raise RefusedError(msg)
        return self._found[1]

    def _meters(self, asked: Mapping[str, Any]) -> object:
        search = self._search(asked)
        found = [{"name": each.name, "source": each.source} for each in search.meters]
        return {"found": found, "refusals": [*search.refusals]}

    def _idle(self, asked: Mapping[str, Any]) -> object:
        watts = idle_watts(self._search(asked).meters, float(asked["seconds"]))
        return {"watts": [asdict(each) for each in watts]}

    def _temperature(self, _asked: Mapping[str, Any]) -> object:
        sensors = find_sensors(Path("/sys"))
        celsius = read_hottest_celsius(sensors)
        return asdict(maximum(sensors, [] if celsius is None else [celsius]))

    def _doctor(self, _asked: Mapping[str, Any]) -> object:
        from edgebench.devices.doctor import examine  # noqa: PLC0415 - rare

        return {"checks": [asdict(check) for check in examine()]}

    def _watch(self, asked: Mapping[str, Any]) -> object:
        pid = int(asked["pid"])
        self._unwatch({})
        search = self._search(asked)
        why = "; ".join(search.refusals) or "no power meter was found"
        self._monitor = Monitor(pid, meters=search.meters, no_meter_reason=why).__enter__()
        return {}

    def _begin(self, _asked: Mapping[str, Any]) -> object:
        self._open_monitor().begin()
        return {}

    def _unwatch(self, _asked: Mapping[str, Any]) -> object:
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.__exit__(None, None, None)
        return {}

    def _open_monitor(self) -> Monitor:
        if self._monitor is None:
            msg = "nothing is being watched"
            raise RefusedError(msg)
        return self._monitor
