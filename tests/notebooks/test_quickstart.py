"""The notebook runs from top to bottom, and prints what is checked in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"


def _printed(notebook: Any) -> list[str]:
    """What each code cell has written to stdout."""
    return [
        "".join(output["text"] for output in cell["outputs"] if output.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_outputs_are_those_checked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell ends well, with the same words as in the file."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(fresh, timeout=120, kernel_name="python3", resources={"metadata": {"path": ROOT}}).execute()
    assert _printed(stored) == _printed(fresh)
    assert any(_printed(stored))


def test_notebook_is_clean() -> None:
    """No cell ends in an error, and nothing of the machine that ran it stands in the file."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kinds = {output["output_type"] for cell in notebook.cells for output in cell.get("outputs", [])}
    assert kinds == {"stream"}
    text = NOTEBOOK.read_text()
    assert [] == [word for word in ("/tmp", "/home", "/root", "Traceback") if word in text]
