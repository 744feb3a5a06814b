"""A primary and its replica: two real servers, of which either can crash, fill up or take over."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg
from tests.serving.postgres import package
from tests.serving.processes import eventually

USER = "pgserver" if os.geteuid() == 0 else None  # PostgreSQL does not run as root
SETTINGS = """
listen_addresses = ''
shared_buffers = 32MB
min_wal_size = 32MB
wal_level = replica
hot_standby = on
wal_receiver_timeout = 5s
wal_retrieve_retry_interval = 200ms
"""


class Server:
    """One of the two, in a folder of its own."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.data, self._programs = folder, folder / "data", programs
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        folder.mkdir()
        folder.chmod(0o755)
        if USER is not None:
            shutil.chown(folder, USER)

    def make(self) -> None:
        self._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", self.data)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)

    def copy(self, primary: Server) -> None:
        """Be a replica of it, from now on."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = ("-h", primary.folder, "-U", "postgres")
        self._run("pg_basebackup", *source, "-R", "-X", "stream", "-c", "fast", "-D", self.data)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # of one that was killed
        log, options = self.folder / "log", f"-k {self.folder}"
        self._run("pg_ctl", "-w", "-t", "60", "-D", self.data, "-l", log, "-o", options, "start")

    def control(self, *words: str) -> None:
        self._run("pg_ctl", "-w", "-t", "60", "-D", self.data, *words)

    def processes(self) -> list[psutil.Process]:
        """All of its processes, the main one first; none if it is down."""
        with suppress(OSError, psutil.NoSuchProcess, ValueError):
            main = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            return [main, *main.children()]
        return []

    def kill(self) -> None:
        """As if the machine had lost its power."""
        found = self.processes()
        for each in found:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(found, 10)

    def _run(self, command: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(self._programs / command), *map(str, arguments)],
            user=USER,
            cwd="/",
            stdin=subprocess.DEVNULL,
            # A server inherits these: reading from a pipe would wait for its end.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command} {' '.join(map(str, arguments))} failed")

    def do(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for each in statements:
                connection.execute(each.encode())

    def ask(self, query: str) -> Any:
        """The only number or word of the answer; None if there is no answer."""
        with suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
            return None if row is None else row[0]


class Databases:
    """A primary, and a replica that has every commit before that is acknowledged."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: sockets are in there
        self._folder.chmod(0o755)
        utils = package().utils
        self._programs = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
        if USER is not None:
            utils.ensure_user_exists(USER)
            utils.ensure_prefix_permissions(self._programs)
        self.primary, self.replica = (
            Server(self._folder / name, self._programs) for name in ("a", "b")
        )

    @property
    def url(self) -> str:
        """Of the primary."""
        return self.primary.url

    def __enter__(self) -> Self:
        try:
            self.primary.make()
            self.primary.start()
            self.add_replica()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.replica, self.primary):
            each.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add_replica(self) -> None:
        """A new one; from when it follows, no commit is acknowledged without it."""
        self.replica.kill()
        self.replica.copy(self.primary)
        self.replica.start()
        self._follow()

    def _follow(self) -> None:
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        eventually(lambda: self.primary.ask(query) == 1, 60)
        self.primary.do("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.do("SELECT pg_reload_conf()")
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: self.primary.ask(query) == 1, 60)

    def fail_over(self, redirect: Callable[[str], None]) -> None:
        """The primary is gone for good; clients are sent to the replica, which is promoted."""
        self.primary.kill()
        self.primary, self.replica = self.replica, self.primary
        redirect(self.primary.url)  # for a moment it is read-only
        self.primary.control("promote")
        # Now it is alone: waiting for a replica would be for ever.
        self.primary.do("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        self.add_replica()

    def fill_disk(self, until: Callable[[], None]) -> None:
        """No file of the primary can grow or be written until that; then it is started anew."""
        pids = [each.pid for each in self.primary.processes()]

        def limit() -> None:  # as the servers' user: another one may not
            for pid in pids:
                with suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))

        nothing = [self._programs / "pg_config", "--version"]
        subprocess.run(nothing, user=USER, stdout=subprocess.DEVNULL, preexec_fn=limit, check=True)
        until()
        self.primary.kill()  # what is left of it
        self.primary.start()
        self._follow()
