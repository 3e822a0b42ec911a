"""The version of this package, and of what it was built with."""

__version__ = "0.1.0"
cuda = None
hip = None
git_version = "unknown"
debug = False
