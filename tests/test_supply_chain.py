from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import intervalnn

ROOT = Path(intervalnn.__file__).parent
SOURCES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml"}
ON_THE_NET = {"requests", "urllib.request", "http.client", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib"}

# What stands in one place, and why it may.
ALLOWED = {
    ("network/capture/program.py", "eval"): "torch's own guards, made by this process",
    ("network/capture/program.py", "compile"): "the same",
    (
        "network/capture/parts.py",
        "pickle",
    ): "arguments of a call, taken apart and put together in this process; never from a file",
    ("cli/weights.py", "pickle"): "the name of the error by which torch refuses a file; nothing is unpickled",
}


def _imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    yield from ((ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_no_source_can_run_code_from_a_file_or_call_home() -> None:
    for own, tree in SOURCES.items():
        found = {name for name in _imports(tree) if name.split(".")[0] in UNSAFE or name in ON_THE_NET}
        assert not {name for name in found if (own, name) not in ALLOWED}, own
        for called, node in _calls(tree):
            where = f"{own}:{node.lineno}"
            assert called not in RUNS_CODE or (own, called) in ALLOWED, f"{where} calls {called}"
            assert called.split(".")[0] not in UNSAFE, f"{where} calls {called}"
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if called == "torch.load":
                assert options.get("weights_only") == "True", f"{where} loads what may run code"
            if called in ("np.load", "numpy.load"):
                assert options.get("allow_pickle", "False") == "False", f"{where} loads pickles"


# Who unpacks what: each is told how much it may be, or unpacks nothing.
UNPACKS = {
    "np.load": {},
    "numpy.load": {},
    "np.fromfile": {},
    "gzip.open": {"data/readers/nifti.py": "counts as it goes"},
    "gzip.decompress": {},
    "zlib.decompress": {},
    "zlib.decompressobj": {"files/limits.py": "counts as it goes"},
    "bz2.open": {},
    "lzma.open": {},
    "tarfile.open": {},
    "shutil.unpack_archive": {},
    "zipfile.ZipFile": {
        "data/readers/npy.py": "checks its index",
        "files/container.py": "takes nothing that is packed",
        "files/arrays_written.py": "writes",
    },
    "pillow().open": {"data/readers/images.py": "checks sizes of pages and tiles"},
    "h5py().File": {"data/readers/lodopab.py": "checks the data set and its chunks"},
    "nibabel().load": {"data/readers/nifti.py": "behind the count"},
    "pydicom().dcmread": {
        "data/readers/dicom_file.py": "through plain()",
        "data/readers/derived.py": "files that were read before",
    },
    "torch.load": {"cli/weights.py": "behind verify_archive", "training/history.py": "behind verify_archive"},
    "load_file": {"paper/experiments/comparison.py": "safetensors, which packs nothing"},
    "safe_open": {"cli/models.py": "the same, and its header alone"},
}


def test_nothing_is_unpacked_but_where_it_is_known_how_much_it_may_be() -> None:
    found = [(own, called) for own, tree in SOURCES.items() for called, _ in _calls(tree) if called in UNPACKS]

    assert not [(own, called) for own, called in found if own not in UNPACKS[called]]
    assert len(found) > 10


OFFLINE = """
import socket
def forbidden(*args, **kwargs):
    raise AssertionError("the library opened a connection")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = forbidden
import torch, intervalnn as inn
from pathlib import Path
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
x = torch.randn(64, 3)
pairs = [(x, model(x).detach() + 0.1 * torch.randn(64, 1))]
net = inn.IntervalNetwork(model, layers="all")
inn.fit(net, pairs, coverage=0.9, epochs=3, progress=False)
inn.calibrate(net, pairs, coverage=0.8)
net.save(Path("net.safetensors"), include_model=True)
inn.load(Path("net.safetensors"), model).predict(x)
inn.evaluate({"INN": net}, pairs, progress=False)
print("done")
"""


def test_nothing_needs_the_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.stdout.strip() == "done", done.stderr


def test_every_pin_is_exact() -> None:
    lines = (Path(__file__).parents[1] / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert len(pins) > 50
    assert all("==" in pin and "@" not in pin and "/" not in pin for pin in pins)
