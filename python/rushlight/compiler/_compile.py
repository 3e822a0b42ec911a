"""`torch.compile`."""

from __future__ import annotations

from collections.abc import Callable

_default_backend: str | Callable | None = None


def set_default_backend(backend: str | Callable | None) -> None:
    """The back end of `torch.compile` where the call names none; None: "inductor" again."""
    global _default_backend
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    _default_backend = backend


def get_default_backend() -> str | Callable:
    """The back end of `torch.compile` where the call names none."""
    return "inductor" if _default_backend is None else _default_backend


def _backend_arguments(
    backend: str | Callable, mode: str | None, options: dict | None
) -> dict[str, object]:
    """What the back end is given besides the graph; checked where it is the built-in one."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend == "inductor":
        from rushlight import _inductor

        if mode is not None:
            _inductor.list_mode_options(mode)
        if options is not None:
            if not isinstance(options, dict):
                raise TypeError(f"options must be a dict, got {type(options)}")
            _inductor.config.check(options)
            _inductor.config.use(options)
    arguments: dict[str, object] = {}
    if mode is not None and mode != "default":
        arguments["mode"] = mode
    if options:
        arguments["options"] = options
    return arguments


def _check(fullgraph: object, dynamic: object, recompile_limit: object) -> None:
    if not isinstance(fullgraph, bool):
        raise TypeError(f"compile: fullgraph must be bool, got {type(fullgraph)}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise TypeError(f"compile: dynamic must be bool or None, got {type(dynamic)}")
    if recompile_limit is not None and (
        not isinstance(recompile_limit, int) or isinstance(recompile_limit, bool)
    ):
        raise TypeError(f"compile: recompile_limit must be int or None, got {recompile_limit!r}")


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = None,
    mode: str | None = None,
    options: dict[str, object] | None = None,
    name: str | None = None,
    disable: bool = False,
    shapes_spec: object = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
) -> Callable:
    """A function or module whose operators are captured and run fused; also a decorator.

    Each call runs the Python of `model`; operators are put down in a graph, which runs when
    somebody reads a result's memory (item, bool, print, NumPy), and at the end. Results are those
    of the uncompiled call. Plans hold for every shape, so `dynamic` and `shapes_spec` decide
    nothing; a plan is made for each structure of graph, at most `recompile_limit` of them for this
    call of compile.

    fullgraph: RuntimeError (torch._dynamo.exc.Unsupported) where a graph ends before the function,
    but for numbers read by item(). backend: a name (torch._dynamo.list_backends()) or a function
    of an fx graph and example inputs; see torch.compiler.set_default_backend. mode, options: those
    of PyTorch, checked, at most one of both. name: what reports call it. disable: gives `model`
    back.
    """
    _check(fullgraph, dynamic, recompile_limit)
    if disable:
        return model if model is not None else lambda target: target
    if model is None:

        def decorator(target: Callable) -> Callable:
            if target is None:
                raise RuntimeError("Model can't be None")
            return compile(
                target,
                fullgraph=fullgraph,
                dynamic=dynamic,
                backend=backend,
                mode=mode,
                options=options,
                name=name,
                recompile_limit=recompile_limit,
                isolate_recompiles=isolate_recompiles,
            )

        return decorator
    from rushlight._dynamo.eval_frame import CompileContext

    chosen = get_default_backend() if backend is None else backend
    context = CompileContext(
        chosen,
        fullgraph=fullgraph,
        backend_arguments=_backend_arguments(chosen, mode, options),
        name=name,
        recompile_limit=recompile_limit,
        static=dynamic is False,
    )
    return context(model)


compile.__module__ = "rushlight"
