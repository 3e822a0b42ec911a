"""The named tuples that operators with several results give."""

from rushlight import _C

globals().update({name: t for name, t in vars(_C._return_types).items() if name[0] != "_"})
