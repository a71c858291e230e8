"""All results over time."""
