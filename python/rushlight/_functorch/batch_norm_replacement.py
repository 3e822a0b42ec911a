"""Batch normalization without running statistics, which no transform can write in place."""

from __future__ import annotations

from rushlight import nn


def batch_norm_without_running_stats(module: nn.Module) -> None:
    """Makes a batch normalization take its statistics from the batch, and keep none."""
    from rushlight.nn.modules.batchnorm import _BatchNorm

    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
        module.track_running_stats = False


def replace_all_batch_norm_modules_(root: nn.Module) -> nn.Module:
    """Makes every batch normalization in a module take its statistics from the batch; in place."""
    batch_norm_without_running_stats(root)
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root
