"""Rushlight: tensors, automatic differentiation and neural networks under PyTorch's names.

`import rushlight as torch` gives most programs written for PyTorch what they use. The functions and
the methods of Tensor come from the operator table of the core; submodules load at first use.
"""

from __future__ import annotations

import importlib as _importlib
import importlib.util as _importlib_util
import math as _math
import os as _os
import sys as _sys

from rushlight import _C
from rushlight import _tensor_legacy as _tensor_legacy  # gives Tensor methods of old programs
from rushlight import _tensor_state as _tensor_state  # gives Tensor its methods for pickling
from rushlight._C import *  # noqa: F403
from rushlight._public import name_methods as _name_methods
from rushlight._tensor import Tensor as Tensor

_name_methods(Tensor)

# Functions of the operator table. Names with a prefix have a module of their own.
_OWN_MODULE = ("special_", "linalg_", "fft_")
globals().update(
    {
        _name: _function
        for _name, _function in vars(_C._VariableFunctions).items()
        if not _name.startswith(("__", *_OWN_MODULE))
    }
)

_PACKAGE = __name__  # which changes where the package goes by the name torch
torch = _sys.modules[__name__]  # as PyTorch, which imports itself
e = _math.e
pi = _math.pi
inf = _math.inf
nan = _math.nan
newaxis = None

# Names defined in a submodule that loads when one of them is first asked for.
_LAZY = {
    "compiler": ("compile",),
    "torch_version": ("__version__",),
    "_higher_order_ops": ("cond", "while_loop"),
    "_data": ("asarray", "from_dlpack", "from_file"),
    "_ops": ("Tag",),
    "jit": ("ScriptModule",),
    "_file_reader": ("PyTorchFileReader",),
    "_legacy": (
        "AcceleratorError",
        "DisableTorchFunction",
        "DisableTorchFunctionSubclass",
        "FatalError",
        "JITException",
        "Storage",
        "TensorType",
        "_assert",
        "_assert_async",
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_tensor_all_with",
        "_check_type",
        "_check_value",
        "_check_with",
        "_convert_indices_from_coo_to_csr",
        "_convert_indices_from_csr_to_coo",
        "_shape_as_tensor",
        "chain_matmul",
        "compiled_with_cxx11_abi",
        "cudnn_is_acceptable",
        "detach_",
        "dsmm",
        "eig",
        "frobenius_norm",
        "get_autocast_cpu_dtype",
        "get_autocast_gpu_dtype",
        "get_autocast_ipu_dtype",
        "get_autocast_xla_dtype",
        "get_device",
        "has_lapack",
        "has_mkl",
        "has_openmp",
        "has_spectral",
        "is_autocast_cpu_enabled",
        "is_autocast_ipu_enabled",
        "is_autocast_xla_enabled",
        "is_conj",
        "is_distributed",
        "is_neg",
        "is_vulkan_available",
        "lstsq",
        "matrix_rank",
        "norm_except_dim",
        "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled",
        "set_autocast_gpu_dtype",
        "set_autocast_ipu_dtype",
        "set_autocast_ipu_enabled",
        "set_autocast_xla_dtype",
        "set_autocast_xla_enabled",
        "solve",
        "spmm",
        "symeig",
        "vander",
    ),
    "_limits": ("finfo", "iinfo"),
    "_device": ("get_default_device", "set_default_device"),
    "_settings": (
        "are_deterministic_algorithms_enabled",
        "get_deterministic_debug_mode",
        "get_float32_matmul_precision",
        "get_num_interop_threads",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_storage",
        "is_tensor",
        "is_warn_always_enabled",
        "set_default_tensor_type",
        "set_deterministic_debug_mode",
        "set_float32_matmul_precision",
        "set_flush_denormal",
        "set_num_interop_threads",
        "set_warn_always",
        "typename",
        "use_deterministic_algorithms",
    ),
    "_tensor_str": ("set_printoptions",),
    "_functorch.vmap": ("vmap",),
    "_storage_types": (
        "BFloat16Tensor",
        "BoolTensor",
        "ByteTensor",
        "CharTensor",
        "DoubleTensor",
        "FloatTensor",
        "HalfTensor",
        "IntTensor",
        "LongTensor",
        "ShortTensor",
    ),
    "amp.autocast_mode": (
        "autocast",
        "get_autocast_dtype",
        "is_autocast_available",
        "is_autocast_cache_enabled",
        "is_autocast_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
    ),
    "amp.grad_scaler": ("GradScaler",),
    "_lobpcg": ("lobpcg",),
    "_lowrank": ("pca_lowrank", "svd_lowrank"),
    "autograd.grad_mode": (
        "enable_grad",
        "inference_mode",
        "no_grad",
        "set_grad_enabled",
    ),
    "futures": ("Future",),
    "functional": (
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "block_diag",
        "broadcast_shapes",
        "broadcast_tensors",
        "cartesian_prod",
        "cdist",
        "einsum",
        "is_complex",
        "is_floating_point",
        "is_inference",
        "is_nonzero",
        "is_same_size",
        "is_signed",
        "lu",
        "meshgrid",
        "nonzero",
        "norm",
        "numel",
        "split",
        "tensordot",
        "unique",
        "unique_consecutive",
    ),
    "random": ("fork_rng", "thread_safe_generator"),
    "_symbolic": (
        "SymBool",
        "SymFloat",
        "SymInt",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
        "sym_float",
        "sym_fresh_size",
        "sym_int",
        "sym_ite",
        "sym_max",
        "sym_min",
        "sym_not",
        "sym_sqrt",
        "sym_sum",
    ),
    "serialization": ("load", "save"),
    "_streams": ("Event", "Stream", "get_device_module"),
    "storage": (
        "BFloat16Storage",
        "BoolStorage",
        "ByteStorage",
        "CharStorage",
        "ComplexDoubleStorage",
        "ComplexFloatStorage",
        "DoubleStorage",
        "FloatStorage",
        "HalfStorage",
        "IntStorage",
        "LongStorage",
        "ShortStorage",
        "TypedStorage",
        "UntypedStorage",
    ),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}


def _find(name: str) -> object:
    if name.startswith("_foreach_"):
        return getattr(_importlib.import_module(f"{_PACKAGE}._foreach"), name)
    if name in _HOME:
        return getattr(_importlib.import_module(f"{_PACKAGE}.{_HOME[name]}"), name)
    full_name = f"{_PACKAGE}.{name}"
    special = name.startswith("__") and name not in ("__config__", "__future__")
    if special or _importlib_util.find_spec(full_name) is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _importlib.import_module(full_name)


def __getattr__(name: str) -> object:
    found = _find(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


# What a wrapper in Python extends goes through it, whatever the table has under the name.
for _name in _LAZY["functional"]:
    globals().pop(_name, None)
del _name

if _os.environ.get("TORCH_LOGS"):
    _importlib.import_module("rushlight._logging")
