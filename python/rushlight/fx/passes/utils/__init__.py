"""What passes have in common."""

from rushlight.fx.passes.utils.common import HolderModule as HolderModule
from rushlight.fx.passes.utils.common import compare_graphs as compare_graphs
from rushlight.fx.passes.utils.common import lift_subgraph_as_module as lift_subgraph_as_module
