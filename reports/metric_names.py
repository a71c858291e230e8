"""What metrics are called in the language of the report, and how they are defined there."""

from __future__ import annotations

from edgebench.harness.metrics.definitions import ENGINE_PREFIX, METRICS, metric
from edgebench.reports.languages import _
from edgebench.reports.text import one_line


def metric_label(key: str) -> str:
    """A metric's name for people."""
    own = _of_engine(key)
    return _("{metric}, by the engine", metric=metric_label(own)) if own else _(metric(key).label)


def label_of(key: str, source: str, meter: str = "") -> str:
    """The same of values from a source; of an estimate, that it is one; else the meter, if any."""
    return by_source(metric_label(key), source, meter)


def by_source(label: str, source: str, meter: str = "") -> str:
    """A name of values from a source; of an estimate, that it is one; else the meter, if any."""
    if source == "estimated":
        return _("{label} (estimated)", label=label)
    return _("{label} ({meter})", label=label, meter=one_line(meter)) if meter else label


def metric_short(key: str) -> str:
    """A metric's name for a narrow column."""
    own = _of_engine(key)
    return _("{metric} (engine)", metric=metric_short(own)) if own else _(metric(key).short)


def metric_definition(key: str) -> str:
    """What exactly a metric is."""
    own = _of_engine(key)
    if not own:
        return _(metric(key).definition)
    return _(
        "As the framework itself reports it. Our own definition: {definition}",
        definition=metric_definition(own),
    )


def _of_engine(key: str) -> str:
    """The metric of which this one is the framework's own figure; empty where it is not."""
    own = key.removeprefix(ENGINE_PREFIX)
    return own if own != key and key not in METRICS and own in METRICS else ""
