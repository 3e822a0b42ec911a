"""Components and artifacts, by PyTorch's names: which loggers and which of the core's topics."""

from __future__ import annotations

import logging
import os
import sys

from rushlight import _C

# Components have levels. At DEBUG and below the core tells of these topics too.
_COMPONENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "all": ("torch", ("plans", "passes", "graphs", "kernels", "breaks")),
    "torch": ("torch", ("plans", "passes", "graphs", "kernels", "breaks")),
    "dynamo": ("torch._dynamo", ("graphs", "breaks")),
    "aot": ("torch._functorch", ("graphs",)),
    "inductor": ("torch._inductor", ("plans", "passes", "kernels")),
    "autograd": ("torch.autograd", ()),
    "dynamic": ("torch.fx.experimental.symbolic_shapes", ("plans",)),
    "distributed": ("torch.distributed", ()),
    "c10d": ("torch.distributed.distributed_c10d", ()),
    "ddp": ("torch.nn.parallel.distributed", ()),
    "fsdp": ("torch.distributed.fsdp", ()),
    "dtensor": ("torch.distributed.tensor", ()),
    "onnx": ("torch.onnx", ()),
    "export": ("torch.export", ()),
}
# Artifacts are on or off. What the tracer of PyTorch has and capture has not, tells nothing here.
_ARTIFACTS: dict[str, tuple[str, ...]] = {
    "graph": ("graphs",),
    "graph_code": ("graphs",),
    "graph_code_verbose": ("graphs",),
    "graph_sizes": ("graphs",),
    "aot_graphs": ("graphs",),
    "aot_joint_graph": ("graphs",),
    "pre_grad_graphs": ("graphs",),
    "post_grad_graphs": ("graphs",),
    "graph_breaks": ("breaks",),
    "recompiles": ("plans",),
    "recompiles_verbose": ("plans", "graphs"),
    "guards": ("plans",),
    "schedule": ("plans",),
    "fusion": ("passes", "plans"),
    "ir_pre_fusion": ("graphs",),
    "ir_post_fusion": ("plans",),
    "perf_hints": ("passes",),
    "output_code": ("kernels", "loops"),
    "kernel_code": ("kernels", "loops"),
    "caching": ("kernels",),
    "inductor_metrics": ("kernels",),
    **dict.fromkeys(
        (
            "bytecode ddp_graphs side_effects trace_source trace_call trace_bytecode "
            "onnx_diagnostics overlap cudagraphs sym_node compiled_autograd "
            "compiled_autograd_verbose cudagraph_static_inputs benchmarking autotuning incremental "
            "graph_region_expansion hierarchical_compile compute_dependencies not_implemented "
            "annotation"
        ).split(),
        (),
    ),
}
_LEVELS = (50, 40, 30, 20, 10, 0)

DEFAULT_LOGGING: dict[str, object] = {
    "dynamo": logging.INFO,
    "aot": logging.INFO,
    "inductor": logging.INFO,
    "graph_breaks": True,
    "recompiles": True,
    "guards": True,
}

_enabled: set[str] = set()
_touched: set[str] = set()  # loggers whose levels set_logs has set
_given = _C._log_topics()  # by RUSHLIGHT_LOG, which goes on


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module's artifact: enabled while set_logs has the artifact on."""
    if artifact_name not in _ARTIFACTS:
        raise ValueError(
            f"Artifact name: {artifact_name!r} not registered, please call "
            f"register_artifact({artifact_name!r}) in torch._logging.registrations."
        )
    name = f"{module_qname}.__{artifact_name}"
    logger = logging.getLogger(name)
    logger.artifact_name = artifact_name
    _set_artifact_level(name)
    return logger


def _set_artifact_level(name: str) -> None:
    on = name.rpartition(".__")[2] in _enabled
    _set_level(name, logging.DEBUG if on else logging.NOTSET)


def _set_level(name: str, level: int) -> None:
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if level and not any(getattr(handler, "_of_set_logs", False) for handler in logger.handlers):
        handler = logging.StreamHandler()
        handler._of_set_logs = True
        handler.setFormatter(logging.Formatter("%(levelname).1s %(name)s] %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
        _touched.add(name)


def _forget() -> None:
    """As if set_logs had not been called."""
    _enabled.clear()
    for name in _touched:
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
        for handler in list(logger.handlers):
            if getattr(handler, "_of_set_logs", False):
                logger.removeHandler(handler)
    _touched.clear()


def _apply(wanted: dict[str, object]) -> None:
    _forget()
    topics = [topic for topic in _given.split(",") if topic]
    for name, value in wanted.items():
        if name in _ARTIFACTS:
            if not isinstance(value, bool):
                raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
            if value:
                _enabled.add(name)
                topics += _ARTIFACTS[name]
            continue
        if isinstance(value, bool) or value not in _LEVELS:
            raise ValueError(
                f"Unrecognized log level for log {name}: {value}, valid level values are: "
                f"{','.join(map(str, _LEVELS))}"
            )
        logger, own = _COMPONENTS.get(name, (name, ()))
        _set_level(logger, value)
        topics += own if value <= logging.DEBUG else ()
    for name in list(logging.root.manager.loggerDict):
        if name.rpartition(".__")[2] in _ARTIFACTS and ".__" in name:
            _set_artifact_level(name)
    _C._set_log_topics(",".join(dict.fromkeys(topics)))


def _is_module(name: str) -> bool:
    from importlib.util import find_spec

    own = name.replace("torch", "rushlight", 1) if name.split(".")[0] == "torch" else name
    try:
        return own in sys.modules or find_spec(own) is not None
    except (ImportError, ValueError):
        return False


def set_logs(
    *,
    all: int | None = None,
    dynamo: int | None = None,
    aot: int | None = None,
    autograd: int | None = None,
    dynamic: int | None = None,
    inductor: int | None = None,
    distributed: int | None = None,
    c10d: int | None = None,
    ddp: int | None = None,
    fsdp: int | None = None,
    dtensor: int | None = None,
    onnx: int | None = None,
    bytecode: bool = False,
    aot_graphs: bool = False,
    aot_joint_graph: bool = False,
    ddp_graphs: bool = False,
    graph: bool = False,
    graph_code: bool = False,
    graph_code_verbose: bool = False,
    graph_breaks: bool = False,
    side_effects: bool = False,
    graph_sizes: bool = False,
    guards: bool = False,
    recompiles: bool = False,
    recompiles_verbose: bool = False,
    trace_source: bool = False,
    trace_call: bool = False,
    trace_bytecode: bool = False,
    output_code: bool = False,
    kernel_code: bool = False,
    schedule: bool = False,
    perf_hints: bool = False,
    pre_grad_graphs: bool = False,
    post_grad_graphs: bool = False,
    ir_pre_fusion: bool = False,
    ir_post_fusion: bool = False,
    onnx_diagnostics: bool = False,
    fusion: bool = False,
    overlap: bool = False,
    export: int | None = None,
    modules: dict[str, int | bool] | None = None,
    cudagraphs: bool = False,
    sym_node: bool = False,
    compiled_autograd: bool = False,
    compiled_autograd_verbose: bool = False,
    cudagraph_static_inputs: bool = False,
    benchmarking: bool = False,
    autotuning: bool = False,
    incremental: bool = False,
    graph_region_expansion: bool = False,
    inductor_metrics: bool = False,
    hierarchical_compile: bool = False,
    compute_dependencies: bool = False,
    caching: bool = False,
) -> None:
    """Sets what is told from now on; what is not named is off again.

    Components take levels (logging.DEBUG), artifacts True. `modules`: more of both by name, and
    modules of any package with levels. TORCH_LOGS in the environment wins, with a warning.
    """
    wanted = {
        name: value
        for name, value in locals().items()
        if name != "modules" and value is not None and value is not False
    }
    if os.environ.get("TORCH_LOGS"):
        import warnings

        warnings.warn(
            "Using TORCH_LOGS environment variable for log settings, ignoring call to set_logs",
            stacklevel=2,
        )
        return
    for name, value in (modules or {}).items():
        if name not in _ARTIFACTS and name not in _COMPONENTS and not _is_module(name):
            raise ValueError(f"Unrecognized log or artifact name passed to set_logs: {name}")
        wanted[name] = value
    _apply(wanted)


def _read_environment(text: str) -> None:
    """TORCH_LOGS: names between commas; `+` before a component: DEBUG, `-`: ERROR."""
    wanted: dict[str, object] = {}
    for item in filter(None, text.replace(" ", "").split(",")):
        sign, name = (item[0], item[1:]) if item[0] in "+-" else ("", item)
        if name == "help":
            print(f"TORCH_LOGS takes, between commas: {', '.join([*_COMPONENTS, *_ARTIFACTS])}")
        elif name in _ARTIFACTS:
            wanted[name] = True
        elif name in _COMPONENTS or _is_module(name):
            levels = {"+": logging.DEBUG, "-": logging.ERROR, "": logging.INFO}
            wanted[name] = levels[sign]
        else:
            raise ValueError(
                f"Invalid log settings: {text}, there is no {name!r}: TORCH_LOGS takes, between "
                f"commas, {', '.join([*_COMPONENTS, *_ARTIFACTS])} and modules, components with + "
                "(DEBUG) or - (ERROR) before them"
            )
    _apply(wanted)


if os.environ.get("TORCH_LOGS"):
    _read_environment(os.environ["TORCH_LOGS"])
