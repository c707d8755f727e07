# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput.kernels`: compile every kernel into the cache, for later programs."""

from distinput.kernels.kernel import compile_all

if __name__ == "__main__":
    for _name, _seconds in compile_all():
        print(f"{_name:<20} {_seconds:6.2f} s")
