# SPDX-License-Identifier: Apache-2.0
"""A judge of loaders: laws that hold for the loader of any library, tried on what it delivers.

`distinput.testing.judge(make_loader, records)` is the function; `python -m distinput.testing.judge` and `pytest --judge`
call it.
"""
