"""The published rows of the table of platforms, held against what their memory can give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import Scale, number, percent
from edgebench.reports.framework_choice import (
    RATE,
)
from edgebench.reports.languages import _
from edgebench.reports.languages.words import paragraph
from edgebench.reports.physics import (
    published_bytes_per_token,
    published_size,
)
from edgebench.reports.published.cells import (
    Footnotes,
    chip,
    quoted,
)
from edgebench.reports.published.load import published_platforms
from edgebench.reports.table_model import Row, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.reports.physics import PlatformCheck
    from edgebench.reports.table_model import Column

POWER, PER_WATT, READ = "mean_power_w", "rate_per_watt", "weight_bytes_per_token"
IMPLIED, PEAK_SHARE = "implied_bandwidth", "bandwidth_share"

GIGABYTES = Scale("GB", 1e9)
GIGABYTES_PER_S = Scale("GB/s", 1e9)


def published_row(
    check: PlatformCheck, place: int, columns: Sequence[Column], footnotes: Footnotes
) -> Row:
    """One published platform.

    Args:
        check: its figures, and what they say of its memory.
        place: of the row in the table.
        columns: of the table.
        footnotes: of the table; why a figure can't be is one.
    """
    table, row = published_platforms(), check.row
    read = published_bytes_per_token()
    text = verdict_text(check)
    by_key = {
        "platform": Value(row.platform, origin="published", document=table.document),
        "model": Value(
            f"{table.model}, {table.quantization}",
            origin="published",
            document=table.document,
        ),
        RATE: quoted(row.decode_rate, table.document),
        POWER: quoted(row.power, table.document),
        PER_WATT: quoted(row.rate_per_watt, table.document),
        READ: _computed(read, GIGABYTES, "byte", table.document),
        IMPLIED: _computed(check.bytes_per_s, GIGABYTES_PER_S, "byte/s", table.document),
        PEAK_SHARE: Value(
            number(100 * check.share, 0),
            sort=check.share,
            unit="1",
            chip=_("computed"),
            origin="published",
            document=table.document,
            footnote=footnotes.number(text),
            reason=text,
        ),
    }
    wrong = {
        "impossible": (_("above the peak"),),
        "impossible by its own size": (_("above the peak by its own size"),),
        "possible": (),
    }[check.verdict]
    return Row(
        variant=row.device,
        engine="",
        place=place,
        repetitions=0,
        remarks=(chip(table.document), *wrong),
        failed=False,
        values=tuple(by_key[each.key] for each in columns),
        published=True,
    )


def _computed(value: float, scale: Scale, unit: str, document: str) -> Value:
    return Value(
        number(scale.of(value), 2 if unit == "byte" else 1),
        sort=value,
        unit=unit,
        chip=_("computed"),
        origin="published",
        document=document,
    )


def verdict_text(check: PlatformCheck) -> str:
    """What a published rate says against the device's memory, in a sentence or two."""
    row = check.row
    took = _(
        "{rate} tokens/s × {read} GB a token = {taken} GB/s, {share} of the theoretical peak of "
        "{peak} GB/s ({kind}; {source}).",
        rate=row.decode_rate.text,
        read=number(published_bytes_per_token() / 1e9, 2),
        taken=number(check.bytes_per_s / 1e9, 1),
        share=percent(check.share),
        peak=number(row.memory.bytes_per_s / 1e9, 1),
        kind=row.memory.kind.said(),
        source=row.memory.source.said(),
    )
    if check.verdict == "impossible":
        return paragraph(
            (
                took,
                _(
                    "With the memory that the maker specifies this can't be, and the KV cache is "
                    "not even counted."
                ),
            )
        )
    if check.verdict == "impossible by its own size":
        return paragraph(
            (
                took,
                _(
                    "With the size that the document itself gives, {size} GB, it would be {share}, "
                    "which can't be.",
                    size=number(published_size() / 1e9, 1),
                    share=percent(check.share_by_size),
                ),
            )
        )
    return took
