"""The shapes that pictures are made of, as SVG."""

from __future__ import annotations

from itertools import pairwise
from random import Random

WIDTH, HEIGHT = 1200, 675

Shades = tuple[str, str, str, str]  # from far to near


def circle(x: float, y: float, r: float, fill: str, more: str = "") -> str:
    """A circle."""
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{r:.0f}" fill="{fill}" {more}/>'


def rect(x: float, y: float, w: float, h: float, fill: str, more: str = "") -> str:
    """A rectangle."""
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" fill="{fill}" {more}/>'


def path(d: str, fill: str, more: str = "") -> str:
    """A filled path."""
    return f'<path d="{d}" fill="{fill}" {more}/>'


def line(d: str, stroke: str, width: float, more: str = "") -> str:
    """A path that is only drawn."""
    return path(d, "none", f'stroke="{stroke}" stroke-width="{width:.0f}" {more}')


def hills(random: Random, base: float, rise: float, fill: str) -> str:
    """A soft ridge across the picture."""
    points = [(x, base - rise * random.random()) for x in range(-200, WIDTH + 401, 200)]
    d = f"M-200 {HEIGHT}L{points[0][0]} {points[0][1]:.0f}"
    for (x, y), (to, end) in pairwise(points):
        d += f"C{x + 100} {y:.0f} {to - 100} {end:.0f} {to} {end:.0f}"
    return path(f"{d}V{HEIGHT}Z", fill)


def sun(random: Random, accent: str) -> str:
    """A sun with its glow, somewhere in the sky."""
    x, y, r = random.randint(250, 950), random.randint(150, 260), random.randint(60, 110)
    glow = circle(x, y, r * 1.7, accent, 'opacity="0.18"')
    return glow + circle(x, y, r, accent, 'opacity="0.95"')
