"""Score and mask functions: called once with symbols, they become expressions."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import rushlight as torch
from rushlight import Tensor

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_POSITION = (torch.int32,) * 4


class Traced(NamedTuple):
    """A traced function: its expression as text, the dtype it gives, the tensors it reads."""

    text: str
    dtype: torch.dtype
    captures: list[Tensor]


def positional_count(function: Callable) -> int:
    """How many positional parameters without defaults a function has."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        p.kind in kinds and p.default is inspect.Parameter.empty
        for p in inspect.signature(function).parameters.values()
    )


def is_mask(function: Callable) -> bool:
    """Whether this is a mask_mod (4 arguments) rather than a score_mod (5)."""
    count = positional_count(function)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 4


def _describe(function: Callable, error: BaseException | None) -> str:
    """'name' (file:line), the line being the user's own where the error arose."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not os.path.abspath(file).startswith(_PACKAGE):
            inside = trace.tb_frame.f_code
            # Frames above the function belong to its caller.
            if code is None or inside is code or place.startswith("!"):
                place = f"!{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    place = place.lstrip("!")
    return f"'{name}' ({place})" if place else f"'{name}'"


def fail_in(what: str, function: Callable, error: Exception) -> NoReturn:
    """Raises the error again, naming the function and the line where it arose."""
    text = str(error)
    if isinstance(error, (NotImplementedError, RuntimeError)) and "meta tensor" in text:
        text = (
            "data-dependent Python: the value of a traced tensor is asked for (by if, and, or, "
            "not, bool(), int(), item() or the like). The function is called once, with symbols; "
            "use torch.where, &, | and ~ instead"
        )
    raise type(error)(f"{what} {_describe(function, error)}: {text}") from error


def _trace(what: str, function: Callable, dtypes: tuple, first: int) -> Traced:
    try:
        return Traced(*torch._C._trace_scalars(function, dtypes, first))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        fail_in(what, function, error)


def trace_score(function: Callable, dtype: torch.dtype, first: int = 0) -> Traced:
    """Traces score_mod(score, batch, head, q_idx, kv_idx), the score being of `dtype`."""
    traced = _trace("score_mod", function, (dtype, *_POSITION), first)
    if traced.dtype == torch.bool:
        raise TypeError(
            f"score_mod {_describe(function, None)}: must return a score, got a tensor of dtype "
            "torch.bool. A function that says which pairs take part is a mask_mod: build a "
            "block_mask from it by create_block_mask"
        )
    return traced


def trace_mask(function: Callable, first: int = 0) -> Traced:
    """Traces mask_mod(batch, head, q_idx, kv_idx)."""

    def with_score(score: Tensor, *position: Tensor) -> Tensor:
        return function(*position)

    try:
        found = torch._C._trace_scalars(with_score, (torch.float32, *_POSITION), first)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        fail_in("mask_mod", function, error)
    traced = Traced(*found)
    if traced.dtype != torch.bool:
        raise AssertionError(
            f"mask_mod {_describe(function, None)}: mask.dtype must be torch.bool, "
            f"got {traced.dtype}"
        )
    return traced
