"""The Python code of the documentation runs, block after block, prints what the pages say, and draws their pictures."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_page = _load(ROOT / "docs" / "tools" / "run_page.py")
ALL = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [str(page.relative_to(ROOT)) for page in ALL if run_page.BLOCK.search(page.read_text())]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def plain_matplotlib():
    """Pages draw into files; figures that they leave open must not be drawn into by the next page."""
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_there_are_pages():
    assert {"README.md", "docs/python.md", "docs/getting-started.md", "docs/tutorials/regions.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page, tmp_path, plain_matplotlib):
    for library in ("torch", "sklearn", "pysmt", "shapely"):
        pytest.importorskip(library)
    if "import pandas" in (ROOT / page).read_text():
        pytest.importorskip("pandas")
    for number, (said, printed) in enumerate(run_page.run(ROOT / page, tmp_path)):
        assert said is None or run_page.matches(said, printed), f"{page}, block {number} printed\n{printed}"
    written = {file.name for file in tmp_path.iterdir()}
    shown = set(run_page.pictures(ROOT / page))
    assert shown <= written, f"{page} shows pictures that its code does not draw"
    assert all((ROOT / page).parent.joinpath("images", name).stat().st_size < 200_000 for name in shown)


def test_printed_text_is_compared():
    matches = run_page.matches
    assert matches("area 46 = 46.0\n", "area 46 = 46.0\n") and matches("a ... c\n", "a b c\n") and matches("-2.30\n", "-2.31\n")
    assert not matches("area 46\n", "area 45\n") and not matches("1.00\n", "1.50\n") and not matches("", "more\n")
    assert not matches("7/2\n", "7/3\n") and not matches("1.00\n", "inf\n")


def test_broken_links_of_the_site_are_found(tmp_path):
    links = _load(ROOT / "docs" / "tools" / "links.py")
    (tmp_path / "index.html").write_text('<h1 id="top"></h1><a href="#top"></a><a href="a/b.html#here"></a><img src="no.png">')
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.html").write_text('<a href="../index.html#bottom"></a><a href="https://example.org/x"></a>')
    assert sorted(links.broken(tmp_path)) == [
        "a/b.html: ../index.html#bottom: no such heading",
        "index.html: a/b.html#here: no such heading",
        "index.html: no.png: no such file",
    ]


def test_the_training_loop_of_the_readme_is_short():
    loop = run_page.BLOCK.search(README)["code"]
    assert len([line for line in loop.splitlines() if line.strip()]) <= 15


def test_the_questions_of_the_readme_have_answers():
    torch = pytest.importorskip("torch")
    import pal
    from pal.torch import SplineLayer

    x, y = pal.reals("x", "y")
    layer = SplineLayer(x.between(0, 4) & y.between(0, 3) & (x + y <= 6), knots=6, components=2)
    torch.manual_seed(0)
    p, q = layer(torch.randn(100, layer.num_params)), layer(torch.zeros(100, layer.num_params))
    table = README[README.index("| question |") :].split("\n\n")[0]
    calls = re.findall(r"`(p\.[^`]+)`", table)
    assert len(calls) >= 12
    for call in calls:
        names = {"p": p, "q": q, "x": x, "torch": torch}
        names["y"] = torch.ones(2, dtype=torch.float64) if "log_prob" in call else y
        assert eval(call, names) is not None, call


def test_every_public_name_is_in_the_reference():
    import pal

    listed = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    modules = {"pal": pal}
    for name in ("torch", "sklearn", "datasets"):
        modules[f"pal.{name}"] = pytest.importorskip(f"pal.{name}")
    constants = {"KINDS", "LAYERS", "__version__", "errors"}
    for module, content in modules.items():
        names = set(content.__all__) - constants - set(vars(pal.errors) if module == "pal" else ())
        missing = sorted(name for name in names if f"::: {module}.{name}\n" not in listed)
        assert not missing, f"docs/api has no `::: {module}.{missing[0]}`"
