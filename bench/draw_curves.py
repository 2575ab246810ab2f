"""Worker: draws growth curves in log-log coordinates as one SVG. Reads one JSON object from standard input."""

import json
import sys

import matplotlib

matplotlib.use("svg")
# The same measurements must give the same file.
matplotlib.rcParams["svg.hashsalt"] = "pal"
from matplotlib import pyplot, ticker  # noqa: E402

request = json.load(sys.stdin)
curves = request["curves"]
figure, axes = pyplot.subplots(1, len(curves), figsize=(3.6 * len(curves), 3.2), squeeze=False)
for axis, curve in zip(axes[0], curves):
    xs, times, work = zip(*curve["points"])
    measured, predicted = curve["exponents"]
    axis.loglog(xs, times, "o-", label=f"measured, exponent {measured:.2f}")
    # The operation count, scaled to meet the last measured point.
    axis.loglog(xs, [w * times[-1] / work[-1] for w in work], "--", label=f"expected, exponent {predicted:.2f}")
    axis.set_title(curve["title"], fontsize=9)
    # A range of about one decade has too few powers of ten to label: label the measured points, or every second one of
    # many.
    axis.set_xticks(xs if len(xs) <= 5 else xs[::-2][::-1])
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.xaxis.set_minor_locator(ticker.NullLocator())
    axis.set_xlabel(curve["xlabel"])
    axis.set_ylabel("seconds")
    axis.legend(fontsize=7)
figure.tight_layout()
figure.savefig(request["target"], metadata={"Date": None})
