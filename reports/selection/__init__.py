"""Choosing a framework: by the documents' decision trees, and by what was measured."""
