"""Batches: the same ones in every run, and on any number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset, default_collate

from intervalnn.data.loading import arguments, is_empty, moved, split

__all__ = ["Batches", "parts"]

RUNS = 5  # of neighbours that are held out


def parts(batch: Any, device: torch.device) -> tuple[tuple[Any, ...], Tensor]:
    """Return the model's arguments and the target of a batch, on the device."""
    x, target = split(batch)
    return arguments(x, device), moved(target, device).detach()


class Batches:
    """The batches of a loader, in a reproducible order, divided among processes.

    A loader over an indexed data set is read in an order that depends on the seed and the epoch alone. So a run that
    was stopped goes on with the batches that it would have had. Each batch is cut into one share per process, so that
    several processes take the same steps as one. Any other iterable is read as it comes.

    Args:
        loader: Yields batches, each time that it is iterated over.
        seed: Chooses the order, where the loader shuffles.
        rank: Number of this process.
        world: How many processes there are.
        samples: Which samples of an indexed data set to read, if not all.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        *,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        samples: Tensor | None = None,
    ) -> None:
        if isinstance(loader, Iterator):
            raise TypeError(
                f"the loader must start anew each epoch, and a {type(loader).__name__} runs but once; "
                "give a DataLoader or a list"
            )
        self.loader, self.seed, self.rank, self.world = loader, seed, rank, world
        self.indexed = _is_indexed(loader)
        self.samples = torch.arange(_size(loader)) if samples is None and self.indexed else samples
        self.drops_last = self.indexed and loader.drop_last  # type: ignore[attr-defined]
        self._length: int | None = None
        if world > 1 and not self.indexed:
            raise ValueError(
                f"with {world} processes the loader must be a torch DataLoader over an indexed data set with its "
                f"standard sampler, so that it can be shared out; got {type(loader).__name__}"
            )

    def __len__(self) -> int:
        """Return how many batches there are; where the loader does not know, by counting them once."""
        if self._length is None and self.samples is not None:
            whole, rest = divmod(len(self.samples), self.loader.batch_size)  # type: ignore[attr-defined]
            self._length = whole + (rest > 0 and not self.drops_last)
        if self._length is None:
            try:
                self._length = len(self.loader)  # type: ignore[arg-type]
            except TypeError:
                self._length = sum(1 for _ in self.loader)
        return self._length

    def epoch(self, number: int) -> Iterator[tuple[Any, float]]:
        """Yield this process's share of each batch, and its weight in the mean over processes."""
        if not isinstance(self.loader, DataLoader) or not self.indexed:
            yield from ((batch, 1.0) for batch in self.loader if not is_empty(split(batch)[1]))
            return
        shares, weights = self._shares(self.loader, number)
        yield from zip(_read(self.loader, shares), weights, strict=True)

    def in_order(self) -> Iterator[Any]:
        """Yield whole batches in the order of the data set, or as the loader has them."""
        if isinstance(self.loader, DataLoader) and self.indexed:
            assert self.samples is not None
            yield from _read(self.loader, [share.tolist() for share in self.samples.split(self.loader.batch_size or 1)])
        else:
            yield from self.loader

    def parted(self, one_in: int) -> tuple[Batches, Batches] | None:
        """Return batches without one in so many samples, and batches of these alone; None where there are too few.

        Runs of neighbours are held out together, since neighbours are often alike: slices of a volume, times of a
        series.
        """
        if not self.indexed or self.samples is None or len(self.samples) < one_in:
            return None
        run = max(1, len(self.samples) // (RUNS * one_in))
        held_out = torch.arange(len(self.samples)) // run % one_in == one_in - 1
        own = {"seed": self.seed, "rank": self.rank, "world": self.world}
        rest, part = (Batches(self.loader, samples=self.samples[which], **own) for which in (~held_out, held_out))
        part.drops_last = False  # there may be few
        return (rest, part) if len(rest) else None

    def _shares(self, loader: DataLoader[Any], number: int) -> tuple[list[list[int]], list[float]]:
        """Return the samples of each of this process's shares, and their weights."""
        assert loader.batch_size is not None and self.samples is not None
        order = self.samples
        if isinstance(loader.sampler, RandomSampler):
            own = (self.seed * 1_000_003 + number) % 2**63
            order = order[torch.randperm(len(order), generator=torch.Generator().manual_seed(own))]
        whole = [batch.tolist() for batch in order.split(loader.batch_size)][: len(self)]
        shares = [batch[self.rank :: self.world] for batch in whole]
        weights = [len(share) * self.world / len(batch) for share, batch in zip(shares, whole, strict=True)]
        # A process without a share computes one sample at weight zero, so that all processes exchange gradients.
        return [share or batch[:1] for share, batch in zip(shares, whole, strict=True)], weights


def _size(loader: Any) -> int:
    return len(loader.dataset)


def _is_indexed(loader: Any) -> bool:
    """Say whether we may choose the order of a loader's samples: each sample once, shuffled or not."""
    if not isinstance(loader, DataLoader) or loader.batch_size is None:
        return False
    sampler = loader.sampler
    if isinstance(sampler, RandomSampler):
        return not sampler.replacement and sampler.num_samples == len(loader.dataset)  # type: ignore[arg-type]
    return isinstance(sampler, SequentialSampler)


def _read(loader: DataLoader[Any], shares: list[list[int]]) -> Iterator[Any]:
    """Read samples in the order of ``shares`` as ``loader`` would."""
    dataset = loader.dataset
    if type(dataset) is TensorDataset and loader.collate_fn is default_collate:
        for share in shares:  # many times faster than one by one
            yield tuple(tensor[torch.tensor(share, device=tensor.device)] for tensor in dataset.tensors)
        return
    yield from DataLoader(
        dataset,
        batch_sampler=shares,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        prefetch_factor=loader.prefetch_factor,
    )
