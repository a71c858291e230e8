"""Devices that are not at hand: predicted rows of the table of platforms, and of the CSV.

Nothing else of a report looks at them: what wins, what dominates and what is recommended is taken
from cells of the run, and these are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.predict.efficiency import DECODE, OWN_HIGH, OWN_LOW, own_decode
from edgebench.harness.predict.estimate import Estimate
from edgebench.harness.predict.memory import reserved_bytes
from edgebench.reports.format import NOT_MEASURED, decimals_for, number, percent
from edgebench.reports.languages import N_, _
from edgebench.reports.table_model import Row, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.predict.device import DeviceFacts
    from edgebench.harness.predict.efficiency import Efficiency
    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.published.cells import Footnotes
    from edgebench.reports.table_model import Column

RATE, POWER, PER_WATT = "decode_rate", "mean_power_w", "rate_per_watt"
READ, IMPLIED, PEAK_SHARE = "weight_bytes_per_token", "implied_bandwidth", "bandwidth_share"

ORIGIN: Final = "predicted"

KINDS = {
    "phone": N_("phone"),
    "board": N_("board"),
    "laptop": N_("laptop"),
    "desktop": N_("desktop computer"),
    "server": N_("server"),
    "vm": N_("virtual machine"),
}


@dataclass(frozen=True, slots=True)
class PredictedDevice:
    """What is expected of a variant of the run on a device that is not at hand.

    Attributes:
        facts: of the device, by its profile.
        variant: of the run.
        workload: whose rate calibrates it and whose memory is needed.
        efficiency: what is expected to be reached of the theoretical bandwidth.
        own: whether that is taken from the run.
        read: bytes of weights a token.
        rate, power, per_watt, implied: in tokens/s, W, tokens/s/W and bytes/s; the last of the
            weights alone, as in the rows that are measured.
        fits: whether the memory that the variant took here is there too; None where not known.
    """

    facts: DeviceFacts
    variant: VariantRecord
    workload: str
    efficiency: Efficiency
    own: bool
    read: Estimate
    rate: Estimate
    power: Estimate
    per_watt: Estimate
    implied: Estimate
    fits: bool | None


def predicted_devices(
    data: ReportData, variant: VariantRecord | None, workload: str
) -> tuple[PredictedDevice, ...]:
    """Every device that the report was asked to predict.

    Args:
        data: the report's data.
        variant: the one that is predicted: the fastest; None where nothing was measured.
        workload: of that variant.
    """
    if variant is None or not workload:
        return ()
    return tuple(_predicted(data, each, variant, workload) for each in data.predicted)


def _predicted(
    data: ReportData, facts: DeviceFacts, variant: VariantRecord, workload: str
) -> PredictedDevice:
    efficiency, own = _efficiency(data, facts, variant, workload)
    read = _read(data, variant)
    fits = _fits(data, facts, variant, workload)
    if fits is False:
        rate = Estimate.missing("token/s", _("the memory that it took here is not there"))
    elif read.low is None:
        rate = Estimate.missing("token/s", read.reason)
    elif facts.bandwidth.value is None:
        rate = Estimate.missing(
            "token/s",
            _("the bandwidth of its memory is not known: {why}", why=facts.bandwidth.said),
        )
    else:
        peak = facts.bandwidth.value
        taken = read.low + _cached(data, variant, workload)
        rate = Estimate.of("token/s", peak * efficiency.low / taken, peak * efficiency.high / taken)
    power = facts.sustained_w.value
    watts = (
        Estimate.of("W", power)
        if power is not None
        else Estimate.missing(
            "W", _("its sustained power is not known: {why}", why=facts.sustained_w.said)
        )
    )
    return PredictedDevice(
        facts=facts,
        variant=variant,
        workload=workload,
        efficiency=efficiency,
        own=own,
        read=read,
        rate=rate,
        power=watts,
        per_watt=rate.times(1 / power, unit="token/s/W")
        if power is not None
        else Estimate.missing("token/s/W", watts.reason),
        implied=rate.times(read.low, unit="byte/s")
        if read.low is not None
        else Estimate.missing("byte/s", read.reason),
        fits=fits,
    )


def _read(data: ReportData, variant: VariantRecord) -> Estimate:
    found = data.by_variant[variant.id].get(READ)
    if found is None or found.median is None:
        why = _("the runner does not tell how many bytes of weights a token reads")
        return Estimate.missing("byte", why)
    return Estimate.of("byte", found.median)


def _cached(data: ReportData, variant: VariantRecord, workload: str) -> float:
    """Bytes of keys and values that a token of the workload reads; 0 where not told."""
    found = data.summary(workload, variant.id, "kv_bytes_per_token")
    return 0.0 if found is None or found.median is None else found.median


def _efficiency(
    data: ReportData, facts: DeviceFacts, variant: VariantRecord, workload: str
) -> tuple[Efficiency, bool]:
    """The run's own where its utilisation of the measured bandwidth is known and can be."""
    mbu = data.summary(workload, variant.id, "mbu")
    cell = data.cell(workload, variant.id)
    known = mbu is not None and mbu.median is not None and "above_bandwidth" not in cell.flags
    if known and mbu is not None and mbu.median is not None and facts.processor == "cpu":
        low = mbu.median if mbu.ci_low is None else mbu.ci_low
        high = mbu.median if mbu.ci_high is None else mbu.ci_high
        if 0 < low <= high:
            return own_decode(low, high), True
    return DECODE[facts.processor], False


def _fits(
    data: ReportData, facts: DeviceFacts, variant: VariantRecord, workload: str
) -> bool | None:
    peak = data.summary(workload, variant.id, "peak_rss_bytes")
    ram = facts.ram.value
    if ram is None or peak is None or peak.median is None:
        return None
    return peak.median <= ram - reserved_bytes(facts.kind, ram)


def predicted_row(
    found: PredictedDevice,
    name: str,
    model: str,
    place: int,
    columns: Sequence[Column],
    footnotes: Footnotes,
) -> Row:
    """A row of the table of platforms.

    Args:
        found: what is expected.
        name: of the framework.
        model: with its quantisation.
        place: of the row.
        columns: of the table.
        footnotes: of the table.
    """
    scales = {each.key: each.scale for each in columns}
    rests_on = None if found.rate.low is None else footnotes.number(efficiency_text(found))
    share = Estimate.of("1", found.efficiency.low, found.efficiency.high)
    estimates = {
        RATE: found.rate,
        POWER: found.power,
        PER_WATT: found.per_watt,
        READ: found.read,
        IMPLIED: found.implied,
        PEAK_SHARE: share if found.rate.low is not None else found.rate,
    }
    by_key = {
        "platform": Value(_(KINDS.get(found.facts.kind, found.facts.kind)), origin=ORIGIN),
        "model": Value(model, origin=ORIGIN),
        **{
            key: _value(each, scales[key], footnotes, rests_on if key == RATE else None)
            for key, each in estimates.items()
        },
    }
    remarks = [_("predicted")]
    if found.fits is False:
        remarks.append(_("does not fit"))
    return Row(
        variant=one_line(found.facts.name),
        engine=f"{name} · {one_line(found.variant.id)}",
        place=place,
        repetitions=0,
        remarks=tuple(remarks),
        failed=False,
        values=tuple(by_key[each.key] for each in columns),
        predicted=True,
    )


def _value(estimate: Estimate, scale: Scale, footnotes: Footnotes, footnote: int | None) -> Value:
    if estimate.low is None or estimate.high is None:
        missing = footnotes.missing(estimate.reason)
        return Value(missing.text, footnote=missing.footnote, reason=missing.reason, origin=ORIGIN)
    low, high = scale.of(estimate.low), scale.of(estimate.high)
    decimals = decimals_for((low + high) / 2, low, high) if high > low else decimals_for(low)
    first, last = number(low, decimals), number(high, decimals)
    return Value(
        first if first == last else f"{first}–{last}",
        sort=(estimate.low + estimate.high) / 2,
        low=estimate.low,
        high=estimate.high,
        unit=estimate.unit,
        source=ORIGIN,
        chip=_("predicted"),
        footnote=footnote,
        reason=footnotes.texts[footnote - 1] if footnote else "",
        origin=ORIGIN,
    )


def efficiency_text(found: PredictedDevice) -> str:
    """What an expected rate rests on."""
    low, high = percent(found.efficiency.low), percent(found.efficiency.high)
    bandwidth = found.facts.bandwidth.value
    peak = NOT_MEASURED if bandwidth is None else number(bandwidth / 1e9, 1)
    if found.own:
        return _(
            "Predicted from this run: it uses the bandwidth that was measured here to a share, and "
            "reading alone reaches {least} to {most} of a theoretical peak; together {low} to "
            "{high} of {peak} GB/s.",
            least=percent(OWN_LOW),
            most=percent(OWN_HIGH),
            low=low,
            high=high,
            peak=peak,
        )
    return _(
        "Predicted from figures of other devices, which reach {low} to {high} of their memory's "
        "theoretical peak; here {peak} GB/s.",
        low=low,
        high=high,
        peak=peak,
    )


def predicted_meaning() -> str:
    """What the remark on a predicted row means."""
    return _(
        "computed for a device that is not at hand, from its profile: not measured, a range and no "
        "interval, and no part of any choice or comparison"
    )


def unfit_meaning() -> str:
    """What it means that a model does not fit."""
    return _(
        "the memory that the variant took at its peak in this run is more than the device has when "
        "others have theirs"
    )


def csv_figures(found: PredictedDevice) -> tuple[tuple[str, Estimate], ...]:
    """What a CSV says of a predicted device, by metric."""
    return ((RATE, found.rate), (POWER, found.power), (PER_WATT, found.per_watt))
