"""Open files: every connection is one, and a system allows a process only so many."""

from __future__ import annotations

import resource

from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config

OTHERS = 200  # beside connections: the journal, the log, sockets, mapped memory, libraries


def needed(config: Config) -> int:
    """How many a process may need; that the hard limit allows it is checked."""
    found = config.limits.connections + OTHERS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and found > most:
        raise BadConfig(
            f"limits.connections: {config.limits.connections} of them need {found} open files, but "
            f"this system allows a process {most}: raise that (ulimit -Hn), or lower this"
        )
    return found


def allow(config: Config) -> None:
    """Raise the soft limit as far as it is needed, for this process and those it starts."""
    found = needed(config)
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < found:
        resource.setrlimit(resource.RLIMIT_NOFILE, (found, most))
