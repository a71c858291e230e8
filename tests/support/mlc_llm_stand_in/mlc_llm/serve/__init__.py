"""Serving."""

from .config import EngineConfig
from .data import RequestStreamOutput
from .engine import MLCEngine

__all__ = ["EngineConfig", "MLCEngine", "RequestStreamOutput"]
