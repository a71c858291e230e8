"""A profile of this machine, from files as kernels show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.device_profiles.probe import probe_profile


@pytest.mark.parametrize(("long_w", "short_w", "sustained"), [(125, 253, 125.0), (4095, 253, None)])
def test_a_limit_that_limits_nothing_is_no_sustained_power(
    tmp_path: Path, long_w: int, short_w: int, sustained: float | None
) -> None:
    """Boards set the limit for long above the one for short, so that nothing ever slows down."""
    zone = tmp_path / "class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    for index, (name, watts) in enumerate((("long_term", long_w), ("short_term", short_w))):
        (zone / f"constraint_{index}_name").write_text(f"{name}\n")
        (zone / f"constraint_{index}_power_limit_uw").write_text(f"{watts * 1_000_000}\n")
    power = probe_profile(sysfs=tmp_path, folder=Path("/")).power
    assert power.peak_w.value == short_w
    assert power.sustained_w.value == sustained
    if sustained is None:
        assert power.sustained_w.reason is not None
        assert "4095 W" in power.sustained_w.reason
