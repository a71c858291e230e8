"""Wrong uses of ``edgebench predict``: a message that helps, and no traceback."""

from __future__ import annotations

import pytest

from edgebench.cli.main import run_command_line
from edgebench.harness.errors import ExitStatus

PI = ("predict", "--model", "llama2-7b", "--device", "raspberry-pi-5")
VM = ("predict", "--model", "llama2-7b", "--device", "vm")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("predict", "--device", "vm"), "--model"),
        (("predict", "--model", "llama2-7b"), "--device"),
        (("predict", "--model", "llama-7b", "--device", "vm"), "Did you mean llama2-7b?"),
        (("predict", "--model", "llama2-7b", "--device", "raspbery-pi-5"), "raspberry-pi-5"),
        ((*PI, "--quantization", "int4"), "Write mnn:int4 or mediapipe:int4."),
        ((*PI, "--quantization", "Q4_KM"), "Did you mean Q4_K_M?"),
        ((*PI, "--quantization", "source"), "known by its shape alone"),
        ((*PI, "--context", "0"), "--context"),
        ((*PI, "--context", "100", "--prompt", "101"), "a longer --context"),
        ((*PI, "--reserved", "much"), "1GiB"),
        ((*VM, "--processor", "gpu"), "has no GPU"),
        ((*PI, "--kv-type", "f8"), "--kv-type"),
        (("predict", "--model", "hf:a/b", "--device", "vm"), "Download it"),
    ],
)
def test_wrong_use_says_what_to_do(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, what there is instead, and an exit status of its own."""
    assert run_command_line(list(arguments)) == ExitStatus.USAGE
    printed = capsys.readouterr()
    assert says in printed.err
    assert not printed.out


def test_small_numbers_keep_two_digits_and_no_more() -> None:
    """A prediction has no more to say; nothing is written with an exponent."""
    from edgebench.cli.predict_output import number

    texts = [number(each) for each in (0.0342, 0.999, 3.14159, 9.96, 47.4, 1234.0, 0.0)]
    assert texts == ["0.034", "1.0", "3.1", "10", "47", "1200", "0"]
