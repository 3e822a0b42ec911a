"""Parts of the data loader."""

from . import collate as collate
from . import fetch as fetch
from . import worker as worker
