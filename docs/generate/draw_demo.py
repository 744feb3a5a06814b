"""Draw docs/images/demo.svg from the real output of the demo: the chart that a report opens with.

topstory demo --json | python -m docs.generate.draw_demo > docs/images/demo.svg
"""

import json
import sys
from typing import Any

from topstory.report import Answer, Dot, Number
from topstory.report.answer_chart import answer_picture
from topstory.report.records import RECOMMENDED

VISITS = 100_000


def answer_of(found: dict[str, Any]) -> Answer:
    """The deployment bucket of every policy; the one with the highest total is marked."""
    scale = VISITS * found["random_ctr"]
    tuned = [each for each in found["policies"] if each["parameters"]]
    best = max(tuned, key=lambda each: each["exploration"]["total_relative_ctr"] or 0.0)
    dots = []
    for each in found["policies"]:
        if each["policy"] == "random":
            continue  # it is the line
        bucket = each["deployment"]
        low, high = (scale * end for end in bucket["relative_interval"])
        number = Number(scale * bucket["relative_ctr"], low, high)
        mark = RECOMMENDED if each is best else ""
        dots.append(Dot(each["policy"], each["paper"], number, bucket["relative_ctr"] - 1, mark))
    dots.sort(key=lambda dot: -(dot.value.value or 0.0))
    unit = f"clicks in {VISITS:,} visits"
    return Answer("", (), unit, "random articles", scale, tuple(dots))


if __name__ == "__main__":
    found = json.load(sys.stdin)
    title = f"Which policy should we deploy? {found['events']:,} simulated events"
    print(answer_picture(answer_of(found), title), end="")
