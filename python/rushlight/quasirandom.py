"""SobolEngine: points that fill a cube evenly, with or without scrambling."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor
from rushlight._sobol.directions import BITS, MAX_DIMENSION, direction_numbers

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of a Sobol sequence in [0, 1)^dimension, PyTorch's numbers.

    scramble: another sequence as even, by random digit shifts and matrices; seed: of those.
    Directions are those of Joe and Kuo (2008), for up to MAXDIM dimensions.
    """

    MAXBIT = BITS
    MAXDIM = MAX_DIMENSION

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        with torch.device("cpu"):
            self.sobolstate = direction_numbers(dimension)
            self.shift = torch.zeros(dimension, dtype=torch.int64)
            if scramble:
                self._scramble()
        self.quasi = self.shift.clone(memory_format=torch.contiguous_format)
        self.num_generated = 0

    def draw(
        self, n: int = 1, out: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """The next n points (n, dimension); into `out` where it is given, resized as needed.

        dtype: of the result; the default dtype where there is none.
        """
        if n < (1 if self.num_generated == 0 else 0):
            raise RuntimeError(f"SobolEngine.draw: n is the number of points to draw, got {n}")
        with torch.device("cpu"):
            points = self._points(self.num_generated, n)
        if n > 0:
            self.quasi = points[-1].clone()
        self.num_generated += n
        result = self._scaled(points, torch.get_default_dtype() if dtype is None else dtype)
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """The next 2^m points; the points drawn so far must be a power of two together with them.

        ValueError where they are not: the sequence is balanced at powers of two only.
        """
        n = 2**m
        total = self.num_generated + n
        if not (total & (total - 1) == 0):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Starts again from the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out the next n points."""
        self.num_generated += n
        if self.num_generated > 0:
            with torch.device("cpu"):
                self.quasi = self._points(self.num_generated - 1, 1)[0]
        return self

    def _points(self, start: int, count: int) -> Tensor:
        """Points by number, as integers: the directions of the bits of its Gray code, together."""
        numbers = torch.arange(start, start + count)
        codes = numbers ^ (numbers >> 1)
        points = self.shift.repeat(count, 1)
        for bit in range(max(start + count - 1, 0).bit_length()):
            points ^= ((codes >> bit) & 1)[:, None] * self.sobolstate[:, bit]
        return points

    def _scaled(self, points: Tensor, dtype: torch.dtype) -> Tensor:
        return points.to(dtype) * 2.0**-self.MAXBIT

    def _scramble(self) -> None:
        generator = torch.Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        shape = (self.dimension, self.MAXBIT)
        powers = 2 ** torch.arange(self.MAXBIT)
        self.shift = torch.randint(2, shape, generator=generator) @ powers
        lower = torch.randint(2, (*shape, self.MAXBIT), generator=generator).tril()
        lower.diagonal(dim1=1, dim2=2).fill_(1)
        # Digits, the first of a point first, times the matrix, modulo two.
        places = torch.arange(self.MAXBIT - 1, -1, -1)
        digits = (self.sobolstate[:, None, :] >> places[:, None]) & 1
        self.sobolstate = ((lower @ digits) % 2 << places[:, None]).sum(1)

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
