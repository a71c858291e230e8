"""A made-up run for the tests of the reports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

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
