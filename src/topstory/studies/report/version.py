"""Which topstory this is."""

from importlib.metadata import version


def made_by() -> str:
    """As recorded in a study's folder.

    >>> made_by().partition(" ")[0]
    'topstory'
    """
    return f"topstory {version('topstory')}"
