"""What can be wrong with a model, in words for the person who named it."""

from __future__ import annotations


class ModelFormatError(Exception):
    """A model can't be read: a file is missing, cut off, damaged, or of another kind.

    The message says which file, what is wrong with it, and what to do.
    """


class UnsupportedModelError(ModelFormatError):
    """The model is sound, but holds something that is not understood; the message names it."""
