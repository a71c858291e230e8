"""SmolLM2's GGUF file against llama.cpp and transformers, which read it each in their own way."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebench.models.canonical import open_model

pytestmark = [pytest.mark.transformers, pytest.mark.llama_cpp]

PEAK_MB = 300
READ_ALL = """
import sys
from pathlib import Path
from edgebench.models.canonical import open_model
from edgebench.models.weights import row_blocks
model = open_model(Path(sys.argv[1]))
total = sum(block.size for tensor in model.weights.values() for block in row_blocks(tensor))
status = Path("/proc/self/status").read_text()  # ru_maxrss would be this process's parent's
print(total, status.partition("VmHWM:")[2].split()[0])
"""


def test_weights_and_architecture_are_those_that_transformers_reads(smollm: Path) -> None:
    """Tensors equal what transformers' own reader of GGUF files dequantises, to the bit.

    Of the first layers; it takes half a minute for all of them.
    """
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(smollm.parent, gguf_file=smollm.name)
    layers, config.num_hidden_layers = config.num_hidden_layers, 2
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        smollm.parent, gguf_file=smollm.name, config=config, dtype=torch.float32
    )

    ours = open_model(smollm)

    state = theirs.state_dict()
    assert len(state) == 2 + 2 * 9 + 1  # the output layer is the embedding again
    for name, tensor in state.items():
        if name != "lm_head.weight":
            assert np.array_equal(ours.weights[name].read(), tensor.numpy()), name
    assert ours.architecture.layers == layers
    assert ours.architecture.tied_embeddings
    frequencies = theirs.model.rotary_emb.inv_freq.tolist()
    assert ours.architecture.rope.inverse_frequencies == pytest.approx(frequencies, rel=3e-6)
    assert ours.architecture.parameters == 134_515_008  # as its makers say
    assert ours.lossy_types == ("Q4_1", "Q8_0")


def test_end_tokens_and_template_are_those_of_the_file(smollm: Path) -> None:
    """The chat's end and the text's end both end a text; no start token is due."""
    tokenizer = open_model(smollm).tokenizer

    assert tokenizer.start_id is None
    assert tokenizer.end_ids == (2, 0)
    assert (tokenizer.start_text, tokenizer.end_text) == ("<|im_start|>", "<|im_end|>")
    assert "<|im_start|>" in (tokenizer.chat_template or "")


def test_ids_are_those_of_transformers(smollm: Path) -> None:
    """Both rebuild the same tokenizer, but for digits, which transformers forgets to part."""
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(smollm.parent, gguf_file=smollm.name)
    ours = open_model(smollm).tokenizer

    for text in (
        "",
        " The quick  brown fox\n",
        "naïve 漢字 🙂",
        "<|im_start|>user\nhi<|im_end|>\n",
    ):
        assert ours.encode(text) == theirs(text, add_special_tokens=False).input_ids
        assert ours.decode(ours.encode(text)) == text


def test_ids_are_those_of_llama_cpp(smollm: Path, llama_cpp: Any) -> None:
    """On digits, code, other scripts and special tokens, too."""
    text = (
        "  It is 1234567 o'clock, we're late;\n\n\tdef f(x):\n        return x ** 2 != 10\r\n"
        "漢字とかな, naïve Ünïcödé 🙂👩‍👩‍👧 <|im_start|>user\n１２３½<|im_end|> <repo_name>x  "
    )
    data = text.encode()
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(smollm).encode(), parameters)
    vocab = llama_cpp.llama_model_get_vocab(model)
    buffer = (llama_cpp.llama_token * 999)()
    count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, 999, True, True)
    llama_cpp.llama_model_free(model)

    tokenizer = open_model(smollm).tokenizer

    assert tokenizer.encode(text) == list(buffer[:count])
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_texts_are_llama_cpps_tokens_and_cover_every_byte(smollm: Path, llama_cpp: Any) -> None:
    """The built-in texts, as they are and with special tokens' texts in them; nothing is parsed."""
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(smollm).encode(), parameters)
    vocab = llama_cpp.llama_model_get_vocab(model)
    tokenizer = open_model(smollm).tokenizer
    built_in = [
        path.read_text(encoding="utf-8")
        for path in sorted(Path(str(resources.files("edgebench.harness") / "texts")).glob("*.txt"))
    ]
    assert built_in
    odd = "a <|endoftext|> b <unk>\n<|im_start|>user e\u0301a\u0308 नि 🙂👩‍👩‍👧 \U00020000 "
    for text in (*built_in, odd, "word " * 20_000, "a" * 20_000):
        data = text.encode()
        room = len(data)
        buffer = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, room, False, False)
        made = tokenizer.encode_text(text)
        assert made.ids == tuple(buffer[:count])
        assert made.ends[-1] == len(data)
        places = np.array((0, *made.ends))
        assert (np.diff(places) >= 0).all()
        # What is not within a character is the whole text; what is, no more than its tokens.
        inside = sum(place < len(data) and data[place] & 0xC0 == 0x80 for place in made.ends)
        assert inside < sum(byte & 0xC0 == 0x80 for byte in data) + 1
    llama_cpp.llama_model_free(model)
    assert (tokenizer.start_id, tokenizer.start_token_id) == (None, 1)


def test_reading_all_weights_takes_little_memory(smollm: Path) -> None:
    """A process that reads every weight, block by block, never holds half the model."""
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(smollm)], capture_output=True, text=True, check=True
    )

    weights, peak_kb = (int(number) for number in done.stdout.split())

    assert weights == 134_515_008
    assert peak_kb < PEAK_MB * 1024  # as float32, the weights take 513 MB
