"""Settings of compile, under PyTorch's names.

Those that this compiler has a use for: `disable` (compiled functions run as they are written),
`suppress_errors` (a back end that fails leaves its graph to the interpreter, with a warning),
`error_on_recompile`, `fail_on_recompile_limit_hit`, and for back ends other than this one
`recompile_limit` (with dynamic=False) and `accumulated_recompile_limit`. The others are kept for
programs that set them: here there are no guards, every shape is dynamic, any Python is captured.
"""

from __future__ import annotations

from rushlight._dynamo import _other_settings
from rushlight.utils._config_module import install_config_module

disable = False
suppress_errors = False
verbose = False
recompile_limit = 8
accumulated_recompile_limit = 256
error_on_recompile = False
fail_on_recompile_limit_hit = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_shapes = True
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
allow_unspec_int_on_nn_module = False
inline_inbuilt_nn_modules = True
guard_nn_modules = True
specialize_int = False
specialize_float = False
optimize_ddp = True
compiled_autograd = False
numpy_default_float = "float64"
numpy_default_int = "int64"
trace_numpy = True
skip_fsdp_hooks = True
log_level = None
repro_after = None
repro_level = 2


install_config_module(
    __name__,
    _other_settings,
    {
        "cache_size_limit": f"{__name__}.recompile_limit",
        "accumulated_cache_size_limit": f"{__name__}.accumulated_recompile_limit",
        "fail_on_cache_limit_hit": f"{__name__}.fail_on_recompile_limit_hit",
        "ignore_logger_methods": f"{__name__}.ignore_logging_functions",
        "skip_code_recursive_on_cache_limit_hit": (
            f"{__name__}.skip_code_recursive_on_recompile_limit_hit"
        ),
    },
)
