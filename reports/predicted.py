"""Devices that are not at hand: predicted rows of the table of platforms, and of the CSV.

Nothing else of a report looks at them: what wins, what dominates and what is recommended is taken
from cells of the run, and these are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.bandwidth import for_threads
from edgebench.harness.mbu import roof_of, threads_of
from edgebench.harness.predict.efficiency import (
    OWN_HIGH,
    OWN_LOW,
    decode_efficiency,
    own_decode,
)
from edgebench.harness.predict.estimate import Estimate
from edgebench.harness.predict.memory import reserved_bytes
from edgebench.reports.format import NOT_MEASURED, decimals_for, number, percent
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import commas, paragraph
from edgebench.reports.table import flag_text
from edgebench.reports.table_model import Row, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.predict.device import DeviceFacts, Known
    from edgebench.harness.predict.efficiency import Efficiency
    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.published.cells import Footnotes
    from edgebench.reports.table_model import Column

RATE, POWER, PER_WATT = "decode_rate", "mean_power_w", "rate_per_watt"
READ, IMPLIED, PEAK_SHARE = "weight_bytes_per_token", "implied_bandwidth", "bandwidth_share"

ORIGIN: Final = "predicted"

_UNSTEADY: Final = frozenset(
    {"noisy", "contended", "unstable_warmup", "throttled", "quick", "above_bandwidth"}
)
"""Flags of cells that calibrate nothing."""

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
        name: what it is called and which processor it is; with its key where another one is
            called so too.
        variant: of the run.
        workload: whose rate calibrates it and whose memory is needed.
        efficiency: what is expected to be reached of the theoretical bandwidth.
        own: whether that is taken from the run.
        doubt: why it is not, where the run has a utilisation of its own; empty else.
        read: bytes of weights a token.
        rate, power, per_watt, implied: in tokens/s, W, tokens/s/W and bytes/s. Per watt of the
            sustained power, of the rate that is left at that power; the last of the weights alone,
            as in the rows that are measured.
        fits: whether the memory that the variant took here is there too; None where not known.
    """

    facts: DeviceFacts
    name: str
    variant: VariantRecord
    workload: str
    efficiency: Efficiency
    own: bool
    doubt: str
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
    names = [each.name for each in data.predicted]
    return tuple(
        _predicted(
            data,
            each,
            _named(each, alone=names.count(each.name) == 1),
            variant,
            workload,
        )
        for each in data.predicted
    )


def _predicted(
    data: ReportData, facts: DeviceFacts, name: str, variant: VariantRecord, workload: str
) -> PredictedDevice:
    efficiency, own, doubt = _efficiency(data, facts, variant, workload)
    read = _read(data, variant)
    fits = _fits(data, facts, variant, workload)
    if fits is False:
        rate = Estimate.missing("token/s", _("the memory that it needs is not there"))
    elif read.low is None:
        rate = Estimate.missing("token/s", read.reason)
    elif facts.bandwidth.value is None:
        rate = Estimate.missing(
            "token/s",
            _("the bandwidth of its memory is not known: {why}", why=_said(facts.bandwidth)),
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
            "W", _("its sustained power is not known: {why}", why=_said(facts.sustained_w))
        )
    )
    return PredictedDevice(
        facts=facts,
        name=name,
        variant=variant,
        workload=workload,
        efficiency=efficiency,
        own=own,
        doubt=doubt,
        read=read,
        rate=rate,
        power=watts,
        per_watt=rate.times(facts.share_once_hot / power, unit="token/s/W")
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
) -> tuple[Efficiency, bool, str]:
    """The run's own where its utilisation of the measured bandwidth is known and says something."""
    general = decode_efficiency(facts)
    mbu = data.summary(workload, variant.id, "mbu")
    if mbu is None or mbu.median is None or facts.processor != "cpu":
        return general, False, ""
    flags = [each for each in data.cell(workload, variant.id).flags if each in _UNSTEADY]
    if flags:
        return general, False, commas(flag_text(each) for each in flags)
    if mbu.ci_low is None or mbu.ci_high is None or not 0 < mbu.ci_low <= mbu.ci_high:
        return general, False, _("without an interval")
    record = data.part_of(variant.id).record
    roof = roof_of(record, variant)
    cores = record.machine.physical_cpus or record.machine.logical_cpus
    if record.machine.affinity:
        cores = min(cores, len(record.machine.affinity))
    threads = threads_of(variant.effective_options) or (roof.threads if roof else 0)
    if threads < cores:
        return general, False, _("not of all cores")
    roof = roof or for_threads(record.bandwidth, threads)
    spread = roof.bytes_per_s / max(roof.samples) if roof else 1.0
    measured = facts.bandwidth.measured
    return own_decode(mbu.ci_low, mbu.ci_high, of_measured=measured, spread=spread), True, ""


def _fits(
    data: ReportData, facts: DeviceFacts, variant: VariantRecord, workload: str
) -> bool | None:
    """Whether its peak here fits there; its file and what a token reads are the least of it."""
    ram = facts.ram.value
    if ram is None:
        return None
    room = ram - reserved_bytes(facts.kind, ram)
    peak = data.summary(workload, variant.id, "peak_rss_bytes")
    of_file = (data.by_variant[variant.id].get(key) for key in (READ, "model_bytes"))
    known = [each.median for each in (peak, *of_file) if each is not None and each.median]
    if any(each > room for each in known):
        return False
    return None if peak is None or peak.median is None else True


def _named(facts: DeviceFacts, *, alone: bool) -> str:
    processor = facts.processor.upper()
    return f"{facts.name} ({processor if alone else f'{facts.key}, {processor}'})"


def _said(known: Known) -> str:
    """What a profile says; commands in it are marked as a terminal has them."""
    return known.said.replace("`", "")


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
        variant=one_line(found.name),
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
    if high > low:
        # A range that wide has no more than two digits to say.
        first, last = (number(*_two_digits(each)) for each in (low, high))
    else:
        first = last = number(low, max(decimals_for(low), _decimals(low)))
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


def _decimals(value: float) -> int:
    """Decimals that leave two digits of a number: the low end of a range is not to look like 0."""
    return 0 if value <= 0 else max(0, 1 - math.floor(math.log10(value)))


def _two_digits(value: float) -> tuple[float, int]:
    """A number rounded to two digits that count, and its decimals."""
    if value <= 0:
        return value, 0
    rounded = round(value, 1 - math.floor(math.log10(value)))
    # Rounding up may have made it a digit longer.
    return rounded, _decimals(rounded)


def efficiency_text(found: PredictedDevice) -> str:
    """What an expected rate rests on."""
    low, high = percent(found.efficiency.low), percent(found.efficiency.high)
    bandwidth = found.facts.bandwidth.value
    peak = NOT_MEASURED if bandwidth is None else number(bandwidth / 1e9, 1)
    figures = {"low": low, "high": high, "peak": peak}
    if found.own and found.facts.bandwidth.measured:
        return _(
            "Predicted from this run, which uses {low} to {high} of the bandwidth that was "
            "measured on its machine; there {peak} GB/s, measured and not a theoretical peak.",
            **figures,
        )
    if found.own:
        return _(
            "Predicted from this run: it uses the bandwidth that was measured here to a share, and "
            "reading alone reaches {least} to {most} of a theoretical peak; together {low} to "
            "{high} of {peak} GB/s.",
            least=percent(OWN_LOW),
            most=percent(OWN_HIGH),
            **figures,
        )
    if found.facts.bandwidth.measured:
        text = _(
            "Predicted from figures of other devices: {low} to {high} of a measured bandwidth; "
            "here {peak} GB/s, measured and not a theoretical peak.",
            **figures,
        )
    else:
        text = _(
            "Predicted from published rates of other devices, of which {inside} of {count} reach "
            "{low} to {high} of their memory's theoretical peak; here {peak} GB/s.",
            inside=found.efficiency.inside,
            count=found.efficiency.published,
            **figures,
        )
    if not found.doubt:
        return text
    doubt = _("This run's own share of the bandwidth is not used: {why}.", why=found.doubt)
    return paragraph((text, doubt))


def predicted_meaning() -> str:
    """What the remark on a predicted row means."""
    return _(
        "computed for a device that is not at hand, from its profile: not measured, a range and no "
        "interval, and no part of any choice or comparison"
    )


def unfit_meaning() -> str:
    """What it means that a model does not fit."""
    return _(
        "the memory that the variant needs, by its peak in this run or by its weights alone, is "
        "more than the device has when others have theirs"
    )


def csv_figures(found: PredictedDevice) -> tuple[tuple[str, Estimate], ...]:
    """What a CSV says of a predicted device, by metric."""
    return ((RATE, found.rate), (POWER, found.power), (PER_WATT, found.per_watt))
