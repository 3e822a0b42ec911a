"""Settings that PyTorch's AOT autograd has besides those of config.py.

They name choices that are not made here: programs may set and read them, by their defaults there.
"""

from __future__ import annotations

FALSE = """
activation_offload_separate_stream activation_offload_sink_wait activation_reload_prefetch
autograd_cache_allow_custom_autograd_functions bundled_autograd_cache bypass_autograd_cache_key
disable_guess_zero_tangent_for_mutated_input_subclass enable_activation_offloading
enable_complex_wrapper error_on_custom_op_aliasing fake_tensor_crossref
fake_tensor_propagate_real_tensors force_autograd_cache force_non_lazy_backward_lowering
generate_fake_kernels_from_real_mismatches is_non_builtin_to_include selective_decompose
strict_autograd_cache unlift_effect_tokens unsafe_allow_optimization_of_collectives
unsafe_treat_script_objects_as_zero_size
"""

TRUE = """
autograd_cache_normalize_inputs check_custom_op_aliasing cse decompose_custom_triton_ops
enable_autograd_cache fake_tensor_allow_meta fake_tensor_allow_unsafe_data_ptr_access
graphsafe_rng_functionalization guess_tangent_strides_as_outputs
remat_using_tags_for_fwd_loss_bwd_graph static_weight_shapes view_replay_for_aliased_outputs
"""

NONE = """
enable_remote_autograd_cache fake_tensor_prefer_device_type joint_custom_pass
memory_budget_pareto_dir
"""

VALUES: dict[str, object] = {
    "activation_offload_cpu_gpu_bw": 50.0,
    "backward_pass_autocast": "same_as_forward",
    "custom_op_default_layout_constraint": "needs_exact_strides",
    "saved_tensors_hooks_filtering_mode": "donated",
    "torch_compile_graph_format": "svg",
}
