"""Parametrizations by orthogonal, spectrally normalised and length-and-direction weights."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .weight_norm import norm_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Lets a weight be g v / |v| (Salimans & Kingma, 2016), with one length for each slice of
    `dim`.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        dims = weight.ndim
        if dim >= dims or dim < -dims:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{dims}, {dims - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but "
                f"got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        """Moves _u and _v towards the first singular vectors, in place."""
        with torch.no_grad():
            for _ in range(iterations):
                u = F.normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps)
                self._u.copy_(u)
                v = F.normalize(torch.mv(matrix.t(), self._u), dim=0, eps=self.eps)
                self._v.copy_(v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, as the next call changes the vectors that the graph would hold.
        u = self._u.clone(memory_format=torch.contiguous_format)
        v = self._v.clone(memory_format=torch.contiguous_format)
        return weight / torch.dot(u, torch.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its largest singular value (Miyato et al., 2018), found by power
    iteration.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

        transposed = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    function = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, function)
    return module


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = x.size(-2), x.size(-1)
        wide = rows < columns
        if wide:
            x = x.mT
            rows, columns = columns, rows
        if self.orthogonal_map == "householder":
            reflectors = x.tril(diagonal=-1)
            scale = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
            q = torch.linalg.householder_product(reflectors, scale)
            # The signs of the diagonal make the map reach all orthogonal matrices.
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._from_skew(x, rows, columns)
        if hasattr(self, "base") and self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def _from_skew(self, x: Tensor, rows: int, columns: int) -> Tensor:
        lower = x.tril()
        if rows != columns:
            filler = x.new_zeros(rows, rows - columns).expand(*x.shape[:-2], -1, -1)
            lower = torch.cat([lower, filler], dim=-1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            q = torch.matrix_exp(skew)
        else:
            identity = torch.eye(rows, dtype=skew.dtype, device=skew.device)
            q = torch.linalg.solve(
                torch.add(identity, skew, alpha=-0.5), torch.add(identity, skew, alpha=0.5)
            )
        return q[..., :columns] if rows != columns else q

    def right_inverse(self, q: Tensor) -> Tensor:
        wide = q.size(-2) < q.size(-1)
        tall = q.mT if wide else q
        rows, columns = tall.size(-2), tall.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map in ("cayley", "matrix_exp"):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            factors, scale = torch.geqrf(tall)
            diagonal = factors.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            # A reflection that was not needed is made in `forward` nevertheless.
            diagonal[scale == 0.0] *= -1.0
            return factors.mT if wide else factors
        if rows == columns:
            base = q.mT if wide else q
            self.base = _project(base)
            unit = torch.zeros_like(q)
            unit.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # what every map takes to the identity
            return unit
        rest = torch.randn(*tall.shape[:-1], rows - columns, dtype=q.dtype, device=q.device)
        self.base = _project(torch.cat([tall, rest], dim=-1))
        fresh = torch.zeros_like(tall)
        diagonal = fresh.diagonal(dim1=-2, dim2=-1)
        diagonal.fill_(-1.0)
        return fresh.mT if wide else fresh


def _project(x: Tensor) -> Tensor:
    """An orthogonal matrix whose first columns span those of `x`, with their signs."""
    q, r = torch.linalg.qr(x)
    signs = r.diagonal(dim1=-2, dim2=-1).sgn()
    return q * signs.unsqueeze(-2)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a weight orthogonal by "matrix_exp", "cayley" or "householder"."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        same = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if same else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    function = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, function, unsafe=True)
    return module
