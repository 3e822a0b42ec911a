"""Settings of `torch.compiler` that are none of a single back end."""

from __future__ import annotations

from rushlight.utils._config_module import install_config_module

job_id: str | None = None
cache_key_tag: str = ""
dynamic_sources: str = ""
force_disable_caches = False
force_cudagraph_gc = False
dynamic_values = ""
unbacked_sources = ""
pgo_extra_read_key: str | None = None
pgo_extra_write_key: str | None = None

# Settings of torch._dynamo.config under a second name.
_DYNAMO = """
accumulated_recompile_limit allow_unspec_int_on_nn_module assume_static_by_default
automatic_dynamic_shapes capture_dynamic_output_shape_ops capture_scalar_outputs dynamic_shapes
enable_cpp_symbolic_shape_guards fail_on_recompile_limit_hit log_file_name recompile_limit
reorderable_logging_functions skip_tensor_guards_with_matching_dict_tags verbose wrap_top_frame
"""

install_config_module(
    __name__, aliases={name: f"rushlight._dynamo.config.{name}" for name in _DYNAMO.split()}
)
