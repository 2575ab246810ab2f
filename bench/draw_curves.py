"""Worker: log-log growth curves as one SVG. Reads one JSON object on stdin."""

import json
import sys

import matplotlib

matplotlib.use("svg")
# The same measurements give the same file.
matplotlib.rcParams["svg.hashsalt"] = "pal"
from matplotlib import pyplot  # noqa: E402

request = json.load(sys.stdin)
curves = request["curves"]
figure, axes = pyplot.subplots(1, len(curves), figsize=(3.6 * len(curves), 3.2), squeeze=False)
for axis, curve in zip(axes[0], curves):
    xs, times, work = zip(*curve["points"])
    measured, predicted = curve["slopes"]
    axis.loglog(xs, times, "o-", label=f"measured, slope {measured:.2f}")
    # The operation count, moved to meet the last measured point.
    axis.loglog(xs, [w * times[-1] / work[-1] for w in work], "--", label=f"predicted, slope {predicted:.2f}")
    axis.set_title(curve["title"], fontsize=9)
    axis.set_xlabel(curve["xlabel"])
    axis.set_ylabel("seconds")
    axis.legend(fontsize=7)
figure.tight_layout()
figure.savefig(request["target"], metadata={"Date": None})
