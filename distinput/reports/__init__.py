# SPDX-License-Identifier: Apache-2.0
"""Pictures and reports of pipelines: graphs as SVG and Mermaid, a page on a pass, simulated jobs, traces and metrics."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy
from distinput.reports.shuffle_quality import shuffle_quality as shuffle_quality  # at once: its module has its name

if TYPE_CHECKING:
    from distinput.data.progress import ProgressBar as ProgressBar
    from distinput.data.progress import ShownPass as ShownPass
    from distinput.data.recording import Recording as Recording
    from distinput.reports.graph import Graph as Graph
    from distinput.reports.graph import GraphStep as GraphStep
    from distinput.reports.graph import graph_of as graph_of
    from distinput.reports.graph import mermaid_of as mermaid_of
    from distinput.reports.metrics import prometheus_text as prometheus_text
    from distinput.reports.shuffle_quality import ShuffleQuality as ShuffleQuality
    from distinput.reports.simulation import InputCosts as InputCosts
    from distinput.reports.simulation import Machines as Machines
    from distinput.reports.simulation import Simulation as Simulation
    from distinput.reports.simulation import StorageLimits as StorageLimits
    from distinput.reports.simulation import measured_costs as measured_costs
    from distinput.reports.simulation import plot_of as plot_of
    from distinput.reports.simulation import simulate as simulate
    from distinput.reports.svg import Figures as Figures
    from distinput.reports.svg import svg_of as svg_of
else:
    __getattr__, __dir__, __all__ = lazy(__name__, own=("shuffle_quality",))
