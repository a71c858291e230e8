"""How an engine is set up."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass
class EngineConfig:
    """All fields of MLC's, with MLC's defaults."""

    model: str | None = None
    model_lib: str | None = None
    additional_models: list[str | tuple[str, str]] = field(default_factory=list)
    mode: Literal["local", "interactive", "server"] | None = None
    tensor_parallel_shards: int | None = None
    pipeline_parallel_stages: int | None = None
    opt: str | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_page_size: int = 16
    max_num_sequence: int | None = None
    max_total_sequence_length: int | None = None
    max_single_sequence_length: int | None = None
    prefill_chunk_size: int | None = None
    sliding_window_size: int | None = None
    attention_sink_size: int | None = None
    max_history_size: int | None = None
    kv_state_kind: Literal["kv_cache", "rnn_state"] | None = None
    speculative_mode: Literal["disable", "small_draft", "eagle", "medusa"] = "disable"
    spec_draft_length: int = 0
    spec_tree_width: int = 1
    prefix_cache_mode: Literal["disable", "radix"] = "radix"
    prefix_cache_max_num_recycling_seqs: int | None = None
    prefill_mode: Literal["chunked", "hybrid"] = "hybrid"
    verbose: bool = True
