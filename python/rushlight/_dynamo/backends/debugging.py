"""The back ends that are built in.

`inductor` is the compiler of the core: unmodified programs name it. `eager` and `aot_eager` run a
graph's operators one by one, for finding out whether a fault is capture's or the compiler's.
`eager_noexcept` raises what an operator raises as an error of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight._dynamo.backends.registry import register_backend, register_debug_backend


@register_backend
def inductor(gm, example_inputs, **kwargs: object):
    """The core's compiler."""
    from rushlight._dynamo.foreign import native_callable

    return native_callable(gm)


inductor._runner = "native"


@register_debug_backend
def eager(gm, example_inputs, **kwargs: object) -> Callable:
    """Runs the graph's operators one by one."""
    return gm.forward


eager._runner = "interpreter"


@register_debug_backend
def aot_eager(gm, example_inputs, **kwargs: object) -> Callable:
    """As eager: forward and backward are captured apart in any case."""
    return gm.forward


aot_eager._runner = "interpreter"

# In PyTorch they differ in how graphs are traced and cut, of which there is nothing to choose here.
for _name in (
    "eager_debug",
    "pre_dispatch_eager",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
):
    _same = functools.partial(aot_eager)
    _same._runner = "interpreter"
    register_debug_backend(_same, name=_name)


@register_debug_backend
def eager_noexcept(gm, example_inputs, **kwargs: object) -> Callable:
    """As eager; an operator that fails is reported as the back end's failure."""

    def run(*args: object) -> object:
        try:
            return gm.forward(*args)
        except Exception as error:
            raise RuntimeError("Unexpected exception when running generated GraphModule") from error

    return run


@register_debug_backend
def explain(gm, example_inputs, **kwargs: object) -> Callable:
    """Prints the graph, then runs it as eager does."""
    gm.print_readable()
    return gm.forward
