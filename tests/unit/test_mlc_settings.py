"""The options of MLC's runner, as a scenario names them."""

from __future__ import annotations

import pytest

from edgebench.harness.scenario.problems import suggestion
from edgebench.runners.base import LoadRequest
from edgebench.runners.mlc_settings import OPTIONS, choose


@pytest.mark.parametrize("name", ["num_threads", "thread", "nthreads"])
def test_a_mistaken_name_for_threads_suggests_threads(name: str) -> None:
    """Not what binds them to CPUs."""
    assert suggestion(name, OPTIONS) == "threads"


@pytest.mark.parametrize(("value", "binds"), [(True, True), (False, False), (None, False)])
def test_threads_are_bound_where_that_is_asked_for(value: bool | None, binds: bool) -> None:
    """By default they are not."""
    request = LoadRequest("model", 64, {"thread_binding": value})
    assert choose(request, built_by_edgebench=True, has_mlc_llm=False).thread_binding is binds
