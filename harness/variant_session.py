"""One start of a variant outside of the measuring: to compare it, or to rate a text with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.errors import RunnerError
from edgebench.harness.failures import failure_of
from edgebench.harness.results.writer import LOGS_FOLDER
from edgebench.harness.session import Launch
from edgebench.harness.store.progress import silent
from edgebench.runners.base import LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.session import Session
    from edgebench.runners.base import LoadedModel, ScoreRequest, Scores

T = TypeVar("T")

PATIENCE = 3.0
"""Rating runs the output layer at every position, which a generation's prompt does not."""

SCORING = "the framework gives no log-likelihoods of given tokens"


def in_session(
    item: PreparedVariant, folder: Path, purpose: str, work: Callable[[Session], T]
) -> T | Failure:
    """Do `work` with a variant's runner in a process of its own.

    Args:
        item: a variant that could be prepared.
        folder: the folder that the logs' folder stands in.
        purpose: the first word of the log's name.
        work: what to do.

    Returns:
        What came of it, or how the process failed.
    """
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", item.variant.id).strip("-.") or "variant"
    log = Path(LOGS_FOLDER) / f"{purpose}-{slug[:80]}.log"
    session = item.board.open(Launch(item.variant.runner, folder / log, item.python))
    try:
        with session:
            return work(session)
    except RunnerError as error:
        return failure_of(error, log=log, log_tail=session.log_tail())


def load(
    session: Session,
    item: PreparedVariant,
    context_tokens: int,
    timeout_s: float,
    *,
    prepared: bool = False,
) -> LoadedModel:
    """Load a variant's artifact with its options.

    Args:
        session: an open one, with nothing loaded.
        item: a variant that could be prepared.
        context_tokens: the most tokens of any request.
        timeout_s: for each step.
        prepared: whether the runner makes before what it makes before a load that is timed;
            some count their weights then.

    Raises:
        RunnerError: it can't be loaded.
    """
    assert item.file is not None
    session.call("probe", timeout_s=timeout_s)
    request = LoadRequest(
        model_path=item.board.place(item.file, silent),
        context_tokens=context_tokens,
        options=item.load_options,
    )
    if prepared:
        session.call("prepare", to_wire(request), timeout_s=timeout_s)
    return wire.loaded_model(session.call("load", to_wire(request), timeout_s=timeout_s))[0]


def score(session: Session, request: ScoreRequest, model: LoadedModel, timeout_s: float) -> Scores:
    """Rate tokens; `PATIENCE` times as patiently as a generation is waited for.

    Raises:
        RunnerError: it refused, failed, or gave what can't be true.
    """
    answer = session.call("score", to_wire(request), timeout_s=PATIENCE * timeout_s)
    return wire.scores(answer, request, model.vocabulary_size)
