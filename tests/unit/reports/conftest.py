"""A made-up run for the tests of the reports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from edgebench.harness.results.run import Run
from edgebench.reports.data import build_report_data, load_report_data

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


@pytest.fixture(scope="session")
def run_folder(sample_run, tmp_path_factory):
    """The sample run on disk; not to be changed."""
    return sample_run.sample().write(tmp_path_factory.mktemp("runs") / "sample")


@pytest.fixture(scope="session")
def data(run_folder):
    """The sample run, ready to be shown."""
    return load_report_data(run_folder)


@pytest.fixture
def by_hand(sample_run):
    """Makes the report's data of a run of one workload with exactly the given values."""

    def make(values, *, damaged_lines=0, trials=(), **changes):
        record, made = sample_run.handmade(values, **changes)
        run = Run(Path("made-up"), record, (*made, *trials), damaged_lines)
        return build_report_data(run)

    return make
