"""Settings of what compile keeps for backward, where PyTorch has them."""

from rushlight._functorch import config as config
