"""Where MLC's package says which version it is."""

__version__ = "0.1.dev0"
