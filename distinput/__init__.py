# SPDX-License-Identifier: Apache-2.0
"""distinput: describe a pipeline over files, distribute its batches over replicas, exact to the last record.

`import distinput as tf` carries input code over: `distinput.data` and `distinput.distribute` have the names and the meaning of
`tf.data` and `tf.distribute`, on NumPy values.
"""

from distinput import data, distribute, errors, io
from distinput.core.spec import TensorSpec
from distinput.dtypes import (
    bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "TensorSpec",
    "__version__",
    "bool",
    "complex64",
    "complex128",
    "data",
    "distribute",
    "errors",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

__version__ = "0.1.0"
