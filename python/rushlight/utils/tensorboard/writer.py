"""SummaryWriter: tensorboardX's, with tensors for arrays and PyTorch's arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.utils._pytree import tree_map_only

try:
    import tensorboardX
    from tensorboardX.writer import FileWriter as FileWriter
except ImportError as error:
    raise ImportError(
        "torch.utils.tensorboard writes its files with the package tensorboardX, which is not "
        "installed: pip install tensorboardX"
    ) from error

__all__ = ["FileWriter", "SummaryWriter"]


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype.itemsize == 2 else tensor).numpy()


def _of_arrays(method: Callable) -> Callable:
    """The method for arguments that have tensors in the place of arrays."""

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map_only(Tensor, _array, (args, kwargs))
        return method(self, *args, **kwargs)

    return wrapped


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes scalars, histograms, images, ... to event files in log_dir for TensorBoard to show.

    log_dir: runs/DATE_HOST followed by `comment` where there is none. purge_step: what was written
    at that step and after is hidden. add_graph and add_onnx_graph are not supported.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        super().__init__(
            None if log_dir is None else str(log_dir),
            comment,
            purge_step,
            max_queue,
            flush_secs,
            filename_suffix,
        )
        self.log_dir = self.logdir

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.logdir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number at a step. new_style and double_precision are accepted: both write a float."""
        value = _array(scalar_value) if isinstance(scalar_value, Tensor) else scalar_value
        super().add_scalar(tag, value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The settings of a run and what came of them; domains are not written."""
        plain = tree_map_only(Tensor, lambda x: x.item(), (hparam_dict, metric_dict))
        super().add_hparams(*plain, run_name, global_step)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Not supported: graphs of TensorBoard are TorchScript's."""
        raise NotImplementedError(
            "SummaryWriter.add_graph: TensorBoard shows graphs of TorchScript, which there are "
            "none of here; torch.fx.passes.graph_drawer draws graphs"
        )

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not supported: there is no ONNX export."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph: ONNX is not supported")


for _name, _method in inspect.getmembers(tensorboardX.SummaryWriter, inspect.isfunction):
    if _name.startswith("add_") and _name not in vars(SummaryWriter):
        setattr(SummaryWriter, _name, _of_arrays(_method))
