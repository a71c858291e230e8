"""Comparisons and gates as people and their tools read them."""
