"""Device profiles: what is published of a device, or was told by the machine itself."""

from edgebench.harness.device_profiles.files import (
    builtin_profiles,
    find_profile,
    list_profiles,
    load_profile,
    parse_profile,
)
from edgebench.harness.device_profiles.model import DeviceProfile

__all__ = [
    "DeviceProfile",
    "builtin_profiles",
    "find_profile",
    "list_profiles",
    "load_profile",
    "parse_profile",
]
