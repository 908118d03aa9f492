from ._plain import ExportError as ExportError
from .c.file import to_c as to_c
from .device import from_device as from_device
from .json_file import to_json as to_json
from .onnx.file import to_onnx as to_onnx
