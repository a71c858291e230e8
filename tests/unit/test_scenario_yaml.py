"""What the YAML reader takes, what it refuses, and where it says that is."""

# ruff: noqa: E501 - a message is one line, and so is the one expected

from __future__ import annotations

import re

import pytest

from edgebench.harness.scenario.problems import Finding
from edgebench.harness.scenario.yaml_reader import MAX_DEPTH, MAX_NODES, read_yaml


def problems(text: str) -> list[str]:
    return [problem.line("f") for problem in read_yaml(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("+7", 7),
        ("-0", 0),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.5e-3", 0.0015),
        ("0b11", "0b11"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int 5", 5),
        ('!!int "5"', 5),
        ("!!float 5", 5),
        ("9223372036854775807", 2**63 - 1),
        ('"\\U0001F600"', "😀"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    """Scalars are what the core schema of YAML 1.2 says, not what YAML 1.1 said."""
    found = read_yaml(f"k: {text}\n")
    assert found.problems == []
    plain = found.plain()
    assert plain == {"k": value}
    assert isinstance(plain, dict)
    assert type(plain["k"]) is type(value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("k: .inf", "f:1:4: k: must be a finite number, got .inf"),
        ("k: -.INF", "f:1:4: k: must be a finite number, got -.INF"),
        ("k: .nan", "f:1:4: k: must be a finite number, got .nan"),
        ("k: 1e999", "f:1:4: k: the number '1e999' is too large"),
        (
            "k: 9223372036854775808",
            "f:1:4: k: the number '9223372036854775808' is too large; it must fit in 64 bits",
        ),
        ("k: !!binary aGk=", "f:1:4: k: the tag 'tag:yaml.org,2002:binary' is not supported; remove it"),
        (
            "k: !!timestamp 2024-01-01",
            "f:1:4: k: the tag 'tag:yaml.org,2002:timestamp' is not supported; remove it",
        ),
        ("k: !thing {a: 1}", "f:1:4: k: the tag '!thing' is not supported; remove it"),
        ("k: !!set {a, b}", "f:1:4: k: the tag 'tag:yaml.org,2002:set' is not supported; remove it"),
        ("k: !!int two", "f:1:4: k: 'two' is not what its tag !!int says"),
        ('k: "a\\0b"', "f:1:4: k: text can't hold the character U+0000"),
        ('k: "\\ud83d\\ude00"', "f:1:4: k: text can't hold the character U+D83D"),
        ("1: x", "f:1:1: scenario: a key must be a name; put it in quotes if it is meant as one"),
        ("? [a]\n: x", "f:1:3: scenario: a key must be a name; put it in quotes if it is meant as one"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "f:3:3: c.'<<': merge keys are not supported; write the keys out"),
        ("a: *x", "f:1:4: a: the alias '*x' has no anchor before it"),
        ("a: &x [1, *x]", "f:1:11: a[1]: the alias '*x' stands inside its own anchor"),
        ("a: 1\n---\nb: 2", "f:3:1: scenario: only one document is allowed in a file; remove the '---' before it"),
        ("", "f:1:1: scenario: the file is empty; start with 'schema_version: 1'"),
        ("# only a comment\n", "f:1:1: scenario: the file is empty; start with 'schema_version: 1'"),
        ("%YAML 1.1\n---\na: 1", "f:2:1: scenario: scenarios are YAML 1.2; remove the %YAML line"),
        ("ab: c\x07d", "f:1:6: syntax: the character U+0007 is not allowed in YAML; remove it"),
        ("a: 1\nb: \ud800", "f:2:4: syntax: the character U+D800 is not allowed in YAML; remove it"),
    ],
)  # fmt: skip
def test_what_is_no_plain_value_is_refused_at_its_place(text: str, line: str) -> None:
    """A value that no scenario can hold is reported where it stands."""
    assert problems(text) == [line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n\tb: 1", "f:2:1: syntax: a tab can't be used here; indent with spaces"),
        ("a: b: c", "f:1:5: syntax: a ':' is not allowed here; quote the text if it holds ': ', else check the indentation"),
        ("k: 1\na: [1,\n 2", "f:2:4: syntax: this '[' is not closed by a ']'"),
        ("a: {b: 1", "f:1:4: syntax: this '{' is not closed by a '}'"),
        ("a: [1 2: 3]]", "f:1:12: syntax: a key ('name: …') is expected here, or the indentation does not fit the lines above"),
        ('a: "x\nb: 1\n', "f:1:4: syntax: this quote is not closed"),
        ("a: 'x", "f:1:4: syntax: this quote is not closed"),
        ("- a\nb: 1", "f:2:1: syntax: a list item ('- …') is expected here, or the indentation does not fit the lines above"),
        ("a: - b", "f:1:4: syntax: a '-' is not allowed here; start the list on a line of its own"),
        ("a: @x", "f:1:4: syntax: text can't begin with '@'; put it in quotes"),
        ('a: "\\q"', "f:1:6: syntax: there is no escape '\\q' in YAML"),
        ("a: !e!x 1", "f:1:4: syntax: this tag is not supported; remove it"),
        ("'a' 'b'", "f:1:5: syntax: only one value is allowed here; the text before it is complete already"),
    ],
)  # fmt: skip
def test_syntax_errors_are_plain_sentences_with_their_place(text: str, line: str) -> None:
    """A text that is no YAML is reported in words that say what to do, not the parser's."""
    assert problems(text) == [line]


def test_every_duplicate_key_is_reported_with_the_first_place() -> None:
    """Each repeated key is named at its own place, and says where the first one is."""
    text = "a: 1\nb:\n  c: 1\n  'c': 2\na: 2\na: 3\n"
    assert problems(text) == [
        "f:4:3: b.c: this key is there already, at line 3; remove one of them",
        "f:5:1: a: this key is there already, at line 1; remove one of them",
        "f:6:1: a: this key is there already, at line 1; remove one of them",
    ]


def test_aliases_are_values_like_others() -> None:
    """An alias stands for its anchor's value."""
    found = read_yaml("a: &x {n: [1, 2]}\nb: *x\n")
    assert found.problems == []
    assert found.plain() == {"a": {"n": [1, 2]}, "b": {"n": [1, 2]}}


def test_a_wrong_value_behind_an_alias_is_named_where_it_is_written() -> None:
    """What an alias holds keeps the place of its text; the alias itself has its own."""
    found = read_yaml("a: &x {n: 5}\nb: *x\n")
    inside = found.place(Finding(("b", "n"), "wrong"))
    itself = found.place(Finding(("b",), "wrong"))
    assert inside is not None
    assert itself is not None
    assert inside.position == (1, 11)
    assert itself.position == (2, 4)


def test_a_byte_order_mark_is_left_out() -> None:
    """A byte order mark is no part of the first key, nor of its column."""
    assert read_yaml("\ufeffa: 1").plain() == {"a": 1}
    assert problems("\ufeffa: .nan") == ["f:1:4: a: must be a finite number, got .nan"]


def test_columns_count_characters() -> None:
    """A column is the number of characters before it plus one, whatever their width."""
    assert problems("{ä😀: .nan}") == ["f:1:6: 'ä😀': must be a finite number, got .nan"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_count(end: str) -> None:
    """Lines are counted alike on all systems."""
    assert problems(f"a: 1{end}b: 2{end}c: .nan{end}") == [
        "f:3:4: c: must be a finite number, got .nan"
    ]


def test_nesting_is_limited() -> None:
    """Deep nesting is refused, as a whole and through aliases, at its place."""
    assert problems("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
    deep = problems("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert len(deep) == 1
    assert deep[0].startswith("f:1:33: [0][0]")
    assert deep[0].endswith(": nests deeper than 32 levels")
    half = "[" * 20 + "]" * 20
    through_alias = problems(f"a: &x {half}\nb: {'[' * 15}*x{']' * 15}\n")
    assert [line.rpartition(": ")[2] for line in through_alias] == [
        "nests deeper than 32 levels, aliases written out"
    ]


def test_an_expansion_bomb_is_refused() -> None:
    """Ten aliases of ten aliases of … are counted as written out, without doing so."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    # a0 holds 11 values, a1 10 * 11 + 1 = 111, a2 1111, a3 11111: above the limit.
    assert problems("\n".join(lines)) == [
        f"f:4:5: a3: holds more than {MAX_NODES} values, aliases written out"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500_000,
        "{a: " * 100_000,
        "- " * 200_000,
        "? " * 200_000,
        "a: [" + "1," * 500_000 + "]",
        "'" * 1_000_001,
        "a: " + "x y " * 250_000,
        "\n" * 1_000_000 + "a: 1",
        "# x\n" * 250_000,
        "&a " * 300_000,
        '"' + "\\\\" * 500_000 + '"',
        "a: " + "9" * 1_000_000,
        "a: |\n" + "  x\n" * 200_000,
    ],
    ids=lambda text: text[:6].encode("unicode_escape").decode(),
)
def test_a_megabyte_of_anything_is_read(text: str) -> None:
    """No text of the largest allowed size exhausts the stack, the memory or the reader's patience."""
    found = read_yaml(text)
    assert found.root is not None or found.problems
    for line in problems(text):
        assert re.fullmatch(r"f:\d+:\d+: .+: .+", line)
