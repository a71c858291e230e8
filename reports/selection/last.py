"""Remembers what was made of a report's data last, which several parts of a report ask for."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, TypeVar

from edgebench.reports.languages import current

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.reports.data import ReportData

T = TypeVar("T")


class Last(Generic[T]):
    """One result; it is made anew for other data, another question or another language."""

    def __init__(self) -> None:
        self._of: weakref.ref[ReportData] | None = None
        self._asked: object = None
        self._result: T | None = None

    def get(self, data: ReportData, question: object, make: Callable[[], T]) -> T:
        """The result that is remembered, or a new one.

        Args:
            data: the report's data, the very same object.
            question: what else the result depends on.
            make: makes it.
        """
        asked = (question, current())
        same = self._of is not None and self._of() is data and self._asked == asked
        if same and self._result is not None:
            return self._result
        made = make()
        # The data is held weakly: this must not keep a large run in memory.
        self._of, self._asked, self._result = weakref.ref(data, self._forget), asked, made
        return made

    def _forget(self, _reference: weakref.ref[ReportData]) -> None:
        self._of, self._asked, self._result = None, None, None
