"""What may stand as a board's address on ssh's command line."""

from __future__ import annotations

import re
import shlex

from edgebench.harness.scenario.problems import quote

REMEDY = "Write USER@HOST, ssh://USER@HOST:PORT, or a name of your OpenSSH configuration."

URI = "ssh://"
_WITH_BRACKETS = re.compile(r"(.*@)?\[([^\]]*)\](?::\d+)?")
_WITH_PORT = re.compile(r"(?:.*@)?[^:@]+:\d+")

# What OpenSSH itself refuses since 9.6: a configuration may put both into a command (%h, %r).
_NOT_IN_HOST = frozenset("'`\"$\\;&<>|(){}")
_NOT_IN_USER = frozenset("'`\";&<>|(){}")


def why_no_address(text: str) -> str | None:
    """What is wrong with an address, as the rest of a sentence about it; None where it is right."""
    user, at, host = text.rpartition("@")
    # A leading dash would make it an option of ssh, and an option may run a command here.
    if text.startswith("-") or host.startswith("-"):
        return "begins with a dash, as an option does"
    if not host or (at and not user):
        return "has nothing before its @" if host else "names no host"
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        return "holds a space or a control character"
    signs = [letter for letter in user if letter in _NOT_IN_USER]
    signs += [letter for letter in host if letter in _NOT_IN_HOST]
    if signs or user.endswith("\\"):
        return f"holds a {signs[0] if signs else chr(92)} which means something to a shell"
    return None


def port_hint(address: str) -> str:
    """How OpenSSH wants it, where an address has a port or brackets; empty where it has not.

    To be put behind a sentence about ~/.ssh/config. Such an address is not refused, for it may be
    a name of the user's configuration.
    """
    if address.startswith(URI):
        return ""
    if bare := _WITH_BRACKETS.fullmatch(address):
        plain = quoted((bare[1] or "") + bare[2])
        return f" An IPv6 address has no brackets, `{plain}`, and its port stands there as Port."
    if _WITH_PORT.fullmatch(address):
        return f" A port is written as `{quoted(URI + address)}`, or as Port there."
    return ""


def refusal(text: str) -> str | None:
    """The sentence about a wrong address; None where it is right."""
    why = why_no_address(text)
    return None if why is None else f"{quote(text)} is no address for ssh: it {why}"


def quoted(address: str) -> str:
    """An address as a word of a command that a person may copy."""
    return shlex.quote(address)
