"""The report as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from edgebench.reports import facts, page_words
from edgebench.reports.cell_padding import labelled, marked, padding, quoted_remarks
from edgebench.reports.data import build_report_data
from edgebench.reports.drill import Places, log_link, run_folder
from edgebench.reports.format import duration
from edgebench.reports.languages import _, current, plural
from edgebench.reports.metered import meter_facts
from edgebench.reports.page_sections import sections
from edgebench.reports.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.run import Run
    from edgebench.reports.data import ReportData
    from edgebench.reports.plots import Plot

STYLES = ("style.css", "tables.css", "parts.css", "print.css")
SCRIPTS = ("page.js", "copy.js", "tables.js", "drill.js")
"""In the order in which they stand in the page."""


def render_html(run: Run) -> str:
    """A run as one self-contained HTML page, in the current language."""
    return render_page(build_report_data(run))


def render_page(data: ReportData, folder: Path | None = None) -> str:
    """The data of a report as one self-contained HTML page, in the current language.

    Args:
        data: the report's data.
        folder: where the page will lie, so that it can say where its runs and their logs are; None
            where it is beside its run.
    """
    environment = _environment()
    style = "\n".join(_template_text(environment, name) for name in STYLES)
    parts = "\n".join(_template_text(environment, name) for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}\n}})();\n'
    page = sections(data, folder)
    return environment.get_template("report.html.j2").render(
        page.context,
        groups=page.groups,
        titles=page.titles,
        data=data,
        record=data.record,
        language=current(),
        places=Places(data),
        log_link=lambda failure: log_link(data, failure, folder),
        run_folder=lambda part: run_folder(Path(part.path), folder),
        quoted=page_words.quoted(),
        style=Markup(style),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704 - our own files
        messages=Markup(page_words.messages_json()),  # noqa: S704 - holds no <
        behind=Markup(page.behind),  # noqa: S704 - holds no <
        policy=_policy(style, script),
    )


def render_alone(template: str, context: Mapping[str, object]) -> str:
    """A page that is no report of a run, with the report's style; it has no script.

    Args:
        template: its file.
        context: what the template reads, beside `style`, `policy` and `language`.
    """
    environment = _environment()
    style = "\n".join(_template_text(environment, name) for name in STYLES)
    return environment.get_template(template).render(
        context,
        language=current(),
        style=Markup(style),  # noqa: S704 - our own files
        policy=_policy(style, ""),
    )


@cache
def _environment() -> Environment:
    """Made once: to compile the templates takes longer than to fill them."""
    environment = Environment(
        loader=PackageLoader("edgebench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    environment.filters |= {
        "duration": duration,
        "svg": _svg,
        "trusted": _trusted,
        "filled": _filled,
        "capital": _capital,
    }
    environment.globals |= {
        "_": _,
        "plural": plural,
        "padding": padding,
        "marked": marked,
        "labelled": labelled,
        "quoted_remarks": quoted_remarks,
        "moment": facts.moment,
        "machine_facts": facts.machine_facts,
        "device_facts": facts.device_facts,
        "bandwidth_facts": facts.bandwidth_facts,
        "meter_facts": meter_facts,
        "machine_warnings": facts.machine_warnings,
        "given_by": page_words.given_by,
        "finding_words": page_words.finding_words,
        "workload_text": page_words.workload_text,
        "strong": _strong,
        "code": _code,
        "link": _link,
        "anchor": _anchor,
    }
    return environment


def _cleaned(value: object) -> object:
    """What every value passes on its way into the page, before it is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value)
    return value


def _svg(plot: Plot) -> Markup:
    # Written by ElementTree, which escapes every name in it.
    return Markup(plot.svg)  # noqa: S704


def _trusted(svg: str) -> Markup:
    """A drawing of our own, written by ElementTree too."""
    return Markup(svg)  # noqa: S704


def _filled(message: str, **fields: object) -> Markup:
    """A message that was looked up, with markup of ours in its fields; all else is escaped."""
    safe = {name: escape(_cleaned(value)) for name, value in fields.items()}
    return escape(message).format(**safe)


def _capital(text: str) -> str:
    """The text with a capital first letter; an option's name is no sentence and stays."""
    return text if "_" in text else text[:1].upper() + text[1:]


def _strong(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(clean(text))


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(clean(text))


def _link(section: str, text: str) -> Markup:
    return Markup('<a href="#{}">{}</a>').format(section, text)


def _anchor(address: str, text: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, clean(text))


def _template_text(environment: Environment, name: str) -> str:
    loader = environment.loader
    assert loader is not None
    text, _file, _changed = loader.get_source(environment, name)
    return text


def _policy(style: str, script: str) -> str:
    """A content security policy under which the page can reach nothing."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
