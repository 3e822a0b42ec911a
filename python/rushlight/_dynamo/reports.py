"""`torch._dynamo.explain`: the segments of a call, and why each ended."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable

from rushlight._dynamo import segments
from rushlight._dynamo.eval_frame import CompileContext


@dataclasses.dataclass
class GraphCompileReason:
    """Why a segment ended before the function did, and where in the program."""

    reason: str
    user_stack: list[traceback.FrameSummary]
    graph_break: bool = True


@dataclasses.dataclass
class ExplainOutput:
    """What `explain` found."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list] | None = None
    out_guards: list | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, reason in enumerate(self.break_reasons, 1):
            lines += [
                f"  Break Reason {number}:",
                f"    Reason: {reason.reason}",
                "    User Stack:",
            ]
            lines += [f"      {frame}" for frame in reason.user_stack]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph or (), 1):
            lines += [f"  Ops {number}:", *(f"    {op}" for op in ops)]
        lines.append("Out Guards:")
        if self.compile_times is not None:
            lines.append(f"Compile Times: {self.compile_times}")
        return "\n".join(lines)


class _Collector:
    """The back end and the observer of an explained call."""

    def __init__(self) -> None:
        self.graphs: list = []
        self.reasons: list[GraphCompileReason] = []
        self.ops: list[list] = []

    def compile(self, gm, example_inputs) -> Callable:
        self.graphs.append(gm)
        return gm.forward

    def observe(self, reason: str, what: str, ops: list[str], called: bool) -> None:
        self.ops.append(list(ops))
        if reason == "close":
            return
        frame = segments.user_frame()
        stack = [] if frame is None else list(traceback.extract_stack(frame, limit=1))
        if reason == "operator":
            text = f"aten.{what} cannot be captured: its results' shapes depend on data"
        else:
            text = f"{what or 'something'} needs the value of a tensor"
        self.reasons.append(GraphCompileReason(text, stack))


def explain(f: Callable, *extra_args: object, **extra_kwargs: object):
    """explain(f)(*args): runs f, and reports its segments and why each ended."""

    def inner(*args: object, **kwargs: object) -> ExplainOutput:
        collector = _Collector()
        context = CompileContext(collector.compile, observer=collector.observe)
        start = time.perf_counter()
        context(f)(*args, **kwargs)
        return ExplainOutput(
            graphs=collector.graphs,
            graph_count=len(collector.ops),
            graph_break_count=len(collector.reasons),
            break_reasons=collector.reasons,
            op_count=sum(len(ops) for ops in collector.ops),
            ops_per_graph=collector.ops,
            out_guards=[],
            compile_times=f"{time.perf_counter() - start:.4f} s for the call as a whole",
        )

    if extra_args or extra_kwargs:
        return inner(*extra_args, **extra_kwargs)
    return inner
