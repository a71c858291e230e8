"""``edgebench predict``: would a model fit a device that is not at hand, and how fast is it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.problems import quote
from edgebench.harness.scenario.quantities import size_in_bytes

if TYPE_CHECKING:
    from edgebench.harness.predict.device import Processor
    from edgebench.harness.predict.predict import Prediction

KV_BYTES = {"f32": 4.0, "f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Of a number, scales included."""

GIB = 2.0**30

EPILOG = """\
Nothing is measured. Every number is a bound or a range with its assumptions, and is marked as
predicted; docs/predict.md sets predictions against published and measured figures. Several
--device and --quantization make a table.
"""


def _size(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = size_in_bytes(value)
    if found is None or found > 2.0**60:
        msg = f"{quote(value)} is no size; write it as 1GiB or 600MiB"
        raise click.BadParameter(msg)
    return found


@click.command(epilog=EPILOG)
@click.option(
    "--model",
    required=True,
    help="A well-known model such as llama2-7b, a GGUF file or a Hugging Face folder.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    required=True,
    metavar="NAME|FILE",
    help="A profile: a name of `edgebench devices list`, or a file. May be repeated.",
)
@click.option(
    "--quantization",
    "quantizations",
    multiple=True,
    metavar="NAME",
    help="Such as Q4_0, mnn:int4, mediapipe:int8, q4f16_1, or source for a file as it is. Q4_0 "
    "where a model is named, source where a file is. May be repeated.",
)
@click.option(
    "--context",
    type=click.IntRange(1, 1 << 24),
    default=2048,
    show_default=True,
    help="Tokens in the KV cache.",
)
@click.option(
    "--prompt",
    type=click.IntRange(1, 1 << 24),
    default=512,
    show_default=True,
    help="Tokens of the prompt.",
)
@click.option(
    "--processor",
    type=click.Choice(("cpu", "gpu")),
    default="cpu",
    show_default=True,
    help="What computes.",
)
@click.option(
    "--kv-type",
    type=click.Choice(tuple(KV_BYTES)),
    help="How keys and values are kept; as the framework does where not given.",
)
@click.option(
    "--reserved",
    callback=_size,
    metavar="SIZE",
    help="Memory that other programs take, such as 1GiB; assumed where not given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def predict(
    model: str,
    devices: tuple[str, ...],
    quantizations: tuple[str, ...],
    context: int,
    prompt: int,
    processor: str,
    kv_type: str | None,
    reserved: float | None,
    as_json: bool,  # noqa: FBT001 - click's own way
) -> None:
    """Predict memory, speed and energy of a model on devices that are not at hand."""
    from edgebench.cli.predict_output import as_document, show  # noqa: PLC0415
    from edgebench.harness.device_profiles import find_profile  # noqa: PLC0415
    from edgebench.harness.predict.decoder import decoder_of  # noqa: PLC0415
    from edgebench.harness.predict.device import facts_of  # noqa: PLC0415
    from edgebench.harness.predict.formats import SOURCE, parse_format  # noqa: PLC0415
    from edgebench.harness.predict.predict import Request  # noqa: PLC0415
    from edgebench.harness.predict.predict import predict as predicted  # noqa: PLC0415

    if prompt > context:
        msg = f"a prompt of {prompt} tokens does not fit a context of {context}"
        raise UsageError(msg, remedy="Give a longer --context or a shorter --prompt.")
    decoder = decoder_of(model)
    asked = quantizations or ((SOURCE if decoder.stored else "Q4_0"),)
    forms = [parse_format(each) for each in dict.fromkeys(asked)]
    kind: Processor = "gpu" if processor == "gpu" else "cpu"
    facts = [facts_of(find_profile(each), kind) for each in dict.fromkeys(devices)]
    for each in facts:
        if reserved is not None and each.ram.value is not None and reserved > each.ram.value:
            msg = (
                f"--reserved {reserved / GIB:.2f} GiB is more than the {each.ram.value / GIB:.2f} "
                f"GiB of {each.key}"
            )
            raise UsageError(msg, remedy="Give what other programs take of its memory.")
    found: list[Prediction] = [
        predicted(
            Request(
                model=decoder,
                form=form,
                device=device,
                context=context,
                prompt=prompt,
                kv_number_bytes=KV_BYTES[kv_type] if kv_type else None,
                reserved=reserved,
            )
        )
        for device in facts
        for form in forms
    ]
    if as_json:
        click.echo(json.dumps(as_document(found), indent=2, allow_nan=False))
    else:
        show(found)
