"""What a gate does about broken limits: severities, allowances, and those that have expired."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from edgebench.harness.gate.model import Allowance, Check
from edgebench.harness.gate.wording import percent

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from edgebench.harness.gate.policy import Policy


@dataclass(slots=True)
class Allowances:
    """A policy's allowances on a day, and which of them were needed.

    Attributes:
        today: in UTC.
        policy: whose.
        needed: the indices of those that cover something, or would if they held.
    """

    today: dt.date
    policy: Policy
    needed: set[int] = field(default_factory=set)

    def settle(self, check: Check) -> Check:
        """A check with what the policy makes of it: its final status.

        Args:
            check: with the status fail, undecided or pass.
        """
        if check.status == "undecided":
            check = replace(check, undecided=True)
        if check.undecided and self.policy.undecided != "pass":
            severe = self.policy.undecided == "fail" and check.severity == "fail"
            check = replace(check, status="fail" if severe else "warn")
        elif check.status == "fail" and check.severity == "warn":
            check = replace(check, status="warn")
        return check if check.status in {"undecided", "pass"} else self._allowed(check)

    def _allowed(self, check: Check) -> Check:
        expired: Allowance | None = None
        for index, each in self._matching(check):
            if not _covers(each, check):
                continue
            self.needed.add(index)
            if each.until >= self.today:
                return replace(check, status="allowed", allowance=each)
            expired = each
        if expired is None:
            return check
        told = f"was allowed until {expired.until.isoformat()} ({expired.reason})"
        detail = "; ".join(part for part in (told, check.detail) if part)
        return replace(check, allowance=expired, detail=detail)

    def _matching(self, check: Check) -> Iterator[tuple[int, Allowance]]:
        for index, each in enumerate(self.policy.allow):
            if fnmatchcase(check.cell, each.cell) and fnmatchcase(check.metric, each.metric):
                yield index, Allowance(**each.model_dump())

    def unused(self, cells: Iterable[str], checks: Iterable[Check]) -> Iterator[str]:
        """A sentence for each allowance that has expired, or is not needed."""
        names, checked = list(cells), list(checks)
        for index, each in enumerate(self.policy.allow):
            which = f"allow[{index}] ({each.cell}, {each.metric}; {each.reason})"
            if each.until < self.today:
                yield f"{which} expired on {each.until.isoformat()}"
            elif not any(fnmatchcase(name, each.cell) for name in names):
                yield f"{which} fits no cell"
            elif index in self.needed:
                continue
            elif any(
                check.status in {"fail", "warn"} and fnmatchcase(check.cell, each.cell)
                and fnmatchcase(check.metric, each.metric)
                for check in checked
            ):  # fmt: skip
                up_to = "" if each.worse_by is None else f", up to {percent(each.worse_by)},"
                yield f"{which} does not reach{up_to} to what is broken there"
            else:
                yield f"{which} covers nothing that is broken, and may go"


def _covers(allowance: Allowance, check: Check) -> bool:
    """Whether it reaches so far: one with a `worse_by` only speaks of worsenings."""
    if allowance.worse_by is None:
        return True
    return check.kind == "worse_by" and (
        check.value is not None and check.value <= allowance.worse_by
    )
