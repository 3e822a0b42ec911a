"""What the core calls while segments run: reports, and errors that name a line of the program."""

from __future__ import annotations

import dis
import os
import sys
import threading
import traceback
import types

from rushlight._dynamo import config, exc

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_local = threading.local()


def user_frame() -> types.FrameType | None:
    """The innermost frame that is not this package's: the line of the program that runs."""
    frame = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def describe(frame: types.FrameType | None) -> str:
    """As tracebacks show a frame: file, line, function, and the line itself."""
    if frame is None:
        return ""
    stack = traceback.extract_stack(frame, limit=1)
    return "".join(traceback.format_list(stack)).rstrip()


def _in_assert(frame: types.FrameType | None) -> bool:
    """Whether the frame reads what an `assert` statement tests."""
    if frame is None:
        return False
    for step in dis.get_instructions(frame.f_code):
        # The truth is tested by the jump over the error, or by a step of its own before it.
        if step.offset <= frame.f_lasti or "JUMP" in step.opname or step.opname == "NOT_TAKEN":
            continue
        constant = step.opname == "LOAD_COMMON_CONSTANT" and step.argrepr == "AssertionError"
        return constant or step.opname == "LOAD_ASSERTION_ERROR"
    return False


# What a program may read under fullgraph=True: PyTorch captures these as unbacked numbers.
_SCALARS = {"Tensor.item()", "Tensor.tolist()", "int(tensor)", "float(tensor)"}


def fullgraph_break(name: str, what: str) -> None:
    """Called where a value is read in a function compiled with fullgraph=True."""
    if getattr(_local, "allow_breaks", 0) or what in _SCALARS:
        return
    frame = user_frame()
    if what == "bool(tensor)" and _in_assert(frame):
        return  # PyTorch captures it as a check that is made when the graph runs
    cause = what or "the memory of a tensor"
    raise exc.Unsupported(
        f"fullgraph=True, but the graph of '{name}' ends here: {cause} needs a value that has not "
        "been computed\n"
        "  Hint: use torch.where or torch.cond in place of a branch on data, move the line out of "
        "the compiled function, or compile with fullgraph=False\n\n"
        f"from user code:\n{describe(frame)}",
        gb_type=cause,
        real_stack=traceback.extract_stack(frame) if frame is not None else None,
    )


def may_recompile(name: str, limit: int, beyond: bool, fullgraph: bool) -> bool:
    """Called for a graph whose place in the call has a plan of another structure, or that lies
    beyond recompile_limit and so runs operator by operator; whether it is compiled.
    """
    if not beyond:
        if config.error_on_recompile:
            raise exc.RecompileError(
                f"Recompiling '{name}': it met a graph of another structure, and "
                "torch._dynamo.config.error_on_recompile is set"
            )
        return True
    text = (
        f"torch.compile hit recompile_limit ({limit}) in '{name}': "
        "graphs of other structures run operator by operator"
    )
    if fullgraph or config.fail_on_recompile_limit_hit:
        raise exc.FailOnRecompileLimitHit(text)
    import warnings

    warnings.warn(text, stacklevel=2)
    return False


def wrong_result(backend: object, text: str) -> None:
    """Called where a back end's callable gave something else than the graph's results."""
    raise exc.BackendCompilerFailed(backend, TypeError(text), user_frame())


class allow_breaks:
    """While entered, fullgraph=True is no error on this thread."""

    def __init__(self, on: bool = True) -> None:
        self._on = on

    def __enter__(self) -> None:
        self._before = getattr(_local, "allow_breaks", 0)
        _local.allow_breaks = int(self._on)

    def __exit__(self, *exception: object) -> None:
        _local.allow_breaks = self._before
