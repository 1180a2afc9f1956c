"""Fake quantisation: numbers rounded to a grid, as an integer type would hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intervalnn.interval import Interval
from intervalnn.rules.arithmetic import known_ends, least, most
from intervalnn.table import aten, refuse, rule


@rule(
    aten.fake_quantize_per_tensor_affine_cachemask, aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
    aten.fake_quantize_per_channel_affine_cachemask, hidden={1: "is a mask for the backward pass"},
)  # fmt: skip
def fake_quantise(fn: Callable[..., Any], x: Interval, *grid: Any) -> tuple[Interval, None]:
    """Bound values on a grid, which never decrease or, where its scale is negative, never increase.

    The gradient goes straight on, as torch's own does.
    """
    ends = [fn(end, *grid)[0] for end in known_ends(x)]
    return Interval.around(fn(x.point, *grid)[0], least(*ends), most(*ends), x.gap_dtype), None


refuse(
    aten._fake_quantize_learnable_per_tensor_affine, aten._fake_quantize_learnable_per_channel_affine,
    why="rounds to a grid that is learned; once it is, use torch.fake_quantize_per_tensor_affine or "
    "fake_quantize_per_channel_affine with that scale and zero point",
)  # fmt: skip

refuse(
    aten._fused_moving_avg_obs_fq_helper, aten._fused_moving_avg_obs_fq_helper_functional,
    why="watches its input while it quantises; build the model with a fake quantisation that is not fused "
    "(get_default_qat_qconfig(backend, version=0)), load the weights, and call model.apply(disable_observer)",
    even_plain=True,
)  # fmt: skip
