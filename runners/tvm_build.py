"""A model library made with TVM's own passes and compiler: one shared object, ``lib.so``.

Imports TVM: import it late.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax
from tvm.relax import transform

from edgebench.runners.base import RunnerFailure
from edgebench.runners.tvm_link import link_command, linker
from edgebench.runners.tvm_model import Decoder
from edgebench.runners.tvm_schedule import UNSCHEDULED, schedule_with_notes
from edgebench.runners.tvm_target import host_target, target_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tvm.target import Target

    from edgebench.models.architecture import Architecture
    from edgebench.runners.mlc_layout import Quantization

FORMAT = 1
"""Of what stands under ``edgebench`` in a library's metadata. 1: version, tvm, target."""


def tvm_version() -> str:
    """The installed TVM's."""
    return str(tvm.__version__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a library is built with.

    Attributes:
        target: this machine's CPU.
        facts: `target_facts` of it.
        linker: the command that links.
    """

    target: Target
    facts: dict[str, Any]
    linker: list[str]

    @classmethod
    def find(cls, quantization: Quantization) -> Tools:
        """Look for them, before anything that takes long.

        Raises:
            RunnerFailure: there is no linker, or this CPU can't compute with float16.
        """
        target = host_target()
        facts = target_facts(target)
        if quantization.dtype == "float16" and not has_halves(facts):
            msg = (
                f"{quantization.name} needs instructions that convert float16, which this CPU "
                f"({facts['mcpu']}) lacks; choose q0f32"
            )
            raise RunnerFailure(msg, reason="unsupported")
        return cls(target, facts, linker())


def has_halves(facts: Mapping[str, Any]) -> bool:
    """Whether a CPU converts float16 by instructions, which all 64-bit ARM do.

    Args:
        facts: `target_facts` of it.
    """
    return bool(facts["arch"] == "aarch64" or "f16c" in facts["features"])


def build_library(
    architecture: Architecture,
    quantization: Quantization,
    shared: Mapping[str, Any],
    tools: Tools,
    library: Path,
) -> list[str]:
    """Compile a model for this machine's CPU.

    Args:
        architecture: what its forward pass is.
        quantization: how weights are kept and with what is computed.
        shared: what ``_metadata()`` is to say, besides the parameters and edgebench's own facts;
            memory is planned for its ``prefill_chunk_size``.
        tools: what it is built with.
        library: a new file.

    Returns:
        The functions that a schedule was meant for and failed on, each with TVM's reason.

    Raises:
        RunnerFailure: the linker failed, or TVM did.
    """
    notes: dict[str, str] = {}
    try:
        decoder = Decoder(architecture, quantization, tools.target)
        module, parameters, _ = decoder.export_tvm(spec=decoder.functions(), allow_extern=True)
        own = {"version": FORMAT, "tvm": tvm_version(), "target": tools.facts}
        facts = {**shared, "params": _named(parameters), "edgebench": own}
        passes = _passes(tools.target, shared["prefill_chunk_size"], notes)
        with tools.target, tvm.transform.PassContext(opt_level=3):
            made = relax.build(
                _with_metadata(module, facts), target=tools.target, relax_pipeline=passes
            )
            made.export_library(str(library), fcompile=link_command(tools.linker))
    except tvm.error.InternalError as error:
        reason = next(reversed(str(error).strip().splitlines()), "no word of why")
        msg = f"TVM {tvm_version()} could not compile this model: {reason}"
        raise RunnerFailure(msg) from error
    failed = f"{UNSCHEDULED}: "
    return sorted(f"{name} ({note})" for name, note in notes.items() if note.startswith(failed))


def _named(parameters: list[Any]) -> list[dict[str, object]]:
    """What MLC's metadata say of each parameter."""
    return [
        {
            "name": name,
            "shape": [int(length) for length in parameter.shape],
            "dtype": str(parameter.dtype),
            "preprocs": [],
            "pipeline_stages": [0],
        }
        for name, parameter in parameters
    ]


def _with_metadata(module: tvm.IRModule, facts: dict[str, object]) -> tvm.IRModule:
    builder = relax.BlockBuilder(module)
    with builder.function("_metadata", params=[]):
        builder.emit_func_output(tvm.ir.StringImm(json.dumps(facts)))
    return builder.finalize()


def _passes(target: Target, chunk: int, notes: dict[str, str]) -> tvm.transform.Pass:
    """The passes from operators to the virtual machine's instructions, as MLC orders them.

    Args:
        target: what is compiled for.
        chunk: the most tokens of a prompt taken in at once.
        notes: gets the name of each function, and of the rule that scheduled it.
    """

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(module: tvm.IRModule, _context: object) -> tvm.IRModule:
        module = tvm.transform.Sequential(
            [
                transform.FuseTransposeMatmul(),
                transform.LegalizeOps(),
                transform.AnnotateTIROpPattern(),
                transform.FoldConstant(),
                transform.FuseOps(),
                transform.FuseTIR(),
                transform.DeadCodeElimination(),
            ]
        )(module)
        module, found = schedule_with_notes(_with_bounds(module, chunk), target)
        notes.update(found)
        return tvm.transform.Sequential(
            [
                transform.RewriteDataflowReshape(),
                transform.ToNonDataflow(),
                transform.RemovePurityChecking(),
                transform.CallTIRRewrite(),
                transform.StaticPlanBlockMemory(),
                transform.LowerAllocTensor(),
                transform.KillAfterLastUse(),
                transform.LowerRuntimeBuiltin(),
                transform.ComputePrimValue(),
                transform.VMShapeLower(),
                transform.AttachGlobalSymbol(),
            ]
        )(module)

    return run


def _with_bounds(module: tvm.IRModule, chunk: int) -> tvm.IRModule:
    """Say how long a prompt can be, so that memory is planned once and used again."""
    for name, function in list(module.functions_items()):
        if isinstance(function, relax.Function):
            module[name] = function.with_attr("tir_var_upper_bound", {"seq_len": chunk})
    return module
