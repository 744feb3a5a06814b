"""Motifs of business: towers, ships and stalls."""

from __future__ import annotations

from random import Random

from topstory.serving.demo.shapes import HEIGHT, WIDTH, Shades, circle, hills, line, path, rect, sun


def skyline(random: Random, shades: Shades, accent: str) -> list[str]:
    """Towers with lit windows."""
    parts = [sun(random, accent)]
    for layer, shade in enumerate(shades[:3]):
        x, base = -30.0, 300 - 20 * layer
        while x < WIDTH:
            w, h = random.randint(60, 120), random.randint(base - 130, base + 130)
            parts.append(rect(x, HEIGHT - h - 60 + 40 * layer, w, HEIGHT, shade))
            if layer == 2:
                for row in range(4, h, 34):
                    for column in range(14, w - 20, 26):
                        if random.random() < 0.42:
                            parts.append(
                                rect(
                                    x + column,
                                    HEIGHT - h + 20 + row,
                                    12,
                                    16,
                                    accent,
                                    'opacity="0.85"',
                                )
                            )
            x += w + random.randint(2, 20)
    return [*parts, rect(0, 640, WIDTH, 35, shades[3])]


def harbour(random: Random, shades: Shades, accent: str) -> list[str]:
    """A ship with containers."""
    far, mid, near, ink = shades
    parts = [sun(random, accent), hills(random, 420, 110, far), rect(0, 470, WIDTH, 205, mid)]
    x = random.randint(180, 340)
    colours = (near, accent, ink, far)
    for column in range(9):
        for row in range(random.randint(1, 4)):
            parts.append(rect(x + 60 + column * 66, 430 - row * 44, 62, 40, random.choice(colours)))
    parts += [
        rect(x + 690, 330, 70, 150, "#f6f3ec"),
        rect(x + 704, 350, 42, 18, ink),
        rect(x + 712, 280, 26, 50, accent),
    ]
    parts.append(path(f"M{x - 20} 474H{x + 800}L{x + 740} 580H{x + 60}Z", ink))
    for y in range(590, 680, 26):
        parts.append(line(f"M0 {y}" + "q30 -14 60 0t60 0" * 10, near, 5, 'stroke-opacity="0.7"'))
    return parts


def market(random: Random, shades: Shades, accent: str) -> list[str]:
    """Market stalls."""
    far, mid, near, ink = shades
    parts = [sun(random, accent), hills(random, 400, 120, far), rect(0, 520, WIDTH, 155, mid)]
    for n in range(4):
        x, w = 60 + 285 * n, 240
        parts += [rect(x + 14, 330, 10, 220, ink), rect(x + w - 24, 330, 10, 220, ink)]
        for stripe in range(6):
            shade = (accent, "#fbf7ef")[stripe % 2] if n % 2 else (near, "#fbf7ef")[stripe % 2]
            parts.append(path(f"M{x + stripe * 40} 330h40v34a20 20 0 0 1 -40 0Z", shade))
        parts += [
            path(f"M{x} 332L{x + 26} 270H{x + w - 26}L{x + w} 332Z", ink),
            rect(x, 500, w, 70, near),
        ]
        for k in range(7):
            parts.append(
                circle(x + 24 + k * 32, 488 - 14 * (k % 2), 18, random.choice((accent, far, ink)))
            )
    return [*parts, rect(0, 610, WIDTH, 65, ink)]
