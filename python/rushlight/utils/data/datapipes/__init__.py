"""Pipes of data: datasets made of datasets, one step each."""

from . import iter as iter
from . import map as map
