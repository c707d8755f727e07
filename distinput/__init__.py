# SPDX-License-Identifier: Apache-2.0
"""distinput: describe a pipeline over files, distribute its batches over replicas, exact to the last record.

`import distinput as tf` carries input code over: `distinput.data` and `distinput.distribute` have the names and the meaning of
`tf.data` and `tf.distribute`, on NumPy values.
"""

from distinput import data, distribute, errors, io
from distinput.core.spec import TensorSpec

__all__ = ["TensorSpec", "__version__", "data", "distribute", "errors", "io"]

__version__ = "0.1.0"
