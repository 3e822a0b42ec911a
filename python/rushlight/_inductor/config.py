"""Options of `torch.compile(options=...)`.

They name choices of PyTorch's compiler. This one makes the same kernel for every choice: results
are eager's bit for bit, random streams too, so there is nothing to trade. Names and types are
checked, so that a misspelled option is an error here as there.

`compile_threads` is the one that does something: above 1, so many processes compile kernels
(docs/compile.md). At 1 the threads of this one do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rushlight import _C
from rushlight._functorch.config import check_budget
from rushlight._inductor import _other_settings
from rushlight.utils._config_module import ConfigModule, Group, install_config_module

debug = False
disable_progress = True
verbose_progress = False
fx_graph_cache = True
cpp_wrapper = False
dce = False
size_asserts = True
nan_asserts = False
alignment_asserts = True
inplace_buffers = True
allow_buffer_reuse = True
memory_planning = False
memory_pool = "intermediates"
use_fast_math = False
epilogue_fusion = True
prologue_fusion = False
epilogue_fusion_first = False
pattern_matcher = True
group_fusion = False
batch_fusion = True
split_cat_fx_passes = True
reorder_for_locality = True
reorder_for_peak_memory = True
max_autotune = False
max_autotune_pointwise = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
search_autotune_cache = False
force_fuse_int_mm_with_mul = False
use_mixed_mm = True
shape_padding = True
comprehensive_padding = True
pad_channels_last = False
permute_fusion = False
layout_optimization = True
force_layout_optimization = False
keep_output_stride = True
fallback_random = False
freezing = False
freezing_discard_parameters = False
constant_and_index_propagation = True
joint_graph_constant_folding = True
split_reductions = True
combo_kernels = False
benchmark_kernel = False
benchmark_fusion = False
unroll_reductions_threshold = 8
max_fusion_size = 64
max_pointwise_cat_inputs = 8
realize_reads_threshold = 4
realize_opcount_threshold = 30
compile_threads = max(1, _C._compile_workers())  # RUSHLIGHT_COMPILE_WORKERS
worker_start_method = "subprocess"
emulate_precision_casts = False
deterministic = False
post_grad_custom_pre_pass: Callable | None = None
post_grad_custom_post_pass: Callable | None = None
joint_custom_pre_pass: Callable | None = None
joint_custom_post_pass: Callable | None = None
pre_grad_custom_pass: Callable | None = None
guard_filter_fn: Callable | None = None
# Of this compiler: torch._functorch.config.activation_memory_budget for one call of compile.
activation_memory_budget: float | None = None
cpu_backend = "cpp"
cuda_backend = "triton"

triton = Group(
    cudagraphs=False,
    cudagraph_trees=True,
    cudagraph_skip_dynamic_graphs=False,
    unique_kernel_names=True,
    descriptive_names="original_aten",
    persistent_reductions=True,
    multi_kernel=0,
    autotune_at_compile_time=None,
    prefer_nd_tiling=False,
    max_tiles=None,
)
cpp = Group(
    threads=-1,
    no_redundant_loops=True,
    simdlen=None,
    min_chunk_size=512,
    max_horizontal_fusion_size=16,
    enable_kernel_profile=False,
    weight_prepack=True,
    vec_isa_ok=None,
    enable_floating_point_contract_flag="off",
)
trace = Group(
    enabled=False,
    debug_dir=None,
    debug_log=False,
    info_log=False,
    fx_graph=True,
    ir_pre_fusion=True,
    output_code=True,
    graph_diagram=False,
    draw_orig_fx_graph=False,
    log_autotuning_results=False,
    upload_tar=None,
)


def options() -> dict[str, object]:
    """The options by name, `triton.cudagraphs` and the like too, with what they are now."""
    return sys.modules[__name__].shallow_copy_dict()


def check(given: dict[str, object]) -> None:
    """RuntimeError for a name that is no option, or a value of another type."""
    known = options()
    for name, value in given.items():
        attribute = name.replace("-", "_")
        if attribute not in known:
            raise RuntimeError(
                f"Unexpected optimization option {name}, known options are {list(known)}"
            )
        if attribute == "activation_memory_budget":
            if value is not None:
                check_budget(value)
            continue
        default = known[attribute]
        if default is not None and type(value) is not type(default):
            raise RuntimeError(
                f"Unexpected type of attr {name}, got {type(value).__name__} should be "
                f"{type(default).__name__}"
            )


def use(given: dict[str, object]) -> None:
    """Puts into force what an option does for the process as a whole."""
    if "compile_threads" in given:
        sys.modules[__name__].compile_threads = given["compile_threads"]


class _Config(ConfigModule):
    """The module, so that assigning to `compile_threads` starts or ends processes."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "compile_threads":
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"compile_threads must be a positive int, got {value!r}")
            _C._compile_workers(value if value > 1 else 0)
        super().__setattr__(name, value)


install_config_module(
    __name__,
    _other_settings,
    {
        "force_disable_caches": "rushlight.compiler.config.force_disable_caches",
        "use_static_triton_launcher": f"{__name__}.use_static_cuda_launcher",
        "strict_static_triton_launcher": f"{__name__}.strict_static_cuda_launcher",
    },
    _Config,
)
