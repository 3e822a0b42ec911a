"""Instance normalisation."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _dims: tuple[int, int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        return self._dims[0]

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            low, high = self._dims
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ) -> None:
        # The first version tracked statistics by default; silently dropping them would be wrong.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            names = ("running_mean", "running_var")
            keys = [prefix + name for name in names if prefix + name in state_dict]
            if keys:
                listed = " and ".join(f'"{key}"' for key in keys)
                name = self.__class__.__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {listed} for {name} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    "this "
                    "may be expected because {} does not track running stats by default since "
                    "0.4.0. "
                    "Please remove these keys from state_dict. If the running stats are actually "
                    "needed, instead set track_running_stats=True in {} to enable them. See the "
                    "documentation of {} for details.".format(name, name, name)
                )
                for key in keys:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channel_dim = input.dim() - self._get_no_batch_dim()
        if input.size(channel_dim) != self.num_features:
            message = (
                f"input's size at dim={channel_dim} "
                f"to match num_features ({self.num_features}), but got: {input.size(channel_dim)}."
            )
            if self.affine:
                raise ValueError("expected " + message)
            import warnings

            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. "
                "You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._get_no_batch_dim():
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm1d that learns the number of channels from its first input."""

    _dims = (2, 3)
    cls_to_become = InstanceNorm1d


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm2d that learns the number of channels from its first input."""

    _dims = (3, 4)
    cls_to_become = InstanceNorm2d


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm3d that learns the number of channels from its first input."""

    _dims = (4, 5)
    cls_to_become = InstanceNorm3d
