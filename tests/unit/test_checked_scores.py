"""What the worker looks at in scores before they leave, and how it asks a tokenizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.runners.base import (
    Capabilities,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadRequest,
    ScoreRequest,
    Scores,
)
from edgebench.runners.checked_scores import not_finite
from edgebench.runners.fake import FakeRunner
from edgebench.runners.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = ScoreRequest([10, 11, 12, 13], start=2, candidates=[[20, 21], [22]])


class PlainTokenizer:
    """A runner as others may have written it, whose tokenizer knows one way only."""

    OPTIONS: dict[str, Any] = {}  # noqa: RUF012
    QUANTIZATIONS = ()
    PIP = ""

    def describe(self) -> Description:
        return Description("plain", "1", Capabilities(True, True, True, True, True))

    def load(self, request: LoadRequest) -> LoadedModel:
        return LoadedModel({"path": request.model_path}, 256)

    def generate(self, request: GenerateRequest) -> Generation:
        raise NotImplementedError(request)

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def close(self) -> None:
        """There is nothing to free."""


def test_finite_scores_pass() -> None:
    """However small a likelihood is, it is one."""
    assert not_finite(Scores([-1.0, -1e300], [1, 2], [[-5.0, 0.0], [-700.0]]), REQUEST) is None


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (Scores([-1.0, math.nan]), "of token 13 at position 3 is nan: "),
        (Scores([-math.inf, math.nan]), "of token 12 at position 2 is -inf: "),
        (Scores([-1.0, -1.0, math.inf]), "of a token at position 4 is inf: "),
        (
            Scores([-1.0, -1.0], None, [[-1.0, math.nan], [-1.0]]),
            "of token 21 at position 2 is nan",
        ),
        (Scores([-1.0, -1.0], None, [[-1.0], [-math.inf]]), "of token 22 at position 3 is -inf"),
    ],
    ids=["nan", "the first of two", "one too many", "candidate", "candidate later"],
)
def test_a_score_that_is_no_number_is_named(scores: Scores, words: str) -> None:
    """The token and where it stands are what a user can look at."""
    sentence = not_finite(scores, REQUEST)
    assert sentence is not None
    assert words in sentence


def test_the_worker_names_the_position_of_a_nan(tmp_path: Path) -> None:
    """The failure that a host gets is of the framework, and says where."""
    worker = loaded_fake(tmp_path, fail="nan", fail_at_token=1, fail_from_call=1)
    params = {"ids": [10, 11, 12, 13], "start": 2}
    first, second = (worker.answer({"id": n, "method": "score", "params": params}) for n in (1, 2))
    assert first["result"]["log_likelihoods"] == [-math.log(259)] * 2
    assert second["error"]["data"] == {"reason": "framework"}
    assert "log-likelihood of token 13 at position 3 is nan" in second["error"]["message"]


def test_a_skewed_fake_favours_the_blank(tmp_path: Path) -> None:
    """One half for token 35, and a half shared by the 299 others."""
    worker = loaded_fake(tmp_path, probabilities="skewed", vocabulary=300)
    params = {"ids": [1, 35, 40], "candidates": [[35, 2], [7]]}
    scores = worker.answer({"id": 1, "method": "score", "params": params})["result"]
    half, other = math.log(0.5), math.log(0.5 / 299)
    assert scores["log_likelihoods"] == pytest.approx([half, other])
    assert scores["top_ids"] == [35, 35]
    assert scores["candidates"] == [pytest.approx([half, other]), pytest.approx([other])]


@pytest.mark.parametrize(
    ("tells", "top", "candidates"),
    [
        ("all", True, True),
        ("likeliest", True, False),
        ("candidates", False, True),
        ("likelihoods", False, False),
    ],
)
def test_a_fake_hides_what_it_is_told_to(
    tmp_path: Path, tells: str, top: bool, candidates: bool
) -> None:
    """Frameworks that hide likeliest tokens or candidates can be played."""
    worker = loaded_fake(tmp_path, tells=tells)
    params = {"ids": [1, 35], "candidates": [[35]]}
    scores = worker.answer({"id": 1, "method": "score", "params": params})["result"]
    assert (scores["top_ids"] is not None, scores["candidates"] is not None) == (top, candidates)


def test_a_failure_happens_where_it_is_to(tmp_path: Path) -> None:
    """A fake that fails in scoring still makes tokens."""
    worker = loaded_fake(tmp_path, fail="refuse", fail_in="score")
    asked = {"prompt_ids": [1, 2], "max_tokens": 2}
    assert "result" in worker.answer({"id": 1, "method": "generate", "params": asked})
    refused = worker.answer({"id": 2, "method": "score", "params": {"ids": [1, 2]}})
    assert "refuse this rating" in refused["error"]["message"]


def test_special_tokens_are_text_only_where_that_is_asked_for() -> None:
    """A tokenizer without a choice is asked as ever, and says no to the other way."""
    worker = Worker(PlainTokenizer())
    usual = worker.answer({"id": 1, "method": "tokenize", "params": {"text": "ab"}})
    parsed = worker.answer(
        {"id": 2, "method": "tokenize", "params": {"text": "ab", "special": True}}
    )
    plain = worker.answer(
        {"id": 3, "method": "tokenize", "params": {"text": "ab", "special": False}}
    )
    assert usual["result"] == parsed["result"] == {"ids": [97, 98]}
    assert plain["error"]["data"] == {"reason": "unsupported"}
    assert "special tokens" in plain["error"]["message"]


def loaded_fake(folder: Path, **options: Any) -> Worker:
    """A worker in this process, with the fake runner and a model of seven bytes."""
    (folder / "model.bin").write_bytes(b"weights")
    worker = Worker(FakeRunner())
    params = {"model_path": str(folder / "model.bin"), "context_tokens": 64, "options": options}
    assert "result" in worker.answer({"id": 0, "method": "load", "params": params})
    return worker
