"""Runs at their extremes, in a real browser: their pages stay whole, readable and honest."""

from __future__ import annotations

import pytest
from sample_run import MIB, handmade

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.trial import Trial
from edgebench.reports.write import write_reports

pytestmark = pytest.mark.browser

PAGE_BYTES = 5_000_000

NAMES = {
    "latin": "W" * 200,
    "path": "llama.cpp " + "/models/a-very-long-folder" * 7 + "/Q4_0.gguf",
    "markup": '"><img src=x onerror=pwned()><b>bold</b><script>pwned()</script>&amp;' * 3,
    "chinese": "端侧推理框架" * 34,
    "arabic": "نموذج صغير " * 18,
    "emoji": "模型 🚀 एक model " * 12,
}
VALUES = (50.1, 49.2, 52.3, 47.4, 50.5, 48.8)


def metrics(share=1.0, repetitions=6):
    """All that is drawn, of a variant that has a share of the usual rates."""
    some = VALUES[:repetitions]
    return {
        "decode_rate": [each * share for each in some],
        "prefill_rate": [each * 9 * share for each in some],
        "ttft_s": [each / 500 / share for each in some],
        "peak_rss_bytes": [each * 3 * MIB for each in some],
        "peak_anon_bytes": [each * MIB for each in some],
        "peak_file_bytes": [each * 2 * MIB for each in some],
    }


UNITS = {
    "peak_anon_bytes": "byte",
    "peak_file_bytes": "byte",
    "energy_per_token_j": "J/token",
    "mean_power_w": "W",
}


def written(folder, values, *, trials=None, **changes):
    """A run of one workload on disk, and its page."""
    record, made = handmade(values, units=UNITS, **changes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    lines = [each.model_dump_json() for each in (made if trials is None else trials)]
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return next(each for each in write_reports(folder) if each.suffix == ".html")


def failed(variant, block=0):
    return Trial(
        kind="generate",
        variant=variant,
        workload="w",
        block=block,
        repetition=0,
        phase="warmup",
        status="failed",
        started_at="2025-01-14T10:17:00Z",
        duration_s=1.0,
        failure=Failure(kind="crash", message="It ran out of memory.", signal="SIGKILL"),
    )


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The page of each extreme, made when it is first asked for."""
    root = tmp_path_factory.mktemp("extremes")
    made = {}

    def names():
        shares = {name: 1 - 0.1 * place for place, name in enumerate(NAMES.values())}
        values = {name: metrics(share) for name, share in shares.items()}
        return written(root / "names", values, scenario_name=NAMES["markup"])

    def one():
        return written(root / "one", {"alone": metrics()})

    def crowd():
        values = {f"variant {n}": metrics(0.5 + n / 500, 2) for n in range(500)}
        return written(root / "crowd", values)

    def nothing():
        values = {name: metrics() for name in ("A", "B", "C")}
        return written(root / "nothing", values, trials=[failed(each) for each in values])

    def once():
        values = {"A": metrics(1.0, 1), "B": metrics(0.7, 1)}
        return written(root / "once", values)

    def powerless():
        no_sensor = {"energy_per_token_j": [None] * 6, "mean_power_w": [None] * 6}
        values = {name: {**metrics(), **no_sensor} for name in ("A", "B")}
        return written(root / "powerless", values)

    makers = {each.__name__: each for each in (names, one, crowd, nothing, once, powerless)}

    def report(name):
        if name not in made:
            made[name] = makers[name]()
        return made[name]

    return report


EXTREMES = ("names", "one", "crowd", "nothing", "once", "powerless")


@pytest.mark.parametrize("width", [380, 1200])
@pytest.mark.parametrize("name", EXTREMES)
def test_no_page_complains_calls_out_or_is_wider_than_its_window(opened, reports, name, width):
    """No error, no request but the file's own, and no sideways scrolling of the whole page."""
    file = reports(name)
    page, seen = opened(file, width=width)
    assert seen["errors"] == []
    assert [url for url in seen["requests"] if not url.startswith("data:")] == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert file.stat().st_size < PAGE_BYTES


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [each for each in EXTREMES if each != "nothing"])
def test_no_label_of_a_bar_covers_its_value(opened, reports, name, scheme):
    """In the browser's own fonts: every text is inside of its picture, and beside the others."""
    page, _ = opened(reports(name), scheme=scheme)
    rows = page.locator("#pictures figure > svg").evaluate_all(
        "pictures => pictures.flatMap(svg => {"
        " const texts = [...svg.querySelectorAll('text')].map(each => {"
        "  const box = each.getBBox(), at = each.getCTM(), to = svg.getCTM().inverse();"
        "  const place = new DOMPoint(box.x, box.y).matrixTransform(to.multiply(at));"
        "  return [each.textContent, place.x, place.x + box.width, Math.round(place.y)]; });"
        " return texts; })"
    )
    assert len(rows) >= 8
    width = 350
    assert [text for text, left, right, _ in rows if left < -1 or right > width + 1] == []
    for (label, _, end, top), (value, begin, _, other) in zip(rows[::2], rows[1::2], strict=True):
        assert abs(top - other) <= 2
        assert end < begin, (label, value)


def test_markup_in_names_is_text(opened, reports):
    """No element comes out of a name, in tables, pictures or the data behind them."""
    page, seen = opened(reports("names"))
    assert page.locator("main img").count() == 0
    assert "onerror=pwned()" in page.locator("h1").inner_text()
    assert seen["errors"] == []


def test_a_crowd_is_drawn_in_part_and_listed_whole(opened, reports):
    """Forty bars, and a row of the table for each of the 500."""
    page, _ = opened(reports("crowd"))
    figure = page.locator("#pictures figure").first
    assert figure.locator("svg").first.locator("text").count() == 2 * 40
    assert "460 more variants are in the table" in figure.text_content()
    block = page.locator("#comparison .table").first
    block.get_by_role("button", name="Show all").click()
    assert block.locator("tbody tr").count() == 500


def test_where_all_failed_there_are_reasons_and_no_pictures(opened, reports):
    """An empty chart would only hide that nothing ran."""
    page, _ = opened(reports("nothing"))
    assert page.locator("#pictures").count() == 0
    assert page.locator("#roofline").count() == 0
    assert page.locator("#failures").inner_text().count("It ran out of memory.") >= 1
    assert "failed" in page.locator("#comparison table").first.inner_text()


def test_one_repetition_has_values_without_intervals(opened, reports):
    """And the page says that they are few."""
    page, _ = opened(reports("once"))
    texts = page.locator("#pictures figure > svg text").all_text_contents()
    assert not any("[" in text for text in texts)
    assert "50.1" in " ".join(page.locator("#pictures").first.all_text_contents())
    assert "few repetitions" in page.locator("#comparison").inner_text()


def test_missing_power_has_its_reason(opened, reports):
    """Nothing is shown as 0 W: why there is no figure is on the page."""
    page, _ = opened(reports("powerless"))
    text = page.content()
    assert "no such sensor" in text
    assert "0 J/token" not in page.locator("main").inner_text()
