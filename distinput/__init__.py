# SPDX-License-Identifier: Apache-2.0
"""distinput: describe a pipeline over files, distribute its batches over replicas, exact to the last record.

`import distinput as tf` carries input code over: `distinput.data` and `distinput.distribute` have the names and the meaning of
`tf.data` and `tf.distribute`, on NumPy values.
"""

from importlib import import_module
from os.path import dirname, isdir, join
from typing import TYPE_CHECKING, Any

from distinput.core.shape import TensorShape
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
    "TensorShape",
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

_CORNERS = ("data", "distribute", "errors", "extend", "io", "testing")

if TYPE_CHECKING:
    from distinput import data, distribute, errors, io
    from distinput import testing as testing


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """A corner of the library, loaded when it is first named."""
        if name in _CORNERS:
            return import_module(f"distinput.{name}")
        if isdir(join(dirname(__file__), name)):  # Python asks for a package before it imports it, and drops the error
            raise AttributeError(f"module 'distinput' has no attribute {name!r}")
        raise AttributeError(_absent(name))


def _absent(name: str) -> str:
    from distinput.data.absent import absent  # for messages alone

    return absent("distinput", name, {*__all__, *_CORNERS})


def __dir__() -> list[str]:
    return sorted({*globals(), *_CORNERS})
