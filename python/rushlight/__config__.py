"""How this build was made."""

from __future__ import annotations

from rushlight import _C


def show() -> str:
    """A description of the build, in lines."""
    from rushlight.version import __version__

    return "\n".join(
        [
            "Rushlight built with:",
            f"  - version: {__version__}",
            "  - C++ standard: C++20",
            "  - matrix products and kernels: its own; code generator: LLVM, opened at need",
            f"  - CPU capability usage: {_C._cpu_level()}",
            "  - CUDA: none",
            "",
        ]
    )


def parallel_info() -> str:
    """How work is shared among threads, in lines."""
    import os

    import rushlight as torch

    return "\n".join(
        [
            "Rushlight parallel info:",
            f"\trushlight.get_num_threads() : {torch.get_num_threads()}",
            f"\trushlight.get_num_interop_threads() : {torch.get_num_interop_threads()}",
            f"\tos.cpu_count() : {os.cpu_count()}",
            "\tthreads: a pool of its own",
            "",
        ]
    )
