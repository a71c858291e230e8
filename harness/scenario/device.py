"""Which device a scenario runs on, and how its power is measured, as people write it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, Field, model_validator

from edgebench.devices.power import KINDS
from edgebench.harness.scenario.problems import Finding, quote, unknown
from edgebench.harness.scenario.values import Label, Location, Text  # noqa: TC001 - pydantic
from edgebench.harness.scenario.written import STRICT, refuse
from edgebench.harness.ssh.address import why_no_address

if TYPE_CHECKING:
    from collections.abc import Mapping


def device_conflicts(device: Mapping[str, object]) -> list[Finding]:
    """What does not go together in how a device is reached."""
    findings = []
    address = device.get("ssh")
    if isinstance(address, str) and (wrong := why_no_address(address)) is not None:
        message = (
            f"{quote(address)} is no address for ssh, for it {wrong}; write USER@HOST, or a name "
            "of your OpenSSH configuration"
        )
        findings.append(Finding(("ssh",), message))
    if address is not None and device.get("adb") is not None:
        findings.append(Finding(("adb",), "a device is reached by ssh or by adb, not by both"))
    return findings


def power_conflicts(power: Mapping[str, object]) -> list[Finding]:
    """What does not go together in how power is measured."""
    findings = []
    meter, command = power.get("meter"), power.get("command")
    kind = meter.partition(":")[0] if isinstance(meter, str) else None
    if kind is not None and kind not in KINDS:
        findings.append(Finding(("meter",), unknown(f"no meter is a {quote(kind)}", kind, KINDS)))
    if kind == "external" and command is None:
        message = (
            "an external meter is a command that prints its readings: write it beside this, as "
            "command, or leave meter out"
        )
        findings.append(Finding(("meter",), message))
    if isinstance(command, str):
        try:
            shlex.split(command)
        except ValueError as error:
            findings.append(Finding(("command",), f"it can't be split: {str(error).lower()}"))
        if kind in KINDS and kind != "external":
            message = f"the command is the meter 'external', which meter: {meter} leaves out"
            findings.append(Finding(("command",), message))
    return findings


class Device(BaseModel):
    """Where it runs; this machine where neither `ssh` nor `adb` is given."""

    model_config = STRICT

    ssh: Label | None = Field(
        default=None,
        description="USER@HOST, or a name of your OpenSSH configuration; its host key must be "
        "known. See docs/devices.md.",
    )
    adb: Label | None = Field(
        default=None,
        description="The serial number of an Android device, as `adb devices` says; 'any' where "
        "only one is attached.",
    )
    python: Location | None = Field(
        default=None, description="The Python 3.11 or newer on the device, for `ssh`."
    )
    folder: Location | None = Field(
        default=None, description="Where models and the worker are kept on the device."
    )
    tools: dict[Label, Location] = Field(
        default={},
        description="For `adb`: by runner, the native tool that you built for the device "
        "(llama-bench, llm_bench, litert_lm_main), a path on this machine.",
    )
    profile: Label | None = Field(
        default=None,
        description="Its profile: a name of `edgebench devices list`, or a file.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(device_conflicts({"ssh": self.ssh, "adb": self.adb}))
        return self


class Power(BaseModel):
    """How power is measured; every meter that can be trusted is read where nothing is said."""

    model_config = STRICT

    meter: Label | None = Field(
        default=None, description="Only meters of this kind, such as rapl, hwmon, battery, nvidia."
    )
    command: Text | None = Field(
        default=None,
        description="A command that prints 'seconds,watts' lines of an external meter. See "
        "docs/power.md.",
    )
    estimate: Literal["tdp"] | None = Field(
        default=None,
        description="'tdp' computes energy from the thermal design power and the processors' use "
        "where no meter can be used; it is labelled estimated wherever it appears.",
    )
    tdp_w: float | None = Field(
        default=None,
        gt=0,
        le=10_000,
        description="The thermal design power in watts, where no profile says it. Without "
        "`estimate` it is of use for the formula beside sustained work only.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(power_conflicts(dict(self)))
        return self
