"""Model files: one safetensors file of arrays, parameters as JSON, classes from a closed list, no code.

Imports only `_common`; every class that is saved imports it. Begin with `model_file.py`;
`atomic.py` replaces a file as a whole.
"""

from .atomic import remove_parts, sync_directory, write
from .model_file import (
    ESTIMATORS,
    FORMAT,
    ModelFileError,
    checksum,
    decode,
    decode_features,
    decode_labels,
    encode,
    encode_features,
    encode_labels,
    encode_parameters,
    estimator,
    flatten,
    from_bytes,
    justify,
    load,
    pack_core,
    parts,
    save,
    to_bytes,
    unflatten,
    unpack_core,
)

__all__ = [
    "ESTIMATORS",
    "FORMAT",
    "ModelFileError",
    "checksum",
    "decode",
    "decode_features",
    "decode_labels",
    "encode",
    "encode_features",
    "encode_labels",
    "encode_parameters",
    "estimator",
    "flatten",
    "from_bytes",
    "justify",
    "load",
    "pack_core",
    "parts",
    "remove_parts",
    "save",
    "sync_directory",
    "to_bytes",
    "unflatten",
    "unpack_core",
    "write",
]
