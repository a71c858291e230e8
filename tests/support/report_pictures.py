"""The pictures of a report that the README shows.

python tests/support/report_pictures.py results/smollm2-135m/RUN_ID/report.html docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTH = 1120
PICTURES = ("report.png", "recommendation.png", "samples.png")


def take(browser: Browser, report: Path, folder: Path) -> list[Path]:
    """Take all pictures of a report.

    Args:
        browser: Chromium.
        report: the HTML file.
        folder: where the pictures go, under the names of `PICTURES`.
    """
    light = browser.new_page(viewport={"width": WIDTH, "height": 1500}, color_scheme="light")
    light.goto(report.resolve().as_uri())
    light.screenshot(path=folder / "report.png")
    light.locator("#recommendation").scroll_into_view_if_needed()
    light.locator("#recommendation").screenshot(path=folder / "recommendation.png")
    light.close()
    dark = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="dark")
    dark.goto(report.resolve().as_uri())
    dark.locator("#comparison td[data-at]").first.click()
    dark.locator("dialog[open]").wait_for()
    dark.screenshot(path=folder / "samples.png")
    dark.close()
    return [folder / name for name in PICTURES]


def main() -> None:
    """Take them of the report that is named on the command line."""
    from playwright.sync_api import sync_playwright

    report, folder = map(Path, sys.argv[1:])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking"],
        )
        take(browser, report, folder)
        browser.close()


if __name__ == "__main__":
    main()
