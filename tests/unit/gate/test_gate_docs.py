"""docs/gate.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from edgebench.harness.gate.policy import DEFAULT_LIMITS, Policy
from edgebench.harness.gate.policy_file import parse_policy

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")


def test_every_policy_on_the_page_is_right() -> None:
    """What people copy can be read."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    policies = [block for block in blocks if "schema_version" in block]
    assert len(policies) == 2
    for text in policies:
        parse_policy(text, filename="docs/gate.md")


def test_the_default_policy_is_the_one_on_the_page() -> None:
    """Each metric with its limit, and no other."""
    table = PAGE.partition("### The default policy")[2]
    rows = re.findall(r"^\| (`.*`) \| (\d+) % \|$", table, re.MULTILINE)
    told = {key: f"{by}%" for keys, by in rows for key in re.findall(r"`(\w+)`", keys)}
    assert told == dict(DEFAULT_LIMITS)


def test_every_key_of_a_policy_is_on_the_page() -> None:
    """Nothing can be written that is not explained."""
    for key in Policy.model_fields:
        assert f"`{key}`" in PAGE or f"{key}:" in PAGE
