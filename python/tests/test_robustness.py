"""Files are written completely or not at all, hostile pickles are refused, and requests for too much memory are errors."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pal
from pal.datasets import _plain_pickle, constrained_sdd


@pytest.fixture(name="family")
def a_family():
    (x,) = pal.reals("x")
    return pal.HistogramMixture(pal.Region(x.between(0, 1)), components=1)


@pytest.mark.skipif(sys.platform == "win32", reason="links and devices of Unix")
def test_files_are_written_completely_or_not_at_all(tmp_path, family):
    target, link = tmp_path / "target.safetensors", tmp_path / "link.safetensors"
    family.save(target)
    link.symlink_to(target)
    before = target.read_bytes()
    family.save(link, params=family.random_params(2))
    assert link.is_symlink() and target.read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.safetensors", "target.safetensors"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        family.save(tmp_path / "nowhere" / "f.safetensors")
    # A full disk: the device says so when it is written to, and a file system of its own keeps the old file.
    with pytest.raises(OSError, match="No space left"):
        family.save("/dev/full")


def test_too_much_is_a_memory_error(family):
    with pytest.raises(MemoryError, match="so many parameters would take about"):
        family.random_params(10**12)
    density = family.density(np.zeros(family.num_params))
    with pytest.raises(MemoryError, match="so many samples would take about"):
        density.sample(10**13)
    with pytest.raises(MemoryError, match="so many samples"):
        family.sample(np.zeros((2, family.num_params)), 10**13)


def test_seeds_are_integers_and_nan_has_no_probability(family):
    density = family.density(np.zeros(family.num_params))
    with pytest.raises(TypeError, match="a seed must be an integer, not float"):
        density.sample(1, seed=1.5)
    assert np.isnan(density.marginal("x").cdf(np.nan))
    assert density.marginal("x").cdf([-1, 0.5, 2]) == pytest.approx([0, 0.5, 1])


CONTENT = {
    12: {"building": [(np.arange(6.0).reshape(3, 2), np.ones(3))], 7: np.zeros((2, 3), np.uint8)},
    "text": [1, 2.5, None, True, np.float64(0.5), np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))],
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_pickles_are_read_as_they_are(protocol):
    read = _plain_pickle.load(pickle.dumps(CONTENT, protocol))
    assert list(read) == list(CONTENT) and read["text"][:4] == CONTENT["text"][:4] and read["text"][4] == 0.5
    (a, b), image = read[12]["building"][0], read[12][7]
    assert (a == CONTENT[12]["building"][0][0]).all() and (b == 1).all() and image.dtype == np.uint8
    assert (read["text"][5] == CONTENT["text"][5]).all()


def test_no_array_of_addresses_is_made():
    """A pickle once made object pointers from its bytes: using them ended the process."""
    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\x01btR"
    dtype = b"cnumpy\ndtype\n(V%sI00\nI01\ntR(I3\nV%s\nNNNI-1\nI-1\nI%d\ntb"
    for name, order, flags in [(b"O8\n", b"|", 63), (b"V8\n", b"|", 0), (b"U2\n", b"<", 8), (b"M8\n", b"<", 0)]:
        forged = reconstruct + b"(I1\n(I2\nt" + dtype % (name, order, flags) + b"I00\nC\x10" + b"A" * 16 + b"tb."
        with pytest.raises(ValueError, match="only numbers are read"):
            _plain_pickle.load(forged)
    # No memory is taken for as many objects as a pickle announces.
    assert _plain_pickle.load(b"\x80\x04Nr\xff\xff\xff\x7f.") is None
    for forged in [
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\x00\x00", b"cos\nsystem\n(V1\ntR.",
        b"cnumpy\nndarray\n.", b"cnumpy\nndarray\n(I5\ntR.", b"cbuiltins\nlist\n(I1\ntR.", b"]" * 5000 + b"a" * 4999 + b".",
        reconstruct + b"(I1\n(I9\nt" + dtype % (b"f8\n", b"<", 0) + b"I00\nC\x10" + b"A" * 16 + b"tb.",
        reconstruct + b"(I1\n(I-2\nt" + dtype % (b"f8\n", b"<", 0) + b"I00\nC\x10" + b"A" * 16 + b"tb.",
    ]:  # fmt: skip
        with pytest.raises(ValueError):
            _plain_pickle.load(forged)


def test_damaged_pickles_are_our_errors():
    """One byte changed, anywhere: the content is read, or a `ValueError` says why not."""
    content = pickle.dumps(CONTENT)
    refused = 0
    for at in range(len(content)):
        for bit in (0, 3, 6):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            try:
                _plain_pickle.load(bytes(damaged))
            except ValueError:
                refused += 1
    assert refused > len(content) / 2


def test_structures_that_do_not_fit_are_named(tmp_path):
    def write(**content):
        for name in constrained_sdd.NAMES:
            value = content.get(name, {12: {}})
            (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(value))

    image = {12: np.zeros((10, 20, 3), np.uint8)}
    for content, message in [
        ({"all_images": {12: 3}}, "an array was expected, not a int"),
        ({"all_images": image, "ineqs": {12: [1]}}, "a dictionary was expected"),
        ({"all_images": image, "ineqs": {12: {"tree": 3}}}, "class tree: a list was expected"),
        ({"all_images": image, "ineqs": {12: {"tree": [(1,)]}}}, "a pair of A and b"),
        ({"all_images": image, "ineqs": {12: {"tree": [("a", "b")]}}}, "numbers were expected"),
        ({"all_images": image, "trajectories_dequantized": {12: {1: [[1, 2, 3]]}}}, "track 1 has shape"),
        ({"all_images": image, "polygons": {12: {"tree": [["a"]]}}}, "a polygon of class tree"),
    ]:
        write(**content)
        command = [sys.executable, "-m", "pal.datasets", "constrained-sdd", tmp_path, "--scene", "12"]
        done = subprocess.run([*command, "-o", tmp_path / "out"], capture_output=True, text=True)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "out").exists() or not os.listdir(tmp_path / "out")
