"""Back ends that count, for tests of programs that compile."""

from __future__ import annotations

from collections.abc import Callable


class CompileCounter:
    """A back end that counts graphs and their operators, and runs them as written."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm, example_inputs) -> Callable:
        self.frame_count += 1
        self.op_count += sum(1 for node in gm.graph.nodes if node.op.startswith("call_"))
        return gm.forward

    def clear(self) -> None:
        """Counts from 0 again."""
        self.frame_count = 0
        self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A CompileCounter that hands graphs on to a back end, and keeps them."""

    def __init__(self, backend: str | Callable) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm, example_inputs) -> Callable:
        from rushlight._dynamo.backends.registry import lookup_backend

        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Counts from 0 again."""
        super().clear()
        self.graphs: list = []


class EagerAndRecordGraphs:
    """A back end that keeps graphs and runs them as written."""

    def __init__(self) -> None:
        self.graphs: list = []

    def __call__(self, gm, example_inputs) -> Callable:
        self.graphs.append(gm)
        return gm.forward
