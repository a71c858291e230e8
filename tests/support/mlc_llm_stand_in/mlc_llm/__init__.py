"""Stands in for MLC LLM's package, which is not on PyPI: the same modules, names and signatures.

Written from the signatures of revision 79d603f085f5. A keyword, an option or a field that MLC's
has not is an error here too, also where MLC's own classes would let it pass. What it computes is no
model: the next token is a formula of the last one and its place, so that a test can compute it.
What it shows is how MLC is called, and nothing about MLC.

A file ``stand_in.json`` in a model's folder makes it fail or behave badly, see `serve.engine`; the
environment variable ``MLC_LLM_STAND_IN`` does so for the programs, see `cli`.
"""

from . import protocol, serve
from .libinfo import __version__
from .serve import MLCEngine

__all__ = ["MLCEngine", "__version__", "protocol", "serve"]
