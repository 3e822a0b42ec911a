"""torch.export.draft_export: a program where export has objections, and a report of these."""

from __future__ import annotations

import enum
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rushlight import Tensor, ops
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight.export._export import export
from rushlight.export.exported_program import ExportedProgram
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from rushlight.nn.modules.module import Module

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]

_log = logging.getLogger(__name__)
_LINE = "#" * 99


class FailureType(enum.Enum):
    """What export objects to. Those of kernels are of PyTorch's fake tensors: never found here."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2  # a value of a tensor decides what runs
    GUARD_ADDED = 3  # a size that was to be open is not
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self) -> str:
        return self.name


@dataclass
class FailureReport:
    """One objection; data: `expr`, what it is about, and `stack`, where in the program it was."""

    failure_type: FailureType
    data: dict[str, Any]
    xfail: bool = False

    def print(self, str_to_filename: dict[int, str]) -> str:
        """The objection, and what became of it."""
        stack = "".join(f"        {line}\n" for line in self.data.get("stack", ()))
        if self.failure_type is FailureType.DATA_DEPENDENT_ERROR:
            return (
                "Data dependent error.\n"
                f"    When exporting, we were unable to evaluate the value of `{self.data['expr']}`"
                f".\n    This occurred at the following stacktrace:\n{stack}"
                f"    As a result, it was specialized to a constant (`{self.data['result']}`), and "
                "asserts were inserted into the graph.\n"
            )
        return (
            "Guard Added.\n    A size that was to be open decides what runs:\n"
            f"    {self.data['expr']}\n    As a result, all sizes are those of the example.\n"
        )


@dataclass
class DraftExportReport:
    """What export objected to."""

    failures: list[FailureReport]
    str_to_filename: dict[int, str] = field(default_factory=dict)

    def successful(self) -> bool:
        """Whether `export` would have made the same program."""
        return all(failure.xfail for failure in self.failures)

    def __str__(self) -> str:
        if self.successful():
            return (
                f"{_LINE}\nCongratulations: No issues are found during export, and it was able to "
                "soundly produce a graph.\nYou can now change back to torch.export.export()\n"
                f"{_LINE}\n"
            )
        items = "\n".join(
            f"{number}. {failure.print(self.str_to_filename)}"
            for number, failure in enumerate(self.failures, 1)
        )
        return (
            f"{_LINE}\nWARNING: {len(self.failures)} issue(s) found during export, and it was not "
            "able to soundly produce a graph.\nPlease follow the instructions to fix the errors.\n"
            f"{_LINE}\n\n{items}"
        )


def _user_stack() -> list[str]:
    """Where in the program the running call is; frames of the library are left out."""
    frames = [f for f in traceback.extract_stack() if "/rushlight/" not in f.filename]
    return [f"File {f.filename}, lineno {f.lineno}, in {f.name}: {f.line}" for f in frames[-3:]]


class _Specializer:
    """Takes values that the program reads for constants, which the graph checks."""

    def __init__(self) -> None:
        self.failures: list[FailureReport] = []

    def __call__(self, mode: ProxyTorchDispatchMode, tensor: Tensor, value: Any) -> None:
        """Notes that a value was read, and has the graph check that it is the same."""
        node = mode.node(tensor)
        same = mode.graph._call_operator(ops.aten.eq.Tensor, (node, value))
        text = f"the program was exported for the value {value} of {node.name}"
        mode.graph._call_operator(ops.aten._assert_async.msg, (same, text))
        self.failures.append(
            FailureReport(
                FailureType.DATA_DEPENDENT_ERROR,
                {"expr": node.name, "result": value, "stack": _user_stack()},
            )
        )


def draft_export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | tuple | list | None = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that `export` makes, or would make but for what its `_report` lists.

    Values of tensors that the module reads are constants, which the program checks; sizes that
    cannot be open are those of the example.
    """

    def attempt(shapes: Any) -> tuple[ExportedProgram, list[FailureReport]]:
        specializer = _Specializer()
        program = export(
            mod,
            args,
            kwargs,
            dynamic_shapes=shapes,
            preserve_module_call_signature=preserve_module_call_signature,
            _on_value=specializer,
        )
        return program, specializer.failures

    failures = []
    try:
        program, found = attempt(dynamic_shapes)
    except UserError as error:
        if error.error_type is not UserErrorType.CONSTRAINT_VIOLATION:
            raise
        failures.append(FailureReport(FailureType.GUARD_ADDED, {"expr": str(error)}))
        program, found = attempt(None)
    known: dict[str, FailureReport] = {}  # once for each place: sizes are tried out
    for failure in found:
        known.setdefault(str(failure.data), failure)
    program._report = DraftExportReport([*failures, *known.values()])
    if program._report.successful():
        _log.info(program._report)
    else:
        _log.warning(program._report)
    return program
