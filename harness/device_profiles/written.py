"""A profile as people would write it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from ruamel.yaml import YAML

if TYPE_CHECKING:
    from edgebench.harness.device_profiles.model import DeviceProfile

_WIDTH = 100


def as_yaml(profile: DeviceProfile) -> str:
    """The text of a file that `edgebench.harness.device_profiles.load_profile` reads back."""
    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump(_plain(profile.model_dump(mode="json", exclude_defaults=True)), text)
    return text.getvalue()


def as_json(profile: DeviceProfile) -> dict[str, object]:
    """All figures with their sources, and what follows from them under ``compute``."""
    return {
        **profile.model_dump(mode="json"),
        "compute": profile.compute.model_dump(mode="json"),
    }


def _plain(value: object) -> object:
    """Whole numbers without a decimal point, and a figure's value before its source."""
    match value:
        case dict():
            keys = sorted(value, key=lambda key: key != "value")
            return {key: _plain(value[key]) for key in keys}
        case list():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
