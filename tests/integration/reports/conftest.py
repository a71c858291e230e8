"""Made-up runs as pages, and a browser to open them in."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sample_quality import quality_sample

from edgebench.reports.data import load_report_data
from edgebench.reports.html import render_page
from edgebench.reports.languages import language

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
EVIL = '"><img src=x onerror=pwned()><script>pwned()</script><svg onload=pwned()>\u202e\x1b[1m'
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SUPPORT = Path(__file__).parents[2] / "support" / "sample_run.py"


@pytest.fixture(scope="session")
def sample_run():
    """The module that makes runs up."""
    spec = importlib.util.spec_from_file_location("edgebench_test_sample_run", SUPPORT)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def browser():
    """A browser of the module's own: two at once in one thread would wait for each other."""
    if CHROMIUM is None:
        reason = "no Chromium on the PATH; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def written(folder, tag="en"):
    """A run's folder as a page in a language."""
    file = folder / f"report.{tag}.html"
    with language(tag):
        file.write_text(render_page(load_report_data(folder)), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def report(sample_run, tmp_path_factory):
    folder = sample_run.sample().write(tmp_path_factory.mktemp("run"))
    return written(folder)


@pytest.fixture(scope="session")
def hostile_report(sample_run, tmp_path_factory):
    sample = sample_run.sample(blocks=5, changes={"scenario_name": EVIL, "notes": [EVIL]})
    named = {
        f"{name} {EVIL}": (variant.model_copy(update={"id": f"{name} {EVIL}"}), speed)
        for name, (variant, speed) in sample.variants.items()
    }
    workloads = [
        each.model_copy(update={"description": EVIL, "prompt_text": EVIL})
        for each in sample.workloads
    ]
    crash = (f"llama.cpp F16 threads=2 {EVIL}", "pp512-tg128")
    sample = replace(sample, variants=named, workloads=workloads, crash=crash)
    folder = sample.write(tmp_path_factory.mktemp("hostile"))
    return written(folder)


@pytest.fixture(scope="session")
def quality_report(tmp_path_factory):
    """Fourteen variants of four frameworks, with quality beside speed."""
    return written(quality_sample().write(tmp_path_factory.mktemp("quality")))


@pytest.fixture(scope="session")
def chinese_report(tmp_path_factory):
    """The same in Chinese."""
    return written(quality_sample().write(tmp_path_factory.mktemp("chinese")), "zh")


@pytest.fixture
def opened(browser):
    """Opens a report; gives the page, and what it complained about or asked for."""
    contexts = []

    def opened(file, *, width=1200, scheme="light", javascript=True):
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            java_script_enabled=javascript,
        )
        contexts.append(context)
        page = context.new_page()
        seen = {"errors": [], "requests": []}
        page.on("console", lambda message: seen["errors"].append(message.text))
        page.on("pageerror", lambda error: seen["errors"].append(str(error)))
        page.on("request", lambda request: seen["requests"].append(request.url))
        page.goto(file.as_uri())
        return page, seen

    yield opened
    for context in contexts:
        context.close()
