"""Networks of ncps, torchdiffeq and x-transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from zoo import Case, real

from outside.case import network, of


def ncps(name: str, *args: Any, wired: bool = False, **options: Any) -> Case:
    def build() -> nn.Module:
        given = (args[0], of("ncps.wirings").AutoNCP(8, 2)) if wired else args
        made: nn.Module = getattr(of("ncps.torch"), name)(*given, **options)
        return made

    label = name + (", wired" if wired else "") + "".join(f", {key}={value}" for key, value in options.items())
    return network(label, build, real(2, 5, 3), rel=1e-3)


NCPS = [
    ncps("CfC", 3, 6),
    ncps("CfC", 3, wired=True),
    ncps("CfC", 3, 6, mode="pure"),
    ncps("CfC", 3, 6, mode="no_gate"),
    ncps("CfC", 3, 6, mixed_memory=True),
    ncps("LTC", 3, 6),
    ncps("LTC", 3, wired=True),
]


class Solved(nn.Module):
    """A neural ordinary differential equation, solved with a fixed step."""

    def __init__(self, method: str, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))
        self.method, self.options = method, options

    def forward(self, x: Tensor) -> Any:
        times = torch.linspace(0, 1, 3, dtype=x.dtype)
        return of("torchdiffeq").odeint(lambda _, y: self.field(y), x, times, method=self.method, options=self.options)


TORCHDIFFEQ = [
    network("Euler", lambda: Solved("euler"), real(2, 3), rel=1e-3),
    network("midpoint", lambda: Solved("midpoint"), real(2, 3), rel=1e-3),
    network("Runge-Kutta 4", lambda: Solved("rk4"), real(2, 3), rel=1e-3),
    network("Runge-Kutta 4, own step", lambda: Solved("rk4", {"step_size": 0.25}), real(2, 3), rel=1e-3),
    network("dopri5, adaptive", lambda: Solved("dopri5"), real(2, 3), rel=1e-3),
]


def x_transformers(name: str, **options: Any) -> Case:
    def build() -> nn.Module:
        x = of("x_transformers")
        layers = x.Decoder(dim=8, depth=1, heads=2, **{"attn_dim_head": 4} | options)
        made: nn.Module = x.TransformerWrapper(num_tokens=20, max_seq_len=8, attn_layers=layers)
        return made

    return network(name, build, lambda: ((torch.randint(0, 20, (2, 6)),), {}), rel=1e-4)


X_TRANSFORMERS = [
    x_transformers("decoder"),
    x_transformers("decoder, rotary", rotary_pos_emb=True, attn_dim_head=32),
    x_transformers("decoder, ALiBi", alibi_pos_bias=True, alibi_num_heads=2),
    x_transformers("decoder, T5 bias", rel_pos_bias=True),
    x_transformers("decoder, RMS norm, GLU", use_rmsnorm=True, ff_glu=True, ff_swish=True),
    x_transformers("decoder, squared ReLU, QK norm", ff_relu_squared=True, attn_qk_norm=True),
]
