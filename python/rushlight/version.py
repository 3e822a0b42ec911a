"""The version of this package, and of what it was built with."""

__version__ = "0.1.0"
# The PyTorch whose interface this is: what programs that say `import torch` see as its version.
torch_interface = "2.13.0+rushlight"
cuda = None
hip = None
git_version = "unknown"
debug = False
