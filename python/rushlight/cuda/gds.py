"""Files read straight to CUDA devices, of which there are none."""

from __future__ import annotations

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
class GdsFile(filename, flags): deregister_handle(); load_storage(storage, offset=0); \
  register_handle(); save_storage(storage, offset=0)
fails gds_deregister_buffer(s)
fails gds_register_buffer(s)
""",
)
