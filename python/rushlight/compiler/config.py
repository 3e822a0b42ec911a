"""Settings of `torch.compiler` that are none of a single back end."""

from __future__ import annotations

job_id: str | None = None
cache_key_tag: str = ""
dynamic_sources: str = ""
force_disable_caches = False
