"""TransformGetItemToIndex, by the name that programs import it from."""

from __future__ import annotations

from rushlight.overrides import BaseTorchFunctionMode


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """Context for x[i] in vmap where i is of the batch: nothing to do, indexing knows batches."""
