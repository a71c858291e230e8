"""JSON that editors and shells may have saved in another encoding than it was written in."""

from __future__ import annotations

import json


def decoded(data: bytes) -> str:
    """The text of a JSON file, in UTF-8, UTF-16 or UTF-32, with a byte order mark or without.

    Raises:
        ValueError: it is in none of them.
    """
    return data.decode(json.detect_encoding(data), "surrogatepass")
