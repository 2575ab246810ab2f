"""Writes the section "Against peers" of the benchmark page, between two marker comments."""

import math
import statistics
from collections import defaultdict
from pathlib import Path

BEGIN = "<!-- peers:begin -->"
END = "<!-- peers:end -->"


def number(value, digits=3):
    if value is None or isinstance(value, float) and math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.{digits}g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.{digits - 1}e}"


def seconds(value):
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows] + [""]


def environment_lines(machine, versions, date, command):
    return [
        f"Measured on {date} on {machine['cpu']} ({machine['cores']} cores, {machine['system']}),"
        f" Python {machine['python']}, load average {machine['load']:.1f} at the start.",
        "Versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()) + ".",
        "",
        "```sh",
        command,
        "```",
        "",
    ]


def own_time(value):
    """The time that LattE prints, which is 0 below its step of 10 ms."""
    return "< 10 ms" if value == 0 else seconds(value)


def dense_lines(outcomes, skipped, limit, latte_startup, pal_startup):
    lines = [
        "### Dense polynomials against LattE",
        "",
        "Every monomial up to the degree has a random coefficient; a polytope is the unit cube cut by three random",
        "half-spaces. Each instance runs as one process per program:",
        "",
        "```sh",
        "integrate --valuation=integrate --triangulate --monomials=poly.txt body.hrep.latte",
        "integrate --valuation=integrate --cone-decompose --monomials=poly.txt body.hrep.latte",
        'pal integrate body.smt2 --poly="..." --json',
        'pal integrate body.smt2 --poly="..." --exact --json',
        "```",
        "",
        "LattE is exact, so the like-for-like comparison is with `pal --exact`. The time of LattE is that of the",
        "better of its two methods; for both programs it is the fastest of up to five runs. *wall*: whole process",
        "against whole process. *net*: the wall time of LattE minus its start-up on a trivial instance",
        f"({seconds(latte_startup)}; pal: {seconds(pal_startup)}), divided by the `seconds` that pal reports, which",
        "leave out process start and reading; LattE's net time still includes reading the polynomial. *LattE own* is",
        "the total time that LattE prints, in steps of 10 ms. *CPU*: processor time of the whole processes. Ratios",
        f"are LattE / pal, above 1 when pal is faster. A timeout of LattE counts as the limit of {limit:g} s and its",
        "ratio is marked `>=`; a timeout of pal likewise, marked `<=`.",
        "",
    ]
    groups = defaultdict(list)
    for o in outcomes:
        groups[o.key()].append(o)
    for mode, title in (("exact", "`pal --exact`"), ("f64", "`pal` in f64")):
        rows = []
        for (shape, n, degree), group in groups.items():
            late = any(o.latte_note == "timeout" for o in group)
            slow = any(getattr(o, mode) is None for o in group)
            mark = (">= " if late else "") + ("<= " if slow else "")

            def ratios(kind):
                found = [r for o in group if (r := kind(o)) is not None]
                if not found:
                    return "-"
                return f"{mark}{number(median(found))} / {number(min(found))}"

            pals = [getattr(o, mode) for o in group]
            rows.append(
                [
                    shape, n, degree, len(group[0].instance.terms), len(group),
                    seconds(median([o.latte and o.latte.cost.wall for o in group]) or math.nan),
                    own_time(median([o.latte and o.latte.own for o in group])),
                    seconds(median([p and p.cost.wall for p in pals]) or math.nan),
                    seconds(median([p and p.seconds for p in pals]) or math.nan),
                    ratios(lambda o: o.ratio_wall(mode, limit)),
                    ratios(lambda o: o.ratio_net(mode, limit, latte_startup)),
                    ratios(lambda o: o.ratio_cpu(mode, limit)),
                    "; ".join(sorted({f"LattE {o.latte_note}" for o in group if o.latte_note}
                                     | {f"pal {o.pal_note}" for o in group if o.pal_note}
                                     | {"through `pal wmi`" for p in pals if p and p.through == "wmi"})) or "",
                ]
            )
        lines += [f"**{title}**", ""]
        lines += table(
            ["shape", "n", "degree", "terms", "instances", "LattE wall", "LattE own", "pal wall", "pal net",
             "wall ratio median / worst", "net ratio median / worst", "CPU ratio median / worst", "notes"],
            rows,
        )
    lines += summary_lines(outcomes, limit, latte_startup)
    if skipped:
        text = ", ".join(f"n = {n} degree {d} ({t} terms)" for n, d, t in skipped)
        lines += [f"Left out, because the dense polynomial is too long to be of interest: {text}.", ""]
    return lines


def summary_lines(outcomes, limit, startup):
    lines = []
    solved = [o for o in outcomes if o.latte]
    for mode, title in (("exact", "`pal --exact`"), ("f64", "`pal` f64")):
        counted = [o for o in outcomes if o.ratio_wall(mode, limit) is not None]
        wall = sum(o.ratio_wall(mode, limit) > 1 for o in counted)
        net = sum(o.ratio_net(mode, limit, startup) > 1 for o in counted)
        lines.append(
            f"- {title} is faster on {wall} of {len(counted)} instances by wall time and on {net} net of start-up."
        )
    late = sum(o.latte_note == "timeout" for o in outcomes)
    untried = sum(o.latte_note.startswith("not tried") for o in outcomes)
    lines.append(
        f"- LattE answered {len(solved)} of {len(outcomes)} instances; {late} ran into the limit, and {untried} were"
        " not tried because easier ones did (they count in no ratio)."
    )
    checked = sum(o.exact is not None and o.exact.exact == o.latte.value for o in solved)
    lines.append(f"- The fractions are equal on {checked} of the {len(solved)} instances that LattE answered.")
    errors = [o.relative_error for o in outcomes if o.relative_error is not None]
    bounds = [o.f64.error_bound / abs(o.f64.value) for o in outcomes
              if o.f64 and o.f64.error_bound is not None and o.f64.value]
    if errors:
        worst_bound = f"; worst error bound relative to the value {number(max(bounds))}" if bounds else ""
        worst = f"worst relative error {number(max(errors))}, median {number(median(errors))}"
        lines.append(f"- f64 accuracy: {worst}{worst_bound}.")
    return lines + [""]


def star_lines(rows, limit, latte_startup):
    lines = [
        "### N-stars, all moments",
        "",
        "Every moment up to a total degree over the N-pointed star, as a union of N kites:",
        "",
        "```sh",
        "pal integrate star.smt2 --degree D -o eta.safetensors --json",
        "pal integrate star.smt2 --degree D --method gasp -o eta.safetensors --json",
        "```",
        "",
        "SymPy: `polytope_integrate(polygon, max_degree=D)`, without import and start. LattE: *one* dense polynomial",
        f"of degree D, one process per kite, start-up subtracted. The limit is {limit:g} s. The paper reports 19 s for",
        "GASP! on an RTX A6000 and 6 h 20 min for XADD with SymPy at N = 17, degree 12.",
        "",
    ]
    body = [
        [
            r.points,
            r.degree,
            (r.degree + 1) * (r.degree + 2) // 2,
            r.simplices or "-",
            seconds(r.recurrence),
            seconds(r.gasp),
            number(r.gasp / r.recurrence) if r.gasp and r.recurrence else "-",
            seconds(r.sympy),
            number(r.sympy / r.recurrence) if r.sympy and r.recurrence else "-",
            seconds(sum(max(w - latte_startup, 0.0) for w in r.latte)) if r.latte else "-",
            number(r.worst_error),
            "; ".join(r.notes),
        ]
        for r in rows
    ]
    head = ["N", "degree", "moments", "simplices", "pal", "pal GASP!", "ratio", "SymPy", "ratio", "LattE"]
    return lines + table([*head, "worst error", "notes"], body)


def wmi_lines(groups):
    lines = [
        "### Weighted model integration",
        "",
        "```sh",
        "pal wmi cases.jsonl --json",
        "pal wmi cases.jsonl --exact --json",
        "```",
        "",
        "Seconds per problem as pal reports them; its answers are compared with independent reference answers.",
        "*Reference* is the exact Python evaluator that made those answers, for orientation only.",
        "",
    ]
    body = []
    for f in groups:
        def pair(values):
            return f"{seconds(statistics.median(values))} / {seconds(max(values))}" if values else "-"

        times = [pair(f.f64), pair(f.exact), pair(f.reference)]
        body.append([f.name, f.problems, *times, number(f.worst_error), "; ".join(f.notes)])
    times = ["f64 median / worst", "exact median / worst", "reference median / worst"]
    return lines + table(["group", "problems", *times, "worst relative error f64", "notes"], body)


def growth_lines(curves, picture):
    lines = ["### Growth", ""]
    if picture:
        lines += [f"![Growth of pal's time with degree, dimension, simplices and atoms]({picture})", ""]
    body = []
    for c in curves:
        if len(c.points) < 2:
            body.append([c.title, c.xlabel, "-", "-", "-", "too few points"])
            continue
        measured, expected = c.exponents()
        (x0, t0, _), (x1, t1, _) = c.points[0], c.points[-1]
        times = f"{seconds(t0)} to {seconds(t1)}"
        body.append([c.title, c.xlabel, f"{x0} to {x1}", times, f"{measured:.2f}", f"{expected:.2f}"])
    lines += table(["task", "grows with", "range", "time", "measured exponent", "expected exponent"], body)
    return lines + [
        "Exponents are slopes of least-squares lines in log-log coordinates, over the upper half of the range; the",
        "expected exponent is that of the operation count at the same points (n (n+1) per moment and simplex; cells",
        "of a line arrangement for atoms).",
        "",
    ]


def disagreement_lines(complaints):
    if not complaints:
        return ["No disagreement between pal and any peer or reference.", ""]
    return [f"**{len(complaints)} disagreements:**", "", *[f"- {c[:400]}" for c in complaints], ""]


def write(path, lines):
    """Replaces the text between the markers; the rest of the page stays as it is."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    section = "\n".join([BEGIN, "## Against peers", "", *lines]).rstrip() + "\n" + END
    old = path.read_text() if path.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    if BEGIN in old and END in old:
        head, rest = old.split(BEGIN, 1)
        new = head + section + rest.split(END, 1)[1]
    else:
        new = old.rstrip() + "\n\n" + section + "\n"
    path.write_text(new)
