"""What is accepted as the underlying model: a module in Python, with plain and finite tensors as its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["gap_dtype_of", "refuse_model", "refuse_not_finite", "refuse_special"]

_ORIGINAL = "give the original model, in floating point"
_PACKED = f"is quantised: its weights are packed integers, and no gap fits around these; {_ORIGINAL}"
_SCRIPT = (
    "is TorchScript (traced or scripted), whose program Python does not see; give the original module, with weights "
    "from its state_dict()"
)
_IN_STEP = "keeps several processes in step while it runs; give the module inside of it, model.module"
_SHARDED = (
    "shards its parameters; gather them (torch.distributed.checkpoint.state_dict.get_model_state_dict with "
    "full_state_dict=True), load them into the original module, and give that"
)
_INSTEAD: dict[Any, str] = {
    Mapping: "a state dict has weights and no program: build the model, call load_state_dict on it, and give the model",
    (str, Path): "load the model, and give it; intervalnn.load reads networks that were saved",
    Tensor: "the model comes first: net = IntervalNetwork(model), then net(x)",
    torch.export.ExportedProgram: "give exported_program.module(), or better the module that was exported",
    Callable: "a function holds no weights that could have gaps; call it in the forward of a torch.nn.Module, "
    "and give that",
}


def refuse_model(model: Any, own: type[nn.Module]) -> None:
    """Raise if ``model`` cannot be an underlying model, and say what to give instead.

    Args:
        model: What was given.
        own: The class of interval networks, which are no underlying models.
    """
    if isinstance(model, type):
        name = model.__name__
        raise TypeError(f"model must be a torch.nn.Module, got the class {name}; make an instance, {name}(...).eval()")
    if not isinstance(model, nn.Module):
        hints = (f"; {hint}" for kinds, hint in _INSTEAD.items() if isinstance(model, kinds))
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}{next(hints, '')}")
    for name, module in model.named_modules():
        why = "is an interval network already; give its underlying model" if isinstance(module, own) else _why(module)
        if why:
            what = f"module '{name}' of the model" if name else "model"
            raise TypeError(f"{what}, of type {type(module).__name__}, {why}")
    if type(model).forward is nn.Module.forward and "forward" not in vars(model):
        raise TypeError(f"model, of type {type(model).__name__}, has no forward; give a module that has one")
    for name, parameter in model.named_parameters():
        _refuse_parameter(f"parameter '{name}'", parameter)


def _why(module: nn.Module) -> str:
    """Say why a module cannot be part of an underlying model; nothing if it can."""
    homes = {kind.__module__ for kind in type(module).__mro__}
    if isinstance(module, torch.jit.ScriptModule):
        return _SCRIPT
    if any(".quantized" in home for home in homes):
        return _PACKED
    if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
        return f"holds an object of C++, such as packed weights, whose inside torch does not see; {_ORIGINAL}"
    if isinstance(module, nn.parallel.DistributedDataParallel):
        return _IN_STEP
    return _SHARDED if any(home.startswith("torch.distributed.fsdp") for home in homes) else ""


def _refuse_parameter(name: str, parameter: Tensor) -> None:
    """Raise if a parameter is no tensor with values around which a gap fits."""
    if nn.parameter.is_lazy(parameter):
        raise ValueError(f"{name} has no shape yet, for its module is lazy; call model(x) once before")
    if parameter.is_meta:
        raise ValueError(f"{name} is on the meta device, without values; load the weights before")
    if parameter.layout != torch.strided:
        raise ValueError(f"{name} is sparse ({parameter.layout}), and gaps are dense; convert it with .to_dense()")
    if parameter.is_floating_point() and parameter.element_size() == 1:
        raise ValueError(f"{name} is {parameter.dtype}, in which torch does not compute; convert it with model.float()")
    if parameter.is_inference() and not torch.is_inference_mode_enabled():
        raise ValueError(
            f"{name} was made in torch.inference_mode(), and torch keeps such tensors out of what is captured; give "
            "copy.deepcopy(model), made outside of that mode"
        )
    refuse_special(name, parameter)


def refuse_special(name: str, x: Tensor) -> None:
    """Raise if a tensor brings operations of its own, as fake, masked and distributed ones do."""
    if type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise TypeError(
            f"{name} is a {type(x).__name__}, a tensor with operations of its own; give a plain tensor with its values "
            "(of a DTensor, x.full_tensor())"
        )


def gap_dtype_of(model: nn.Module, asked: torch.dtype | None) -> torch.dtype | None:
    """Return the dtype in which gaps are propagated, or raise; None stands for the dtype of each weight.

    In float16 a gap below 6e-8 becomes zero, so the bounds would miss values that they should contain. A gap above
    65504 becomes infinite.
    """
    if asked is None:
        return torch.float32 if any(p.dtype == torch.float16 for p in model.parameters()) else None
    if not asked.is_floating_point:
        raise TypeError(f"gap_dtype must be a floating-point dtype, got {asked}")
    if torch.finfo(asked).tiny > torch.finfo(torch.bfloat16).tiny:
        raise ValueError(
            f"gap_dtype must be torch.bfloat16, torch.float32 or torch.float64, got {asked}, in which small gaps "
            f"vanish and large ones overflow ({torch.finfo(asked).tiny:.1g} to {torch.finfo(asked).max:.1g}); "
            "torch.bfloat16 is as fast, and has the range of float32"
        )
    return asked


def refuse_not_finite(model: nn.Module) -> None:
    """Raise if a parameter has entries around which no interval is."""
    for name, parameter in model.named_parameters():
        if parameter.device.type != "meta" and not bool(parameter.detach().isfinite().all()):
            raise ValueError(f"parameter '{name}' has entries that are NaN or infinite; no interval is around them")
