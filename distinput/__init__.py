# SPDX-License-Identifier: Apache-2.0
"""distinput: describe a pipeline over files, distribute its batches over replicas, exact to the last record.

`import distinput as tf` carries input code over: `distinput.data` and `distinput.distribute` have the names and the meaning of
`tf.data` and `tf.distribute`, on NumPy values.
"""

import sys
from typing import TYPE_CHECKING

from distinput.names.lazy import Moved, lazy

__version__ = "0.5.0"

if TYPE_CHECKING:
    from distinput import compat as compat
    from distinput import data as data
    from distinput import distribute as distribute
    from distinput import errors as errors
    from distinput import extend as extend
    from distinput import inspect as inspect
    from distinput import interop as interop
    from distinput import io as io
    from distinput import random as random
    from distinput import reports as reports
    from distinput import testing as testing
    from distinput import tpu as tpu
    from distinput import train as train
    from distinput.distribute.variables import IndexedSlices as IndexedSlices
    from distinput.distribute.variables import Variable as Variable
    from distinput.distribute.variables import VariableAggregation as VariableAggregation
    from distinput.distribute.variables import VariableSynchronization as VariableSynchronization
    from distinput.dtypes import bool as bool
    from distinput.dtypes import complex64 as complex64
    from distinput.dtypes import complex128 as complex128
    from distinput.dtypes import float16 as float16
    from distinput.dtypes import float32 as float32
    from distinput.dtypes import float64 as float64
    from distinput.dtypes import int8 as int8
    from distinput.dtypes import int16 as int16
    from distinput.dtypes import int32 as int32
    from distinput.dtypes import int64 as int64
    from distinput.dtypes import string as string
    from distinput.dtypes import uint8 as uint8
    from distinput.dtypes import uint16 as uint16
    from distinput.dtypes import uint32 as uint32
    from distinput.dtypes import uint64 as uint64
    from distinput.tf.tensors import Tensor as Tensor
    from distinput.tf.tensors import constant as constant
    from distinput.tf.tensors import convert_to_tensor as convert_to_tensor
    from distinput.tf.tensors import device as device
    from distinput.tf.tensors import function as function
    from distinput.tf.tensors import identity as identity
    from distinput.tf.tensors import range as range
    from distinput.tf.tensors import reduce_mean as reduce_mean
    from distinput.tf.tensors import reduce_sum as reduce_sum
    from distinput.tf.tensors import reshape as reshape
    from distinput.values.leaves import TensorShape as TensorShape
    from distinput.values.ragged_tensor import RaggedTensor as RaggedTensor
    from distinput.values.sparse_tensor import SparseTensor as SparseTensor
    from distinput.values.spec import OptionalSpec as OptionalSpec
    from distinput.values.spec import RaggedTensorSpec as RaggedTensorSpec
    from distinput.values.spec import SparseTensorSpec as SparseTensorSpec
    from distinput.values.spec import TensorSpec as TensorSpec
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__, own=("__version__",), besides=("compat", "extend", "reports", "testing")
    )

sys.meta_path.append(Moved)
