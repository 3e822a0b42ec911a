"""Transforms of functions: gradients, products with Jacobians, Jacobians and Hessians.

Reverse mode is a pass over the tape. Forward mode is two of them: the product of a Jacobian with a
vector is the derivative of the product of a vector with the Jacobian, so what is differentiated
forward must be twice differentiable backward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import BatchedTensor
from rushlight._functorch._tape import depends_on_others, fresh, gradients, release
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]

argnums_t = int | tuple


def _chosen(argnums: int | tuple, args: tuple) -> tuple[int, ...]:
    """The positions to differentiate."""
    if not isinstance(argnums, (int, tuple)) or not all(
        isinstance(i, int) for i in (argnums if isinstance(argnums, tuple) else (argnums,))
    ):
        kind = type(argnums) if not isinstance(argnums, tuple) else tuple(map(type, argnums))
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {kind}")
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    for position in positions:
        if not -len(args) <= position < len(args):
            raise RuntimeError(f"Got argnum={position}, but only {len(args)} positional inputs")
    found = tuple(position % len(args) for position in positions)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


class _Call:
    """A function called with fresh inputs in some places: its inputs and outputs on the tape."""

    def __init__(self, what: str, func: Callable, primals: tuple, has_aux: bool) -> None:
        self.what = what
        self.outer = torch.is_grad_enabled()
        with torch.enable_grad():
            flat, self.in_spec = tree_flatten(primals)
            self.inputs = [fresh(leaf) for leaf in flat]
            result = func(*tree_unflatten(self.inputs, self.in_spec))
        self.aux = None
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{what}: output of function f should be a tuple: (output, aux) if has_aux is "
                    "True"
                )
            result, self.aux = result
        self.result = result

    def outputs(self) -> list[Tensor]:
        """The outputs, which must be tensors."""
        flat, self.out_spec = tree_flatten(self.result)
        if not flat:
            raise RuntimeError(
                f"{self.what}: Expected f to be a function that has non-empty output (got output = "
                f"{self.result})"
            )
        for each in flat:
            if not isinstance(each, Tensor):
                raise RuntimeError(
                    f"{self.what}: expected f(*primals) to return only tensors, got unsupported "
                    f"type {type(each)}"
                )
        return flat

    def keeps_tape(self, outputs: list) -> bool:
        """Whether what leaves the transform stays on the tape: others are to be differentiated."""
        return self.outer and depends_on_others(outputs, self.inputs)

    def released(self, value: Any) -> Any:
        """A tree of results as it leaves the transform."""
        leaves = [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor)]
        keep = self.keeps_tape(leaves)
        return tree_map_only(Tensor, lambda leaf: release(leaf, keep), value)

    def released_aux(self) -> Any:
        for each in tree_flatten(self.aux)[0]:
            if not isinstance(each, Tensor):
                raise RuntimeError(f"Expected tensors, got unsupported type {type(each)}")
        return self.released(self.aux)


def grad_and_value(func: Callable, argnums: int | tuple = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient, value) of a func whose result has one element.

    With has_aux func gives (value, aux), and the function (gradient, (value, aux)). The gradient
    has the structure of the argument, or a tuple of those where argnums is a tuple.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = _chosen(argnums, args)

        def partial(*chosen: Any) -> Any:
            given = list(args)
            for position, value in zip(positions, chosen, strict=True):
                given[position] = value
            return func(*given, **kwargs)

        primals = tuple(args[position] for position in positions)
        made = _Call("grad_and_value(f)(*args)", partial, primals, has_aux)
        output = made.result
        _check_scalar(output)
        keep = made.keeps_tape([output])
        found = gradients([output], made.inputs, [torch.ones_like(output)], create_graph=keep)
        found = tree_unflatten(found, made.in_spec)
        found = found if isinstance(argnums, tuple) else found[0]
        value = release(output, keep)
        return found, ((value, made.released_aux()) if has_aux else value)

    return wrapper


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
            f"with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Callable, argnums: int | tuple = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of a func whose result has one element.

    With has_aux func gives (value, aux), and the function (gradient, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(output, vjp_fn), and aux: vjp_fn(cotangents) gives a tuple of their products with the
    Jacobian, one for each argument.
    """
    made = _Call("vjp(f, *primals)", func, primals, has_aux)
    outputs = made.outputs()
    spec = made.out_spec
    tracked = made.keeps_tape(outputs)

    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> tuple:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given_spec}, primal output: {spec}"
            )
        for index, (each, output) in enumerate(zip(given, outputs, strict=True)):
            if each.shape != output.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{index}] has a shape of {each.shape} and "
                    f"output[{index}] has a shape of {output.shape}."
                )
        on = torch.is_grad_enabled() if create_graph is None else create_graph
        on = on and (tracked or any(each.requires_grad for each in given))
        found = gradients(outputs, made.inputs, given, retain_graph=retain_graph, create_graph=on)
        return tree_unflatten(found, made.in_spec)

    result = made.released(made.result)
    return (result, vjp_fn, made.released_aux()) if has_aux else (result, vjp_fn)


class _Forward:
    """A function on the tape, ready to be multiplied by vectors on the right."""

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.outputs = call.outputs()
        self.tracked = call.keeps_tape(self.outputs)
        with torch.enable_grad():
            self.seeds = [torch.zeros_like(each).requires_grad_() for each in self.outputs]
            usable = [
                (each, seed)
                for each, seed in zip(self.outputs, self.seeds, strict=True)
                if each.requires_grad
            ]
            self.products = gradients(
                [each for each, _ in usable],
                call.inputs,
                [seed for _, seed in usable],
                create_graph=True,
            )

    def times(self, tangents: list[Tensor]) -> Any:
        """The product with a vector that has a tensor for each input."""
        keep = torch.is_grad_enabled() and (
            self.tracked or any(each.requires_grad for each in tangents)
        )
        found = gradients(
            list(self.products), self.seeds, tangents, retain_graph=True, create_graph=keep
        )
        return tree_unflatten([release(each, keep) for each in found], self.call.out_spec)


def jvp(
    func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple:
    """(output, product of the Jacobian with the tangents), and aux where has_aux.

    By two passes backward, so func's operators must be twice differentiable.
    """
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    given, given_spec = tree_flatten(tangents)
    if spec != given_spec:
        raise RuntimeError(
            f"{what}: Expected primals and tangents to have the same python structure. For "
            f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {given_spec}"
        )
    _check_tangents(what, flat, given)
    made = _Call(what, func, primals, has_aux)
    forward = _Forward(made)
    if strict and not all(each.requires_grad for each in forward.outputs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    tangent = forward.times(given)
    result = made.released(made.result)
    return (result, tangent, made.released_aux()) if has_aux else (result, tangent)


def _check_tangents(what: str, primals: list, tangents: list) -> None:
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not values:
            raise RuntimeError(f"{what}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{what}: Expected {name} to only contain Tensors, got {type(value)}"
                )
    for primal, tangent in zip(primals, tangents, strict=True):
        if primal.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the "
                f"original Tensor, this is not supported. Tensor is of size {list(primal.shape)} "
                f"while the given forward gradient is of size {list(tangent.shape)}."
            )


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(output, jvp_fn): jvp_fn(*tangents) is the product of the Jacobian at primals with them."""
    made = _Call("linearize(f, *primals)", func, primals, False)
    forward = _Forward(made)
    result = made.released(made.result)
    shapes = [each.shape for each in made.inputs]

    def jvp_fn(*tangents: Any) -> Any:
        given, spec = tree_flatten(tangents)
        if spec != made.in_spec:
            raise RuntimeError(
                f"Expected the tangents {spec} to have the same argspec as the primals "
                f"{made.in_spec}"
            )
        for index, (each, shape) in enumerate(zip(given, shapes, strict=True)):
            if each.shape != shape:
                raise RuntimeError(
                    f"tangent:{index} with shape {each.shape} in flattened pytree doesn't match "
                    f"the shape {shape} of the corresponding primal."
                )
        return forward.times(given)

    return result, jvp_fn


def jacrev(
    func: Callable,
    argnums: int | tuple = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that gives the Jacobian of func, (*output.shape, *input.shape) for each pair, by
    one pass backward for each element of the output.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = _chosen(argnums, args)
        made = _call_at("vjp(f, *primals)", func, args, kwargs, positions, has_aux)
        outputs = made.outputs()
        keep = made.keeps_tape(outputs)
        blocks = [_rows(output, made.inputs, keep) for output in outputs]
        result = tree_unflatten(
            [_shaped(block, made.in_spec, argnums) for block in blocks], made.out_spec
        )
        return (result, made.released_aux()) if has_aux else result

    return wrapper


def _call_at(
    what: str, func: Callable, args: tuple, kwargs: dict, positions: tuple, has_aux: bool
) -> _Call:
    """The call of func in which the arguments at some positions are differentiated."""

    def partial(*chosen: Any) -> Any:
        given = list(args)
        for position, value in zip(positions, chosen, strict=True):
            given[position] = value
        return func(*given, **kwargs)

    return _Call(what, partial, tuple(args[position] for position in positions), has_aux)


def _shaped(block: list, spec: Any, argnums: int | tuple) -> Any:
    found = tree_unflatten(block, spec)
    return found if isinstance(argnums, tuple) else found[0]


def _rows(output: Tensor, inputs: list[Tensor], keep: bool) -> list[Tensor]:
    """The Jacobian of one output for each input, row by row."""
    with torch.enable_grad():
        flat = output.reshape(-1)
        count = flat.shape[0]
        rows = [
            gradients(
                [flat[i]], inputs, [torch.ones_like(flat[i])], retain_graph=True, create_graph=keep
            )
            for i in range(count)
        ]
    if not rows:
        return [value.new_zeros((*output.shape, *value.shape)) for value in inputs]
    return [
        torch.stack(column).reshape((*output.shape, *value.shape))
        for column, value in zip(zip(*rows, strict=True), inputs, strict=True)
    ]


def jacfwd(
    func: Callable, argnums: int | tuple = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """A function that gives the Jacobian of func, (*output.shape, *input.shape) for each pair, by
    one product for each element of the inputs; func runs once, so all share its random numbers.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if randomness == "different":
        raise NotImplementedError(
            "jacfwd: randomness='different' is not offered, as func runs once: use 'same'"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = _chosen(argnums, args)
        made = _call_at("jvp(f, primals, tangents)", func, args, kwargs, positions, has_aux)
        forward = _Forward(made)
        blocks = [_columns(forward, index) for index in range(len(made.inputs))]
        rows = [list(row) for row in zip(*blocks, strict=True)]
        result = tree_unflatten(
            [_shaped(row, made.in_spec, argnums) for row in rows], made.out_spec
        )
        return (result, made.released_aux()) if has_aux else result

    return wrapper


def _columns(forward: _Forward, index: int) -> list[Tensor]:
    """The Jacobian of each output for one input, column by column."""
    inputs = forward.call.inputs
    value = inputs[index]
    zeros = [torch.zeros_like(each) for each in inputs]
    columns = []
    for place in range(value.numel()):
        basis = torch.zeros(value.numel(), dtype=value.dtype)
        basis[place] = 1
        tangents = [*zeros[:index], basis.reshape(value.shape), *zeros[index + 1 :]]
        columns.append(tree_flatten(forward.times(tangents))[0])
    if not columns:
        return [each.new_zeros((*each.shape, *value.shape)) for each in forward.outputs]
    return [
        torch.stack(column, -1).reshape((*output.shape, *value.shape))
        for column, output in zip(zip(*columns, strict=True), forward.outputs, strict=True)
    ]


def hessian(func: Callable, argnums: int | tuple = 0) -> Callable:
    """A function that gives the second derivatives of func: jacfwd of jacrev."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function itself: what it writes in place is seen the same way by every transform here."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): valid options for argument 'remove' are: "
            f"'mutations' and 'mutations_and_views', got {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The batch behind an element inside vmap, for looking at it; other tensors as they are."""
    while isinstance(tensor, BatchedTensor):
        tensor = tensor._value
        if not recurse:
            break
    return tensor
