"""Every option of every command, in sections: said once, for the command line and for files alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from intervalnn.files.limits import MAX_GIB

__all__ = [
    "Calibrate",
    "Config",
    "Evaluate",
    "Explain",
    "Export",
    "Fit",
    "Flag",
    "Model",
    "Network",
    "Predict",
    "View",
]


@dataclass(frozen=True, slots=True)
class Flag:
    """What an option does, and how it is called on the command line.

    Attributes:
        help: What it does.
        name: Its name there, if not that of the field; empty for what a file or ``--set`` alone can hold.
        required: Whether a command cannot do without.
        metavar: What stands for its value in the help.
    """

    help: str
    name: str | None = None
    required: bool = False
    metavar: str | None = None


_DATA = "A folder of arrays, an npz file, or package.module:loader."
_SHARE = "Share of the targets that the bounds are to contain.  [default:\xa00.9]"
_Net = Annotated[Path | None, Flag("What inn fit or inn calibrate wrote.", required=True)]
_MaxGib = Annotated[float, Flag("GiB that what is read may unpack to, unless it has as many itself.", metavar="GIB")]
_Options = Annotated[dict[str, Any], Flag("Keyword arguments of the factory or the loader.", name="")]


@dataclass(frozen=True, slots=True)
class Model:
    """Which model, with which weights."""

    factory: Annotated[
        str | None,
        Flag(
            "What makes the model: package.module:factory. The working directory is searched, too.",
            required=True,
            name="--model",
            metavar="MODULE:NAME",
        ),
    ] = None
    weights: Annotated[Path | None, Flag("State dict: safetensors, or a torch file without code in it.")] = None
    weights_key: Annotated[str | None, Flag("Where the state dict is in a file that holds more.", metavar="KEY")] = None
    options: _Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Network:
    """Which weights become intervals."""

    layers: Annotated[
        int | str | tuple[str, ...] | None,
        Flag(
            "Which layers get intervals: all, a number for the last so many, or names with commas between; by default "
            "the last one beside a scout.",
            metavar="LAYERS",
        ),
    ] = None
    kind: Annotated[
        Literal["weight", "symmetric", "input"],
        Flag(
            "What has a gap of its own: weight is tightest, input fastest; symmetric is one per weight for both sides."
        ),
    ] = "weight"
    cap: Annotated[float | None, Flag("The largest gap, in root mean squares of the parameter.")] = None
    exact: Annotated[
        bool, Flag("Take the exact form of the linear rules: tighter, for 1.5 to 3 times the products.")
    ] = False
    gap_dtype: Annotated[
        Literal["float32", "float64", "bfloat16"] | None,
        Flag("In which gaps are propagated; by default as the model's numbers."),
    ] = None
    scout: Annotated[
        bool | None,
        Flag(
            "Train a small network beside the model that opens gaps by features of its own, as by default without "
            "--layers; --layers 0: that alone."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Fit:
    """How the gaps are trained."""

    data: Annotated[str | None, Flag(f"What to fit to. {_DATA}", required=True, metavar="DATA")] = None
    data_options: _Options = field(default_factory=dict)
    val: Annotated[str | None, Flag("Other data: the epoch with the best loss on it is kept.", metavar="DATA")] = None
    val_options: _Options = field(default_factory=dict)
    coverage: Annotated[float | None, Flag(_SHARE)] = None
    beta: Annotated[float | None, Flag("Use the paper's loss (Eq. 2) with this price of width.")] = None
    recipe: Annotated[Literal["default", "paper"], Flag("'paper' is the published procedure.")] = "default"
    epochs: Annotated[
        int | None, Flag("How often to go through the data; by default for 1500 steps, 5 to 400 times.")
    ] = None
    lr: Annotated[float | None, Flag("Learning rate; by default it fits the number of steps.")] = None
    balance: Annotated[bool | None, Flag("Whether every layer gets an equal say; by default as the recipe does.")] = (
        None
    )
    patience: Annotated[int | None, Flag("Stop after so many epochs without a better loss on --val.")] = None
    recompute: Annotated[bool, Flag("Keep less for the backward pass, for large inputs.")] = False
    compile: Annotated[bool, Flag("Compile the steps, which takes minutes at first: for long runs on a GPU.")] = False
    seed: Annotated[int, Flag("Chooses the order of the batches.")] = 0
    include_model: Annotated[
        bool, Flag("Write the model's weights to the file, so that --weights is no longer needed.")
    ] = False
    out: Annotated[Path | None, Flag("File to write, such as net.safetensors.", required=True)] = None
    checkpoint: Annotated[Path | None, Flag("Where to go on from if stopped.  [default:\xa0OUT.checkpoint]")] = None


@dataclass(frozen=True, slots=True)
class Calibrate:
    """What is promised on new data."""

    net: _Net = None
    data: Annotated[str | None, Flag(f"What nothing was fitted to. {_DATA}", required=True, metavar="DATA")] = None
    data_options: _Options = field(default_factory=dict)
    coverage: Annotated[float | None, Flag(_SHARE)] = None
    level: Annotated[
        Literal["component", "image", "single image"],
        Flag("What the promise is for: components on average, these for the images drawn here, or each new image."),
    ] = "component"
    delta: Annotated[float, Flag("Probability with which the last two may fail.")] = 0.1
    groups: Annotated[Literal["width"] | None, Flag("Give components of like width a promise of their own.")] = None
    out: Annotated[Path | None, Flag("File to write; --net itself with --overwrite.", required=True)] = None


@dataclass(frozen=True, slots=True)
class Predict:
    """What is predicted, and how it is written."""

    net: _Net = None
    input: Annotated[
        Path | None, Flag("An npy or npz file, a folder of these, or a DICOM or NIfTI volume.", required=True)
    ] = None
    out: Annotated[Path | None, Flag("An npz file, or a folder for volumes and for many files.", required=True)] = None
    format: Annotated[
        Literal["npz", "nifti", "dicom"] | None, Flag("How to write volumes; by default as they were read.")
    ] = None
    patch: Annotated[
        tuple[int, ...] | None, Flag("Predict volumes in patches, such as 128,128 or 32,128,128.", metavar="SIZES")
    ] = None
    overlap: Annotated[
        float | None,
        Flag("Blend patches of which the next covers so large a share again; by default they are cut exactly."),
    ] = None
    window: Annotated[
        tuple[float, ...], Flag("Hounsfield units at 0 and 1 of the model's scale.", metavar="LOW,HIGH")
    ] = (-1000.0, 1000.0)
    values: Annotated[
        str | None, Flag("What the numbers of a volume are where it does not say: hu, hu+1024, unit, ...")
    ] = None


@dataclass(frozen=True, slots=True)
class Evaluate:
    """What is compared, and by what."""

    nets: Annotated[
        dict[str, str],
        Flag("A fitted network, by a name if you like; may be repeated.", name="--net", metavar="[NAME=]FILE"),
    ] = field(default_factory=dict)
    methods: Annotated[
        dict[str, str],
        Flag(
            "Another method: what makes it of the model, such as intervalnn:MCDropout, or a function of your own that "
            "returns a fitted one; may be repeated.",
            name="--method",
            metavar="[NAME=]MODULE:NAME",
        ),
    ] = field(default_factory=dict)
    data: Annotated[str | None, Flag(f"What to measure on. {_DATA}", required=True, metavar="DATA")] = None
    data_options: _Options = field(default_factory=dict)
    held_out: Annotated[
        str | None, Flag("Other data, to calibrate all on, and compare at equal coverage.", metavar="DATA")
    ] = None
    held_out_options: _Options = field(default_factory=dict)
    coverage: Annotated[float, Flag("The coverage at which to compare.")] = 0.9
    metrics: Annotated[
        tuple[str, ...],
        Flag("A function of intervalnn.metrics; may be repeated.  [default:\xa0the\xa0usual\xa0ones]", name="--metric"),
    ] = ()
    seed: Annotated[int, Flag("Tells this run from others, and seeds what is random.")] = 0
    out: Annotated[Path | None, Flag("File of results to write, such as results/run.json.", required=True)] = None


@dataclass(frozen=True, slots=True)
class Explain:
    """What is explained."""

    net: _Net = None
    data: Annotated[
        str | None, Flag(f"Of which the first batch is looked at. {_DATA}", required=True, metavar="DATA")
    ] = None
    data_options: _Options = field(default_factory=dict)
    plot: Annotated[Path | None, Flag("Picture to write, such as layers.png or layers.pdf.")] = None


@dataclass(frozen=True, slots=True)
class Export:
    """What is written for another runtime."""

    net: _Net = None
    data: Annotated[
        str | None, Flag(f"Of which the first batch is the example. {_DATA} Or x.npy.", required=True, metavar="DATA")
    ] = None
    data_options: _Options = field(default_factory=dict)
    out: Annotated[Path | None, Flag("File to write: .onnx, .pt2, or .aoti.pt2, which is compiled.", required=True)] = (
        None
    )
    outputs: Annotated[
        tuple[str, ...],
        Flag(
            "What to return, with commas between: point, lower, upper, below, above, score, direction.", metavar="NAMES"
        ),
    ] = ("point", "lower", "upper")
    dynamic: Annotated[bool, Flag("Whether batch and image size may vary.")] = True
    verify: Annotated[bool, Flag("Whether to run the file, and compare it with the network.")] = True
    tolerance: Annotated[float, Flag("How far the bounds of the two may differ, as a share of their width.")] = 1e-4


@dataclass(frozen=True, slots=True)
class View:
    """How it is shown, or what is written instead."""

    port: Annotated[int, Flag("Where to listen on this machine; 0 for any free port.")] = 0
    browser: Annotated[bool, Flag("Whether to open the page in the browser.")] = True
    unit: Annotated[str | None, Flag("Unit of the prediction, where the file does not say.")] = None
    dims: Annotated[int | None, Flag("1 for signals, 2 for images, where the shape does not tell.", metavar="1|2")] = (
        None
    )
    export: Annotated[Path | None, Flag("Write one HTML file to hand on, instead of showing it.")] = None
    slices: Annotated[str | None, Flag("Which slices to export, such as 100:200:2.", metavar="START:STOP:STEP")] = None
    rows: Annotated[str | None, Flag("Which rows of each to export.", metavar="START:STOP")] = None
    columns: Annotated[str | None, Flag("Which columns of each to export.", metavar="START:STOP")] = None
    max_gib: _MaxGib = MAX_GIB


@dataclass(frozen=True, slots=True)
class Config:
    """The options of all commands: those that several share, and a table for each."""

    device: Annotated[str, Flag("Where to compute, such as cpu, cuda or cuda:1; auto takes a GPU if there is one.")] = (
        "auto"
    )
    batch_size: Annotated[int, Flag("How many samples to take at a time.")] = 16
    max_gib: _MaxGib = MAX_GIB
    model: Model = field(default_factory=Model)
    network: Network = field(default_factory=Network)
    fit: Fit = field(default_factory=Fit)
    calibrate: Calibrate = field(default_factory=Calibrate)
    predict: Predict = field(default_factory=Predict)
    evaluate: Evaluate = field(default_factory=Evaluate)
    explain: Explain = field(default_factory=Explain)
    export: Export = field(default_factory=Export)
    view: View = field(default_factory=View)
