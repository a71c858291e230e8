"""Limits on a comparison, and whether it keeps them."""
