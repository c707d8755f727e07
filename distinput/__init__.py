# SPDX-License-Identifier: Apache-2.0
"""distinput: describe a pipeline over files, distribute its batches over replicas, exact to the last record.

`import distinput as tf` carries input code over: `distinput.data` and `distinput.distribute` have the names and the meaning of
`tf.data` and `tf.distribute`, on NumPy values.
"""

import sys
from importlib import import_module
from os.path import dirname, isdir, join
from typing import TYPE_CHECKING, Any

__all__ = [
    "IndexedSlices",
    "OptionalSpec",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "__version__",
    "bool",
    "complex64",
    "complex128",
    "constant",
    "convert_to_tensor",
    "data",
    "device",
    "distribute",
    "errors",
    "float16",
    "float32",
    "float64",
    "function",
    "identity",
    "inspect",
    "int8",
    "int16",
    "int32",
    "int64",
    "interop",
    "io",
    "random",
    "range",
    "reduce_mean",
    "reduce_sum",
    "reshape",
    "string",
    "tpu",
    "train",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

__version__ = "0.2.0"

_CORNERS = (
    "compat",
    "data",
    "distribute",
    "errors",
    "extend",
    "inspect",
    "interop",
    "io",
    "random",
    "reports",
    "testing",
    "tpu",
    "train",
)

_LAZY = {
    name: module
    for module, names in {
        "values.ragged_tensor": "RaggedTensor",
        "values.shape": "TensorShape",
        "values.sparse_tensor": "SparseTensor",
        "values.spec": "OptionalSpec RaggedTensorSpec SparseTensorSpec TensorSpec",
        "distribute.variables": "IndexedSlices Variable VariableAggregation VariableSynchronization",
        "dtypes": "bool complex64 complex128 float16 float32 float64 int8 int16 int32 int64 string uint8 uint16 uint32 uint64",
        "tf.python_function": "function",
        "tf.tensors": "Tensor constant convert_to_tensor device identity range reduce_mean reduce_sum reshape",
    }.items()
    for name in names.split()
}
"""Names and the modules that have them, loaded when they are first named."""

if TYPE_CHECKING:
    from distinput import data, distribute, errors, inspect, interop, io, random, tpu, train
    from distinput import reports as reports
    from distinput import testing as testing
    from distinput.distribute.variables import IndexedSlices, Variable, VariableAggregation, VariableSynchronization
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
    from distinput.tf.python_function import function
    from distinput.tf.tensors import (
        Tensor,
        constant,
        convert_to_tensor,
        device,
        identity,
        range,
        reduce_mean,
        reduce_sum,
        reshape,
    )
    from distinput.values.ragged_tensor import RaggedTensor
    from distinput.values.shape import TensorShape
    from distinput.values.sparse_tensor import SparseTensor
    from distinput.values.spec import OptionalSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """A corner of the library, loaded when it is first named."""
        if name in _CORNERS:
            return import_module(f"distinput.{name}")
        if name in _LAZY:
            globals()[name] = value = getattr(import_module(f"distinput.{_LAZY[name]}"), name)
            return value
        if isdir(join(dirname(__file__), name)):  # Python asks for a package before it imports it, and drops the error
            raise AttributeError(f"module 'distinput' has no attribute {name!r}")
        raise AttributeError(_absent(name))


class _Moved:
    """Finds modules by their old paths, after all others: see `distinput.moved`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG004 - what the import system asks
        """The module, if it moved."""
        if not name.startswith("distinput."):
            return None
        from distinput.moved import moved_spec  # for those who still import an old path

        return moved_spec(name)


sys.meta_path.append(_Moved)


def _absent(name: str) -> str:
    from distinput.names.absent import absent  # for messages alone

    return absent("distinput", name, {*__all__, *_CORNERS})


def __dir__() -> list[str]:
    return sorted({*globals(), *_CORNERS, *_LAZY})
