# SPDX-License-Identifier: Apache-2.0
"""HTML of values: what draws it is on a floor above, which is imported when something is drawn and not before."""

from importlib import import_module
from typing import Any

__all__ = ["KINDS", "html"]

KINDS = {
    "dataset": "notebook:dataset_html",
    "distributed": "notebook:distributed_html",
    "plan": "notebook:plan_html",
    "recording": "html:page",
    "stats": "notebook:stats_html",
    "values": "notebook:values_html",
}
"""Kinds of values, and the functions of `distinput.reports` that draw them."""


def html(kind: str, *given: Any) -> str:
    """Draw a value of this kind."""
    module, _, name = KINDS[kind].partition(":")
    drawn: str = getattr(import_module(f"distinput.reports.{module}"), name)(*given)
    return drawn
