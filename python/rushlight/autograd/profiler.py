"""torch.autograd.profiler: the older face of rushlight.profiler."""

from __future__ import annotations

from rushlight import profiler as _profiler
from rushlight.profiler import EventList, FunctionEvent, FunctionEventAvg, record_function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]


class profile(_profiler.profile):
    """Records what runs inside `with profile() as p:`. With enabled=False nothing is recorded."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        **_: object,
    ) -> None:
        super().__init__(record_shapes=record_shapes, profile_memory=profile_memory)
        self.enabled = enabled

    def start(self) -> None:
        if self.enabled:
            super().start()

    def stop(self) -> None:
        if self.enabled:
            super().stop()

    @property
    def function_events(self) -> EventList:
        return self.events()

    def table(self, *args: object, **kwargs: object) -> str:
        """What ran, as text."""
        return self.events().table(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """One total over all."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self.events().self_cpu_time_total
