"""Changes of shape."""

from __future__ import annotations

from rushlight import Tensor

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim`, both included."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`."""

    def __init__(self, dim: int | str, unflattened_size) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input) -> None:
        if not isinstance(input, tuple):
            raise TypeError(
                f"unflattened_size must be a tuple of tuples, but found type {type(input).__name__}"
            )
        for index, element in enumerate(input):
            if not isinstance(element, tuple):
                raise TypeError(
                    "unflattened_size must be tuple of tuples, "
                    f"but found element of type {type(element).__name__} at pos {index}"
                )

    def _require_tuple_int(self, input) -> None:
        if not isinstance(input, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}"
            )
        for index, element in enumerate(input):
            if not isinstance(element, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(element).__name__} at pos {index}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
