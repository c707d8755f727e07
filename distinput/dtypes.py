# SPDX-License-Identifier: Apache-2.0
"""The dtypes that ported code names: `tf.int64` is `distinput.int64`, a NumPy dtype; `string` is the dtype of bytes."""

import numpy as np

from distinput.values.leaves import STRING

bool = np.dtype(np.bool_)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
string = STRING
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)

__all__ = [name for name, value in vars().items() if isinstance(value, np.dtype) and name.islower()]
