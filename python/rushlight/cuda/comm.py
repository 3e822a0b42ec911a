"""Transfers between CUDA devices, of which there are none."""

from __future__ import annotations

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails broadcast(tensor, devices=None, *, out=None)
fails broadcast_coalesced(tensors, devices, buffer_size=10485760)
fails gather(tensors, dim=0, destination=None, *, out=None)
fails reduce_add(inputs, destination=None)
fails reduce_add_coalesced(inputs, destination=None, buffer_size=10485760)
fails scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None)
""",
)
