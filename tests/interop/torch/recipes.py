# SPDX-License-Identifier: Apache-2.0
"""A process that has loaded what is heavy once, and runs everything with it: real loader workers, real ranks, and the programs
of docs/feeds/pytorch.md.

    python -m tests.interop.torch.recipes FOLDER

leaves what came of each in `FOLDER/NAME.json`: `result`, or `error`.
"""

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed.nn  # before there is a process group
from torch.utils.data import DataLoader

import distinput as di
from distinput.interop.torch import IterableView, Loader
from distinput.testing.ports import free_ports
from tests.docs.pages import Snippet, snippets

__all__ = ["PAGE", "RANKS", "recipes"]

PAGE = Path(__file__).parents[3] / "docs" / "feeds" / "pytorch.md"
RANKS = 2
NEEDS = {
    "Accelerate": "accelerate",
    "Accelerate on several ranks": "accelerate",
    "Composer": "composer",
    "Lightning": "lightning",
    "Lightning on several ranks": "lightning",
    "Megatron-Core": "megatron",
    "TRL": "trl",
    "Trainer of Hugging Face": "transformers",
    "Trainer on several ranks": "transformers",
}
OF_RANKS = (
    "DistributedDataParallel",
    "Megatron-Core",
    "Lightning on several ranks",
    "Accelerate on several ranks",
    "Trainer on several ranks",
)
"""Programs of several processes, in the order in which these can run them one after the other."""
LOADED_ONCE = ("accelerate", "lightning", "torch._dynamo", "transformers.trainer")
"""What takes seconds to load, and the ranks and this process use."""
BEFORE: list[IterableView] = []
Dataset = di.data.Dataset


def recipes() -> dict[str, Snippet]:
    """The programs of the page that are run here, by the heading above them; those whose packages are installed."""
    page = PAGE.read_text(encoding="utf-8")
    lines = page.splitlines()
    found = {}
    for snippet in snippets(page):
        if snippet.reason is not None and "test_recipes.py" in snippet.reason:
            headings = [line for line in lines[: snippet.line] if line.startswith(("## ", "### "))]
            heading = headings[-1].lstrip("# ")
            if importlib.util.find_spec(NEEDS.get(heading, "torch")):
                found[heading] = snippet
    return found


def printed_by(snippet: Snippet) -> str:
    """What a program of the page prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (snippet.line - 1) + snippet.code, str(PAGE), "exec"), {"__name__": "recipe"})
    return printed.getvalue()


def shuffled(n: int = 22, batch: int = 4) -> Any:
    return Dataset.range(n).shuffle(n, seed=1).batch(batch)


def rows(steps: Any) -> list[list[int]]:
    return [step.tolist() for step in steps]


def epochs(count: int = 3, **options: Any) -> list[list[list[int]]]:
    """Three epochs of a plain DataLoader of rank 0 of 2, the last one chosen by its number."""
    view = IterableView(shuffled(), 0, 2)
    loader = DataLoader(view, batch_size=None, **options)
    found = [rows(loader) for _ in range(min(count, 2))]
    if count < 3:  # each one with spawned workers takes seconds
        return found
    view.set_epoch(7)
    return [*found, rows(loader)]


def loader_workers() -> dict[str, Any]:
    """Epochs of DataLoaders of several kinds, which must be equal."""
    kinds: dict[str, dict[str, Any]] = {
        "none": {},
        "forked": {"num_workers": 2, "multiprocessing_context": "fork"},
        "spawned": {"count": 1, "num_workers": 1, "multiprocessing_context": "spawn"},
        "persistent": {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
    }
    return {name: epochs(**options) for name, options in kinds.items()}


def loaders_at_once() -> list[Any]:
    """Two passes side by side over one view."""
    loader = DataLoader(IterableView(shuffled(), 0, 2), batch_size=None, num_workers=2)
    first, second = iter(loader), iter(loader)
    pairs = list(zip(first, second, strict=True))
    return [rows(step for step, _ in pairs), rows(step for _, step in pairs)]


def stateful(workers: int) -> dict[str, Any]:
    """Restarts of a StatefulDataLoader at every step of its second epoch, by itself and by a Loader without loader workers."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make() -> Any:
        return StatefulDataLoader(IterableView(shuffled(), 0, 2), batch_size=None, num_workers=workers)

    loader, states = make(), []
    first, second = rows(loader), []
    for step in loader:
        second.append(step.tolist())
        states.append(json.loads(json.dumps(loader.state_dict())))
    states.append(json.loads(json.dumps(loader.state_dict())))
    third = rows(loader)
    same, elastic = [], []
    for taken in (2, len(states)):
        again = make()
        again.load_state_dict(states[taken - 1])
        same.append([*rows(again), None, *rows(again)])
        if taken < len(states):
            both = [Loader(shuffled(), rank=rank, world_size=3) for rank in range(3)]
            for other in both:
                other.load_state_dict(states[taken - 1])
            elastic.append([torch.cat(parts).tolist() for parts in zip(*both, strict=True)])
    return {"epochs": [first, second, third], "same": same, "elastic": elastic}


def loader_restarts() -> list[Any]:
    """A Loader with loader workers, stopped in its second epoch, and gone on with by one with another number of them."""
    loader, found = Loader(shuffled(), 0, 1, num_workers=2), []
    list(loader)
    for number, _ in enumerate(loader, 1):
        if number in (1, 6):
            again = Loader(shuffled(), 0, 1, num_workers=number % 3, persistent_workers=number == 1)
            again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
            found.append([number, again.epoch, rows(again), rows(again)])
    return found


def refused(act: Callable[[], Any]) -> str:
    """The message of an error."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def ranks_of_accelerate() -> dict[str, Any]:
    """What `prepare` makes of loaders on several processes."""
    from accelerate import Accelerator, DataLoaderConfiguration
    from accelerate.state import AcceleratorState

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(Loader(shuffled()))
    found: dict[str, Any] = {"kind": type(loader).__name__, "epochs": [rows(loader), rows(loader)]}
    steps = iter(loader)
    next(steps)
    accelerator.save_state("accelerate")
    rest = rows(steps)
    accelerator.wait_for_everyone()
    accelerator.load_state("accelerate")
    found["restored"] = rows(loader) == rest
    for name, dispatch in (("dispatched", None), ("sharded", False)):
        AcceleratorState._reset_state()
        again = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        twice = again.prepare(DataLoader(IterableView(shuffled()), batch_size=None))
        found[name] = refused(lambda twice=twice: list(twice))
    return found


def errors_of_workers() -> dict[str, str]:
    """What the loop sees of errors in loader workers."""
    Path("lines.txt").write_text("one\n", encoding="utf-8")
    missing = di.data.TextLineDataset(["lines.txt", "missing.txt"]).batch(1)
    unordered = {"batch_size": None, "num_workers": 2, "in_order": False}
    empty = Loader(shuffled(5, 2), 1, 2, num_workers=1)
    saved = Loader(Dataset.range(8).map(lambda x: x).batch(2)).state_dict()
    corrected = Dataset.range(8).map(lambda x: x + 0).batch(2)
    refusing, taking = Loader(corrected, num_workers=1), Loader(corrected, num_workers=1, may_differ="functions")
    refusing.load_state_dict(saved)
    taking.load_state_dict(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error", di.errors.InputWarning)
        return {
            "missing": refused(lambda: list(Loader(missing, num_workers=1))),
            "unordered": refused(lambda: list(DataLoader(IterableView(shuffled()), **unordered))),
            "empty": refused(lambda: list(empty)),
            "corrected": refused(lambda: list(refusing)),
            "taken": str([x for step in taking for x in step.tolist()]),
        }


def uses_of_lightning() -> dict[str, Any]:
    """The other entries of a Lightning Trainer, which make the loader again."""
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(1, 1), list[Any]()

        def training_step(self, batch: Any, index: int) -> Any:
            self.seen.append(batch.tolist())
            return self.layer(batch[:, None]).sum()

        def validation_step(self, batch: Any, index: int) -> None:
            self.seen.append(batch.tolist())

        test_step = validation_step

        def predict_step(self, batch: Any, index: int) -> Any:
            return batch

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    def trainer(**options: Any) -> Any:
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        return lightning.Trainer(
            max_epochs=2, accelerator="cpu", devices=1, enable_model_summary=False, **quiet, **options
        )

    batches, found = Dataset.range(9).map(lambda x: x.astype("float32")).batch(4), {}
    for workers in (0, 1):
        for act in ("validate", "test"):
            model = Model()
            getattr(trainer(), act)(model, Loader(batches, num_workers=workers), verbose=False)
            found[f"{act}-{workers}"] = model.seen
        found[f"predict-{workers}"] = rows(trainer().predict(Model(), Loader(batches, num_workers=workers)))
    model = Model()
    trainer(overfit_batches=1).fit(model, Loader(batches))
    return {**found, "overfit": model.seen}


def uses_of_the_trainer() -> dict[str, Any]:
    """Evaluation, prediction and speeds of the Trainer of Hugging Face."""
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> Any:
            made = self.layer(x[:, None])
            return {"loss": (made[:, 0] - labels).square().mean(), "logits": made}

    class Fed(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return Loader(batches)

        def get_eval_dataloader(self, dataset: Any = None) -> Any:
            return Loader(batches, num_workers=1)

        def get_test_dataloader(self, dataset: Any = None) -> Any:
            return Loader(batches)

    batches = Dataset.range(21).map(lambda x: {"x": x.astype("float32"), "labels": x.astype("float32")}).batch(4)
    arguments = TrainingArguments(
        "uses",
        num_train_epochs=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
    )
    trained = Fed(Model(), arguments).train().metrics
    evaluated = Fed(Model(), arguments).evaluate()
    predicted = Fed(Model(), arguments).predict(None)
    return {
        "trained": trained["train_samples_per_second"] * trained["train_runtime"],
        "evaluated": evaluated["eval_samples_per_second"] * evaluated["eval_runtime"],
        "loss": evaluated["eval_loss"],
        "predicted": [len(predicted.predictions), predicted.label_ids.tolist()],
    }


def of_a_view_made_before() -> list[Any]:
    """Epochs of a view that was made by the process that forked the ranks, so that they share its memory."""
    loader = DataLoader(BEFORE[0], batch_size=None, num_workers=2, multiprocessing_context="fork")
    return [rows(loader), rows(loader)]


def rank_programs(folder: Path, rank: int, ports: list[int]) -> None:
    """What each rank runs; each program has a port, so that no rank meets another one that is still in the program before."""
    write(folder, f"forked-{rank}", of_a_view_made_before)
    place = dict(os.environ)
    for name in OF_RANKS:
        if name in recipes():
            os.environ["MASTER_PORT"] = str(ports.pop())
            write(folder, f"{name}-{rank}", lambda name=name: printed_by(recipes()[name]))
            os.environ |= place  # Lightning takes the variables of ranks away
    if importlib.util.find_spec("accelerate"):
        os.environ["MASTER_PORT"] = str(ports.pop())
        write(folder, f"accelerate-{rank}", ranks_of_accelerate)


def write(folder: Path, name: str, act: Callable[[], Any]) -> None:
    """Do it, and leave what came of it."""
    try:
        answer = {"result": act()}
    except BaseException:  # noqa: BLE001 - the test shows it
        answer = {"error": traceback.format_exc()}
    (folder / f"{name}.json").write_text(json.dumps(answer), encoding="utf-8")


def main(folder: Path) -> None:
    """Run everything."""
    os.chdir(folder)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ports = free_ports(len(OF_RANKS) + 1)  # and that of accelerate
    BEFORE.append(IterableView(shuffled()))
    for name in LOADED_ONCE:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a rank, or in a worker of a loader, copies none of what is loaded
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if not child:
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS}
            os.environ.update({name: str(value) for name, value in place.items()})
            os.environ["MASTER_ADDR"] = "127.0.0.1"
            rank_programs(folder, rank, ports)
            os._exit(0)
        children.append(child)
    write(folder, "loader_workers", loader_workers)
    write(folder, "loaders_at_once", loaders_at_once)
    for workers in (0, 2) if importlib.util.find_spec("torchdata") else ():
        write(folder, f"stateful-{workers}", lambda workers=workers: stateful(workers))
    write(folder, "loader_restarts", loader_restarts)
    write(folder, "errors_of_workers", errors_of_workers)
    for name, act in (("lightning", uses_of_lightning), ("transformers", uses_of_the_trainer)):
        if importlib.util.find_spec(name):
            write(folder, f"uses-{name}", act)
    for name, snippet in recipes().items():
        if name not in OF_RANKS:
            write(folder, name, lambda snippet=snippet: printed_by(snippet))
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
