"""Batches: the same ones in every run, and on any number of processes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

from intervalnn.training.batches import Batches, parts

TENSORS = TensorDataset(torch.arange(23.0)[:, None], -torch.arange(23.0)[:, None])


class Pairs(Dataset[Any]):
    """The same as TENSORS, one by one."""

    def __len__(self) -> int:
        return 23

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return torch.full((1,), float(i)), torch.full((1,), -float(i))


class Doubled(TensorDataset):
    def __getitem__(self, i: int) -> tuple[Tensor, ...]:
        return tuple(2 * tensor for tensor in super().__getitem__(i))


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(Pairs()[i] for i in range(5))


def read(batches: Batches, epoch: int = 0) -> list[list[float]]:
    return [batch[0].flatten().tolist() for batch, _ in batches.epoch(epoch)]


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    loader = DataLoader(TENSORS, batch_size=5, shuffle=True)
    torch.manual_seed(1)
    first = read(Batches(loader, seed=3), 2)
    torch.manual_seed(2)

    assert read(Batches(loader, seed=3), 2) == first
    assert read(Batches(loader, seed=3), 1) != first
    assert read(Batches(loader, seed=4), 2) != first
    assert sorted(chain(*first)) == list(range(23))


def test_reading_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()

    read(Batches(DataLoader(TENSORS, batch_size=5, shuffle=True)))

    assert torch.equal(torch.get_rng_state(), before)


def test_a_loader_that_does_not_shuffle_keeps_its_order() -> None:
    loader = DataLoader(TENSORS, batch_size=5)

    assert list(chain(*read(Batches(loader, seed=7), 3))) == list(range(23))


@pytest.mark.parametrize("world", [2, 3, 6])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_shares_of_all_processes_make_up_each_batch(world: int, drop_last: bool) -> None:
    loader = DataLoader(TENSORS, batch_size=5, shuffle=True, drop_last=drop_last)
    whole = read(Batches(loader, seed=1), 4)
    shares = [list(Batches(loader, seed=1, rank=rank, world=world).epoch(4)) for rank in range(world)]

    for i, batch in enumerate(whole):
        here = [share[i] for share in shares]
        together = [x for (xs, _), weight in here if weight for x in xs.flatten().tolist()]
        assert sorted(together) == sorted(batch)
        assert sum(weight for _, weight in here) == pytest.approx(world)
        for (xs, _), weight in here:
            assert len(xs) > 0  # even without a share, to keep in step
            assert weight == pytest.approx(len(xs) * world / len(batch) if weight else 0.0)


@pytest.mark.parametrize(("drop_last", "count"), [(False, 5), (True, 4)])
def test_the_last_batch_is_dropped_where_the_loader_drops_it(drop_last: bool, count: int) -> None:
    batches = Batches(DataLoader(TENSORS, batch_size=5, shuffle=True, drop_last=drop_last))

    assert len(batches) == len(read(batches)) == count


def test_the_quick_way_through_tensors_gives_what_the_loader_gives() -> None:
    quick = Batches(DataLoader(TENSORS, batch_size=5, shuffle=True), seed=1)
    slow = Batches(DataLoader(Pairs(), batch_size=5, shuffle=True), seed=1)

    for (a, _), (b, _) in zip(quick.epoch(2), slow.epoch(2), strict=True):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def test_a_dataset_that_changes_its_tensors_is_read_sample_by_sample() -> None:
    batches = Batches(DataLoader(Doubled(*TENSORS.tensors), batch_size=5))

    assert list(chain(*read(batches))) == [2.0 * i for i in range(23)]


def test_workers_bring_the_same_batches() -> None:
    alone = read(Batches(DataLoader(Pairs(), batch_size=5, shuffle=True)))

    assert read(Batches(DataLoader(Pairs(), batch_size=5, shuffle=True, num_workers=1))) == alone


def test_a_collate_function_of_ones_own_is_used() -> None:
    loader = DataLoader(TENSORS, batch_size=5, collate_fn=lambda samples: (torch.stack([s[0] for s in samples]) + 100,))

    assert read(Batches(loader))[0] == [100.0, 101.0, 102.0, 103.0, 104.0]


def test_other_iterables_are_read_as_they_come() -> None:
    batch = (torch.ones(2, 1), torch.zeros(2, 1))
    twice = DataLoader(Pairs(), batch_size=5, sampler=RandomSampler(Pairs(), replacement=True, num_samples=10))

    assert [weight for _, weight in Batches([batch, batch]).epoch(0)] == [1.0, 1.0]
    assert not Batches(twice).indexed
    assert len(read(Batches(twice))) == len(Batches(twice)) == 2


def test_an_iterable_without_length_is_counted_once() -> None:
    batches = Batches(DataLoader(Stream(), batch_size=2))

    assert len(batches) == 3
    assert read(batches) == read(batches) == [[0.0, 1.0], [2.0, 3.0], [4.0]]


def test_an_empty_dataset_has_no_batches() -> None:
    batches = Batches(DataLoader(TensorDataset(torch.zeros(0, 1), torch.zeros(0, 1)), batch_size=4))

    assert read(batches) == [] and len(batches) == 0


def test_a_generator_is_refused_for_it_runs_but_once() -> None:
    with pytest.raises(TypeError, match="a generator runs but once; give a DataLoader or a list"):
        Batches(batch for batch in [1])


def test_what_cannot_be_shared_out_is_refused_on_several_processes() -> None:
    with pytest.raises(ValueError, match=r"with 2 processes the loader must be a torch DataLoader.*got list"):
        Batches([], rank=0, world=2)


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        ((torch.ones(2), torch.zeros(2)), 1),
        ({"input": torch.ones(2), "target": torch.zeros(2)}, 1),
        (((torch.ones(2), torch.ones(2)), torch.zeros(2)), 2),
        ([[torch.ones(2), {"mask": torch.ones(2)}], torch.zeros(2)], 2),
    ],
)
def test_a_batch_has_arguments_and_a_target(batch: Any, count: int) -> None:
    args, target = parts(batch, torch.device("cpu"))

    assert len(args) == count and not target.any()
