"""The version, and the report of versions."""

import io
import re
from importlib import metadata
from pathlib import Path

import pal

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_workspace():
    text = (ROOT / "Cargo.toml").read_text()
    assert pal.__version__ == re.search(r'^version = "(.+)"', text, re.MULTILINE)[1] == metadata.version("pal-layer")


def test_the_repository_has_one_address():
    cargo, project = ((ROOT / name).read_text() for name in ("Cargo.toml", "pyproject.toml"))
    address = re.search(r'^repository = "(.+)"', cargo, re.MULTILINE)[1]
    assert re.search(r'^Repository = "(.+)"', project, re.MULTILINE)[1] == address


def test_the_citation_has_the_version():
    assert re.search(r"^version: (.+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == pal.__version__


def test_versions_are_shown(capsys):
    import numpy

    pal.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["pal"] == pal.__version__ and shown["numpy"] == numpy.__version__
    assert {"Python", "system", "threads", "torch", "scikit-learn", "matplotlib"} <= set(shown)


def test_what_is_missing_is_named_and_files_are_written_to(monkeypatch, capsys):
    real = metadata.version

    def version(name):
        if name == "torch":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    file = io.StringIO()
    pal.show_versions(file)
    assert re.search(r"^torch +not installed$", file.getvalue(), re.MULTILINE)
    assert capsys.readouterr().out == ""
