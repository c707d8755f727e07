# SPDX-License-Identifier: Apache-2.0
"""Pictures and reports of pipelines: graphs as SVG and Mermaid, a page on a pass, traces and metrics for other tools."""

from distinput.data.progress import ProgressBar, ShownPass
from distinput.data.recording import Recording
from distinput.reports.graph import Graph, GraphStep, graph_of, mermaid_of
from distinput.reports.metrics import prometheus_text
from distinput.reports.shuffle_quality import ShuffleQuality, shuffle_quality
from distinput.reports.svg import Figures, svg_of

__all__ = [
    "Figures",
    "Graph",
    "GraphStep",
    "ProgressBar",
    "Recording",
    "ShownPass",
    "ShuffleQuality",
    "graph_of",
    "mermaid_of",
    "prometheus_text",
    "shuffle_quality",
    "svg_of",
]
