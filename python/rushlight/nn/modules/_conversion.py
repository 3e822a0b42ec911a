"""What is done to all parameters and buffers at once: moves, casts, modes, gradients."""

from __future__ import annotations

import rushlight as torch
from rushlight import _C, Tensor

from ..parameter import Parameter


def _parse_to(*args, **kwargs) -> tuple:
    """The device, dtype, non_blocking and memory_format that arguments of `to` mean."""
    memory_format = kwargs.pop("memory_format", None)
    values = dict(kwargs)
    names = ["device", "dtype", "non_blocking", "copy"]
    if args and isinstance(args[0], Tensor):
        values.setdefault("tensor", args[0])
        args, names = args[1:], ["non_blocking", "copy"]
    elif args and isinstance(args[0], torch.dtype):
        names = ["dtype", "non_blocking", "copy"]
    unknown = set(values) - {"device", "dtype", "non_blocking", "copy", "tensor"}
    if unknown or len(args) > len(names):
        raise TypeError(
            "to() received an invalid combination of arguments - expected (device, dtype, "
            "non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking), with memory_format as a keyword"
        )
    values.update(zip(names, args))
    device, dtype = values.get("device"), values.get("dtype")
    if "tensor" in values:
        device, dtype = values["tensor"].device, values["tensor"].dtype
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if device is not None and not isinstance(device, torch.device):
        device = torch.device(device)
    return device, dtype, bool(values.get("non_blocking", False)), memory_format


_C._nn._parse_to = _parse_to


class Conversion:
    """The part of Module that changes all its tensors, or its mode."""

    training: bool

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._apply_to_parameter(fn, name, parameter)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(self, fn, name: str, parameter: Parameter) -> None:
        with torch.no_grad():
            changed = fn(parameter)
        gradient = parameter.grad
        # The parameter keeps its identity, so that optimizers still hold it; only memory of
        # another kind (the meta device) cannot be swapped in.
        keep = not torch.__future__.get_overwrite_module_params_on_conversion()
        if keep and changed.device.type == parameter.device.type:
            parameter.data = changed
            kept = parameter
        else:
            kept = Parameter(changed, parameter.requires_grad)
            self._parameters[name] = kept
        if gradient is not None:
            with torch.no_grad():
                changed_gradient = fn(gradient)
            kept.grad = changed_gradient.requires_grad_(gradient.requires_grad)

    def apply(self, fn):
        """Calls `fn` with every submodule, then with this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """to(device=None, dtype=None, non_blocking=False)
        to(dtype, non_blocking=False)
        to(tensor, non_blocking=False)
        to(memory_format=torch.channels_last)

        Moves or casts parameters and buffers in place; only those that are floating point
        change dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                )
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device, recurse: bool = True):
        """Moves parameters and buffers to a device without their values."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type):
        """Casts all parameters and buffers."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self):
        """Casts floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Casts floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Casts floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Casts floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self):
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device=None):
        """Moves parameters and buffers to a CUDA device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def ipu(self, device=None):
        """Moves parameters and buffers to an IPU."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def xpu(self, device=None):
        """Moves parameters and buffers to an XPU."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device=None):
        """Moves parameters and buffers to an MTIA device."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def share_memory(self):
        """Moves parameters and buffers to memory that other processes can map."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def train(self, mode: bool = True):
        """Sets training mode (or, with False, evaluation mode) here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Sets evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        """Says for all parameters whether they collect gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()
