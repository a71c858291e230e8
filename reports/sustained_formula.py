"""The documents' formula for the rate that a device keeps up, beside what was measured.

actual rate = theoretical rate x min(1, sustained power / TDP). It takes the rate as proportional to
the power, and the TDP as what the burst draws; it knows nothing of memory, which is what decoding
mostly waits for. So it is shown beside the measurement, never in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.format import percent, quantity
from edgebench.reports.languages import _
from edgebench.reports.languages.words import paragraph
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import ReportData

RATE = "token/s"


@dataclass(frozen=True, slots=True)
class Formula:
    """What the formula gives for one variant.

    Attributes:
        rate: tokens/s, or None where a part of it is not known.
        text: how it came about and how far off it is; or why there is none. A sentence.
    """

    rate: float | None
    text: str


def by_power(theoretical: float, sustained_w: float, tdp_w: float) -> float:
    """The documents' formula: the rate that is kept up, in the unit of `theoretical`.

    Source: the platform comparison of the seed documents, on power and throttling.
    """
    return theoretical * min(1.0, sustained_w / tdp_w)


def formula_of(data: ReportData, workload: str, variant: str) -> Formula | None:
    """The formula for one stretch of sustained work.

    Returns:
        None where the stretch has no burst rate to begin with, or none that can be right.
    """
    burst = _median(data.summary(workload, variant, "burst_rate"))
    if burst is None or data.is_broken(workload, variant):
        return None
    record = data.part_of(variant).record
    tdp = _tdp(record)
    if tdp is None:
        text = _(
            "No rate by the formula (burst rate × min(1, sustained power / TDP)): the TDP is not "
            "known; name the device's profile (device.profile), or give power.tdp_w."
        )
        return Formula(None, text)
    power, whose = _power(data, record, workload, variant)
    if power is None and _is_estimated(data, workload, variant):
        text = _(
            "No rate by the formula (burst rate × min(1, sustained power / TDP)): the power is "
            "estimated, from the TDP itself, and no profile says what is sustained."
        )
        return Formula(None, text)
    if power is None:
        text = _(
            "No rate by the formula (burst rate × min(1, sustained power / TDP)): the sustained "
            "power was not measured, and no profile says it."
        )
        return Formula(None, text)
    rate = by_power(burst, power, tdp)
    text = _(
        "By the formula, predicted: {burst} × min(1, {power} / {tdp}) = {rate}; the sustained "
        "power is {whose}, the TDP that of {device}.",
        burst=quantity(burst, RATE),
        power=quantity(power, "W"),
        tdp=quantity(tdp, "W"),
        rate=quantity(rate, RATE),
        whose=whose,
        device=_device(record),
    )
    measured = _median(data.summary(workload, variant, "sustained_rate"))
    return Formula(rate, paragraph(filter(None, (text, _off(rate, measured)))))


def _off(rate: float, measured: float | None) -> str:
    if not measured:
        return ""
    off = rate / measured - 1
    kept = quantity(measured, RATE)
    if off > 0:
        return _("Measured: {rate}; the formula is {share} above.", rate=kept, share=percent(off))
    if off < 0:
        return _("Measured: {rate}; the formula is {share} below.", rate=kept, share=percent(-off))
    return _("Measured: {rate}, the same.", rate=kept)


def _tdp(record: RunRecord) -> float | None:
    if record.device is not None and record.device.tdp_w:
        return record.device.tdp_w
    power = record.scenario.get("power")
    given = power.get("tdp_w") if isinstance(power, dict) else None
    return float(given) if isinstance(given, int | float) and given > 0 else None


def _device(record: RunRecord) -> str:
    device = record.device
    if device is not None and device.tdp_w:
        return one_line(device.profile_name or device.profile or _("the profile"))
    return _("the scenario")


def _power(
    data: ReportData, record: RunRecord, workload: str, variant: str
) -> tuple[float | None, str]:
    """Watts, and where they are from: measured, or else the profile's.

    An estimate is a share of the TDP: held against the TDP it says what was put into it.
    """
    watts = _median(data.summary(workload, variant, "sustained_power_w"))
    if watts is not None and not _is_estimated(data, workload, variant):
        return watts, _("measured")
    device = record.device
    if device is not None and device.sustained_w:
        return device.sustained_w, _("the profile's")
    return None, ""


def _is_estimated(data: ReportData, workload: str, variant: str) -> bool:
    summary = data.summary(workload, variant, "sustained_power_w")
    return summary is not None and summary.median is not None and summary.source == "estimated"


def _median(summary: Summary | None) -> float | None:
    return None if summary is None else summary.median
