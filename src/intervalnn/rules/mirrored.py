"""Two gaps that come as half their sum and half their difference."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_FEW_ROUNDINGS = 4  # of factors and results, where sums are kept in a finer precision
_ROUNDINGS = 64  # of all those that are made where thousands of terms are added up in their own precision


def mirrored(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``even + odd`` and ``even - odd``, for two gaps that come as half their sum and half their difference.

    Where one gap is much smaller than the other, it is the difference of two large rounded numbers. So both gaps are
    made larger by a bound on that rounding.
    """
    even = even + odd.abs().mul_(_rounding(even))  # torch's compiler loses the alpha of torch.add
    return even + odd, even - odd


def _rounding(x: Tensor) -> float:
    """Return the relative rounding error of sums of products with results like ``x``."""
    if x.dtype in (torch.float16, torch.bfloat16):
        return _FEW_ROUNDINGS * torch.finfo(x.dtype).eps
    if x.is_cuda and x.dtype == torch.float32 and _takes_tf32():
        return _FEW_ROUNDINGS * 2.0**-10
    return _ROUNDINGS * torch.finfo(x.dtype).eps


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _takes_tf32() -> bool:
    """Say whether GPUs may round float32 to TF32 in products."""
    settings: Any = torch.backends
    return "tf32" in (settings.cudnn.conv.fp32_precision, settings.cuda.matmul.fp32_precision)
