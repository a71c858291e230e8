"""MNN's engine in a process of its own, which a crash of it or a left-over object can't hurt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LIMIT_S = 120


def ask(folder: Path, **questions: Any) -> dict[str, Any]:
    """Load an artifact and ask its engine; what it answers, by the names of the questions.

    Args:
        folder: the artifact.
        questions: `config`, merged into MNN's; `ids`, for the logits of all their positions, as
            ``prefill`` (at once) and ``decode`` (one by one), both (positions, vocabulary);
            `texts`, for their ids by MNN's own tokenizer, as ``texts``; `chat`, a message for
            MNN's own template, as ``chat``.
    """
    with tempfile.TemporaryDirectory() as place:
        questions["folder"], questions["answers"] = str(folder), place
        done = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps(questions),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
        answers = json.loads(Path(place, "answers.json").read_text("utf-8"))
        for file in Path(place).glob("*.npy"):
            answers[file.stem] = np.load(file)
    return answers


def _answer(questions: dict[str, Any]) -> None:
    import MNN.llm

    place = Path(questions["answers"])
    engine = MNN.llm.create(questions["folder"] + "/config.json")
    config = {"thread_num": 1, "precision": "high", "memory": "normal", "sampler_type": "greedy"}
    engine.set_config(config | questions.get("config", {}))
    assert engine._c_obj.load() is True
    answers: dict[str, Any] = {}
    if ids := questions.get("ids"):
        engine.set_config({"all_logits": True})
        np.save(place / "prefill.npy", _logits(engine, [ids]))
        engine.set_config({"all_logits": False})
        np.save(place / "decode.npy", _logits(engine, [[token] for token in ids]))
    if "texts" in questions:
        answers["texts"] = [list(engine.tokenizer_encode(text)) for text in questions["texts"]]
    if "chat" in questions:
        answers["chat"] = engine.apply_chat_template(questions["chat"])
    (place / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def _logits(engine: Any, steps: list[list[int]]) -> np.ndarray[Any, Any]:
    engine.generate_init()
    engine.reset()
    rows = []
    for step in steps:
        logits = engine.forward(step)
        values = np.array(logits.read(), dtype=np.float32)
        rows.append(values.reshape(-1, values.shape[-1]).copy())
        del logits
    return np.concatenate(rows)


if __name__ == "__main__":
    _answer(json.loads(sys.stdin.read()))
    os._exit(0)  # past MNN's destructors
