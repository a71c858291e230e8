"""Models run by the real TVM, compared with transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
from tiny_models import VOCABULARY, log_likelihoods

from edgebench.harness.errors import RunnerRefusedError
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest
from edgebench.runners.mlc import MlcRunner
from edgebench.runners.tvm_module import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

IDS = [int(token) for token in np.random.default_rng(5).integers(2, VOCABULARY, 200)]
PROMPT = IDS[:30]


@pytest.fixture(scope="module")
def loaded(tiny: Any, open_model: Callable[..., Any]) -> Iterator[Any]:
    """The tiny model in a process that several tests use."""
    with open_model(tiny.artifact) as each:
        yield each


def test_greedy_tokens_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Exactly as many tokens come out as were asked for, each with a time stamp."""
    made = loaded.generate(PROMPT, 24)
    assert made.token_ids == tiny.greedy(PROMPT, 24)
    assert len(made.token_ns) == 24
    assert made.prompt_tokens == 30
    assert made.finish_reason == "length"
    assert made.submitted_ns < made.prefilled_ns < made.token_ns[0]
    assert made.tokenized_ns is None


@pytest.mark.parametrize("depth", [1, 17, 29])
def test_depth_counts_as_text_before_the_prompt(loaded: Any, tiny: Any, depth: int) -> None:
    """A filled cache gives the tokens of the longer prompt, also before a prompt of one token."""
    made = loaded.generate(PROMPT[depth:], 12, depth_ids=PROMPT[:depth])
    assert made.token_ids == tiny.greedy(PROMPT, 12)
    assert made.depth_tokens == depth


def test_a_prompt_in_chunks_is_the_same_prompt(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Chunks that divide neither prompt nor pages change nothing, in scores neither."""
    with open_model(tiny.artifact, prefill_chunk=7) as each:
        assert each.model.effective_options["prefill_chunk"] == 7
        assert each.generate(PROMPT, 12).token_ids == tiny.greedy(PROMPT, 12)
        likelihoods = each.score(IDS, 20).log_likelihoods
    expected = np.array(log_likelihoods(tiny.model, IDS))
    assert np.abs(np.array(likelihoods) - expected[19:]).max() < 1e-4


def test_nothing_is_left_of_the_generation_before(loaded: Any) -> None:
    """The cache is emptied each time: the same tokens come fifty times, and memory stays."""
    first = [loaded.generate(IDS, 40) for _ in range(5)]
    process = psutil.Process(loaded.session.pid)
    before = process.memory_info().rss
    for _ in range(50):
        assert loaded.generate(IDS, 40).token_ids == first[0].token_ids
    # Keys and values that were kept would take 50 x 239 tokens x 2 layers x 64 floats: 6 MB.
    assert process.memory_info().rss - before < 3_000_000


def test_a_context_is_used_to_its_last_token(tiny: Any, open_model: Callable[..., Any]) -> None:
    """The cache has room for exactly the workload, also where that is no whole number of pages."""
    with open_model(tiny.artifact, context=45) as each:
        assert each.model.effective_options["kv_cache_tokens"] == 48
        assert each.generate(PROMPT, 15).token_ids == tiny.greedy(PROMPT, 15)
        with pytest.raises(RunnerRefusedError, match="46 tokens are asked for and the context"):
            each.generate(PROMPT, 16)


def test_log_likelihoods_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Within 1e-4, from the first token on and from a later one."""
    expected = np.array(log_likelihoods(tiny.model, IDS))
    whole, part = loaded.score(IDS), loaded.score(IDS, 60)
    assert np.abs(np.array(whole.log_likelihoods) - expected).max() < 1e-4
    assert np.abs(np.array(part.log_likelihoods) - expected[59:]).max() < 1e-4


def test_scores_name_the_likeliest_token_and_rate_candidates(loaded: Any, tiny: Any) -> None:
    """Both are of the position whose token is rated."""
    import torch

    with torch.no_grad():
        logits = tiny.model(torch.tensor([PROMPT])).logits[0].double()
    expected = torch.log_softmax(logits, dim=-1).numpy()[9:-1]
    candidates = [[3, 7, 300]] * 20
    scores = loaded.score(PROMPT, 10, candidates=candidates)
    assert scores.top_ids == expected.argmax(axis=1).tolist()
    assert np.abs(np.array(scores.candidates) - expected[:, [3, 7, 300]]).max() < 1e-4


def test_scoring_leaves_generating_as_it_was(loaded: Any) -> None:
    """Both begin with an empty cache."""
    before = loaded.generate(PROMPT, 12).token_ids
    loaded.score(IDS)
    assert loaded.generate(PROMPT, 12).token_ids == before


@pytest.mark.parametrize(
    ("prompt", "count", "says"),
    [
        ([], 1, "at least one token"),
        ([5], 0, "at least one token"),
        ([5, -1], 1, "token id -1"),
        ([5, VOCABULARY], 1, f"token id {VOCABULARY}"),
        (PROMPT, 227, "257 tokens are asked for and the context holds 256"),
    ],
)
def test_what_tvm_would_not_check_is_refused(
    loaded: Any, prompt: list[int], count: int, says: str
) -> None:
    """The process is as good as before."""
    with pytest.raises(RunnerRefusedError, match=says) as caught:
        loaded.generate(prompt, count)
    assert caught.value.reason == "invalid"
    assert len(loaded.generate([5], 1).token_ids) == 1


@pytest.mark.parametrize(("ids", "start"), [(IDS[:5], 0), (IDS[:5], 5), (IDS * 2, 1), ([-1, 2], 1)])
def test_scores_that_cannot_be_are_refused(loaded: Any, ids: list[int], start: int) -> None:
    """There is nothing before the first token, and no room past the context."""
    with pytest.raises(RunnerRefusedError) as caught:
        loaded.score(ids, start)
    assert caught.value.reason == "invalid"


def test_candidates_outside_of_the_vocabulary_are_refused(loaded: Any) -> None:
    """A negative id would count from the end, without a word."""
    with pytest.raises(RunnerRefusedError, match="token id -1"):
        loaded.score(PROMPT, 29, candidates=[[-1]])


def test_the_facts_of_a_model_are_told(loaded: Any, tiny: Any) -> None:
    """Vocabulary, weights and context as transformers counts them, and who built the library."""
    model, options = loaded.model, loaded.model.effective_options
    assert model.vocabulary_size == VOCABULARY
    assert model.architecture == "llama"
    assert model.parameters == sum(weight.numel() for weight in tiny.model.parameters())
    assert model.trained_context_tokens == 256
    assert model.engine == "TVM, built by edgebench"
    assert model.engine_version.startswith("0.27")
    assert (options["engine"], options["compiler"]) == ("tvm", "edgebench")
    assert (options["device"], options["kv_cache_type"]) == ("cpu", "float32")


def test_only_tvms_runtime_is_in_the_process(loaded: Any) -> None:
    """Its compiler, and PyTorch, which tvm_ffi imports, would stand in the memory that is told."""
    maps = Path(f"/proc/{loaded.session.pid}/maps")
    if not maps.exists():
        pytest.skip("there is no /proc here")
    files = {Path(line.split()[-1]).name for line in maps.read_text("utf-8").splitlines()}
    assert "libtvm_runtime.so" in files
    assert not {name for name in files if "tvm_compiler" in name or "torch" in name}


WATCHED = ("subprocess", "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "socket")
RUN = """
import sys

def watch(event, _):
    if event.startswith({watched!r}):
        raise SystemExit(f"tried {{event}}")

sys.addaudithook(watch)
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest
from edgebench.runners.mlc import MlcRunner

runner = MlcRunner()
runner.describe()
request = LoadRequest({artifact!r}, 64, {{"threads": 2}})
runner.prepare(request)
runner.load(request)
print(*runner.generate(GenerateRequest({prompt!r}, 4)).token_ids)
runner.score(ScoreRequest({prompt!r}))
runner.close()
if {bad!r}:
    import subprocess
    subprocess.run(["true"])
"""


@pytest.mark.parametrize("bad", [False, True])
def test_running_starts_no_process_and_no_connection(tiny: Any, bad: bool) -> None:
    """By Python's own audit events, which see it where something does."""
    names = {"watched": WATCHED, "artifact": str(tiny.artifact), "prompt": PROMPT, "bad": bad}
    command = [sys.executable, "-c", RUN.format(**names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == [str(token) for token in tiny.greedy(PROMPT, 4)]
    assert done.returncode == int(bad), done.stderr
    assert ("tried subprocess.Popen" in done.stderr) is bad


def test_a_library_of_another_compiler_is_mlcs(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """Without edgebench's entry in its metadata, here written over, it was compiled by MLC."""
    library = artifact / "lib.so"
    library.write_bytes(library.read_bytes().replace(b'"edgebench": {', b'"otherkind": {'))
    with open_model(artifact) as each:
        assert each.model.engine == "MLC LLM (library on TVM)"
        assert each.model.engine_version.startswith("TVM 0.27")
        assert each.model.effective_options["compiler"] == "mlc_llm"
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="takes two CPUs")
def test_threads_are_as_many_as_asked_for_and_bound_to_no_cpu(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """TVM would bind them, beyond the CPUs that the process may use, as soon as it is asked."""
    cpus = psutil.Process().cpu_affinity()
    assert cpus is not None
    for count in (1, 2, 3):
        with open_model(tiny.artifact, threads=count) as each:
            assert each.model.effective_options["threads"] == count
            assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)
            assert psutil.Process(each.session.pid).cpu_affinity() == cpus
            assert thread_cpus(each.session.pid) == [cpus] * len(thread_cpus(each.session.pid))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="takes two CPUs")
def test_threads_can_be_bound(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Then the second one has one CPU for itself."""
    with open_model(tiny.artifact, threads=2, bind_threads=True) as each:
        assert each.model.effective_options["bind_threads"] is True
        assert [1] in thread_cpus(each.session.pid)


def thread_cpus(pid: int) -> list[list[int]]:
    """The CPUs that each thread of a process may use."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [sorted(os.sched_getaffinity(int(task.name))) for task in tasks]


def test_an_index_of_the_older_name_is_read(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """TVM itself reads the newer name only; nothing is left in the folder."""
    (artifact / "tensor-cache.json").rename(artifact / "ndarray-cache.json")
    before = sorted(artifact.iterdir())
    with open_model(artifact) as each:
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)
    assert sorted(artifact.iterdir()) == before


def test_weights_that_mlc_shortened_to_bfloat16_are_read(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """The upper half of each float32, which is how MLC itself writes them."""
    import copy

    import torch

    shorten(artifact)
    model = copy.deepcopy(tiny.model)
    with torch.no_grad():
        for weight in model.parameters():
            bits = weight.numpy().view(np.uint32) & np.uint32(0xFFFF0000)
            weight.copy_(torch.from_numpy(bits.view(np.float32)))
    with open_model(artifact) as each:
        likelihoods = each.score(IDS).log_likelihoods
    expected = np.array(log_likelihoods(model, IDS))
    assert np.abs(np.array(likelihoods) - expected).max() < 1e-4


def shorten(folder: Path) -> None:
    """Rewrite a tensor cache as ``f32-to-bf16``."""
    index = json.loads((folder / "tensor-cache.json").read_text("utf-8"))
    for shard in index["records"]:
        path = folder / shard["dataPath"]
        words = np.fromfile(path, dtype=np.uint32) >> 16
        path.write_bytes(words.astype(np.uint16).tobytes())
        shard["nbytes"] //= 2
        del shard["md5sum"]
        for each in shard["records"]:
            each["format"] = "f32-to-bf16"
            each["nbytes"] //= 2
            each["byteOffset"] //= 2
    (folder / "tensor-cache.json").write_text(json.dumps(index), encoding="utf-8")


def test_a_library_elsewhere_is_named_by_the_option(
    artifact: Path, tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """MLC's users keep libraries apart from weights."""
    (artifact / "lib.so").rename(tmp_path / "llama-cpu.so")
    with open_model(artifact, library=str(tmp_path / "llama-cpu.so")) as each:
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)


def test_files_to_be_read_are_told_before_loading(artifact: Path, tmp_path: Path) -> None:
    """So that a cold load finds a library elsewhere cold, too."""
    (artifact / "lib.so").rename(tmp_path / "llama-cpu.so")
    library = str(tmp_path / "llama-cpu.so")
    request = LoadRequest(str(artifact), 256, {"library": library})
    assert MlcRunner().prepare(request) == [library]


class Lacking(Library):
    """A library without some of its functions, and with one of MLC's that edgebench's has not."""

    lacks: frozenset[str] = frozenset()

    def function(self, *names: str) -> Any:
        found = super().function(*(name for name in names if name not in self.lacks))
        if found is None and "batch_prefill" in names and "prefill" in self.lacks:
            return self._batch_prefill
        return found

    def _batch_prefill(self, hidden: Any, positions: Any, cache: Any, params: Any) -> Any:
        """As MLC's: it is told which positions' logits are wanted."""
        assert np.from_dlpack(positions).tolist() == [hidden.shape[1] - 1]
        assert str(positions.dtype) == "int32"
        prefill = super().function("prefill")
        assert prefill is not None
        return prefill(hidden, cache, params)


@pytest.fixture
def lacking(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., MlcRunner]:
    """Load the tiny model in this process, some of whose functions are not to be seen."""

    def load(*names: str) -> MlcRunner:
        monkeypatch.setattr(Lacking, "lacks", frozenset(names))
        monkeypatch.setattr("edgebench.runners.mlc.Library", Lacking)
        runner = MlcRunner()
        runner.load(LoadRequest(str(tiny.artifact), 256, {"prefill_chunk": 16}))
        return runner

    return load


def test_scores_come_token_by_token_where_a_library_gives_no_other(
    lacking: Callable[..., MlcRunner], tiny: Any
) -> None:
    """Without batch_verify each token is fed in turn."""
    scores = lacking("batch_verify").score(ScoreRequest(IDS[:60], 20))
    expected = np.array(log_likelihoods(tiny.model, IDS[:60]))
    assert np.abs(np.array(scores.log_likelihoods) - expected[19:]).max() < 1e-4


def test_a_library_may_have_functions_for_batches_only(
    lacking: Callable[..., MlcRunner], tiny: Any
) -> None:
    """Then it is told that the last position's logits are wanted, in each chunk."""
    made = lacking("prefill").generate(GenerateRequest(PROMPT, 8))
    assert made.token_ids == tiny.greedy(PROMPT, 8)


def test_a_chat_template_is_told(artifact: Path) -> None:
    """With the texts of the start and end tokens, as tokenizer_config.json has them."""
    path = artifact / "tokenizer_config.json"
    facts = {"chat_template": "{{ x }}", "bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    path.write_text(json.dumps(facts), encoding="utf-8")
    model = MlcRunner().load(LoadRequest(str(artifact), 64))
    assert (model.chat_template, model.bos_text, model.eos_text) == ("{{ x }}", "<s>", "</s>")


def test_a_runner_can_be_closed_and_load_again(tiny: Any) -> None:
    """Closing twice, or before anything was loaded, does nothing."""
    runner = MlcRunner()
    runner.close()
    for _ in range(2):
        runner.load(LoadRequest(str(tiny.artifact), 64))
        made = runner.generate(GenerateRequest(PROMPT, 4))
        assert made.token_ids == tiny.greedy(PROMPT, 4)
        runner.close()
        runner.close()
