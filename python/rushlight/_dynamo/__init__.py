"""The machinery of `torch.compile`, under the names that programs reach for.

Nothing here reads bytecode: a compiled function runs its Python in each call while operators are
captured (docs/compile.md).
"""

from __future__ import annotations

from rushlight import _C
from rushlight._dynamo import config as config
from rushlight._dynamo import exc as exc
from rushlight._dynamo import utils as utils
from rushlight._dynamo.backends.registry import (
    list_backends as list_backends,
)
from rushlight._dynamo.backends.registry import (
    lookup_backend as lookup_backend,
)
from rushlight._dynamo.backends.registry import (
    register_backend as register_backend,
)
from rushlight._dynamo.decorators import (
    allow_in_graph,
    assume_constant_result,
    disable_nested_graph_breaks,
    disallow_in_graph,
    dont_skip_tracing,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    override_cudagraphs,
    override_optimization_hint,
    patch_dynamo_config,
    set_stance,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from rushlight._dynamo.eval_frame import (
    OptimizedModule,
    disable,
    error_on_graph_break,
    is_dynamo_disable_recursive,
    optimize,
    optimize_assert,
    run,
)
from rushlight._dynamo.exporting import export
from rushlight._dynamo.reports import explain

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disable_nested_graph_breaks",
    "disallow_in_graph",
    "dont_skip_tracing",
    "error_on_graph_break",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_disable_recursive",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "override_cudagraphs",
    "override_optimization_hint",
    "patch_dynamo_config",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "skip_frame",
    "step_unsupported",
    "substitute_in_graph",
]


def reset() -> None:
    """Forgets all plans and counters; kernels have a cache of their own."""
    _C._compile_reset()
    utils.counters.clear()


def reset_code_caches() -> None:
    """Forgets all plans."""
    _C._compile_reset()


def is_compiling() -> bool:
    """Whether operators of this thread are being captured."""
    return _C._capture_active()


def is_dynamo_supported() -> bool:
    """Whether compile works here: everywhere."""
    return True


def is_inductor_supported() -> bool:
    """Whether the default back end works here: everywhere."""
    return True
