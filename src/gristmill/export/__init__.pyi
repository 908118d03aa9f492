from ._plain import ExportError as ExportError
from .onnx.file import to_onnx as to_onnx
