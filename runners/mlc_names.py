"""Names and sizes that are MLC's, wherever a model of its kind is read, written or run."""

from __future__ import annotations

CONFIG = "mlc-chat-config.json"
INDEXES = ("tensor-cache.json", "ndarray-cache.json")
"""Newer name first; a TVM reads one of the two."""
LIBRARY = "lib.so"
"""Where edgebench puts the compiled library; MLC's users keep theirs where they like."""

PAGE = 16
"""Tokens in a page of the KV cache."""
