"""Special mathematical functions. The functions come from the operator table."""

from rushlight import _C

globals().update({name: f for name, f in vars(_C._special).items() if not name.startswith("__")})
