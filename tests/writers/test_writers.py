# SPDX-License-Identifier: Apache-2.0
"""The table of writers: each is in it, and is named as the format that reads what it writes."""

import inspect
import pkgutil
from importlib import import_module

from distinput import writers
from distinput.writers import WRITERS
from distinput.writers.writer import Writer


def test_every_writer_is_in_the_table() -> None:
    found = set()
    for module in pkgutil.iter_modules(writers.__path__, "distinput.writers."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, Writer) and not inspect.isabstract(kind):
                found.add(kind)
    assert {WRITERS.find(name) for name in WRITERS} == found
    assert [WRITERS.find(name).name for name in WRITERS] == list(WRITERS)  # type: ignore[attr-defined]
