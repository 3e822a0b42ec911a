"""Graphs of calls as Python data: what back ends are given, and what symbolic tracing makes."""

from rushlight.fx import annotate as annotate
from rushlight.fx import config as config
from rushlight.fx import traceback as traceback
from rushlight.fx._symbolic_trace import PH as PH
from rushlight.fx._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from rushlight.fx._symbolic_trace import Tracer as Tracer
from rushlight.fx._symbolic_trace import symbolic_trace as symbolic_trace
from rushlight.fx._symbolic_trace import wrap as wrap
from rushlight.fx.codegen import CodeGen as CodeGen
from rushlight.fx.graph import Graph as Graph
from rushlight.fx.graph_module import GraphModule as GraphModule
from rushlight.fx.interpreter import Interpreter as Interpreter
from rushlight.fx.interpreter import Transformer as Transformer
from rushlight.fx.node import Node as Node
from rushlight.fx.node import TensorMetadata as TensorMetadata
from rushlight.fx.node import has_side_effect as has_side_effect
from rushlight.fx.node import map_aggregate as map_aggregate
from rushlight.fx.node import map_arg as map_arg
from rushlight.fx.proxy import Proxy as Proxy
from rushlight.fx.proxy import TraceError as TraceError
from rushlight.fx.subgraph_rewriter import replace_pattern as replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
