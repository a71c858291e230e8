"""Which of a file's tensors decoding a token reads, by hand."""

from __future__ import annotations

from edgebench.runners.llama_weights import StoredTensor, read_per_token

LAYERS = [
    StoredTensor("blk.0.attn_q.weight", 500, 10),
    StoredTensor("blk.0.attn_norm.weight", 40, 1),
    StoredTensor("blk.1.attn_q.weight", 700, 10),
]
EMBEDDING = StoredTensor("token_embd.weight", 10_000, 100)


def test_a_tied_embedding_is_read_whole() -> None:
    """It is the output layer as well."""
    assert read_per_token([EMBEDDING, *LAYERS]) == 10_000 + 500 + 40 + 700


def test_an_untied_embedding_gives_one_row() -> None:
    """One of its 100 rows, and the whole output layer."""
    output = StoredTensor("output.weight", 20_000, 100)
    assert read_per_token([EMBEDDING, output, *LAYERS]) == 100 + 20_000 + 1240


def test_other_tables_that_are_looked_up_give_one_row() -> None:
    """Learned positions, and the tables of tokens that each layer of some models has."""
    tables = [
        StoredTensor("position_embd.weight", 4096, 64),
        StoredTensor("per_layer_token_embd.weight", 9000, 100),
        StoredTensor("token_embd_norm.weight", 32, 1),  # a vector that every token is scaled by
    ]
    assert read_per_token([EMBEDDING, *tables]) == 10_000 + 64 + 90 + 32


def test_factors_of_positions_are_no_weights() -> None:
    """They would be computed where the file had none."""
    factors = [
        StoredTensor("rope_freqs.weight", 128, 1),
        StoredTensor("blk.0.rope_factors_long.weight", 128, 1),
    ]
    assert read_per_token([EMBEDDING, *factors]) == 10_000


def test_experts_count_as_often_as_they_are_used() -> None:
    """Two of eight; the shared expert and the router are read by every token."""
    tensors = [
        StoredTensor("blk.0.ffn_up_exps.weight", 8000, 64),
        StoredTensor("blk.0.ffn_up_shexp.weight", 1000, 64),
        StoredTensor("blk.0.ffn_gate_inp.weight", 80, 8),
    ]
    assert read_per_token(tensors, experts=8, experts_used=2) == 2000 + 1000 + 80


def test_layers_that_guess_ahead_are_idle() -> None:
    """Only the first layer is used."""
    assert read_per_token([EMBEDDING, *LAYERS], layers=1) == 10_540
