"""What a call gives: where it is made, its inputs, and their gaps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from intervalnn.interval import Interval
from intervalnn.network.capture.accepted import refuse_special
from intervalnn.network.capture.call import Call
from intervalnn.network.capture.turns import TURNS
from intervalnn.torch_private import in_transform, is_traced, pytree

__all__ = ["autocast_dtypes", "given", "recordable", "refuse_call_from_here", "refuse_elsewhere", "refuse_inputs"]


def refuse_call_from_here() -> None:
    """Raise inside torch.func, torch.jit and torch.export: these would trace the search for a program instead."""
    if in_transform():
        raise RuntimeError(
            "an IntervalNetwork cannot run inside torch.func (vmap, grad, jacrev, jvp); it takes whole batches, so "
            "vmap is not needed, and derivatives of net(x).width, say, come from torch.autograd.grad or "
            "torch.autograd.functional.jacobian"
        )
    if is_traced() or _is_exporting():
        raise RuntimeError(
            "an IntervalNetwork cannot be traced or exported as a module; write it with "
            "intervalnn.export(net, x, 'net.onnx'), which exports the program over intervals"
        )


def _is_exporting() -> bool:
    """Say whether ``torch.export`` runs in this thread; torch's own flag holds for captures of all threads."""
    if not torch.compiler.is_exporting():
        return False
    with TURNS.together():  # in which no other thread captures
        return torch.compiler.is_exporting()


def refuse_inputs(call: Call) -> None:
    """Raise if an input is a tensor of a kind for which there are no intervals, or its gaps are none."""
    for x in call.tensors:
        refuse_input(x.point if isinstance(x, Interval) else x)
        if isinstance(x, Interval):
            _refuse_gaps(x.below, x.above)


def refuse_input(x: Tensor) -> None:
    """Raise if an input is a tensor of a kind for which there are no intervals."""
    if x.is_nested:
        raise TypeError("an input is a nested tensor; pad it to one shape, torch.nested.to_padded_tensor(x, 0.0)")
    if x.is_quantized:
        raise TypeError("an input is a quantised tensor; convert it with x.dequantize()")
    if x.is_mkldnn:
        raise TypeError("an input has the layout of MKL-DNN; convert it with x.to_dense()")
    refuse_special("an input", x)


def _refuse_gaps(below: Tensor, above: Tensor) -> None:
    """Raise if the gaps of an input are negative or NaN, on devices where the check needs no synchronisation."""
    for name, gap in (("below", below), ("above", above)):
        real = torch.view_as_real(gap) if gap.is_complex() else gap
        if _is_here(gap) and not bool((real >= 0).all()):
            worst = "NaN" if bool(real.isnan().any()) else f"{float(real.min()):.3g}"
            raise ValueError(
                f"an input is an Interval whose gap {name} must be 0 or more everywhere, got {worst}; of two ends, "
                "Interval.around(point, lower, upper) makes one"
            )


def refuse_no_tensor(call: Call) -> None:
    """Raise if a call has no tensor among its arguments."""
    if not call.tensors:
        got = ", ".join(sorted({type(leaf).__name__ for leaf in pytree.tree_leaves(call.rebuild([]))})) or "nothing"
        raise ValueError(
            f"the call has no tensor among its arguments (got {got}), so there is nothing to bound; give torch "
            "tensors, such as torch.from_numpy(x) or torch.tensor(x)"
        )


def refuse_elsewhere(call: Call, model: nn.Module, gaps: nn.Module) -> None:
    """Raise if what is to be computed together lies on several devices."""
    first = next(model.parameters(), None)
    if first is None:
        return
    own = next(gaps.parameters(), first).device
    if own != first.device:
        raise ValueError(
            f"the model is on {first.device}, and the gaps around its weights on {own}, because it was moved without "
            f"them; call net.to('{first.device}')"
        )
    for x in call.tensors:  # single numbers and indices may come from elsewhere
        if x.device != own and x.dim() and x.dtype.is_floating_point and not _is_spread(model):
            raise ValueError(
                f"the model is on {own}, and an input on {x.device}; move it there with x.to('{own}'), "
                f"or the network here with net.to('{x.device}')"
            )


def _is_spread(model: nn.Module) -> bool:
    """Say whether a model lies on several devices; such a model moves its tensors itself."""
    return len({parameter.device for parameter in model.parameters()}) > 1


def autocast_dtypes(call: Call) -> list[torch.dtype | None]:
    """Return in what dtypes products are taken instead of the model's own, if any, by device of the inputs."""
    found: list[torch.dtype | None] = []
    for device in {tensor.device.type for tensor in call.tensors}:
        used = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
        found.append(torch.get_autocast_dtype(device) if used else None)
    return found


def given(x: Tensor | Interval, dtype: torch.dtype | None) -> Tensor | Interval:
    """Return an input in the form that a program takes; gaps that are negative or NaN become infinite."""
    if not isinstance(x, Interval):
        return x
    dtype = dtype or (x.dtype if x.gap_dtype == torch.float16 else x.gap_dtype)
    return Interval(x.point, *(_endless_unless_sound(gap).to(dtype) for gap in (x.below, x.above)))


def recordable(x: Tensor | Interval) -> Tensor | Interval:
    """Return an input through which gradients can flow; tensors made in inference mode are copied."""
    if isinstance(x, Interval):
        return x.map(lambda part: part.clone() if part.is_inference() else part)
    return x.clone() if x.is_inference() else x


def _endless_unless_sound(gap: Tensor) -> Tensor:
    """Return a gap of an input, infinite where it is negative or NaN; on a GPU this replaces the error."""
    if _is_here(gap):
        return gap
    if gap.is_complex():
        return torch.view_as_complex(_endless_unless_sound(torch.view_as_real(gap)))
    return torch.where(gap >= 0, gap, torch.inf)


def _is_here(x: Tensor) -> bool:
    """Say whether numbers can be looked at without waiting for a device."""
    return x.device.type == "cpu"
