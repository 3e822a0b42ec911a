"""Jacobians, Hessians and their products with vectors, by backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight._C import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(values: Any, what: str, function: str) -> tuple[bool, tuple]:
    is_tuple = isinstance(values, tuple)
    items = values if is_tuple else (values,)
    for index, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f" at index {index}" if is_tuple else ""
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors "
                f"but the value{where} has type {type(item)}."
            )
    return is_tuple, tuple(items)


def _untuple(values: tuple, is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _prepared(inputs: tuple, create_graph: bool) -> tuple:
    """Inputs to differentiate: views within the caller's graph, or leaves apart from it."""
    if create_graph:
        return tuple(
            value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
            for value in inputs
        )
    return tuple(value.detach().requires_grad_() for value in inputs)


def _finished(values: tuple, create_graph: bool) -> tuple:
    return values if create_graph else tuple(value.detach() for value in values)


def _check_strict(values: tuple, what: str, strict: bool) -> None:
    if not strict:
        return
    for index, value in enumerate(values):
        if not value.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The "
                f"{what} will be zero everywhere; this is not allowed in strict mode."
            )


def _gradients(
    outputs: tuple, inputs: tuple, given: tuple, create_graph: bool, strict: bool, what: str
) -> tuple:
    """Gradients with zeros for what does not matter."""
    kept = [(o, g) for o, g in zip(outputs, given, strict=False) if o.requires_grad]
    if not kept:
        found: tuple = (None,) * len(inputs)
    else:
        found = torch.autograd.grad(
            [o for o, _ in kept],
            inputs,
            [g for _, g in kept],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    filled = []
    for index, (gradient, value) in enumerate(zip(found, inputs, strict=False)):
        if gradient is None:
            if strict:
                raise RuntimeError(
                    f"The output of the user-provided function is independent of input {index}. "
                    f"This is not allowed in strict mode: {what}"
                )
            gradient = torch.zeros_like(value)
        filled.append(gradient)
    return tuple(filled)


def _vectors(v: Any, like: tuple, what: str, function: str) -> tuple:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} of the user-provided function is a "
                "single Tensor with a single element."
            )
        return (torch.ones_like(like[0]),)
    _, items = _tuple(v, "v", function)
    if len(items) != len(like):
        raise RuntimeError(f"v is a tuple of length {len(items)}, expected {len(like)}")
    for index, (item, value) in enumerate(zip(items, like, strict=False)):
        if item.shape != value.shape:
            raise RuntimeError(
                f"Entry {index} of v has size {tuple(item.shape)}, expected {tuple(value.shape)}"
            )
    return items


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(outputs, v^T J): the product of a vector with the Jacobian of func."""
    with torch.enable_grad():
        is_tuple, values = _tuple(inputs, "inputs", "vjp")
        prepared = _prepared(values, create_graph)
        out_tuple, outputs = _tuple(func(*prepared), "outputs", "vjp")
        _check_strict(outputs, "vjp", strict)
        vectors = _vectors(v, outputs, "output", "vjp")
        result = _gradients(outputs, prepared, vectors, create_graph, strict, "vjp")
    return (
        _untuple(_finished(outputs, create_graph), out_tuple),
        _untuple(_finished(result, create_graph), is_tuple),
    )


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(outputs, J v), by differentiating the vector-Jacobian product."""
    with torch.enable_grad():
        _, values = _tuple(inputs, "inputs", "jvp")
        prepared = _prepared(values, create_graph)
        vectors = _vectors(v, prepared, "input", "jvp")
        out_tuple, outputs = _tuple(func(*prepared), "outputs", "jvp")
        _check_strict(outputs, "jvp", strict)
        dummies = tuple(torch.zeros_like(output, requires_grad=True) for output in outputs)
        products = _gradients(outputs, prepared, dummies, True, strict, "jvp")
        result = _gradients(products, dummies, vectors, create_graph, strict, "jvp")
    return (
        _untuple(_finished(outputs, create_graph), out_tuple),
        _untuple(_finished(result, create_graph), out_tuple),
    )


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """d outputs / d inputs, of shape (*output.shape, *input.shape) for each pair."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    with torch.enable_grad():
        in_tuple, values = _tuple(inputs, "inputs", "jacobian")
        prepared = _prepared(values, create_graph)
        out_tuple, outputs = _tuple(func(*prepared), "outputs", "jacobian")
        _check_strict(outputs, "jacobian", strict)
        rows = []
        for output in outputs:
            columns: list[list[Tensor]] = [[] for _ in prepared]
            flat = output.reshape(-1)
            for i in range(flat.shape[0]):
                seed = (torch.ones_like(flat[i]),)
                found = _gradients((flat[i],), prepared, seed, create_graph, strict, "jacobian")
                for column, gradient in zip(columns, found, strict=False):
                    column.append(gradient)
            rows.append(
                tuple(
                    torch.stack(column).view(output.shape + value.shape)
                    if column
                    else value.new_zeros(output.shape + value.shape)
                    for column, value in zip(columns, prepared, strict=False)
                )
            )
    finished = tuple(_finished(row, create_graph) for row in rows)
    return _untuple(tuple(_untuple(row, in_tuple) for row in finished), out_tuple)


def _scalar_output(function: Callable, name: str) -> Callable:
    def checked(*inputs: Tensor) -> Tensor:
        output = function(*inputs)
        if not isinstance(output, Tensor) or output.numel() != 1:
            raise RuntimeError(
                f"The function given to {name} should return a single Tensor with a single element."
            )
        return output.squeeze()

    return checked


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a func that gives one element."""
    is_tuple, values = _tuple(inputs, "inputs", "hessian")
    scalar = _scalar_output(func, "hessian")

    def gradient(*arguments: Tensor) -> tuple:
        result = jacobian(scalar, arguments, create_graph=True)
        return tuple(result)

    found = jacobian(gradient, values, create_graph=create_graph, strict=strict)
    return found if is_tuple else found[0][0]


def _gradient_function(func: Callable, name: str) -> Callable:
    scalar = _scalar_output(func, name)

    def gradient(*arguments: Tensor) -> tuple:
        return tuple(jacobian(scalar, arguments, create_graph=True))

    return gradient


def _output(func: Callable, values: tuple, create_graph: bool) -> Tensor:
    with torch.set_grad_enabled(create_graph):
        return func(*(_prepared(values, True) if create_graph else values))


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(output, v^T H) of a func that gives one element."""
    is_tuple, values = _tuple(inputs, "inputs", "vhp")
    vectors = _vectors(v, values, "input", "vhp")
    _, result = vjp(_gradient_function(func, "vhp"), values, vectors, create_graph, strict)
    return _output(func, values, create_graph), _untuple(result, is_tuple)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(output, H v) of a func that gives one element: the same as vhp, H being symmetric."""
    is_tuple, values = _tuple(inputs, "inputs", "hvp")
    vectors = _vectors(v, values, "input", "hvp")
    _, result = jvp(_gradient_function(func, "hvp"), values, vectors, create_graph, strict)
    return _output(func, values, create_graph), _untuple(result, is_tuple)
