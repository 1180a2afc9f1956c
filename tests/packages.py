"""Packages: what must hold of the sdist and the wheel, and in an environment that has the core alone; no test itself.

``make dist`` runs ``python tests/packages.py archives dist``, and ``python tests/packages.py bare README.md`` by the
Python into which the wheel was installed without extras.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

EXTRAS = (
    "matplotlib",
    "nibabel",
    "pydicom",
    "h5py",
    "PIL",
    "onnx",
    "torchmetrics",
    "huggingface_hub",
    "pytest",
)
NEEDED = {  # commands that need an extra, and what they must say
    "demo": "matplotlib",
    "reproduce deconv": "matplotlib",
    "report results": "matplotlib and jinja2",
    "predict --net n.safetensors --model m:f --input v.nii --out o": "nibabel",
    "predict --net n.safetensors --model m:f --input 1.dcm --out o": "pydicom",
    "explain --net n.safetensors --model m:f --data d --plot layers.png": "matplotlib",
    "export --net n.safetensors --model m:f --data d --out net.onnx": "onnx",
}
HAVE = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "Makefile", "constraints.txt")
SETUP = """
import numpy as np, torch
from pathlib import Path
torch.manual_seed(0)
class MyNetwork(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.ReLU(),
                         torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
model = MyNetwork().eval()
torch.save(model.state_dict(), "trained.pt")
x = torch.randn(64, 4)
train = held_out = [(x, model(x).detach() + 0.1 * torch.randn(64, 2))]
import intervalnn as inn
"""
AFTER = '''
assert torch.equal(y.point, model(x)) and (y.lower <= y.point).all() and (y.upper > y.lower).any()
for folder in ("d", "results"):
    Path(folder).mkdir()
np.save("d/x.npy", x.numpy()); np.save("d/y.npy", model(x).detach().numpy())
net.save("n.safetensors")
inn.evaluate({"INN": net}, held_out, progress=False).save("results")
from intervalnn.view import save_npz
save_npz("p.npz", y)
Path("v.nii").write_bytes(bytes(400)); Path("1.dcm").write_bytes(bytes(400))
Path("m.py").write_text("""
import torch
from torch.nn import Linear, ReLU, Sequential
class MyNetwork(Sequential):
    pass
def f():
    model = MyNetwork(Linear(4, 8), ReLU(), Linear(8, 8), ReLU(), Linear(8, 8), ReLU(), Linear(8, 2))
    model.load_state_dict(torch.load("trained.pt", weights_only=True))
    return model.eval()
""")
'''


def archives(dist: Path) -> None:
    """Check what the archives hold: all of the package, and no results."""
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(sdist) as tar, zipfile.ZipFile(wheel) as zipped:
        ours = {name.partition("/")[2] for name in tar.getnames() if not tar.getmember(name).isdir()}
        installed = set(zipped.namelist())
    missing = [name for name in HAVE if name not in ours]
    assert not missing, f"the sdist lacks {missing}"
    results = [name for name in ours if re.match(r"(benchmarks/)?results/", name) or name.endswith((".npz", ".pdf"))]
    assert not results, f"the sdist holds results: {sorted(results)[:5]}"
    package = {name.removeprefix("src/") for name in ours if name.startswith("src/intervalnn/")}
    assert package and package == {name for name in installed if name.startswith("intervalnn/")}, "other files"
    others = {name.partition("/")[0] for name in installed - package}
    assert len(others) == 1 and others.pop().endswith(".dist-info"), "the wheel holds more than the package"
    for each in (sdist, wheel):
        print(f"{each.name}: {each.stat().st_size / 2**20:.2f} MiB")
    assert sdist.stat().st_size < 5 * 2**20, "the sdist is larger than source should be"


def bare(readme: Path) -> None:
    """Check that the core does what README says, and that each command without its extra names it."""
    there = [name for name in EXTRAS if find_spec(name) is not None]
    assert not there, f"this environment is to have the core alone, and has {there}"
    text = readme.read_text(encoding="utf-8")
    making = text.partition("two loaders of `(x, target)`:")[2].partition("```python\n")[2].partition("```")[0]
    adopting = text.partition("```diff\n")[2].partition("```")[0]
    lines = [line[2:] for line in adopting.splitlines() if not line.startswith("-")]
    assert len([line for line in adopting.splitlines() if line.startswith("+")]) == 3, "adoption is three lines"
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-W", "error", "-c", "\n".join([SETUP, making, *lines, AFTER])], folder)
        inn = [str(Path(sys.executable).with_name("inn"))]
        _run([*inn, "--version"], folder)
        commands = re.findall(r"^  (\w+) ", _run([*inn, "--help"], folder).partition("Commands:")[2], re.MULTILINE)
        assert len(commands) > 9, commands
        for command in (*commands, "reproduce deconv", "reproduce ct"):
            assert "Usage:" in _run([*inn, *command.split(), "--help"], folder)
        assert "a small network gets bounds" in _run([*inn, "doctor"], folder)
        _run([*inn, "view", "p.npz", "--export", "page.html"], folder)  # by the jinja2 that torch brings
        for command, wanted in NEEDED.items():
            said = " ".join(_run([*inn, *command.split()], folder, code=1).split())
            assert f"needs {wanted}" in said and "pip install" in said and "Traceback" not in said, (command, said)
        assert not (Path(folder) / "report.html").exists() and not (Path(folder) / "results/demo").exists()
    print(f"the core alone: README runs, {len(commands)} commands help, {len(NEEDED)} name their extra")


def _run(command: list[str], folder: str, code: int = 0) -> str:
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=one, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


if __name__ == "__main__":
    {"archives": archives, "bare": bare}[sys.argv[1]](Path(sys.argv[2]).resolve())
