"""Functions whose arguments need more than a schema: many tensors, or several spellings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from rushlight import _C
from rushlight._C import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "einsum",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "lu",
    "meshgrid",
    "nonzero",
    "norm",
    "numel",
    "split",
    "tensordot",
    "unique",
    "unique_consecutive",
]

_table = _C._VariableFunctions


def _tensors(function: Callable, given: tuple) -> tuple[list[Tensor], object]:
    """The tensors, given one by one or as one sequence; and an override's result, or None."""
    found = list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    if _C._has_torch_function(tuple(found)):
        return [], (_C._handle_torch_function(function, tuple(found), tuple(given), {}),)
    return list(found), None


def einsum(equation: str | Tensor, *operands: object) -> Tensor:
    """Sums products of the operands over the labels that the equation leaves out.

    `einsum("ij,jk->ik", a, b)`, or operands and labels in turn: `einsum(a, [0, 1], b, [1, 2])`.
    Products go from left to right, or as the package opt_einsum says where it is installed
    (`backends.opt_einsum`).
    """
    if isinstance(equation, Tensor):
        equation, operands = _equation_of((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
        )
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if _C._has_torch_function(operands):
        return _C._handle_torch_function(einsum, operands, (equation, *operands), {})
    path = None
    if len(operands) > 2:
        path = importlib.import_module("rushlight.backends.opt_einsum").contraction_path(
            equation, operands
        )
    if path is None:
        return _table.einsum(equation, list(operands))
    return _table.einsum(equation, list(operands), path=path)


def _equation_of(given: tuple) -> tuple[str, tuple]:
    """The equation and operands of the form with label lists."""
    if len(given) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand")

    def letters(labels: Sequence) -> str:
        text = ""
        for label in labels:
            if label is Ellipsis:
                text += "..."
            elif isinstance(label, int) and 0 <= label < 52:
                text += chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
            else:
                raise ValueError(f"einsum(): expected subscript {label} to be within range [0, 52)")
        return text

    pairs = len(given) // 2
    equation = ",".join(letters(given[2 * i + 1]) for i in range(pairs))
    if len(given) % 2:
        equation += "->" + letters(given[-1])
    return equation, tuple(given[2 * i] for i in range(pairs))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape that they broadcast to."""
    found, result = _tensors(broadcast_tensors, tensors)
    return result[0] if result else _table.broadcast_tensors(found)


def broadcast_shapes(*shapes: int | Sequence[int]) -> object:
    """The shape that all the shapes broadcast to."""
    result: list[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"Trying to create tensor with negative dimension ({min(sizes)}): {sizes}"
            )
        result[:0] = [1] * (len(sizes) - len(result))
        for i in range(-1, -len(sizes) - 1, -1):
            if sizes[i] == 1 or sizes[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"Shape mismatch: objects cannot be broadcast to a single shape - got {shapes}"
                )
            result[i] = sizes[i]
    return _C.Size(result)


def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates of the 1-dim tensors; indexing 'ij' (rows first) or 'xy'."""
    found, result = _tensors(meshgrid, tensors)
    chosen = "ij" if indexing is None else indexing
    return result[0] if result else _table.meshgrid(found, indexing=chosen)


def atleast_1d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensors with at least one dimension."""
    return _at_least(atleast_1d, tensors)


def atleast_2d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensors with at least two dimensions."""
    return _at_least(atleast_2d, tensors)


def atleast_3d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensors with at least three dimensions."""
    return _at_least(atleast_3d, tensors)


def _at_least(function: Callable, tensors: tuple) -> Tensor | tuple[Tensor, ...]:
    if _C._has_torch_function(tensors):
        return _C._handle_torch_function(function, tensors, tensors, {})
    given = tensors[0] if len(tensors) == 1 else tensors
    return getattr(_table, function.__name__)(given)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of an element of each 1-dim tensor, one a row."""
    found, result = _tensors(cartesian_prod, tensors)
    return result[0] if result else _table.cartesian_prod(found)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the tensors along its diagonal."""
    found, result = _tensors(block_diag, tensors)
    return result[0] if result else _table.block_diag(found)


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Views cut along `dim`: into pieces of one size, or of the sizes given."""
    if _C._has_torch_function_unary(tensor):
        return _C._handle_torch_function(
            split, (tensor,), (tensor, split_size_or_sections), {"dim": dim}
        )
    return tensor.split(split_size_or_sections, dim)


def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Sequence[Sequence[int]] | Tensor = 2,
    out: Tensor | None = None,
) -> Tensor:
    """Sums products over the last `dims` dimensions of a and first of b, or over those listed."""
    if _C._has_torch_function_variadic(a, b):
        return _C._handle_torch_function(tensordot, (a, b), (a, b), {"dims": dims, "out": out})
    if isinstance(dims, Tensor):
        if dims.numel() > 1 and dims.shape[0] != 2:
            raise AssertionError(
                f"dims tensor must have size 2 in first dimension, got {dims.shape[0]}"
            )
        if dims.numel() == 0:
            raise RuntimeError("tensordot(): argument 'dims' is a tensor without elements")
        dims = dims.tolist() if dims.numel() > 1 else int(dims)
    if not isinstance(dims, (int, list, tuple)):
        raise RuntimeError(
            "tensordot expects dims to be int or two lists of ints, [dims of a, dims of b], but "
            f"got dims={dims!r}"
        )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(-dims, 0)), list(range(dims)))
    if len(dims) != 2:
        raise ValueError(
            f"tensordot(): argument 'dims' must have two lists of ints, of a and of b, got {dims!r}"
        )
    dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if out is None:
        return _table.tensordot(a, b, dims_a, dims_b)
    return _table.tensordot(a, b, dims_a, dims_b, out=out)


def _asked(
    values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    """The distinct values, with what else was asked for."""
    found = [values]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(counts)
    return tuple(found) if len(found) > 1 else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements, or slices along `dim`, in ascending order.

    With `return_inverse` also which of them each element is, with `return_counts` how often each
    occurs.
    """
    if _C._has_torch_function_unary(input):
        return _C._handle_torch_function(
            unique,
            (input,),
            (input,),
            {
                "sorted": sorted,
                "return_inverse": return_inverse,
                "return_counts": return_counts,
                "dim": dim,
            },
        )
    if dim is None:
        found = _table._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _table.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked(*found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The first of each run of equal elements, or of equal slices along `dim`; see unique."""
    if _C._has_torch_function_unary(input):
        return _C._handle_torch_function(
            unique_consecutive,
            (input,),
            (input,),
            {"return_inverse": return_inverse, "return_counts": return_counts, "dim": dim},
        )
    found = _table.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(*found, return_inverse, return_counts)


_DISTANCE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm distances between all rows of (..., P, M) and (..., R, M), as (..., P, R)."""
    if _C._has_torch_function((x1, x2)):
        options = {"p": p, "compute_mode": compute_mode}
        return _C._handle_torch_function(cdist, (x1, x2), (x1, x2), options)
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _table.cdist(x1, x2, p, _DISTANCE_MODES[compute_mode])


def nonzero(
    input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The positions of elements that are not zero: a row each, or a tensor for each dimension."""
    if _C._has_torch_function_unary(input):
        options = {"as_tuple": as_tuple, "out": out}
        return _C._handle_torch_function(nonzero, (input,), (input,), options)
    if not as_tuple:
        return _table.nonzero(input) if out is None else _table.nonzero(input, out=out)
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    return tuple(_table.where(input.unsqueeze(0) if input.dim() == 0 else input))


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: object = None,
) -> Tensor:
    """The vector norm of order p over `dim` (all elements by default); 'fro' is order 2."""
    if _C._has_torch_function_unary(input):
        return _C._handle_torch_function(
            norm,
            (input,),
            (input,),
            {"p": p, "dim": dim, "keepdim": keepdim, "out": out, "dtype": dtype},
        )
    if p == "nuc":
        options = {} if out is None else {"out": out}
        input = input if dtype is None else input.to(dtype)
        if dim is None:
            return _table.nuclear_norm(input, keepdim=keepdim, **options)
        return _table.nuclear_norm(input, dim, keepdim=keepdim, **options)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    order = 2.0 if p in (None, "fro") else p
    if isinstance(dim, int):
        dim = (dim,)
    options = {} if out is None else {"out": out}
    return _table.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype, **options)


def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """L and U of P A = L U in one tensor, the rows exchanged, and, if asked, where U is singular.

    Where `get_infos` is not set a singular matrix is an error. See torch.linalg.lu_factor.
    """
    if _C._has_torch_function_unary(A):
        options = {"pivot": pivot, "get_infos": get_infos, "out": out}
        return _C._handle_torch_function(lu, (A,), (A,), options)
    found = _table._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    made = found if get_infos else tuple(found)[:2]
    if out is None:
        return made
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(made):
        raise TypeError(f"expected tuple of {len(made)} elements but got {len(out)}")
    for target, value in zip(out, made, strict=True):
        target.resize_as_(value).copy_(value)
    return out


def _check_tensor(function: Callable, given: object) -> None:
    """TypeError where `given` is neither a tensor nor an object with __torch_function__."""
    if not isinstance(given, Tensor) and not hasattr(type(given), "__torch_function__"):
        raise TypeError(
            f"{function.__name__}(): argument 'input' (position 1) must be Tensor, not "
            f"{type(given).__name__}"
        )


def numel(input: Tensor) -> int:
    """How many elements the tensor has."""
    _check_tensor(numel, input)
    return input.numel()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    _check_tensor(is_complex, input)
    return input.is_complex()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    _check_tensor(is_floating_point, input)
    return input.is_floating_point()


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative values."""
    _check_tensor(is_signed, input)
    return input.is_signed()


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero."""
    _check_tensor(is_nonzero, input)
    return input.is_nonzero()


def is_inference(input: Tensor) -> bool:
    """Whether inference mode made the tensor."""
    return input.is_inference()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return input.is_same_size(other)


_ELSEWHERE = frozenset(
    {"chain_matmul", "istft", "pca_lowrank", "stft", "svd_lowrank", "unravel_index"}
)


def __getattr__(name: str) -> object:
    """Functions that PyTorch has here and the package has elsewhere."""
    if name in _ELSEWHERE:
        import rushlight

        return getattr(rushlight, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
