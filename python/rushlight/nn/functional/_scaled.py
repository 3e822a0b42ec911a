"""Products of matrices of scaled 8-bit floats, and of groups: the experts of a mixture."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor

_SCALED_DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


class ScalingType(enum.IntEnum):
    """What one scale is of: the whole matrix, a row, or a block of it."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """How scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Group by group, mat_a @ mat_b.

    Of (M, K) and (G, K, N): groups of rows, each by a matrix of its own, (M, N). Of (G, M, K) and
    (K, N): groups of columns, (M, N). Of (M, K) and (K, N): groups of terms, (G, M, N). Of (G, M,
    K) and (G, K, N): all of them, (G, M, N), without `offs`.

    Args:
        mat_a: float32, bfloat16 or float16, as mat_b.
        offs: where each of the G groups ends, int32, (G,).
        bias: None.
        out_dtype: the dtype of mat_a, or None.
    """
    return torch._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def _only(name: str, value: object) -> object:
    """The one item of a list of scales or recipes, or what is no list."""
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise NotImplementedError(
                f"scaled_mm: expected one {name}: scales of scales are not offered, got "
                f"{len(value)}"
            )
        return value[0]
    return value


def _check_scale(name: str, scale: Tensor, recipe: ScalingType, rowwise: tuple[int, int]) -> None:
    if recipe not in (ScalingType.TensorWise, ScalingType.RowWise):
        raise NotImplementedError(
            f"scaled_mm: {name}: expected the recipe TensorWise or RowWise, got {recipe!r}"
        )
    fits = scale.numel() == 1
    if recipe is ScalingType.RowWise:
        fits = tuple(scale.shape) == rowwise
    if not fits or scale.dtype is not torch.float32:
        wanted = "one element" if recipe is ScalingType.TensorWise else f"sizes {rowwise}"
        raise ValueError(
            f"Invalid scaling configuration: {name} should be float32 of {wanted}, got "
            f"{scale.dtype} of sizes {tuple(scale.shape)}"
        )


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """(mat_a @ mat_b) * scale_a * scale_b + bias, of 8-bit floats, summed in float32.

    Args:
        mat_a: (M, K), float8_e4m3fn or float8_e5m2.
        mat_b: (K, N), of the same kinds.
        scale_a: float32; one element (TensorWise) or (M, 1) (RowWise), as scale_recipe_a says.
        scale_b: the same of mat_b; (1, N) of RowWise.
        swizzle_a, swizzle_b: NO_SWIZZLE, or None.
        bias: (N,).
        output_dtype: of the result; None: that of mat_a.
        contraction_dim: (), or the dimensions that are summed over, (1, 0).
        use_fast_accum: makes no difference: sums are float32.
    """
    recipes = [_only("recipe", scale_recipe_a), _only("recipe", scale_recipe_b)]
    scales = [_only("scale", scale_a), _only("scale", scale_b)]
    for swizzle in (_only("swizzle", swizzle_a), _only("swizzle", swizzle_b)):
        if swizzle not in (None, SwizzleType.NO_SWIZZLE):
            raise NotImplementedError(
                f"scaled_mm: expected scales in order, NO_SWIZZLE, got {swizzle!r}"
            )
    if mat_a.dim() != 2 or mat_b.dim() != 2 or mat_a.shape[1] != mat_b.shape[0]:
        raise ValueError(
            "scaled_mm: expected matrices (M, K) and (K, N), got sizes "
            f"{tuple(mat_a.shape)} and {tuple(mat_b.shape)}"
        )
    if tuple(contraction_dim) not in ((), (1, 0), (-1, 0), (-1, -2), (1, -2)):
        raise NotImplementedError(
            f"scaled_mm: expected contraction_dim () or (1, 0), got {tuple(contraction_dim)}"
        )
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dtype not in _SCALED_DTYPES:
            raise ValueError(
                f"Invalid scaling configuration: {name} should be float8, got {matrix.dtype}"
            )
    _check_scale("scale_a", scales[0], recipes[0], (mat_a.shape[0], 1))
    _check_scale("scale_b", scales[1], recipes[1], (1, mat_b.shape[1]))
    product = mat_a.float() @ mat_b.float() * scales[0].reshape(-1, 1) * scales[1].reshape(1, -1)
    if bias is not None:
        product = product + bias.float()
    return product.to(mat_a.dtype if output_dtype is None else output_dtype)
