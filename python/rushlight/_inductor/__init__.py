"""What `torch.compile` takes as mode and options, under PyTorch's names."""

from __future__ import annotations

from rushlight._inductor import config as config


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict:
    """What each mode sets, or this one."""
    modes: dict[str, dict[str, object]] = {
        "default": {},
        "lite": {},
        "reduce-overhead": {"triton.cudagraphs": True},
        "max-autotune-no-cudagraphs": {
            "max_autotune": True,
            "coordinate_descent_tuning": True,
        },
        "max-autotune": {
            "max_autotune": True,
            "triton.cudagraphs": True,
            "coordinate_descent_tuning": True,
        },
    }
    if mode is None:
        return modes
    if mode not in modes:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(modes)}")
    return modes[mode]


def list_options() -> list[str]:
    """The names that `options=` takes."""
    return list(config.options())
