"""Settings of compiled training, under PyTorch's names.

The one that this compiler has a use for is `activation_memory_budget`: how much of what autograd
saves in a compiled function is kept for backward. 1.0 keeps all but what costs no time; 0.0 makes
everything again in backward that can be made again cheaply. It is read when a compiled function is
called; `torch.compile(options={"activation_memory_budget": 0.5})` says it for one function. The
others are kept for programs that set them.
"""

from __future__ import annotations

from rushlight._functorch import _other_settings
from rushlight.utils._config_module import install_config_module

activation_memory_budget: float = 1.0
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver = "dp"
visualize_memory_budget_pareto = False
aggressive_recomputation = False
ban_recompute_used_far_apart = True
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
ban_recompute_not_in_allowlist = True
ban_recompute_reductions = True
recompute_views = False
treat_parameters_as_free_to_save = True
functionalize_rng_ops = False
donated_buffer = True
debug_assert = False
debug_partitioner = False
max_dist_from_bw = 1000


def check_budget(budget: object) -> float:
    """The budget as a float; RuntimeError where it is none."""
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 <= budget <= 1:
        raise RuntimeError(
            "The valid ranges for memory budget are 0 <= m <= 1. The provided value is "
            f"{budget!r} (activation_memory_budget)"
        )
    return float(budget)


install_config_module(__name__, _other_settings)
