"""The versions that the pages promise are those that pip is told, and those that are tested."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from lowest import lowest

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
# ATen operations that one of the supported versions of torch has and another lacks; 2.11, 2.13 and 2.15 were compared.
NOT_IN_ALL = {
    "_cudnn_attention_forward_no_dropout_inplace", "_flash_attention_forward_no_dropout_inplace", "_foreach_clone",
    "_foreach_mm", "_philox_key_fold_in", "_philox_key_split", "_philox_normal", "_philox_normal_", "_philox_randint",
    "_philox_randint_", "_philox_uniform", "_philox_uniform_", "_scaled_addmm", "_scaled_addmm_",
    "_upsample_lanczos2d_aa", "_upsample_lanczos2d_aa_backward", "align_as", "align_tensors", "align_to", "cholesky",
    "dim", "get_device", "is_contiguous", "linalg_matrix_sqrth", "linalg_polar", "numel", "qr", "refine_names",
    "rename", "rename_", "shallow_copy_data_", "storage_offset",
}  # fmt: skip
TORCH = re.compile(r"torch>=(\d+\.\d+),<(\d+)\.(\d+)$")


def _torch() -> tuple[str, str]:
    """Return the oldest and the newest minor version of torch that is tested."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest, major, untested = next(found for each in needed if (found := TORCH.match(each))).groups()
    return oldest, f"{major}.{int(untested) - 1}"


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_pages_say_which_torch_is_tested(page: str) -> None:
    assert "torch from {} to {}".format(*_torch()) in (ROOT / page).read_text()


def test_make_tries_the_newest_torch_that_is_tested() -> None:
    assert f"\nTORCH ?= {_torch()[1]}." in (ROOT / "Makefile").read_text()


def test_every_dependency_has_a_lowest_version() -> None:
    found = lowest()

    assert found["torch"] == _torch()[0]
    assert {"numpy", "pydicom", "onnx", "pytest", "transformers"} <= set(found)


def test_operations_that_some_torch_lacks_are_asked_for_by_name() -> None:
    texts = {path: path.read_text() for path in SOURCES}
    found = {str(path.relative_to(ROOT)): _taken(ast.parse(text)) for path, text in texts.items() if "aten" in text}

    assert not {path: names for path, names in found.items() if names}, "take these by intervalnn.table.if_there"


def _taken(tree: ast.Module) -> set[str]:
    """Return which of the operations that some torch lacks stand as attributes, or in a list for getattr."""
    nodes = list(ast.walk(tree))
    attributes = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in NOT_IN_ALL and ast.unparse(node.value).endswith("aten")
    }
    lists = [node for node in nodes if isinstance(node, ast.ListComp) and "getattr(aten" in ast.unparse(node.elt)]
    return attributes | {
        inner.value
        for node in lists
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and inner.value in NOT_IN_ALL
    }


def test_an_operation_that_some_torch_lacks_is_seen() -> None:
    text = "aten.qr.default\n[Case(getattr(aten, n)) for n in ('cholesky', 'relu')]\nif_there('linalg_polar')\nx.dim"

    assert _taken(ast.parse(text)) == {"qr", "cholesky"}
