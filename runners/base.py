"""The contract between edgebench and a framework: small, and standard library only.

A runner is a class with four methods, `describe`, `load`, `generate` and `close`. What more a
framework can do (tokenize, score, make its own artifacts, run whole tasks) are protocols of their
own, which the worker looks for. See ``docs/adding-a-runner.md``.
"""

from __future__ import annotations

import dataclasses

# Imported at run time, since the harness reads these annotations to check what a runner sends.
from collections.abc import Mapping, Sequence  # noqa: TC003
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

Scalar: TypeAlias = bool | int | float | str | None

Reason: TypeAlias = Literal[
    "unsupported", "invalid", "unavailable", "out_of_memory", "framework", "internal"
]


class RunnerFailure(Exception):  # noqa: N818 - a failure that is reported, not a bug
    """What a runner raises when it can't do what was asked; it becomes a row in the results.

    Args:
        message: one sentence for the user: what happened and what to do.
        reason: ``unsupported`` (the framework lacks it), ``invalid`` (the request is wrong),
            ``unavailable`` (not installed), ``out_of_memory``, ``framework`` (it said no).
    """

    def __init__(self, message: str, *, reason: Reason = "framework") -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a runner, as a scenario's variant may set it.

    Attributes:
        kind: the type that a scenario must give.
        default: what the runner does when it is not set; None where the framework decides.
        choices: the allowed values, or empty where any is allowed.
        minimum: the least number allowed.
        stage: when it counts: ``load``, or ``convert`` where it shapes the artifact that
            `Converter.convert` makes; such an option is no part of a `LoadRequest`.
        help: one sentence.
    """

    kind: Literal["int", "float", "bool", "str"]
    help: str
    default: Scalar = None
    choices: tuple[Scalar, ...] = ()
    minimum: float | None = None
    stage: Literal["load", "convert"] = "load"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a framework can do; what it can't becomes a null with the reason.

    Attributes:
        tokenizer: a runner that is a `Tokenizer` can load a vocabulary and nothing else.
        tokenizer_loads_model: it loads the whole model all the same, so that it is asked for
            prompts only where the model's own files have no tokenizer that is understood.
        tokenizes: a runner's `tokenize` gives its framework's own ids of a text, to be compared,
            once the model is loaded; prompts are not made with it.
        scoring: the runner is a `Scorer`.
        top_k_logits: its scores name the likeliest token and rate candidates.
        tasks: names of whole tasks that the runner, a `TaskRunner`, knows, such as
            ``text-summarizer``; whether one can be run here is for `describe_task` to say.
    """

    token_ids_in: bool
    token_ids_out: bool
    token_timestamps: bool
    ignores_end_of_text: bool
    threads: bool
    tokenizer: bool = False
    tokenizer_loads_model: bool = False
    tokenizes: bool = False
    chat_template: bool = False
    scoring: bool = False
    top_k_logits: bool = False
    kv_cache_types: tuple[str, ...] = ()
    gpu_backends: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """Which engine a runner drives.

    Attributes:
        engine: the engine's own name, such as ``llama.cpp`` or ``LiteRT-LM``.
        engine_version: its version, with the binding's where they differ.
        build: build flags and other facts that change its speed.
        notes: what a user should know, such as how to get another engine; `edgebench runners`
            prints them.
    """

    engine: str
    engine_version: str
    capabilities: Capabilities
    build: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load.

    Attributes:
        model_path: the artifact that the framework reads.
        context_tokens: the most tokens, prompt and generated together, of any workload.
        options: the variant's options; those not set are absent.
        vocab_only: only the tokenizer and the model's facts are needed.
    """

    model_path: str
    context_tokens: int
    options: Mapping[str, Scalar] = field(default_factory=dict)
    vocab_only: bool = False


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What was loaded.

    Attributes:
        effective_options: what the framework says it uses, read back from it where possible.
        vocabulary_size: token ids are at least 0 and below it.
        parameters: weights in the model, or None where the framework does not say.
        trained_context_tokens: the longest context that the model was trained for.
        chat_template: the model's own Jinja template, or None.
        bos_text, eos_text: the texts that a chat template may ask for.
        engine, engine_version: what was loaded, in the words of a `Description`, where `describe`
            could not know: a runner may have two engines, or the model bring code of its own.
            Reports then name the variant after it and not after the runner.
        weight_bytes_per_token: bytes of weights that decoding one token reads, each once, or None
            where that can't be told. A matrix of which one row is looked up counts with that row;
            where it is the output layer too, it is read whole.
    """

    effective_options: dict[str, Scalar]
    vocabulary_size: int
    architecture: str | None = None
    parameters: int | None = None
    trained_context_tokens: int | None = None
    chat_template: str | None = None
    bos_text: str = ""
    eos_text: str = ""
    engine: str | None = None
    engine_version: str | None = None
    weight_bytes_per_token: int | None = None


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One prompt and how many tokens to make.

    Every generation starts from an empty KV cache, fills `depth_ids` in (not measured), takes the
    prompt and makes exactly `max_tokens` tokens, greedily, past any end-of-text token.

    Attributes:
        prompt_ids: the prompt as token ids; all frameworks get the same.
        prompt_text: a text that tokenizes to exactly `prompt_ids`, or None. Where it is given,
            tokenizing it belongs to the measured time. Ids that differ are a failure, unless the
            framework takes ids: then they are handed over, and `Generation.tokenized_ns` is None.
        depth_ids: tokens already in the cache when the clock starts.
    """

    prompt_ids: Sequence[int]
    max_tokens: int
    prompt_text: str | None = None
    depth_ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """What came out, with ``time.perf_counter_ns()`` time stamps taken in the runner.

    Attributes:
        token_ids: the generated tokens, the first one (made by the prefill) included; None for one
            that a framework made without its id being told by what it gave out.
        submitted_ns: when the prompt was handed over.
        tokenized_ns: when its ids were known, or None where ids were handed over, or where
            tokenizing is part of the prefill and can't be seen.
        prefilled_ns: when the prompt had been processed, or None where it can't be seen.
        token_ns: when each generated token was available; as long as `token_ids`.
        prompt_tokens: how many prompt tokens the framework processed.
        finish_reason: ``length``, or what ended it early.
        engine: the framework's own figures, by metric key, in the units of that metric.
    """

    token_ids: Sequence[int | None]
    submitted_ns: int
    token_ns: Sequence[int]
    prompt_tokens: int
    finish_reason: str
    tokenized_ns: int | None = None
    prefilled_ns: int | None = None
    depth_tokens: int = 0
    engine: Mapping[str, float] = field(default_factory=dict)


class Runner(Protocol):
    """What every runner has. The framework is imported in `describe`, never at the module's top."""

    OPTIONS: ClassVar[Mapping[str, Option]]
    """The options that a scenario's variant may set for this runner."""

    QUANTIZATIONS: ClassVar[tuple[str, ...]]
    """The quantisations that `convert` makes; ``source`` (the file as it is) is always there."""

    PIP: ClassVar[str]
    """What pip installs to make this runner available, such as ``edgebench[llama-cpp]``."""

    def describe(self) -> Description:
        """Import the framework and say which it is. Raises `RunnerFailure` (unavailable)."""

    def load(self, request: LoadRequest) -> LoadedModel:
        """Load the model, ready for its first prompt."""

    def generate(self, request: GenerateRequest) -> Generation:
        """Run one prompt; the same request gives the same tokens."""

    def close(self) -> None:
        """Free what `load` made. May be called without it, and twice."""


@runtime_checkable
class Preparer(Protocol):
    """A runner that has something to do before a load, which is no part of how long that takes."""

    def prepare(self, request: LoadRequest) -> Sequence[str]:
        """Make what `load` is to find, such as a warm cache; called before it, with its request.

        Returns:
            Paths of files that `load` will read besides the model.
        """


@runtime_checkable
class Tokenizer(Protocol):
    """A runner that gives access to the model's tokenizer, once loaded."""

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """The ids of `text` as a prompt, after a start token where one is due.

        Args:
            text: any.
            special: whether the texts of special tokens are those tokens; else they are text as
                any other. A runner without this argument is asked for the former only.
        """

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens written out, without a start token of its own."""


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Given tokens, to be rated.

    Attributes:
        ids: token ids, at most the loaded context.
        start: the first position to score, at least 1.
        candidates: empty, or for each scored position the ids of further tokens to rate there.
    """

    ids: Sequence[int]
    start: int = 1
    candidates: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """How likely given tokens are; an entry for each of ``ids[start:]``, each given all before it.

    Attributes:
        log_likelihoods: natural logarithms, at most 0, of the tokens that stand there.
        top_ids: the likeliest token of each position, or None where the framework hides it.
        candidates: the log-likelihoods of the request's candidates, or None where it hides them.
    """

    log_likelihoods: Sequence[float]
    top_ids: Sequence[int] | None = None
    candidates: Sequence[Sequence[float]] | None = None


@runtime_checkable
class Scorer(Protocol):
    """A runner that gives the log-likelihoods of given tokens."""

    def score(self, request: ScoreRequest) -> Scores:
        """Rate ``ids[start:]``; the KV cache is empty before and need not be after."""


@dataclass(frozen=True, slots=True)
class TaskDescription:
    """What runs a task, which need not be what the same runner's `generate` drives.

    Attributes:
        engine: such as ``MediaPipe TextSummarizer``.
        engine_version: its version.
        build: what else a reader should know, such as the engine that it embeds.
    """

    engine: str
    engine_version: str
    build: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task that is ready for its first text.

    Attributes:
        started_ns, ready_ns: ``time.perf_counter_ns()`` around the loading; importing the
            framework is no part of it.
        effective_options: what the task uses; an option that does not reach it is left out.
    """

    started_ns: int
    ready_ns: int
    effective_options: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """One text, handed to the task as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What the task made of a text.

    Attributes:
        submitted_ns, finished_ns: ``time.perf_counter_ns()`` when the text was handed over, and
            when the whole result was there.
    """

    text: str
    submitted_ns: int
    finished_ns: int


@runtime_checkable
class TaskRunner(Protocol):
    """A runner whose framework has tasks of its own: text in, text out, nothing seen between.

    A task's process does nothing else: `describe` and `load` are not called in it.
    """

    def describe_task(self, task: str) -> TaskDescription:
        """Import what runs the task and say what it is; the process is not measured."""

    def import_task(self, task: str) -> None:
        """Import what runs the task, which is no part of loading it."""

    def load_task(self, task: str, request: LoadRequest) -> LoadedTask:
        """Load the model for the task."""

    def run_task(self, request: TaskRequest) -> TaskResult:
        """Run the loaded task once, from an empty state."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """What to make an artifact of, and how.

    Attributes:
        source: path of the source model: a GGUF file, or a folder in Hugging Face's layout.
        quantization: one of the runner's `QUANTIZATIONS`.
        target: path to write, where nothing exists yet; its folder does, and is removed if the
            conversion fails.
        options: the variant's options of the stage ``convert``; those not set are absent.
    """

    source: str
    quantization: str
    target: str
    options: Mapping[str, Scalar] = field(default_factory=dict)


@runtime_checkable
class Converter(Protocol):
    """A runner that makes its artifact from a source model, with its framework's own tools.

    Its class may have two more texts: `ARTIFACT_SUFFIX`, such as ``.gguf``, where it makes a file
    (without it, what is made is named after the runner); and `CONVERTER_VERSION`, to be changed
    where the same request gives another artifact than before, so that those in users' stores are
    made again. The framework's version need not be in it.
    """

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """Write the artifact to `request.target`, a file or a folder; half of one if it fails.

        Returns:
            What a reader should know: ``tool`` with its version, and ``note``.
        """


def to_wire(value: object) -> dict[str, object]:
    """A dataclass of this module as JSON-ready values; its lists are its own, not copies."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        msg = f"not a dataclass instance: {value!r}"
        raise TypeError(msg)
    # Not dataclasses.asdict, which copies each of the million numbers of a long text's scores.
    fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
    return {
        name: to_wire(part) if dataclasses.is_dataclass(part) else part for name, part in fields
    }
