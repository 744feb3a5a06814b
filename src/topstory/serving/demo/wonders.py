"""Motifs of science and arts."""

from __future__ import annotations

import math
from random import Random

from topstory.serving.demo.shapes import HEIGHT, WIDTH, Shades, circle, hills, line, path, rect, sun


def planet(random: Random, shades: Shades, accent: str) -> list[str]:
    """A planet with a ring, and stars."""
    far, mid, near, ink = shades
    parts = [
        circle(
            random.randint(0, WIDTH),
            random.randint(0, 480),
            random.choice((1, 2, 3)),
            "#fff",
            f'opacity="{random.uniform(0.3, 1):.2f}"',
        )
        for _ in range(110)
    ]
    x, y, r = random.randint(430, 780), random.randint(240, 310), random.randint(130, 180)
    parts += [circle(x, y, r * 1.35, accent, 'opacity="0.12"'), circle(x, y, r, far)]
    parts.append(
        f'<clipPath id="c"><circle cx="{x}" cy="{y}" r="{r}"/></clipPath><g clip-path="url(#c)">'
    )
    for n in range(6):
        parts.append(
            rect(
                x - r,
                y - r + n * r / 3,
                2 * r,
                random.randint(14, 44),
                random.choice((mid, near, accent)),
                'opacity="0.55"',
            )
        )
    parts += [circle(x + r * 0.5, y + r * 0.35, r, ink, 'opacity="0.35"'), "</g>"]
    parts.append(
        f'<ellipse cx="{x}" cy="{y}" rx="{r * 1.8:.0f}" ry="{r * 0.36:.0f}" fill="none" '
        f'stroke="{accent}" stroke-width="9" opacity="0.8" '
        f'transform="rotate({random.randint(-24, 24)} {x} {y})"/>'
    )
    parts += [hills(random, 590, 130, near), hills(random, 640, 70, ink)]
    return parts


def molecule(random: Random, shades: Shades, accent: str) -> list[str]:
    """Atoms and bonds."""
    far, mid, near, ink = shades
    points = [
        (
            150 + 180 * (n % 6) + 90 * (n // 6 % 2) + random.randint(-30, 30),
            130 + 135 * (n // 6) + random.randint(-26, 26),
        )
        for n in range(24)
    ]
    parts = [
        circle(
            random.randint(100, 1100),
            random.randint(80, 600),
            random.randint(90, 190),
            shade,
            'opacity="0.25"',
        )
        for shade in (far, mid, near, far)
    ]
    for a, b in ((a, b) for i, a in enumerate(points) for b in points[i + 1 :]):
        if math.dist(a, b) < 200 and random.random() < 0.75:
            parts.append(line(f"M{a[0]} {a[1]}L{b[0]} {b[1]}", far, 7, 'stroke-opacity="0.9"'))
    for x, y in points:
        shade = random.choice((accent, mid, near, accent, "#ffffff"))
        r = random.randint(16, 40)
        parts += [
            circle(x, y, r, shade),
            circle(x - r * 0.3, y - r * 0.3, r * 0.25, "#fff", 'opacity="0.55"'),
        ]
    return [*parts, rect(0, 0, 0, 0, ink)]


def sea(random: Random, shades: Shades, accent: str) -> list[str]:
    """Waves, and a whale."""
    parts = [sun(random, accent)]
    for n, shade in enumerate((*shades, shades[3])):
        y = 310 + 78 * n
        swing = random.randint(30, 56)
        d = f"M-60 {HEIGHT}V{y}" + f"q75 {-swing} 150 0t150 0" * 5 + f"V{HEIGHT}Z"
        parts.append(path(d, shade))
        if n == 1:
            x = random.randint(360, 800)
            parts.append(
                path(
                    f"M{x} 398c30-96 190-110 250-6c34 6 56-14 66-46c20 34 16 74-16 "
                    "98c-60 44-300 40-300-46Z",
                    accent,
                    'opacity="0.9"',
                )
            )
            parts.append(circle(x + 58, 384, 8, shades[3]))
            parts.append(
                line(
                    f"M{x + 110} 300c-6-40-34-40-40-58M{x + 110} 300c6-40 34-40 40-58",
                    "#ffffff",
                    8,
                    'stroke-linecap="round" stroke-opacity="0.8"',
                )
            )
    return parts


def stage(random: Random, shades: Shades, accent: str) -> list[str]:
    """A curtain, a spotlight and somebody in it."""
    far, mid, near, ink = shades
    x = 600 + random.randint(-160, 160)
    parts = [
        rect(0, 0, WIDTH, HEIGHT, ink, 'opacity="0.55"'),
        path(f"M{x - 40} 0L{x + 40} 0L{x + 250} 560H{x - 250}Z", accent, 'opacity="0.30"'),
    ]
    parts += [f'<ellipse cx="{x}" cy="562" rx="250" ry="40" fill="{accent}" opacity="0.75"/>']
    parts.append(
        f'<g transform="translate({x} 470)" fill="{ink}"><circle cx="0" cy="-92" '
        'r="24"/><path d="M-34-60Q0-80 34-60L52 90H-52Z"/><path '
        f'd="M-30-50L-104-120M30-50L96-132" stroke="{ink}" stroke-width="16" '
        'stroke-linecap="round"/></g>'
    )
    for side in (0, 1):
        for n in range(5):
            edge = n * 62 if side == 0 else WIDTH - n * 62
            inner = edge + (66 if side == 0 else -66)
            parts.append(
                path(
                    f"M{edge} 0H{inner}Q{inner - 14 + 28 * side} 330 {inner} 610H{edge}Z",
                    (mid, near)[n % 2],
                )
            )
    parts.append(path("M0 0H1200V84" + "q-50 62 -100 0t-100 0" * 6 + "Z", far))
    return [*parts, rect(0, 610, WIDTH, 65, near)]


def collage(random: Random, shades: Shades, accent: str) -> list[str]:
    """Paper shapes."""
    parts = []
    for n in range(15):
        x, y, s = random.randint(40, 1160), random.randint(30, 640), random.randint(60, 200)
        fill, turn = random.choice((*shades, accent, "#fdf7ec")), random.randint(0, 359)
        form = n % 4
        if form == 0:
            parts.append(circle(x, y, s * 0.7, fill))
        elif form == 1:
            parts.append(
                rect(
                    x,
                    y,
                    s * 1.6,
                    s * 0.5,
                    fill,
                    f'rx="{s * 0.25:.0f}" transform="rotate({turn} {x} {y})"',
                )
            )
        elif form == 2:
            parts.append(
                path(
                    f"M{x} {y}a{s} {s} 0 0 1 {s} {s}h{-s}Z",
                    fill,
                    f'transform="rotate({turn} {x} {y})"',
                )
            )
        else:
            wave = "q20 -40 40 0t40 0" * 3
            parts.append(
                line(
                    f"M{x} {y}{wave}",
                    fill,
                    18,
                    f'stroke-linecap="round" transform="rotate({turn} {x} {y})"',
                )
            )
    return parts


def keys(random: Random, shades: Shades, accent: str) -> list[str]:
    """Notes above the keys of a piano."""
    far, mid, near, ink = shades
    parts = [sun(random, accent)]
    for n in range(5):
        y = 120 + 40 * n
        parts.append(line(f"M0 {y + 40}C300 {y - 60} 800 {y + 150} 1200 {y}", mid, 5))
    for n in range(9):
        x = 100 + 125 * n + random.randint(-20, 20)
        y = 190 + random.randint(-50, 90)
        shade = random.choice((near, ink, accent, far))
        parts.append(
            f'<g transform="translate({x} {y}) rotate(-14)"><ellipse rx="27" ry="20" '
            f'fill="{shade}"/><rect x="19" y="-108" width="8" height="108" '
            f'fill="{shade}"/></g>'
        )
    for n in range(16):
        parts.append(rect(n * 75, 450, 73, 240, "#fdf8ee"))
    for n in range(16):
        if n % 7 not in (2, 6):
            parts.append(rect(n * 75 + 52, 450, 44, 140, ink))
    return [*parts, rect(0, 436, WIDTH, 18, near)]
