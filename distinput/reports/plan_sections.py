# SPDX-License-Identifier: Apache-2.0
"""The sections of a report about what is known without a pass: the shards of workers, and how well shuffles shuffle."""

from collections.abc import Sequence

from distinput.core.quantities import bytes_text
from distinput.partition.shard_plan import ShardPlan
from distinput.plan.node import Node
from distinput.reports.markup import Markup, tag
from distinput.reports.plots import bars, distribution
from distinput.reports.shuffle_quality import ShuffleQuality, shuffle_quality
from distinput.sharding.planning import shard_plan

__all__ = ["balance", "plan_parts", "shards_section", "shuffle_section"]

_MOST_WORKERS = 32


def shards_section(node: Node, num_workers: int) -> list[Markup]:
    """What each of some workers would read and deliver; empty for one worker."""
    if num_workers < 2:
        return []
    made = [tag("h2", f"Shards of {num_workers} workers")]
    try:
        return [*made, *plan_parts(shard_plan(node, num_workers))]
    except Exception as error:  # noqa: BLE001 - a report says why it has no plan, and goes on
        return [*made, tag("p", f"There is no plan for {num_workers} workers: {error}", class_="di-quiet")]


def plan_parts(plan: ShardPlan) -> list[Markup]:
    """The policy in a sentence, and a bar for the rows and bytes of each worker."""
    workers = plan.workers[:_MOST_WORKERS]
    parts = [tag("p", f"Policy {plan.policy}: {plan.sentence}")]
    rows = [(w.worker, w.rows) for w in workers if w.rows is not None and w.rows >= 0]
    if len(rows) == len(workers):
        parts.append(tag("p", balance([n for _, n in rows], "rows")))
        parts.append(_bars([(f"worker {w}", float(n), f"{n:,} rows") for w, n in rows], "rows of each worker"))
    else:
        parts.append(tag("p", "How many rows each worker has is known only when it has read them.", class_="di-quiet"))
    sizes = [(w.worker, w.nbytes) for w in workers if w.nbytes]
    if sizes:
        parts.append(tag("p", balance([n for _, n in sizes], "bytes")))
        parts.append(
            _bars([(f"worker {w}", float(n), bytes_text(n)) for w, n in sizes], "bytes that each worker reads")
        )
    if len(plan.workers) > len(workers):
        parts.append(tag("p", f"{len(plan.workers) - len(workers)} more workers are not shown.", class_="di-quiet"))
    return parts


def _bars(rows: list[tuple[str, float, str]], title: str) -> Markup:
    return tag("div", bars(rows, title), class_="di-wide")


def balance(numbers: Sequence[int], what: str, who: str = "worker") -> str:
    """How far the largest and the smallest share are from the mean, in a sentence."""
    mean = sum(numbers) / len(numbers)
    if not mean:
        return f"No {who} has {what}."
    most, fewest = max(numbers) / mean, min(numbers) / mean
    return f"The {who} with the most {what} has {most:.2f} times the mean, the one with the fewest {fewest:.2f} times."


def shuffle_section(node: Node, epoch: int) -> list[Markup]:
    """How far rows travel in each shuffle, beside a perfect one; empty if nothing is shuffled."""
    found = shuffle_quality(node, epoch)
    if not found:
        return []
    made = [
        tag("h2", "Shuffle"),
        tag("p", "Columns: how far rows are from where they were. Dashed: after a perfect shuffle.", class_="di-quiet"),
    ]
    for quality in found:
        made += _quality(quality)
    return made


def _quality(quality: ShuffleQuality) -> list[Markup]:
    note = "" if quality.seen >= quality.rows else f" Seen: the first {quality.seen:,} of {quality.rows:,} rows."
    if not quality.counted:
        note = f" The rows cannot be counted; this is for an input of {quality.rows:,}."
    ends = ("0 places", f"{quality.rows:,} places")
    picture = distribution(quality.shares, quality.perfect_shares, ends, f"how far rows travel in {quality.step}")
    return [
        tag(
            "p",
            tag("code", quality.step),
            " ",
            quality.sentence,
            f" Correlation with the order before: {quality.correlation:.2f}.",
            note,
        ),
        tag("div", picture, class_="di-wide"),
    ]
