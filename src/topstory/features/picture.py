"""The histogram of largest memberships as a picture: the paper's Figure 5, for your users."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 320, 60, 48, 40


def histogram_svg(counts: Sequence[int], title: str) -> str:
    """An SVG image of users by largest membership, in equal bins from 0 to 1.

    >>> picture = histogram_svg([0, 1, 3, 2], "largest membership")
    >>> picture.startswith("<svg"), picture.count("<rect")
    (True, 5)
    """
    total, most = max(1, sum(counts)), max(1, *counts)
    across = (WIDTH - LEFT - 20) / len(counts)
    high = HEIGHT - BOTTOM - TOP
    base = HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" fill="#333">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="15">{title}</text>',
    ]
    for i, count in enumerate(counts):
        tall = high * count / most
        parts.append(
            f'<rect x="{LEFT + i * across + 1:.1f}" y="{base - tall:.1f}" '
            f'width="{across - 2:.1f}" height="{tall:.1f}" fill="#3f51b5">'
            f"<title>{count / total:.1%}</title></rect>"
        )
    for tick in range(6):
        x = LEFT + tick / 5 * across * len(counts)
        parts.append(f'<text x="{x:.1f}" y="{base + 18}" text-anchor="middle">{tick / 5:g}</text>')
    for share in (0.0, most / total / 2, most / total):
        y = base - high * share * total / most
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        "largest membership of a user</text></svg>"
    )
    return "\n".join(parts) + "\n"
