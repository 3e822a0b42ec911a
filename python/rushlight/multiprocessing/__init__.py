"""Python's multiprocessing, with tensors that are shared and not copied.

Tensors put into queues, pipes and the arguments of processes go as a descriptor of shared memory:
both sides then see what the other writes.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from rushlight.multiprocessing._strategy import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    set_sharing_strategy,
)
from rushlight.multiprocessing.reductions import init_reductions
from rushlight.multiprocessing.spawn import (  # noqa: F401
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
]
__all__ += _multiprocessing.__all__

init_reductions()
