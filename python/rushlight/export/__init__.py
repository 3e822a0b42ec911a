"""Modules' calls as programs: graphs of aten operators with their state, for tools and files."""

from rushlight.export._archive import load as load
from rushlight.export._archive import save as save
from rushlight.export._draft_export import draft_export as draft_export
from rushlight.export._export import export as export
from rushlight.export.decomp_utils import CustomDecompTable as CustomDecompTable
from rushlight.export.decomp_utils import default_decompositions as default_decompositions
from rushlight.export.dynamic_shapes import AdditionalInputs as AdditionalInputs
from rushlight.export.dynamic_shapes import Dim as Dim
from rushlight.export.dynamic_shapes import ShapesCollection as ShapesCollection
from rushlight.export.dynamic_shapes import dims as dims
from rushlight.export.exported_program import ExportedProgram as ExportedProgram
from rushlight.export.exported_program import ModuleCallEntry as ModuleCallEntry
from rushlight.export.exported_program import ModuleCallSignature as ModuleCallSignature
from rushlight.export.graph_signature import ExportBackwardSignature as ExportBackwardSignature
from rushlight.export.graph_signature import ExportGraphSignature as ExportGraphSignature
from rushlight.export.unflatten import FlatArgsAdapter as FlatArgsAdapter
from rushlight.export.unflatten import UnflattenedModule as UnflattenedModule
from rushlight.export.unflatten import unflatten as unflatten
from rushlight.utils._pytree import register_dataclass as register_dataclass

__all__ = [
    "AdditionalInputs",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
