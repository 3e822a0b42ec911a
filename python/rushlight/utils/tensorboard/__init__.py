"""TensorBoard's event files, written by the tensorboardX package."""

from rushlight.utils.tensorboard.writer import FileWriter as FileWriter
from rushlight.utils.tensorboard.writer import SummaryWriter as SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
