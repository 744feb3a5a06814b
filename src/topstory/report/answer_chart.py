"""The picture that answers the question: policies as dots with their intervals, best first.

It is SVG that we draw, so that it is there before any script runs, and is the same in a page, in a
README and on paper. Texts have the same size at any width: a page has one drawing for a phone and
one for a wide screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from topstory.report.records import RECOMMENDED, Answer, Dot
from topstory.report.wording import amount, percent

PHONE, WIDE = 350, 700  # widths
TOP, BOTTOM = 46, 26
STYLE = """
svg { --paper: #fff; --ink: #1d2129; --soft: #5b6372; --grid: #e8ebf0; --accent: #3456c9;
  --raised: #f5f6f8; font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171c; --ink: #e8eaef; --soft: #a0a8b7; --grid: #2a303a; --accent: #9db2ff;
    --raised: #1d2128; }
}
"""
DRAWN = """
.answer-chart text { fill: var(--ink); font-size: 13px; font-variant-numeric: tabular-nums; }
.answer-chart .quiet { fill: var(--soft); font-size: 12px; }
.answer-chart g:not(.chosen) text { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.answer-chart .mark { fill: var(--soft); font-size: 12px; }
.answer-chart .chosen .mark { fill: var(--accent); font-weight: 600; }
.answer-chart .chosen text { font-weight: 700; }
.answer-chart .grid { stroke: var(--grid); }
.answer-chart .reference { stroke: var(--soft); stroke-dasharray: 4 3; }
.answer-chart .reach { stroke: var(--soft); stroke-width: 3; stroke-linecap: round; }
.answer-chart circle { fill: var(--soft); }
.answer-chart .band { fill: var(--raised); }
.answer-chart .chosen .reach { stroke: var(--accent); }
.answer-chart .chosen circle { fill: var(--accent); }
"""


def answer_chart(answer: Answer, width: int = WIDE) -> str:
    """The picture as an element of a page, which has the colours."""
    phone = width < WIDE
    row = 31 if phone else 27
    left, right = (6, width - 6) if phone else (238, width - 128)
    low, high, ticks = _axis(answer)
    height = TOP + row * len(answer.dots) + BOTTOM

    def x(value: float) -> str:
        return f"{left + (right - left) * (value - low) / (high - low):.1f}"

    lines = [
        f'<svg class="answer-chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(_described(answer))}">',
        f'<text class="quiet" x="{left if phone else 0}" y="14">'
        f"{escape(answer.unit.capitalize())}, with 95 % intervals</text>",
    ]
    bottom = height - BOTTOM
    for tick in ticks:
        lines.append(f'<path class="grid" d="M{x(tick)} {TOP - 6}V{bottom}"/>')
    if (value := answer.reference_value) is not None:
        # Beyond the middle there is more room to the left of the line.
        anchor = "end" if value > (low + high) / 2 else "start"
        lines += [
            f'<path class="reference" d="M{x(value)} {TOP - 12}V{bottom}"/>',
            f'<text class="quiet" x="{x(value)}" y="{TOP - 16}" text-anchor="{anchor}">'
            f"{escape(answer.reference)}: {amount(value)}</text>",
        ]
    lines += [
        _row(dot, TOP + row * place, row, width, x, phone) for place, dot in enumerate(answer.dots)
    ]
    for tick in ticks[:: 2 if phone and len(ticks) > 5 else 1]:
        lines.append(
            f'<text class="quiet" x="{x(tick)}" y="{bottom + 17}" text-anchor="middle">'
            f"{amount(tick)}</text>"
        )
    return "\n".join([*lines, "</svg>"])


def answer_picture(answer: Answer, title: str, width: int = WIDE) -> str:
    """The picture as a file of its own, with a title; it follows the theme of who looks at it."""
    drawn = answer_chart(answer, width).replace(" role=", ' x="20" y="44" role=', 1)
    height = TOP + 27 * len(answer.dots) + BOTTOM
    drawn = drawn.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 40} {height + 60}">'
        f"<style>{STYLE}{DRAWN}</style>"
        '<rect width="100%" height="100%" fill="var(--paper)"/>'
        f'<text x="20" y="28" font-size="16" font-weight="600" fill="var(--ink)">{escape(title)}'
        f"</text>\n{drawn}</svg>\n"
    )


def _row(dot: Dot, y: float, row: int, width: int, x: Callable[[float], str], phone: bool) -> str:
    line, base = (y + row - 8, y + 13) if phone else (y + row / 2, y + row / 2 + 4.5)
    chosen = ' class="chosen"' if dot.mark == RECOMMENDED else ""
    parts = [f"<g{chosen}><title>{escape(_words(dot))}</title>"]
    if chosen:
        parts.append(
            f'<rect class="band" x="0" y="{y}" width="{width}" height="{row - 1}" rx="6"/>'
        )
    mark = f' <tspan class="mark">{escape(dot.mark)}</tspan>' if dot.mark else ""
    parts.append(f'<text x="6" y="{base}">{escape(dot.name)}{mark}</text>')
    number = dot.value
    if number.value is None:
        parts.append(f'<text class="quiet" x="{width - 6}" y="{base}" text-anchor="end">–</text>')
        return "".join([*parts, "</g>"])
    lift = "" if dot.lift is None else f" {'+' if dot.lift >= 0 else ''}{percent(dot.lift)}"
    parts.append(
        f'<text x="{width - 6}" y="{base}" text-anchor="end">{amount(number.value)}'
        f'<tspan class="quiet">{lift}</tspan></text>'
    )
    if number.low is not None and number.high is not None:
        parts.append(f'<path class="reach" d="M{x(number.low)} {line}H{x(number.high)}"/>')
    parts.append(f'<circle cx="{x(number.value)}" cy="{line}" r="{6 if chosen else 4.5}"/></g>')
    return "".join(parts)


def _axis(answer: Answer) -> tuple[float, float, list[float]]:
    """Both ends, and round numbers between them."""
    numbers = [dot.value for dot in answer.dots]
    known = [
        end
        for each in (*((n.value, n.low, n.high) for n in numbers), (answer.reference_value,))
        for end in each
        if end is not None
    ]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low == high:
        low, high = low - 1, high + 1
    margin = 0.04 * (high - low)
    low, high = (max(low - margin, 0.0) if low >= 0 else low - margin), high + margin
    rough = (high - low) / 5
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough)
    ticks = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return low, high, ticks


def _words(dot: Dot) -> str:
    """A dot for who can't see it."""
    number = dot.value
    if number.value is None:
        return f"{dot.name}: unknown"
    ends = (
        ""
        if number.low is None or number.high is None
        else f", 95 % interval {amount(number.low)} to {amount(number.high)}"
    )
    return f"{dot.name}: {amount(number.value)}{ends}{', ' + dot.mark if dot.mark else ''}"


def _described(answer: Answer) -> str:
    reference = (
        ""
        if answer.reference_value is None
        else f" {answer.reference}: {amount(answer.reference_value)}."
    )
    dots = "; ".join(map(_words, answer.dots))
    return f"{answer.unit}.{reference} {dots}."
