"""The profile that a scenario names, and what of it a run uses and keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.devices.power import PowerSettings
from edgebench.harness.device_profiles.files import find_profile
from edgebench.harness.errors import ScenarioError
from edgebench.harness.results.device import DeviceRecord

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.device_profiles.model import DeviceProfile
    from edgebench.harness.scenario.device import Device, Power


def profile_of(device: Device, base: Path) -> DeviceProfile | None:
    """The profile that a scenario names; None where it names none.

    Args:
        device: of the scenario.
        base: the folder that a relative path of a profile's file is relative to.

    Raises:
        ProfileError: there is no such profile, or it is wrong.
    """
    return None if device.profile is None else find_profile(device.profile, base=base)


def device_record(device: Device, profile: DeviceProfile | None) -> DeviceRecord:
    """What the results keep of the device."""
    record = DeviceRecord(reach="local")
    if device.ssh is not None:
        record = DeviceRecord(reach="ssh", address=device.ssh)
    elif device.adb is not None:
        record = DeviceRecord(reach="adb", address=device.adb)
    if profile is None:
        return record
    return record.model_copy(
        update={
            "profile": profile.key,
            "profile_name": profile.name,
            "tdp_w": profile.power.tdp_w.value,
            "sustained_w": profile.power.sustained_w.value,
        }
    )


def power_settings(power: Power, profile: DeviceProfile | None) -> PowerSettings:
    """How power is measured; the thermal design power is the profile's where none is given.

    Raises:
        ScenarioError: an estimate is asked for, and neither says that power.
    """
    tdp_w = power.tdp_w
    if tdp_w is None and profile is not None:
        tdp_w = profile.power.tdp_w.value
    if power.estimate == "tdp" and tdp_w is None:
        lacks = "no profile is named" if profile is None else f"{profile.key} does not say it"
        msg = f"power: estimate: tdp needs the thermal design power, and {lacks}"
        raise ScenarioError(msg, remedy="Set power: tdp_w, or device: profile to one that has it.")
    return PowerSettings(
        meter=power.meter, command=power.command, estimate=power.estimate, tdp_w=tdp_w
    )
