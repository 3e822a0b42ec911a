"""Processes in rows and columns; there are none in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(globals(), "init_device_mesh", "DeviceMesh")
