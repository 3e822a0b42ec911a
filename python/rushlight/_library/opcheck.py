"""Checks of an operator that a program has defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.testing import assert_close
from rushlight.utils._pytree import tree_leaves, tree_map_only

ALL_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """An operator that does not do what its schema and registrations say."""


def opcheck(
    op: Callable,
    args: tuple,
    kwargs: dict | None = None,
    *,
    test_utils: Any = ALL_TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Runs checks of an operator on some arguments; gives 'SUCCESS' or the error for each.

    test_schema: writes what the schema says, and nothing else. test_autograd_registration: an
    operator whose arguments require grad has a gradient. test_faketensor: results without numbers
    look as real ones. test_aot_dispatch_dynamic: compiled, it gives the same results and gradients.
    """
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(wanted) - set(ALL_TESTS)
    if unknown or not wanted:
        raise ValueError(f"opcheck(): expected test_utils out of {ALL_TESTS}, got {test_utils}")
    overload = getattr(op, "_opoverload", op)
    overload = overload if hasattr(overload, "_operator") else getattr(overload, "default", op)
    if not hasattr(overload, "_operator"):
        raise ValueError(
            f"opcheck(op, ...): op must be an operator defined by torch.library, got {op}"
        )
    results: dict[str, Any] = {}
    for name in wanted:
        try:
            _CHECKS[name](overload, args, kwargs or {}, {"rtol": rtol, "atol": atol})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results


def _copies(value: Any) -> Any:
    def copy(tensor: Tensor) -> Tensor:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return tree_map_only(Tensor, copy, value)


def _check_schema(op: Any, args: tuple, kwargs: dict, tolerances: dict) -> None:
    schema = op._operator.schema
    bound, keywords = schema.bind(op._operator.qualname, args, kwargs)
    given = tree_map_only(Tensor, lambda x: x.detach().clone(), (bound, keywords))
    before = tree_map_only(Tensor, lambda x: x.clone(), given)
    op(*given[0], **given[1])
    named = [*zip(schema.positional, given[0], before[0], strict=True)]
    named += [(a, given[1][a.name], before[1][a.name]) for a in schema.arguments if a.keyword_only]
    for argument, after, earlier in named:
        if argument.mutated:
            continue
        for one, other in zip(tree_leaves(after), tree_leaves(earlier), strict=True):
            if isinstance(one, Tensor) and not torch.equal(one, other):
                raise RuntimeError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )


def _check_autograd(op: Any, args: tuple, kwargs: dict, tolerances: dict) -> None:
    operator = op._operator
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    if not any(x.requires_grad for x in tensors) or "autograd" in operator.kernels:
        return
    if operator.backward is None and "default" not in operator.kernels:
        raise RuntimeError(
            "None of the inputs' gradients are registered: use torch.library.register_autograd"
        )
    results = [x for x in tree_leaves(op(*_copies(args), **_copies(kwargs)))]
    if (
        operator.is_custom
        and operator.backward is None
        and any(isinstance(x, Tensor) and x.requires_grad for x in results)
    ):
        raise RuntimeError(
            "The operator's results require grad, but it has no gradient: use register_autograd"
        )


def _check_fake(op: Any, args: tuple, kwargs: dict, tolerances: dict) -> None:
    def meta(value: Any) -> Any:
        return tree_map_only(Tensor, lambda x: x.detach().to("meta"), value)

    real = tree_leaves(op(*_copies(args), **_copies(kwargs)))
    fake = tree_leaves(op(*meta(args), **meta(kwargs)))
    if len(real) != len(fake):
        raise RuntimeError(f"{len(fake)} fake results for {len(real)} real ones")
    for place, (one, other) in enumerate(zip(fake, real, strict=True)):
        if not isinstance(other, Tensor):
            continue
        for what in ("shape", "dtype", "stride()"):
            got, wanted = (
                x.stride() if what == "stride()" else getattr(x, what) for x in (one, other)
            )
            if got != wanted:
                raise RuntimeError(
                    f"Result {place} of the fake impl has {what} {got}, the real one {wanted}"
                )


def _run(call: Callable, args: tuple, kwargs: dict) -> list:
    args, kwargs = _copies((args, kwargs))
    results = [x for x in tree_leaves(call(*args, **kwargs)) if isinstance(x, Tensor)]
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    tracked = [x for x in results if x.requires_grad]
    found: list = []
    if tracked and inputs:
        total = sum(x.sum() for x in tracked)
        found = list(torch.autograd.grad(total, inputs, allow_unused=True))
    return [x.detach() for x in results] + found


def _check_compiled(op: Any, args: tuple, kwargs: dict, tolerances: dict) -> None:
    def call(*given: Any, **keywords: Any) -> Any:
        return op(*given, **keywords)

    eager = _run(call, args, kwargs)
    compiled = _run(torch.compile(call), args, kwargs)
    assert_close(compiled, eager, **tolerances)


_CHECKS = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_compiled,
}
