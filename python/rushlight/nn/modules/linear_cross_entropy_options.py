"""How the linear cross entropy may split its work."""

from __future__ import annotations

__all__ = ["LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """Hints for a loss that never holds all logits; they change neither values nor gradients."""

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype=None,
    ) -> None:
        if batch_chunk_size is not None and (
            not isinstance(batch_chunk_size, int) or batch_chunk_size <= 0
        ):
            raise ValueError(
                f"batch_chunk_size must be positive int or None, got {batch_chunk_size}"
            )
        methods = (None, "auto", "none", "aspect_ratio")
        if chunking_method is not None and chunking_method.split(":")[0] not in methods:
            raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        if acc_policy not in ("auto", "compact", "accurate"):
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"
