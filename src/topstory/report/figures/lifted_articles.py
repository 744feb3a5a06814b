"""Figure 3: base against lifted CTR of the articles that each policy chose most."""

from __future__ import annotations

from html import escape

from topstory.report.figures.figure import INK, Figure, Panel, Spec
from topstory.report.records import Report, Scatter
from topstory.report.style import explorers, style_of
from topstory.report.wording import percent


def lifted(report: Report) -> Figure | None:
    """Figure 3."""
    panels = []
    for title in dict.fromkeys(scatter.panel for scatter in report.scatters):
        clouds = [scatter for scatter in report.scatters if scatter.panel == title]
        articles = [article for cloud in clouds for article in cloud.articles]
        if not articles:
            continue
        # Axes are scaled separately: a few very high lifts must not squeeze the rest into a corner.
        right = max(article.base for article in articles) * 1.05
        top = max(right, max(article.lifted for article in articles) * 1.05)
        diagonal = {
            "type": "scatter",
            "mode": "lines",
            "x": [0, right],
            "y": [0, right],
            "line": {"color": INK, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }
        axes = {
            "xaxis": {"title": {"text": "base CTR"}, "range": [0, right]},
            "yaxis": {"title": {"text": "lifted CTR"}, "range": [0, top]},
        }
        lifts = ", ".join(
            f"{cloud.name} {'+' if (cloud.mean_lift or 0) >= 0 else ''}{percent(cloud.mean_lift)}"
            for cloud in clouds
        )
        panels.append(
            Panel(
                f"{title}: {lifts}",
                {"data": [diagonal, *(_cloud(cloud) for cloud in clouds)], "layout": axes},
            )
        )
    if not panels:
        return None
    return Figure(
        "figure3",
        "Which articles gain?",
        "The 50 articles that each policy chose most often, and at least 100 times, with all data: "
        "their relative CTR for a random user, and for the users that the policy chose them for in "
        "the learning bucket. Above the dotted line the policy found the right readers; the titles "
        f"give the average lift. {_markers(report)}.",
        tuple(panels),
        paper="Figure 3. Base and lifted CTR",
    )


def _markers(report: Report) -> str:
    """The marker of each explorer, in words."""
    drawn = explorers(scatter.policy for scatter in report.scatters)
    return ". ".join(f"{each.marker_name}: {each.title}" for each in drawn)


def _cloud(cloud: Scatter) -> Spec:
    style = style_of(cloud.policy)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": cloud.name,
        "x": [article.base for article in cloud.articles],
        "y": [article.lifted for article in cloud.articles],
        "marker": {
            "symbol": style.marker,
            "size": 8,
            "color": style.marker_colour,
            "line": {"width": 1.6, "color": style.marker_colour},
        },
        "text": [escape(f"{a.article} ({a.trials:,} trials)") for a in cloud.articles],
        "hovertemplate": f"{cloud.name}<br>%{{text}}<br>base %{{x:.2f}}, lifted %{{y:.2f}}"
        "<extra></extra>",
    }
