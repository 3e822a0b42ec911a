"""The old home of hub.load_state_dict_from_url."""

from rushlight.hub import load_state_dict_from_url as load_url
from rushlight.hub import tqdm

__all__ = ["load_url", "tqdm"]
