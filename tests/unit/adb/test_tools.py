"""What native tools print, read: recorded output in, the engine's own figures out."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from damage import damaged
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebench.harness.adb.litert_lm import LitertLm
from edgebench.harness.adb.llama_bench import LlamaBench
from edgebench.harness.adb.llm_bench import LlmBench
from edgebench.harness.adb.tool import Ask, Line, Told, Tool, Wanted
from edgebench.harness.errors import InvalidResultError, RunnerError, RunnerProtocolError

RECORDED = Path(__file__).parents[2] / "data" / "adb"


PROMPT = json.loads((RECORDED / "llama-bench.jsonl").read_text("utf-8").splitlines()[1])
QWEN3 = PROMPT["model_filename"]
QWEN = "/data/Qwen2.5-0.5B-Instruct"
"""The folder of the model whose output of llm_bench was recorded."""


def wanted(
    prompt: int, generate: int, *, depth: int = 0, model: str = "/m", **options: bool | float | str
) -> Wanted:
    return Wanted(model, prompt, depth, generate, options, prompt + depth + generate + depth)


def read_prompt(record: dict[str, object], *, tokens: int = 1024, repetitions: int = 5) -> Told:
    """What it is taken to tell with a line of JSON."""
    ask = Ask((), "prefill", repetitions)
    return LlamaBench().read(ask, wanted(tokens, 256, model=QWEN3), [Line(json.dumps(record))])


def lines(name: str) -> list[Line]:
    """A recorded output; each line comes a microsecond after the one before."""
    texts = (RECORDED / name).read_text("utf-8").splitlines()
    return [Line(text, 1000 * at) for at, text in enumerate(texts)]


def test_llama_bench_samples_are_its_own() -> None:
    """Rates agree with the samples_ts that it printed, to their last digit."""
    noise, prompt, generation = lines("llama-bench.jsonl")
    told = LlamaBench().read(Ask((), "prefill", 5), wanted(1024, 256, model=QWEN3), [noise, prompt])
    rates = [each.rate for each in told.prefill]
    assert rates == pytest.approx([4404.63, 4141.1, 4136.35, 4134.49, 4138.11], rel=2e-6)
    assert told.decode == ()
    assert (told.engine_version, told.parameters) == ("b11469 (ad2156533)", 596049920)
    # Generation is asked for after the prompt.
    after = json.dumps({**json.loads(generation.text), "n_depth": 1024})
    told = LlamaBench().read(
        Ask((), "decode", 5),
        wanted(1024, 256, model=QWEN3),
        [noise, Line(after, generation.t_ns)],
    )
    rates = [each.rate for each in told.decode]
    assert rates == pytest.approx([77.2815, 77.4307, 77.0974, 76.6359, 77.5415], rel=2e-6)
    # It prints when the last repetition is over, and says nothing of when the others were.
    assert [each.ended_ns for each in told.decode] == [None] * 4 + [generation.t_ns]


def test_llama_bench_keeps_options_that_it_does_not_know() -> None:
    """A field of a newer version separates what it separates; timings and names are no options."""
    _, prompt, _ = lines("llama-bench.jsonl")
    newer = json.dumps({**json.loads(prompt.text), "moe_cache": "on"})
    told = LlamaBench().read(Ask((), "prefill", 5), wanted(1024, 256, model=QWEN3), [Line(newer)])
    assert told.options["moe_cache"] == "on"
    assert told.options["kv_cache_type_k"] == "f16"
    assert told.options["lazy_mode"] == "auto"
    assert not {"avg_ts", "test_time", "model_filename", "samples_ns"} & told.options.keys()


def test_llama_bench_of_before_depth_is_read() -> None:
    """A version without n_depth had none."""
    _, prompt, _ = lines("llama-bench.jsonl")
    older = {key: value for key, value in json.loads(prompt.text).items() if key != "n_depth"}
    told = LlamaBench().read(
        Ask((), "prefill", 5),
        wanted(1024, 256, model=QWEN3),
        [Line(json.dumps(older))],
    )
    assert len(told.prefill) == 5


def test_llama_bench_that_is_cut_off_is_not_understood() -> None:
    """Half a line is no result; the last line is quoted."""
    _, prompt, _ = lines("llama-bench.jsonl")
    with pytest.raises(RunnerProtocolError, match=r'its last line: ."build_commit'):
        LlamaBench().read(
            Ask((), "prefill", 5),
            wanted(1024, 256, model=QWEN3),
            [Line(prompt.text[:300])],
        )
    with pytest.raises(RunnerProtocolError, match="it printed nothing"):
        LlamaBench().read(Ask((), "prefill", 5), wanted(1024, 256, model=QWEN3), [])


def test_llama_bench_is_asked_for_what_the_variant_says() -> None:
    """Options have its names; what is on the CPU by default here is so there."""
    asks = LlamaBench().asks(
        wanted(16, 8, depth=32, threads=4, flash_attention="on", mmap=False), repetitions=3
    )
    common = "-m /m -r 3 -o jsonl -ngl 0 -t 4 -fa 1 -mmp 0"
    assert " ".join(asks[0].arguments) == f"{common} -p 16 -n 0 -d 32"
    assert " ".join(asks[1].arguments) == f"{common} -p 0 -n 8 -d 48"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [("-mmp, --mmap <0|1>", "-mmp 0"), ("-lm, --load-mode <none|mmap>", "--load-mode none")],
)
def test_llama_bench_has_two_names_for_mmap(usage: str, expected: str) -> None:
    """The usage tells which version it is; newer ones may lack the old option."""
    asked = replace(wanted(16, 8, mmap=False), usage=usage)
    words = " ".join(LlamaBench().asks(asked, repetitions=1)[0].arguments)
    assert expected in words
    assert ("-mmp" in words) != ("--load-mode" in words)
    on = replace(asked, options={"mmap": True})
    words = " ".join(LlamaBench().asks(on, repetitions=1)[0].arguments)
    assert expected.replace("none", "mmap").replace("-mmp 0", "-mmp 1") in words


@pytest.mark.parametrize(
    ("field", "mapped"),
    [
        ({"use_mmap": True}, True),
        ({"load_mode": "mmap"}, True),
        ({"load_mode": "none"}, False),
        ({"load_mode": "dio"}, False),
    ],
)
def test_llama_bench_tells_mmap_in_two_ways(field: dict[str, object], mapped: bool) -> None:
    """Both are the same option of a variant, so that versions compare."""
    record = {**PROMPT, **field}
    assert read_prompt(record).options["mmap"] is mapped


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples_ts": [4404.63, 4141.1, 4136.35, 4134.49, 41.3811]}, "contradicts itself"),
        ({"samples_ts": [4404.63]}, "samples_ts"),
        ({"samples_ts": [4404.63, 4141.1, 4136.35, 4134.49, True]}, "samples_ts"),
        ({"samples_ts": [4404.63, 4141.1, 4136.35, 4134.49, math.nan]}, "which can't be"),
        ({"samples_ns": [True] * 5}, "samples_ns"),
        ({"samples_ns": [232482552, 247277500, 247561406, 247672552, 0]}, "which can't be"),
        ({"samples_ns": [10**400] * 5}, "which can't be"),
        ({"samples_ns": [232482552.0] * 5}, "samples_ns"),
        ({"n_gen": False}, "another test"),
        ({"n_depth": 0.0}, "another test"),
        ({"model_n_params": -5}, "weights, which can't be"),
        ({"model_n_params": True}, "weights, which can't be"),
        ({"model_filename": "/data/other.gguf"}, "measured the model '/data/other.gguf', not"),
        ({"model_filename": 7}, "measured the model 7, not"),
    ],
)
def test_llama_bench_that_can_not_be_true(changes: dict[str, object], message: str) -> None:
    """What it prints is held against what else it prints; true is no number."""
    with pytest.raises(InvalidResultError, match=message):
        read_prompt({**PROMPT, **changes})


def test_llama_bench_that_prints_two_results_is_not_believed() -> None:
    """It was asked for one test: which of two lines it would be, nobody knows."""
    second = {**PROMPT, "samples_ns": [3 * each for each in PROMPT["samples_ns"]]}
    del second["samples_ts"]
    text = [Line(json.dumps(each)) for each in (PROMPT, second)]
    with pytest.raises(InvalidResultError, match="2 lines of results for one test"):
        LlamaBench().read(Ask((), "prefill", 5), wanted(1024, 256, model=QWEN3), text)


@pytest.mark.parametrize(("model_bytes", "fits"), [(390_753_280, True), (74_506_239, False)])
def test_llama_bench_weights_fit_into_the_file(model_bytes: int, fits: bool) -> None:
    """596049920 weights take 74506240 bytes at one bit each, and no format has less."""
    asked = replace(wanted(1024, 256, model=QWEN3), model_bytes=model_bytes)
    text = [Line(json.dumps(PROMPT))]
    if fits:
        told = LlamaBench().read(Ask((), "prefill", 5), asked, text)
        assert told.parameters == 596_049_920
        return
    with pytest.raises(InvalidResultError, match="less than 1 bit a weight"):
        LlamaBench().read(Ask((), "prefill", 5), asked, text)


def test_llama_bench_rates_may_be_rounded() -> None:
    """Six digits of a slow phone: 1 token in 3 s is 0.333333 tokens/s."""
    slow = {"n_prompt": 1, "samples_ns": [3 * 10**9], "samples_ts": [0.333333]}
    told = read_prompt({**PROMPT, **slow}, tokens=1, repetitions=1)
    assert told.prefill[0].rate == pytest.approx(1 / 3)


def test_llama_bench_fields_that_results_can_not_hold_are_left_out() -> None:
    """A newer version may print anything; its figures count all the same."""
    strange = {"a": math.nan, "b": 10**400, "c": [1], "d": "\ud800\x1b[31mred", "e": math.inf}
    told = read_prompt({**PROMPT, **strange})
    assert not {"a", "b", "c", "e"} & told.options.keys()
    assert told.options["d"] == "[31mred"


def test_llm_bench_table_is_read() -> None:
    """Both phases of its one row, and what it says that it used."""
    told = LlmBench().read(Ask((), "both", 1), wanted(512, 128, model=QWEN), lines("llm_bench.txt"))
    assert (told.prefill[0].rate, told.decode[0].rate) == (626.40, 54.53)
    assert told.prefill[0].seconds is None
    assert told.options == {"backend": "cpu", "threads": 4, "precision": "low"}


@pytest.mark.parametrize("rate", ["inf ± nan", "nan ± nan", "0.00 ± 0.00", "-3.0 ± 0.0", "fast"])
def test_llm_bench_rates_that_can_not_be_are_refused(rate: str) -> None:
    """An early end of the text gives such."""
    text = [Line(line.text.replace("54.53 ± 0.00", rate)) for line in lines("llm_bench.txt")]
    with pytest.raises(InvalidResultError, match="which can't be"):
        LlmBench().read(Ask((), "both", 1), wanted(512, 128, model=QWEN), text)


def test_llm_bench_of_another_test_is_refused() -> None:
    """A row is believed only where it names the lengths that were asked for."""
    with pytest.raises(InvalidResultError, match="prompt=512<br>decode=128 where prompt=16"):
        LlmBench().read(Ask((), "both", 1), wanted(16, 8, model=QWEN), lines("llm_bench.txt"))


def test_llm_bench_of_another_model_is_refused() -> None:
    """Its row is named after the model's folder."""
    with pytest.raises(InvalidResultError, match=r"the model Qwen2\.5-0\.5B-Instruct, not other"):
        LlmBench().read(
            Ask((), "both", 1), wanted(512, 128, model="/data/other"), lines("llm_bench.txt")
        )


def test_llm_bench_rows_are_one() -> None:
    """A second one is not taken for the first, whatever it names."""
    recorded = lines("llm_bench.txt")
    row = next(each for each in reversed(recorded) if each.text.startswith("|"))
    other = Line(row.text.replace("Qwen2.5-0.5B-Instruct", "other-model-7B"))
    with pytest.raises(InvalidResultError, match="2 rows for one test"):
        LlmBench().read(Ask((), "both", 1), wanted(512, 128, model=QWEN), [*recorded, other])


def test_llm_bench_repetition_that_deviates_is_refused() -> None:
    """One number has no deviation."""
    text = [
        Line(each.text.replace("54.53 ± 0.00", "54.53 ± 5.0")) for each in lines("llm_bench.txt")
    ]
    with pytest.raises(InvalidResultError, match=r"one repetition that deviates by 5\.0"):
        LlmBench().read(Ask((), "both", 1), wanted(512, 128, model=QWEN), text)


def test_llm_bench_is_started_once_for_each_repetition() -> None:
    """None of its figures is then a mean; it has no depth."""
    asks = LlmBench().asks(wanted(16, 8, threads=2, precision="low"), repetitions=3)
    assert [ask.repetitions for ask in asks] == [1, 1, 1]
    expected = "-m /m/config.json -kv true -rep 1 -load false -p 16 -n 8 -t 2 -c 2"
    assert " ".join(asks[0].arguments) == expected
    assert "depth" in LlmBench().refusal(wanted(16, 8, depth=4))


def test_litert_info_is_read() -> None:
    """Durations, the load, and its own time to first token."""
    told = LitertLm().read(Ask((), "both", 1), wanted(18, 62), lines("litert_lm_main.txt"))
    # It prints 7.79 and 11.21 tokens/s, rounded.
    assert told.prefill[0].rate == pytest.approx(18 / 2.311920273)
    assert told.decode[0].rate == pytest.approx(62 / 5.53092314)
    assert (told.ttft_s, told.load_s) == (2.40, pytest.approx(0.91125))


def test_litert_without_turns_is_no_measurement() -> None:
    """It prints a time to first token of 0.00 s then."""
    with pytest.raises(InvalidResultError, match="no turn of prefill"):
        LitertLm().read(Ask((), "both", 1), wanted(18, 62), lines("litert_lm_main-no-turns.txt"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("first token: 2.40", "first token: -2.40"),
        ("first token: 2.40", "first token: nan"),
        ("first token: 2.40", "first token: 2.30"),  # its prefill took 2.31 s
        ("init time: 911.25", "init time: -0.9"),
        ("in 2.311920273s", "in -5.53s"),
        ("in 2.311920273s", "in 5.53"),
        ("in 2.311920273s", "in inf"),
        ("in 2.311920273s", "in 1.2.3s"),
        ("Prefill Speed: 7.79", "Prefill Speed: 77.9"),
        ("Decode Speed: 11.21", "Decode Speed: -11.21"),
        ("Decode Speed: 11.21", "Decode Speed: fast"),
    ],
)
def test_litert_that_can_not_be_true(before: str, after: str) -> None:
    """Times are above zero, have a unit, and make the speeds that it prints."""
    text = [Line(line.text.replace(before, after)) for line in lines("litert_lm_main.txt")]
    assert any(after in line.text for line in text)
    with pytest.raises(InvalidResultError, match=r"can't be|contradicts"):
        LitertLm().read(Ask((), "both", 1), wanted(18, 62), text)


def test_litert_speed_counts_where_its_time_is_zero() -> None:
    """Abseil writes zero without a unit."""
    text = [Line(line.text.replace("2.311920273s", "0")) for line in lines("litert_lm_main.txt")]
    (sample,) = LitertLm().read(Ask((), "both", 1), wanted(18, 62), text).prefill
    assert (sample.rate, sample.seconds) == (7.79, None)


TOLD = [
    (LlamaBench(), Ask((), "prefill", 5), 1024, 256, "llama-bench.jsonl"),
    (LlmBench(), Ask((), "both", 1), 512, 128, "llm_bench.txt"),
    (LitertLm(), Ask((), "both", 1), 18, 62, "litert_lm_main.txt"),
]


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.parametrize(("tool", "ask", "prompt", "made", "name"), TOLD)
def test_no_output_breaks_the_run(
    tool: Tool, ask: Ask, prompt: int, made: int, name: str, data: st.DataObject
) -> None:
    """Whatever is printed, there are figures above zero that JSON can hold, or one failure."""
    recorded = (RECORDED / name).read_text("utf-8")
    if tool.engine == "llama.cpp":
        recorded = "\n".join(recorded.splitlines()[:2])
    text = data.draw(damaged(recorded) | st.text(max_size=300))
    with contextlib.suppress(RunnerError):
        told = tool.read(ask, wanted(prompt, made), [Line(each) for each in text.splitlines()])
        figures = [told.ttft_s, told.load_s, told.parameters]
        for sample in (*told.prefill, *told.decode):
            figures += [sample.rate, sample.seconds]
        assert all(each is None or 0 < each < math.inf for each in figures)
        held = json.dumps([dict(told.options), told.engine_version], allow_nan=False)
        assert "\\ud8" not in held


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("399.049292ms", 0.399049292), ("1m2.5s", 62.5), ("81us", 81e-6), ("1h0m1s", 3601.0)],
)
def test_durations_of_abseil_are_read(written: str, seconds: float) -> None:
    """As absl::FormatDuration writes them."""
    text = [
        Line(line.text.replace("2.311920273s", written))
        for line in lines("litert_lm_main.txt")
        if "Speed" not in line.text and "first token" not in line.text
    ]
    told = LitertLm().read(Ask((), "both", 1), wanted(18, 62), text)
    assert told.prefill[0].seconds == pytest.approx(seconds)


def test_a_model_that_writes_benchmark_info_is_not_believed() -> None:
    """The last one counts, which is the tool's own."""
    text = [Line("BenchmarkInfo: Time to first token: 9.00 s"), *lines("litert_lm_main.txt")]
    told = LitertLm().read(Ask((), "both", 1), wanted(18, 62), text)
    assert told.ttft_s == 2.40


def test_litert_is_asked_for_what_the_variant_says() -> None:
    """Exact lengths, on the CPU where nothing else is said, with room for one token more."""
    (ask,) = LitertLm().asks(wanted(16, 8, threads=4), repetitions=1)
    assert list(ask.arguments) == [
        "--model_path=/m",
        "--benchmark",
        "--benchmark_prefill_tokens=16",
        "--benchmark_decode_tokens=8",
        "--async=false",
        "--backend=cpu",
        "--max_num_tokens=25",
        "--num_cpu_threads=4",
    ]
