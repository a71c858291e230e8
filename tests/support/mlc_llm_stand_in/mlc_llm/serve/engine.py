"""The engine: two threads in the background, and a queue to the caller.

``stand_in.json`` in the model's folder may say: `load`, the text of an error of the thread that
loads; `fail_after`, a number of tokens after which that thread fails; `stop_after`, a number of
tokens after which it ends a generation; `together`, how many tokens it hands over at once.
"""

import json
import queue
import random
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mlc_llm.protocol import debug_protocol, openai_api_protocol
from mlc_llm.serve import data
from mlc_llm.serve.config import EngineConfig

TTFT_S, DECODE_RATE = 0.25, 80.0
"""What its own figures say, whatever it takes."""

DEVICES = ("auto", "cpu")
PAGE, SPARE = 16, 8


def next_token(last: int, place: int, vocabulary: int) -> int:
    """The token after the one at a place, counted from 0."""
    return (31 * last + 17 * place + 5) % vocabulary


class Completion:
    """``engine.completions``."""

    def __init__(self, engine: "weakref.ReferenceType[MLCEngine]") -> None:
        self.engine = engine

    def create(
        self,
        *,
        prompt: str | list[int],
        model: str | None = None,
        best_of: int = 1,
        echo: bool = False,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        logprobs: int | None = None,
        logit_bias: dict[int, float] | None = None,
        max_tokens: int | None = None,
        n: int = 1,
        seed: int | None = None,
        stop: str | list[str] | None = None,
        stream: bool = False,
        stream_options: dict[str, Any] | None = None,
        suffix: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        user: str | None = None,
        response_format: dict[str, Any] | None = None,
        request_id: str | None = None,
        extra_body: dict[str, Any] | None = None,
    ) -> Iterator[openai_api_protocol.CompletionResponse]:
        assert stream, "here only streaming stands in"
        debug = (extra_body or {}).get("debug_config")
        request = openai_api_protocol.CompletionRequest(
            model=model, prompt=prompt, best_of=best_of, echo=echo,
            frequency_penalty=frequency_penalty, presence_penalty=presence_penalty,
            logprobs=logprobs, logit_bias=logit_bias, max_tokens=max_tokens, n=n, seed=seed,
            stop=stop, stream=stream, suffix=suffix, temperature=temperature, top_p=top_p,
            user=user, response_format=response_format,
            stream_options=(
                openai_api_protocol.StreamOptions(**stream_options)
                if stream_options is not None
                else None
            ),
            debug_config=(
                debug_protocol.DebugConfig(**debug) if debug is not None else None
            ),
        )  # fmt: skip
        engine = self.engine()
        assert engine is not None
        return engine._handle_completion(request, request_id or "cmpl-none")


class EngineState:
    """What the threads share."""

    def __init__(self) -> None:
        self.sync_output_queue: queue.Queue[Any] = queue.Queue()


@dataclass
class CallbackStreamOutput:
    """What becomes of an output on its way to a text."""

    delta_text: str
    delta_logprob_json_strs: list[str] | None
    finish_reason: str | None
    request_final_usage_json_str: str | None


class MLCEngine:
    """The synchronous engine."""

    def __init__(
        self,
        model: str,
        device: str = "auto",
        *,
        model_lib: str | None = None,
        mode: Literal["local", "interactive", "server"] = "local",
        engine_config: EngineConfig | None = None,
        enable_tracing: bool = False,
    ) -> None:
        if device not in DEVICES:
            raise ValueError(f"Device is not found on your local environment: {device}")
        if model_lib is None or not Path(model_lib).is_file():
            raise FileNotFoundError(f"The `model_lib` you passed in is not a file: {model_lib}.\n")
        folder = Path(model)
        self.model_config_dicts = [json.loads((folder / "mlc-chat-config.json").read_text("utf-8"))]
        script = folder / "stand_in.json"
        self._script = json.loads(script.read_text("utf-8")) if script.is_file() else {}
        self.state = EngineState()
        self._requests: queue.Queue[Any] = queue.Queue()
        self._outputs: queue.Queue[Any] = queue.Queue()
        self._loaded = threading.Event()
        self._background_loop_thread = threading.Thread(target=self._background_loop)
        self._background_stream_back_loop_thread = threading.Thread(target=self._stream_back_loop)
        # Like MLC's they are no daemons: one that is left keeps the process.
        self._background_loop_thread.start()
        self._background_stream_back_loop_thread.start()
        self._terminated = False
        self.engine_config = self._completed(engine_config or EngineConfig(), mode)
        if "load" in self._script:
            self._outputs.put(None)
        self._loaded.wait()  # for ever, where loading failed
        assert self.engine_config.max_single_sequence_length is not None
        self.max_input_sequence_length = self.engine_config.max_single_sequence_length
        self.completions = Completion(weakref.ref(self))

    def _completed(self, config: EngineConfig, mode: Any) -> EngineConfig:
        """What was left open, as MLC fills it in."""
        sizes = self.model_config_dicts[0]
        context = sizes["context_window_size"]
        single = min(config.max_single_sequence_length or context, context)
        total = config.max_total_sequence_length or single
        return replace(
            config,
            mode=mode,
            max_num_sequence=config.max_num_sequence or {"local": 4, "interactive": 1}[mode],
            max_single_sequence_length=single,
            max_total_sequence_length=total,
            prefill_chunk_size=(
                config.prefill_chunk_size or min(sizes["prefill_chunk_size"], total, single)
            ),
        )

    def terminate(self) -> None:
        if self._terminated:
            return
        self._terminated = True
        self._requests.put(None)
        self._outputs.put(None)
        self._background_loop_thread.join()
        self._background_stream_back_loop_thread.join()

    def abort(self, request_id: str) -> None:
        pass

    def _background_loop(self) -> None:
        if "load" in self._script:
            raise RuntimeError(self._script["load"])
        self._loaded.set()
        while (work := self._requests.get()) is not None:
            self._run(*work)

    def _run(self, request_id: str, request: openai_api_protocol.CompletionRequest) -> None:
        prompt = request.prompt
        assert isinstance(prompt, list)
        config, sizes = self.engine_config, self.model_config_dicts[0]
        total = config.max_total_sequence_length
        assert total is not None
        assert config.max_num_sequence == 1
        # MLC takes no prompt in before there is room, without saying so.
        assert len(prompt) + SPARE <= total, "MLC would wait for ever"
        assert -(-len(prompt) // PAGE) + 1 <= total // PAGE, "MLC would wait for ever"
        ignore_eos = request.debug_config is not None and request.debug_config.ignore_eos
        stops = [] if ignore_eos else sizes["conv_template"]["stop_token_ids"]
        ids = list(prompt)
        batch: list[data.RequestStreamOutput] = []
        reason = None
        while reason is None:
            made = len(ids) - len(prompt)
            if made == self._script.get("fail_after"):
                raise RuntimeError("InternalError: Check failed: the stand-in was told so\nStack")
            token = next_token(ids[-1], len(ids) - 1, sizes["vocab_size"])
            if request.temperature != 0:
                token = random.randrange(sizes["vocab_size"])
            ids.append(token)
            made += 1
            if token in stops or made == self._script.get("stop_after"):
                reason = "stop"
            elif made == request.max_tokens or len(ids) >= self.max_input_sequence_length:
                reason = "length"
            output = data.SingleRequestStreamOutput([token], None, reason, None, "")
            batch.append(data.RequestStreamOutput(request_id, output))
            if reason or len(batch) == self._script.get("together", 1):
                self._outputs.put(batch)
                batch = []
        usage = data.SingleRequestStreamOutput([], None, None, _usage(len(prompt), made), "")
        self._outputs.put([data.RequestStreamOutput(request_id, usage)])

    def _stream_back_loop(self) -> None:
        while (outputs := self._outputs.get()) is not None:
            self.state.sync_output_queue.put_nowait(outputs)

    def _handle_completion(
        self, request: openai_api_protocol.CompletionRequest, request_id: str
    ) -> Iterator[openai_api_protocol.CompletionResponse]:
        if len(request.prompt) > self.max_input_sequence_length:
            raise ValueError(
                f"Request prompt has {len(request.prompt)} tokens in total,"
                f" larger than the model input length limit {self.max_input_sequence_length}."
            )
        for outputs in self._generate(request, request_id):
            told = outputs[0].request_final_usage_json_str
            if told is not None:
                if request.stream_options and request.stream_options.include_usage:
                    usage = openai_api_protocol.CompletionUsage(**json.loads(told))
                    yield openai_api_protocol.CompletionResponse(
                        id=request_id, choices=[], usage=usage
                    )
            elif outputs[0].delta_text or outputs[0].finish_reason:
                choice = openai_api_protocol.CompletionResponseChoice(
                    outputs[0].delta_text, outputs[0].finish_reason
                )
                yield openai_api_protocol.CompletionResponse(id=request_id, choices=[choice])

    def _generate(
        self, request: openai_api_protocol.CompletionRequest, request_id: str
    ) -> Iterator[list[CallbackStreamOutput]]:
        if self._terminated:
            raise ValueError("The engine has terminated.")
        self.state.sync_output_queue = queue.Queue()
        self._requests.put((request_id, request))
        while True:
            delta_outputs = self.state.sync_output_queue.get()
            made, usage = self._request_stream_callback_impl(delta_outputs)
            yield from made
            if usage is not None:
                yield [CallbackStreamOutput("", None, None, usage)]
                break

    def _request_stream_callback_impl(
        self, delta_outputs: list[data.RequestStreamOutput]
    ) -> tuple[list[list[CallbackStreamOutput]], str | None]:
        batch: list[list[CallbackStreamOutput]] = []
        for delta_output in delta_outputs:
            _, parts = delta_output.unpack()
            if parts[0].request_final_usage_json_str is not None:
                return batch, parts[0].request_final_usage_json_str
            # Of every second token no text comes yet, as of half a character.
            text = "".join("x" * (token % 2) for token in parts[0].delta_token_ids)
            batch.append([CallbackStreamOutput(text, None, parts[0].finish_reason, None)])
        return batch, None


def _usage(prompt: int, made: int) -> str:
    """Figures of a request, by MLC's names; the first token is not counted as decoded."""
    extra = {
        "prompt_tokens": prompt,
        "completion_tokens": made - 1,
        "prefill_tokens": prompt,
        "decode_tokens": made - 1,
        "jump_forward_tokens": 0,
        "prefill_tokens_per_s": prompt / TTFT_S,
        "end_to_end_latency_s": TTFT_S + (made - 1) / DECODE_RATE,
        "ttft_s": TTFT_S,
        "inter_token_latency_s": 0.0,
    }
    if made > 1:
        extra["decode_tokens_per_s"] = DECODE_RATE
    return json.dumps(
        {
            "prompt_tokens": prompt,
            "completion_tokens": made - 1,
            "total_tokens": prompt + made - 1,
            "extra": extra,
        }
    )
