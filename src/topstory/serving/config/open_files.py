"""The limit of open files: every connection needs one."""

from __future__ import annotations

import resource

from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config

OTHER_OPEN_FILES = 264  # the journal, the log, sockets, mapped memory, libraries; 64 reserved


def needed(config: Config) -> int:
    """How many open files a process may need. Raises if the hard limit is lower."""
    count = config.limits.connections + OTHER_OPEN_FILES
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and count > limit:
        raise BadConfig(
            f"limits.connections: {config.limits.connections} connections need {count} open files, "
            f"but the system allows {limit} per process. Raise that limit (ulimit -Hn), or lower "
            "limits.connections"
        )
    return count


def allow(config: Config) -> None:
    """Raise the soft limit as far as needed, for this process and those it starts."""
    count = needed(config)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
