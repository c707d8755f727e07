# SPDX-License-Identifier: Apache-2.0
"""Facts: what others must know about a step to shard, count and rewrite a pipeline; each step states them itself."""

from typing import Any, ClassVar

from distinput.plan.needs import Needs

__all__ = ["Facts"]


class Facts:
    """What a step states of itself, in class attributes and a few properties.

    Each has a cautious default: a step that states nothing works everywhere, but is never divided, moved or left out. The
    family classes (`OneForOne`, `SameElements`, `Grouped`, `Batching`, `Keyed`, `Seeded`) state what holds for their kind.
    """

    # --- facts for the run
    by_element: ClassVar[bool] = False
    """True: it looks at the elements of its input one by one, or passes them on without looking (see `Run.by_element`)."""
    tolerant: ClassVar[bool] = False
    """True: in a tolerant run it passes on failures of its input, each with the state after it, and turns its own errors into
    failures. False: its input is opened so that errors are raised, and it does not go on after one."""
    harmless: ClassVar[bool] = False
    """True: it raises no errors of its own, only those of its input."""
    skips_failures: ClassVar[bool] = False
    """True: it drops the elements that are errors, so it must see all errors of its input."""

    @property
    def fails_in_place(self) -> bool:
        """Whether an error takes all elements of its batch with it; otherwise the next batch begins right after the error.

        Source: TensorFlow runs a `map` and the `batch` behind it as one step (map_and_batch_dataset_op.cc).
        """
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """What `explain` says of how it runs, beyond its arguments."""
        return ()

    # --- facts for states
    passes_states: ClassVar[bool] = False
    """True: its states are those of its input, though its elements are not."""
    transparent: ClassVar[bool] = False
    """True: its elements and its states are those of its input, so that a state does not tell whether it is there."""
    indifferent: ClassVar[frozenset[str]] = frozenset({"deterministic", "num_parallel_calls", "on_error"})
    """Arguments that affect neither elements nor states."""

    @property
    def draws(self) -> bool:
        """Whether this step, or a dataset that its function builds, may draw its own seed; then it has a field `drawn_seed`."""
        return False

    @property
    def chooses(self) -> bool:
        """Whether a seed decides which element comes next."""
        return False

    @property
    def reshuffles(self) -> bool:
        """Whether each pass has another order."""
        return False

    @property
    def differs_by_place(self) -> bool:
        """Whether it has other random numbers at each of its places in a tree (`plan.places`)."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether it keeps something of one pass for later ones; then it has a field `store`."""
        return False

    # --- facts for sharding and rewrites
    needs: ClassVar[Needs] = Needs.ALL
    """How much of its input it needs to see; this decides what may be sharded below it, and moved across it."""
    thins: ClassVar[bool] = False
    """True: it gives at most as many elements as its first input, and perhaps none."""
    by_position: ClassVar[bool] = False
    """True: it gives elements of its input unchanged, and their positions alone decide which ones, and in which order."""
    shuffles: ClassVar[bool] = False
    """True: it gives each element of its input once, in a random order."""
    keeps_batches: ClassVar[bool] = False
    """True: where the elements of its inputs are batches, so are its own, with as many rows; with `Needs.ONE`, row i of a batch
    depends on row i alone."""
    view_only: ClassVar[bool] = False
    """True: it gives views of its input, or of memory; a thread that made them ahead of time would save nothing."""
    about_the_whole: ClassVar[bool] = False
    """True: it passes on its input, and asserts something about the whole that is false for a part: a worker leaves it out."""
    reads_files: ClassVar[bool] = False
    """True: its input names files, and it gives the records of each."""
    counting_calls: ClassVar[bool] = False
    """True: to count its elements, a function is called that makes datasets."""

    @property
    def drops_rows(self) -> bool:
        """Whether it drops rows at the end that do not fill a batch."""
        return False

    @property
    def random_access(self) -> bool:
        """True when `fetch` works, and costs as much for each element wherever it is and however few are fetched."""
        return False

    @property
    def own_options(self) -> Any:
        """The `Options` that it adds to those of its inputs, if any."""
        return None

    # --- facts about its spec
    @property
    def spec_given(self) -> bool:
        """Whether the user stated what its function returns."""
        return False

    @property
    def spec_from_file(self) -> bool:
        """Whether a file must be read to know what its elements look like."""
        return False
