"""Draw docs/images/demo.svg from the real output of the demo.

topstory demo --json | python -m docs.generate.draw_demo > docs/images/demo.svg
"""

import json
import sys
from typing import Any

LEFT, BAR, GAP, SCALE, TOP = 170, 11, 34, 270.0, 64
DEPLOYMENT, LEARNING, INK, QUIET = "#3949ab", "#9fa8da", "#24292f", "#6e7781"
UNSURE = "#d3d7de"


def bar(bucket: dict[str, Any], y: float, colour: str, lift: dict[str, Any] | None) -> list[str]:
    """A bar from 0 to the relative CTR, with its interval as a whisker; grey if no lift is sure."""
    if lift is not None and lift["value"] and not lift["sure"]:
        colour = UNSURE
    low, high = (LEFT + SCALE * end for end in bucket["relative_interval"])
    value = bucket["relative_ctr"]
    middle = y + BAR / 2
    return [
        f'<rect x="{LEFT}" y="{y}" width="{SCALE * value:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{INK}"/>',
        f'<text x="{high + 6:.1f}" y="{y + 10}" fill="{INK}">{value:.2f}</text>',
    ]


def draw(found: dict[str, Any]) -> str:
    """The whole picture."""
    policies = found["policies"]
    height = TOP + GAP * len(policies) + 28
    one = LEFT + SCALE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="{INK}">Relative CTR of the '
        f"paper's policies, {found['events']:,} simulated events</text>",
        f'<rect x="16" y="38" width="12" height="12" fill="{DEPLOYMENT}"/>'
        f'<text x="34" y="49" fill="{INK}">deployment bucket</text>',
        f'<rect x="170" y="38" width="12" height="12" fill="{LEARNING}"/>'
        f'<text x="188" y="49" fill="{INK}">learning bucket</text>',
        f'<text x="320" y="49" fill="{QUIET}">line: 95 % interval; grey: lift over '
        "ε-greedy not significant</text>",
        f'<path d="M{one} {TOP - 6}V{height - 22}" stroke="{QUIET}" stroke-dasharray="3 3"/>',
    ]
    for i, policy in enumerate(policies):
        y = TOP + GAP * i
        lines.append(
            f'<text x="{LEFT - 10}" y="{y + 16}" text-anchor="end" fill="{INK}">'
            f"{policy['paper']}</text>"
        )
        lines += bar(policy["deployment"], y, DEPLOYMENT, policy["deployment_lift"])
        lines += bar(policy["learning"], y + BAR + 1, LEARNING, policy["learning_lift"])
    lines.append(
        f'<text x="16" y="{height - 8}" fill="{QUIET}">topstory demo --json | python -m '
        "docs.generate.draw_demo</text></svg>"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(draw(json.load(sys.stdin)))
