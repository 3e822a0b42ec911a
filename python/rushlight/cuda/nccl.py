"""Collective communication between CUDA devices, of which there are none."""

from __future__ import annotations

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails all_gather(inputs, outputs, streams=None, comms=None)
fails all_reduce(inputs, outputs=None, op=0, streams=None, comms=None)
fails broadcast(inputs, root=0, streams=None, comms=None)
fails reduce(inputs, output=None, root=0, op=0, streams=None, comms=None, *, outputs=None)
fails reduce_scatter(inputs, outputs, op=0, streams=None, comms=None)
false is_available(tensors)
fails version()
""",
)
