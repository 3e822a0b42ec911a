"""Linear algebra. The functions come from the operator table."""

from rushlight import _C
from rushlight._C import _LinAlgError as LinAlgError  # noqa: F401

globals().update({name: f for name, f in vars(_C._linalg).items() if not name.startswith("__")})
