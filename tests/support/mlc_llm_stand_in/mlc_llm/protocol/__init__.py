"""What is asked and answered."""

from . import debug_protocol, openai_api_protocol

__all__ = ["debug_protocol", "openai_api_protocol"]
