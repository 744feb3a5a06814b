"""Motifs of politics and sports: places where people meet."""

from __future__ import annotations

import math
from random import Random

from topstory.serving.demo.shapes import HEIGHT, WIDTH, Shades, circle, hills, line, path, rect, sun


def parliament(random: Random, shades: Shades, accent: str) -> list[str]:
    """A domed building with columns, and a flag."""
    far, mid, near, ink = shades
    x, wide = 600 + random.randint(-140, 140), random.choice((560, 640, 720))
    left, columns = x - wide / 2, random.choice((6, 8))
    parts = [sun(random, accent), hills(random, 480, 120, far)]
    parts += [
        rect(x - 110, 250, 220, 120, mid),
        path(f"M{x - 120} 252a120 120 0 0 1 240 0Z", mid),
    ]
    parts += [rect(x - 8, 84, 16, 60, near), path(f"M{x + 8} 84l74 16l-74 20Z", accent)]
    parts.append(path(f"M{left - 20} 400L{x} 310L{left + wide + 20} 400Z", near))
    parts.append(rect(left, 400, wide, 26, mid))
    for n in range(columns):
        parts.append(rect(left + 24 + n * (wide - 78) / (columns - 1), 426, 30, 140, near))
    for step in range(3):
        grow = 20 + 26 * step
        parts.append(
            rect(left - grow, 566 + 22 * step, wide + 2 * grow, 22, (mid, near, ink)[step])
        )
    return [*parts, rect(0, 630, WIDTH, 45, ink)]


def bridge(random: Random, shades: Shades, accent: str) -> list[str]:
    """A bridge over a river."""
    far, mid, near, ink = shades
    parts = [sun(random, accent), hills(random, 420, 150, far), hills(random, 480, 90, mid)]
    parts.append(rect(0, 500, WIDTH, 175, near))
    for x in (300 + random.randint(-50, 50), 860 + random.randint(-50, 50)):
        parts.append(rect(x, 190, 26, 380, ink))
        for reach in range(60, 301, 60):
            parts += [
                line(
                    f"M{x + 13} 200L{x + 13 - reach} 440M{x + 13} 200L{x + 13 + reach} 440", ink, 4
                )
            ]
    parts.append(rect(0, 436, WIDTH, 22, ink))
    for _ in range(26):
        x, y = random.randint(0, WIDTH), random.randint(520, 660)
        parts.append(rect(x, y, random.randint(30, 120), 4, accent, 'opacity="0.45" rx="2"'))
    return parts


def town(random: Random, shades: Shades, accent: str) -> list[str]:
    """Roofs, lit windows and a clock tower."""
    far, mid, near, ink = shades
    parts = [sun(random, accent), hills(random, 430, 160, far)]
    for layer, (shade, base) in enumerate(((mid, 520), (near, 600))):
        x = -20.0
        while x < WIDTH:
            w, h = random.randint(80, 130), random.randint(90, 190)
            parts += [rect(x, base - h, w, HEIGHT, shade)]
            parts += [
                path(
                    f"M{x - 8:.0f} {base - h}L{x + w / 2:.0f} {base - h - 60}L{x + w + 8:.0f}"
                    f" {base - h}Z",
                    shade,
                )
            ]
            for row in range(2):
                for column in range(2):
                    if random.random() < 0.6:
                        parts.append(
                            rect(
                                x + 18 + column * 36,
                                base - h + 26 + row * 48,
                                16,
                                24,
                                accent,
                                f'opacity="{0.55 + 0.4 * layer}"',
                            )
                        )
            x += w + random.randint(0, 14)
    tower = random.randint(300, 850)
    parts += [
        rect(tower, 210, 84, 460, ink),
        path(f"M{tower - 12} 212L{tower + 42} 90L{tower + 96} 212Z", ink),
    ]
    parts += [
        circle(tower + 42, 270, 30, accent),
        line(f"M{tower + 42} 270v-20M{tower + 42} 270l13 9", ink, 4),
    ]
    return [*parts, rect(0, 640, WIDTH, 35, ink)]


def pitch(random: Random, shades: Shades, accent: str) -> list[str]:
    """A goal and a ball."""
    far, mid, near, ink = shades
    parts = [sun(random, accent), hills(random, 330, 140, far), rect(0, 330, WIDTH, 345, mid)]
    for n in range(0, 12, 2):
        a, b = 600 + (n - 6) * 130, 600 + (n - 5) * 130
        parts.append(
            path(
                f"M{600 + (a - 600) * 0.4:.0f} 330L{600 + (b - 600) * 0.4:.0f} 330"
                f"L{600 + (b - 600) * 1.7:.0f} 675L{600 + (a - 600) * 1.7:.0f} 675Z",
                near,
                'opacity="0.55"',
            )
        )
    white = 'stroke-opacity="0.85"'
    parts += [
        line("M360 372H840L980 520H220Z", "#fff", 5, white),
        line("M470 372H730L770 428H430Z", "#fff", 5, white),
    ]
    parts += [
        line("M500 372V262H700V372", "#fff", 8, ""),
        line(
            "M520 372V280M560 372V266M600 372V264M640 372V266M680 372V280M500 300H700M500 335H700",
            "#fff",
            2,
            'stroke-opacity="0.5"',
        ),
    ]
    x, y, r = random.randint(300, 900), random.randint(520, 590), random.randint(44, 58)
    parts += [
        f'<ellipse cx="{x}" cy="{y + r}" rx="{r}" ry="10" fill="{ink}" opacity="0.4"/>',
        circle(x, y, r, "#fdfdf8"),
    ]
    for turn in range(5):
        angle = math.radians(72 * turn + random.randint(0, 12))
        parts.append(
            circle(x + r * 0.62 * math.cos(angle), y + r * 0.62 * math.sin(angle), r * 0.2, ink)
        )
    return [*parts, circle(x, y, r * 0.24, ink)]


def track(random: Random, shades: Shades, accent: str) -> list[str]:
    """Three runners."""
    far, mid, near, ink = shades
    parts = [
        sun(random, accent),
        hills(random, 300, 110, far),
        rect(0, 290, WIDTH, 60, mid),
        rect(0, 340, WIDTH, 335, near),
    ]
    for n in range(7):
        y = 356 + 9 * n * (n + 3) / 2
        parts.append(
            line(
                f"M0 {y + 40:.0f}Q600 {y - 26:.0f} {WIDTH} {y + 60:.0f}",
                "#fff",
                3 + n,
                'stroke-opacity="0.7"',
            )
        )
    lead = random.randint(520, 700)
    for n, shade in enumerate((ink, accent, ink)):
        x, y, s = lead - 190 * n, 400 + 46 * n, 1.0 + 0.25 * n
        parts.append(
            f'<g transform="translate({x} {y}) scale({s})" stroke="{shade}" '
            'stroke-width="17" stroke-linecap="round" stroke-linejoin="round" '
            'fill="none"><path d="M0-86L-8-36L26-4L14 40M-8-36L-34-2L-66 '
            '10M0-80L32-62L50-86M0-80L-32-66L-42-40"/><circle cx="12" cy="-112" r="10" '
            f'fill="{shade}"/></g>'
        )
    return parts


def road(random: Random, shades: Shades, accent: str) -> list[str]:
    """A road over hills, and a bicycle."""
    far, mid, near, ink = shades
    parts = [
        sun(random, accent),
        hills(random, 380, 190, far),
        hills(random, 450, 120, mid),
        hills(random, 520, 70, near),
    ]
    parts.append(
        path(
            "M540 675C640 600 420 560 560 500C660 460 600 430 640 400L656 400C640 440 "
            "720 470 640 512C520 574 860 600 840 675Z",
            ink,
        )
    )
    parts.append(
        line(
            "M690 675C740 600 480 560 600 505C690 462 622 432 648 402",
            accent,
            5,
            'stroke-dasharray="26 22"',
        )
    )
    x, y = random.randint(230, 360), 540
    parts.append(
        f'<g transform="translate({x} {y})" stroke="{accent}" stroke-width="9" '
        'fill="none" stroke-linecap="round" stroke-linejoin="round"><circle cx="-70" '
        'cy="50" r="46"/><circle cx="80" cy="50" r="46"/><path d="M-70 50L-20-20H50L80 '
        '50M-20-20L10 50L50-20M-70 50H10M50-20L44-48H66M-30-34H-2"/></g>'
    )
    return parts
