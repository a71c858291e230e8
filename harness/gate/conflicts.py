"""What does not go together in a policy, or can't be meant."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from edgebench.harness.metrics.definitions import ENGINE_PREFIX, METRICS, Metric, metric
from edgebench.harness.scenario.problems import Finding, quote, suggestion
from edgebench.harness.scenario.quantities import amount, is_amount, share, units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.scenario.problems import KeyPath

_MEANT_FOR: Final = {"at_most": "lower", "at_least": "higher"}
_OTHER: Final = {"at_most": "at_least", "at_least": "at_most"}


def known_metrics(pattern: str) -> tuple[Metric, ...]:
    """The metrics that a name or a pattern means, those that engines tell included."""
    found = [each for key, each in METRICS.items() if fnmatchcase(key, pattern)]
    if pattern.startswith(ENGINE_PREFIX):
        engine = (metric(f"{ENGINE_PREFIX}{key}") for key in METRICS)
        found += [each for each in engine if fnmatchcase(each.key, pattern)]
    return tuple(found)


def is_pattern(name: str) -> bool:
    """Whether it may mean several."""
    return any(character in name for character in "*?[")


def policy_conflicts(tree: Mapping[str, object]) -> list[Finding]:
    """What does not go together in a policy, whose values need not be valid by themselves."""
    findings = [found for path, limits in _groups(tree) for found in _limits(path, limits)]
    allowed = tree.get("allow")
    for index, each in enumerate(allowed if isinstance(allowed, list) else []):
        name = each.get("metric") if isinstance(each, Mapping) else None
        if isinstance(name, str) and not known_metrics(name):
            findings.append(Finding(("allow", index, "metric"), _unknown(name)))
    return findings


def _groups(tree: Mapping[str, object]) -> Iterator[tuple[KeyPath, Mapping[object, object]]]:
    """Every group of limits by metric, with its path."""
    limits = tree.get("limits")
    if isinstance(limits, Mapping):
        yield ("limits",), limits
    cells = tree.get("cells")
    for index, entry in enumerate(cells if isinstance(cells, list) else []):
        limits = entry.get("limits") if isinstance(entry, Mapping) else None
        if isinstance(limits, Mapping):
            yield ("cells", index, "limits"), limits


def _limits(path: KeyPath, limits: Mapping[object, object]) -> Iterator[Finding]:
    if not limits:
        yield Finding(path, "must hold at least one metric, got none")
    for name, limit in limits.items():
        if not isinstance(name, str):
            continue
        place = (*path, name)
        metrics = known_metrics(name)
        if not metrics:
            yield Finding(place, _unknown(name), at="key")
        elif isinstance(limit, Mapping):
            if all(each is None for each in limit.values()):
                yield Finding(place, "must say worse_by, at_most or at_least, or off")
            yield from _worse_by(place, limit.get("worse_by"), metrics)
            for kind in ("at_most", "at_least"):
                yield from _bound((*place, kind), kind, limit.get(kind), metrics)


def _worse_by(place: KeyPath, written: object, metrics: tuple[Metric, ...]) -> Iterator[Finding]:
    if written is None:
        return
    place = (*place, "worse_by")
    if all(each.better is None for each in metrics):
        message = (
            f"neither more nor less of {metrics[0].key} is better, so nothing is worse; use "
            "at_most or at_least"
        )
        yield Finding(place, message, at="key")
        return
    by = share(written) if isinstance(written, str) else written
    falls = next((each.key for each in metrics if each.better == "higher"), None)
    if isinstance(by, int | float) and by >= 1 and falls is not None and isinstance(written, str):
        message = f"{falls} can't fall by 100% or more; less than that is meant"
        yield Finding(place, message)


def _bound(
    place: KeyPath, kind: str, written: object, metrics: tuple[Metric, ...]
) -> Iterator[Finding]:
    if written is None or isinstance(written, bool):
        return
    for each in metrics:
        if each.better not in (None, _MEANT_FOR[kind]):
            wanted = "more" if each.better == "higher" else "less"
            message = (
                f"{wanted} of {each.key} is better, so {kind} would forbid what is good; "
                f"{_OTHER[kind]} may be meant"
            )
            yield Finding(place, message, at="key")
            return
    if isinstance(written, int | float):
        units = sorted({each.unit for each in metrics})
        if len(units) > 1:
            message = f"the pattern means metrics in {', '.join(units)}: write a unit, or one each"
            yield Finding(place, message)
    elif isinstance(written, str) and is_amount(written):
        for each in metrics:
            if amount(written, each.unit) is None:
                yield Finding(place, _unit(each, written))
                return


def _unit(each: Metric, written: str) -> str:
    allowed = units_of(each.unit)
    if not allowed:
        return f"{each.key} is a plain number, got {quote(written)}"
    return f"{each.key} is in {', '.join(allowed)}, got {quote(written)}"


def _unknown(name: str) -> str:
    if is_pattern(name):
        return f"no metric fits the pattern {quote(name)}; `docs/metrics.md` lists them"
    meant = suggestion(name, METRICS)
    if meant is not None:
        return f"unknown metric; did you mean {meant!r}?"
    return "unknown metric; `docs/metrics.md` lists them, such as decode_rate, ttft_s"
