"""The command line: ``python -m mlc_llm SUBCOMMAND``."""

import argparse
import sys

from mlc_llm import cli

SUBCOMMANDS = (
    "compile", "convert_weight", "gen_config", "chat", "serve", "package", "calibrate", "router",
)  # fmt: skip

parser = argparse.ArgumentParser("MLC LLM Command Line Interface.")
parser.add_argument("subcommand", choices=SUBCOMMANDS)
parsed = parser.parse_args(sys.argv[1:2])
cli.run(parsed.subcommand, sys.argv[2:])
