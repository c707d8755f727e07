# SPDX-License-Identifier: Apache-2.0
"""What Python and NumPy hold, without what kernels take that earlier tests have queued: numba alone takes 20 MB."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from distinput.kernels import kernel


@contextmanager
def traced() -> Iterator[None]:
    """Memory is traced, and no other thread compiles."""
    with kernel._compiler:
        tracemalloc.start()
        try:
            yield
        finally:
            tracemalloc.stop()


def peak_memory(call: Callable[[], object]) -> int:
    """The most bytes that are held during a call."""
    with traced():
        call()
        return tracemalloc.get_traced_memory()[1]
