"""Cases of functions of one value: monotone ones, and those with known extrema."""

import torch

from properties.case import Case, plain, positive, real, within

aten = torch.ops.aten

MONOTONE = [
    *[
        Case(op, real(2, 3))
        for op in (
            aten.tanh.default, aten.elu.default, aten.celu.default, aten.selu.default, aten.hardtanh.default,
            aten.atan.default, aten.sinh.default, aten.asinh.default, aten.erf.default, aten.expm1.default,
            aten.hardshrink.default, aten.softshrink.default, aten.log_sigmoid.default, aten.floor.default,
            aten.ceil.default, aten.round.default, aten.trunc.default, aten.sign.default, aten.sgn.default,
            aten.nan_to_num.default, aten.special_ndtr.default, aten.sigmoid.default, aten.hardsigmoid.default,
            aten.softplus.default, aten.exp.default, aten.exp2.default, aten.relu6.default, aten.erfc.default,
            aten.special_erfcx.default, aten.relu.default, aten.leaky_relu.default, aten.log_sigmoid_forward.default,
        )
    ],
    *[Case(op, real(shape)) for op in (aten.relu.default, aten.tanh.default) for shape in (0, 1)],
    Case(aten.relu.default, real()),
    Case(aten.elu.default, real(2, 3), 0.5, 2.0, 1.5),
    Case(aten.elu.default, real(2, 3), -0.5),
    Case(aten.elu.default, real(2, 3), 0.5, -2.0, 1.5),
    Case(aten.elu.default, real(2, 3), -1.5, -0.5, -1.5),
    Case(aten.elu.default, real(2, 3), 1.0, 1.0, -0.5),
    Case(aten.celu.default, real(2, 3), 0.3),
    Case(aten.celu.default, real(2, 3), -0.7),
    Case(aten.hardtanh.default, real(2, 3), -0.2, 1.5),
    Case(aten.hardshrink.default, real(2, 3), 1.2),
    Case(aten.hardshrink.default, real(2, 3), -1.2),
    Case(aten.softshrink.default, real(2, 3), 1.2),
    Case(aten.threshold.default, real(2, 3), 0.5, -1.0),
    Case(aten.threshold.default, real(2, 3), 0.5, 0.5),
    Case(aten.threshold.default, real(2, 3), 0.1, 2.0),
    Case(aten.threshold.default, real(2, 3), -0.1, 20.0),
    Case(aten.softplus.default, real(2, 3), 3.0, 1.0),
    Case(aten.softplus.default, real(2, 3), 1.0, 0.5),
    Case(aten.round.decimals, real(2, 3), decimals=1),
    Case(aten.nan_to_num.default, real(2, 3), 1.0, 2.0, -2.0),
    Case(aten.leaky_relu.default, real(2, 3), 0.3),
    Case(aten.leaky_relu.default, real(2, 3), -0.3),
    Case(aten.leaky_relu.default, real(2, 3), -2.0),
    Case(aten.leaky_relu.default, real(2, 3), 1.5),
    *[
        Case(op, positive(2, 3))
        for op in (aten.log.default, aten.log2.default, aten.log10.default, aten.sqrt.default, aten.rsqrt.default)
    ],
    *[
        Case(op, real(2, 3))
        for op in (aten.log.default, aten.sqrt.default, aten.rsqrt.default, aten.asin.default, aten.acosh.default)
    ],
    Case(aten.log1p.default, within(-1.0, 3.0, 2, 3)),
    Case(aten.acosh.default, within(1.0, 9.0, 2, 3)),
    *[
        Case(op, within(-1.0, 1.0, 2, 3))
        for op in (aten.asin.default, aten.acos.default, aten.atanh.default, aten.erfinv.default)
    ],
    Case(aten.logit.default, within(0.0, 1.0, 2, 3)),
    Case(aten.logit.default, real(2, 3), 0.1),
    Case(aten.logcumsumexp.default, real(2, 3), 1),
    Case(aten.logcumsumexp.default, real(2, 3), -2),
    Case(aten._prelu_kernel.default, real(2, 2, 2), real(1, 2, 1)),
    Case(aten._prelu_kernel.default, real(2, 2), plain(real(1, 2))),
    Case(aten._prelu_kernel.default, plain(real(2, 3)), real(1, 3)),
    Case(aten._prelu_kernel.default, real(2, 3), real(1, 1)),
]  # fmt: skip

LIMITS = [
    Case(aten.clamp.default, real(2, 3), -0.5, 1.0),
    Case(aten.clamp.default, real(2, 3), None, 1.0),
    Case(aten.clamp.default, real(2, 3), 0),
    Case(aten.clamp.default, real(2, 3), 1.0, -1.0),
    Case(aten.clamp.Tensor, real(2, 2), real(2), real(2, 1)),
    Case(aten.clamp.Tensor, plain(real(2, 3)), None, real(3)),
    Case(aten.clamp.Tensor, real(3), plain(real(2, 3))),
    Case(aten.clamp_min.default, real(2, 3), -1),
    Case(aten.clamp_min.Tensor, real(2, 3), real(3)),
    Case(aten.clamp_max.default, real(2, 3), 0.5),
    Case(aten.clamp_max.Tensor, plain(real(2, 3)), real(3)),
    *[
        Case(op, x, y)
        for op in (
            aten.maximum.default, aten.minimum.default, aten.fmax.default, aten.fmin.default, aten.max.other,
            aten.min.other, aten.logaddexp.default, aten.logaddexp2.default,
        )
        for x, y in ((real(2), real(2)), (real(2, 3), plain(real(3))), (plain(real(2, 3)), real(2, 1)))
    ],
]  # fmt: skip

VALLEYS_AND_WAVES = [
    Case(aten.silu.default, real(2, 3)),
    Case(aten.mish.default, real(2, 3)),
    Case(aten.hardswish.default, real(2, 3)),
    Case(aten.cosh.default, real(2, 3)),
    Case(aten.gelu.default, real(2, 3)),
    Case(aten.gelu.default, real(2, 3), approximate="none"),
    Case(aten.gelu.default, real(2, 3), approximate="tanh"),
    Case(aten.sin.default, real(2, 3)),
    Case(aten.cos.default, real(2, 3)),
    Case(aten.tan.default, real(2, 3)),
    Case(aten.tan.default, within(-1.5, 1.5, 2, 3)),
]

CONVERSIONS = [
    Case(aten._to_copy.default, real(2, 3), dtype=torch.float32),
    Case(aten._to_copy.default, real(2, 3), dtype=torch.bfloat16),
    Case(aten._to_copy.default, real(2, 3), dtype=torch.float64),
    Case(aten.to.dtype, real(2, 3), torch.float32),
    Case(aten.to.device, real(2, 3), torch.device("cpu"), torch.float64),
    Case(aten.to.other, real(2, 3), torch.zeros(1, dtype=torch.float32)),
]

CASES = [*MONOTONE, *LIMITS, *VALLEYS_AND_WAVES, *CONVERSIONS]
