"""Names and sizes of an example."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from intervalnn.saving.exporting.example import Example


class Sum(nn.Module):
    def forward(self, x: Tensor, *others: Tensor, scale: Tensor | None = None) -> Tensor:
        total = x + sum(others)
        return total if scale is None else total * scale


def test_names_are_those_of_the_arguments_in_the_order_of_the_call() -> None:
    one = torch.ones(1, 2)

    given = Example.of(Sum(), {"scale": one, "x": one})
    several = Example.of(Sum(), (one, one, one))

    assert given.names == ["scale", "x"]
    assert several.names == ["x", "others_0", "others_1"]


def test_one_sample_becomes_two_where_the_model_takes_that() -> None:
    example = Example.of(Sum(), torch.ones(1, 2))

    assert example.several(Sum()).shapes == [(2, 2)]
    assert example.several(nn.Unflatten(0, (1, 1))).shapes == [(1, 2)]


def test_other_sizes_repeat_and_cut_the_values() -> None:
    example = Example.of(nn.Identity(), torch.arange(6).reshape(2, 3))

    resized = example.resized([(3, 2)])

    assert resized.tensors[0].tolist() == [[0, 1], [3, 4], [0, 1]]
    assert example.shapes == [(2, 3)]


def test_tensors_are_in_the_usual_order_in_memory_whatever_the_user_gives() -> None:
    swapped, last = torch.ones(2, 5, 1).transpose(1, 2), torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)

    example = Example.of(nn.Identity(), swapped), Example.of(nn.Identity(), last)

    assert swapped.is_contiguous() and swapped.stride() == (5, 1, 1)
    assert [each.tensors[0].stride() for each in example] == [(5, 5, 1), (48, 16, 4, 1)]
