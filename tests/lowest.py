"""Print the lowest versions that pyproject.toml allows, as constraints for pip: `python tests/lowest.py`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
AT_LEAST = re.compile(r"([\w.-]+)>=([\w.]+)")


def lowest() -> dict[str, str]:
    """Return the lowest version of what the library, its extras and its tests need, by name."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    needed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    found = [AT_LEAST.match(each) for each in needed if not each.startswith(f"{project['name']}[")]
    assert all(found), f"each dependency says name>=version, but one does not: {needed}"
    return {each[1]: each[2] for each in found if each}


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest().items()))
