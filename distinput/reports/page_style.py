# SPDX-License-Identifier: Apache-2.0
"""The style sheet of report pages."""

from distinput.reports.colours import MONOSPACE, SANS, colours
from distinput.reports.plots import PLOT_STYLE
from distinput.reports.svg import GRAPH_STYLE
from distinput.reports.timeline import TIMELINE_STYLE

__all__ = ["page_style"]

_PAGE = f"""
body {{ margin: 0; background: var(--di-page); color: var(--di-ink); font: 15px/1.55 {SANS}; }}
main {{ max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }}
h1 {{ font-size: 25px; line-height: 1.3; margin: 0 0 4px; }}
h2 {{ font-size: 18px; margin: 40px 0 8px; }}
p {{ margin: 6px 0 12px; max-width: 75ch; }}
a {{ color: var(--di-blue); }}
code, pre {{ font: 12.5px/1.5 {MONOSPACE}; }}
h1 + p code {{ font-size: 13.5px; overflow-wrap: anywhere; }}
pre {{ background: var(--di-soft); border: 1px solid var(--di-line); border-radius: 7px; padding: 12px 14px;
  overflow-x: auto; }}
.di-quiet {{ color: var(--di-dim); font-size: 13.5px; }}
.di-tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0; }}
.di-tiles div {{ background: var(--di-soft); border: 1px solid var(--di-line); border-radius: 9px; padding: 10px 14px; }}
.di-tiles b {{ display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }}
.di-tiles span {{ color: var(--di-dim); font-size: 13px; }}
.di-verdict {{ border-left: 4px solid var(--di-orange); background: var(--di-soft); border-radius: 0 9px 9px 0;
  padding: 12px 16px; margin: 18px 0; overflow-wrap: anywhere; }}
.di-wide {{ overflow-x: auto; margin: 10px 0; }}
.di-wide svg {{ display: block; margin: 0 auto; }}
table {{ border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 5px 12px 5px 0; text-align: right; border-bottom: 1px solid var(--di-line); white-space: nowrap; }}
th {{ color: var(--di-dim); font-weight: 500; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
td:first-child {{ font-family: {MONOSPACE}; font-size: 12.5px; }}
tr.di-slow td {{ color: var(--di-orange); font-weight: 600; }}
.di-legend {{ display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; color: var(--di-dim); padding: 0; }}
.di-legend i {{ display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }}
summary {{ cursor: pointer; color: var(--di-dim); }}
@media print {{ main {{ max-width: none; }} h2 {{ break-after: avoid; }} }}
"""


def page_style() -> str:
    """All rules of a report page; they need no fonts or files from elsewhere."""
    return colours(":root") + _PAGE + GRAPH_STYLE + PLOT_STYLE + TIMELINE_STYLE
