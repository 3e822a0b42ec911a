"""What libraries and devices this build can use, under the names that programs ask by."""

from __future__ import annotations

import types

from rushlight import _C


class _Flags(types.ModuleType):
    """A module of settings; `is_available()` says whether there is anything they apply to."""

    def __init__(self, name: str, **settings: object) -> None:
        super().__init__(f"{__name__}.{name}")
        self.__dict__.update(settings)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False


cuda = _Flags("cuda", matmul=types.SimpleNamespace(allow_tf32=False))
cudnn = _Flags("cudnn", enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
mps = _Flags("mps")
mkl = _Flags("mkl")
mkldnn = _Flags("mkldnn", enabled=False)
openmp = _Flags("openmp")
xeon = _Flags("xeon")


class _Cpu(types.ModuleType):
    def get_cpu_capability(self) -> str:
        """The instruction set that kernels are chosen for, by PyTorch's names."""
        level = _C._cpu_level()
        return {"base": "DEFAULT", "v3": "AVX2"}.get(level, "AVX512")


cpu = _Cpu(f"{__name__}.cpu")
