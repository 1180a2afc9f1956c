"""Networks of public packages, small, from random weights: what ``make coverage-outside`` converts."""

from outside.activations import ENTMAX, PYKAN
from outside.classifiers import TIMM, TORCHVISION, VIT_PYTORCH
from outside.diffusion import DIFFUSERS
from outside.flows import NFLOWS, NORMFLOWS, ZUKO
from outside.graphs import E3NN, PYG
from outside.inverse import DEEPINV, NEURALOP
from outside.segmentation import NNUNET, SMP
from outside.sequences import NCPS, TORCHDIFFEQ, X_TRANSFORMERS

__all__ = ["LIBRARIES"]

LIBRARIES = {  # the package's name at the registry, and its networks
    "timm": TIMM,
    "segmentation-models-pytorch": SMP,
    "diffusers": DIFFUSERS,
    "torch_geometric": PYG,
    "deepinv": DEEPINV,
    "neuraloperator": NEURALOP,
    "dynamic-network-architectures": NNUNET,
    "ncps": NCPS,
    "zuko": ZUKO,
    "nflows": NFLOWS,
    "normflows": NORMFLOWS,
    "torchdiffeq": TORCHDIFFEQ,
    "entmax": ENTMAX,
    "x-transformers": X_TRANSFORMERS,
    "vit-pytorch": VIT_PYTORCH,
    "torchvision": TORCHVISION,
    "pykan": PYKAN,
    "e3nn": E3NN,
}
