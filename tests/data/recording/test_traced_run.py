# SPDX-License-Identifier: Apache-2.0
"""A run that takes notes: what its pools do belongs to the step that asked for them."""

import pytest

import distinput as di
from distinput.data.recording import Trace, TracedRun
from distinput.plan.node import walk


def test_steps_of_datasets_that_functions_make_are_inner() -> None:
    dataset = di.data.Dataset.range(3).flat_map(lambda x: di.data.Dataset.range(x).map(lambda y: y + 1))
    trace = Trace()
    node = dataset._runs().node
    with TracedRun(trace, walk(node)) as run:
        rows = sum(block.size for block, _ in node.open(node.start(0), run))
    assert rows == 3
    assert {"inner:map", "inner:range"} <= {span.step for span in trace.spans}
    inner = sum(span.rows for span in trace.spans if span.step == "inner:map" and span.kind == "step")
    assert inner == sum(
        counter.rows for key, counter in run.counters.items() if isinstance(key, tuple) and key[0] == "map"
    )


def test_a_pool_notes_its_tasks_and_passes_on_what_they_give_and_raise() -> None:
    trace = Trace()
    with TracedRun(trace, ()) as run, run.pool(1) as pool:
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 7, 0).result()
        assert len(pool.threads) <= 1
    assert [(span.step, span.kind) for span in trace.spans] == [("", "task"), ("", "task")]
