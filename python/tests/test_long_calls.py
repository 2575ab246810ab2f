"""Long calls: Ctrl-C ends them soon and leaves everything usable; threads, forks, and the progress bar."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import pal

# A cube with slabs taken out at odd angles: no machine lists its cells within a second.
CRUMBLED = """
import pal, signal, sys, time, threading, os, resource
names = ["v0", "v1", "v2", "v3", "v4"]
vars_ = pal.reals(*names)
phi = pal.all_of(v.between(0, 1) for v in vars_)
for k in range(400):
    term = sum((((k * 37 + j * 61 + k // 23 * j * j) % 23) - 11) * 10 * v for j, v in enumerate(vars_))
    phi = phi & ((term <= k) | (term >= k + 1))
"""


def run(script, **options):
    code = CRUMBLED + textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, **options)


def test_ctrl_c_ends_a_call_within_a_second():
    done = run(
        """
        region = pal.Region(phi)
        small = pal.Region(vars_[0].between(0, 1) & (vars_[1].between(0, vars_[0])))
        family = pal.SplineMixture(small, knots=4, components=2)
        before = family.log_prob(family.random_params(seed=1), [[0.5, 0.25]])
        x, y = pal.reals("x", "y")
        calls = [
            ("cells", lambda: region.cells),
            ("volume", lambda: region.exact_volume),
            ("integrate", lambda: pal.integrate(pal.all_of(pal.real(f"x{i}").between(0, 1) for i in range(7)),
                                                "(x0+2*x1+3*x2+4*x3+5*x4+6*x5+7*x6+8)^14")),
            ("sample", lambda: family.sample(family.random_params(seed=1), 300_000_000)),
            ("compile", lambda: pal.SumOfSquares(pal.Region(phi), degree=3)),
        ]
        for name, call in calls:
            sent = []
            def interrupt():
                sent.append(time.process_time())
                os.kill(os.getpid(), signal.SIGINT)
            timer = threading.Timer(0.7, interrupt)
            timer.start()
            try:
                call()
                timer.cancel()
                print(name, "ended by itself")
            except KeyboardInterrupt:
                # Time of the processor, on all cores: other programs do not count.
                used = time.process_time()
                took = (used - sent[0]) / os.cpu_count()
                time.sleep(0.3)
                idle = time.process_time() - used
                print(name, "interrupted", took < 1.0, idle < 0.1, took, idle)
            timer.join()
        after = family.log_prob(family.random_params(seed=1), [[0.5, 0.25]])
        print("same", (after == before).all(), small.exact_volume, region.contains([[0.5] * 5]).tolist())
        """
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 6, done.stderr + done.stdout
    for line in lines[:5]:
        assert "interrupted True True" in line, done.stdout
    assert lines[5].startswith("same True 1/2")


def test_a_handler_that_does_not_raise_stops_nothing():
    done = run(
        """
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        family = pal.SplineMixture(vars_[0].between(0, 1) & vars_[1].between(0, 1), knots=4, components=2)
        samples = family.sample(family.random_params(seed=1), 1_000_000, seed=1)
        print(len(seen), samples.shape)
        """
    )
    assert done.stdout.strip() == "1 (1000000, 2)", done.stderr


def test_other_threads_run_meanwhile_and_results_do_not_depend_on_them():
    x, y = pal.reals("x", "y")
    family = pal.SplineMixture((x >= 0) & (y >= 0) & (x + y <= 1), knots=6, components=3)
    params = family.random_params(40, seed=1)
    want = family.sample(params, 2000, seed=5)
    ticks, results, stop = [], [None] * 4, threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    def work(k):
        results[k] = family.sample(params, 2000, seed=5)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    watcher = threading.Thread(target=tick)
    watcher.start()
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end = time.monotonic()
    stop.set()
    watcher.join()
    assert all((result == want).all() for result in results)
    during = sum(start <= t <= end for t in ticks)
    assert during >= 5 * (end - start), "the interpreter was not released"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_can_work():
    done = run(
        """
        x = pal.real("x")
        family = pal.SumOfSquares(pal.Region(x.between(0, 1)), degree=2, components=1)
        family.sample([0, 1, 0, 0], 1000, seed=1)
        child = os.fork()
        if child == 0:
            mean = family.sample([0, 1, 0, 0], 100_000, seed=1).mean()
            os._exit(0 if abs(mean - 0.5) < 0.01 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout.strip() == "0", done.stderr


def test_the_bar_appears_on_terminals_only(monkeypatch, capsys):
    tqdm = pytest.importorskip("tqdm.auto")
    from pal._progress import Bar

    bar = Bar("sampling")
    bar.show(10)
    bar.close()
    assert capsys.readouterr().err == ""
    shown = []

    class Recorder:
        def __init__(self, **options):
            shown.append(options["desc"])

        def update(self, by):
            shown.append(by)

        def close(self):
            shown.append("closed")

    monkeypatch.setattr(tqdm, "tqdm", Recorder)
    ignore = lambda self, *text: None
    terminal = type("Terminal", (), {"isatty": lambda self: True, "write": ignore, "flush": ignore})
    monkeypatch.setattr(sys, "stderr", terminal())
    bar = Bar("sampling")
    bar.show(10)
    bar.show(25)
    bar.close()
    assert shown == ["pal: sampling", 10, 15, "closed"]


def test_a_long_call_reports_its_steps(monkeypatch):
    from pal import _progress

    seen = []

    class Recorder:
        def __init__(self, what):
            seen.append(what)

        def show(self, done):
            seen.append(done)

        def close(self):
            seen.append("closed")

    monkeypatch.setattr(_progress, "Bar", Recorder)
    x, y = pal.reals("x", "y")
    family = pal.SplineMixture((x >= 0) & (y >= 0) & (x + y <= 1), knots=6, components=3)
    count = 500_000
    while not seen and count < 10**9:
        count *= 4
        family.sample(family.random_params(seed=1), count, seed=1)
    steps = seen[1:-1]
    assert seen[0] == "sampling" and seen[-1] == "closed" and steps == sorted(steps) and steps[0] > 0
    assert np.isfinite(family.sample(family.random_params(seed=1), 10, seed=1)).all()
