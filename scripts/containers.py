#!/usr/bin/env python3
"""Run a command with two real container engines, for the tests: Debian's dockerd, and podman with runc.

    python3 scripts/containers.py cargo test --locked --test it container::

The packages go into `.tools/engines`, unpacked and not installed. The daemon, the images and the
containers live in a directory of this run, which is removed at the end. The command gets
CO_TEST_ENGINES, a directory with `docker/docker` and `podman/podman`. If the packages cannot be had, it gets
CO_TEST_ENGINES_MISSING with the reason, and the tests fail with it. If this machine cannot run an engine, such as for
an ordinary user, it gets CO_TEST_NO_CONTAINERS=1, and the last line says that the tests were left out, and why.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from tools import ROOT, ToolError, Tools, run, say

PACKAGES = (
    "docker.io containerd runc tini podman conmon busybox-static libgpgme11 libassuan0 libsubid4 "
    "libdevmapper1.02.1 golang-github-containers-common golang-github-containers-image"
).split()
# What the image with bash has, from this machine.
PROGRAMS = (
    "bash sh cat chmod cp date dd env head id ls mkdir mv nohup printf rm seq setsid sleep sort stat "
    "tail timeout touch tr true uname wc grep sed ps"
).split()
APPLETS = "sh ls cat sleep id ps timeout head dd mkdir env touch nohup setsid grep wc rm seq stat".split()
# The ordinary user of the tests (tests/it/support/runner.rs).
SOMEBODY = 54321
# How long the daemon may take to answer.
PATIENCE = 60


def packages(home: pathlib.Path) -> pathlib.Path:
    """Return the directory of the unpacked packages, which apt verifies."""
    tools = Tools(home)
    place = home / "engines"
    with tools.locked():
        if tools.is_stamped("engines", " ".join(PACKAGES)) and place.exists():
            return place
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise ToolError("the engines come from Debian's packages, and there is no apt-get here")
        say(f"unpacking dockerd and podman into {place}")
        shutil.rmtree(place, ignore_errors=True)
        (place / "deb").mkdir(parents=True)
        download = ["apt-get", "--quiet", "download", *PACKAGES]
        problem = "the packages of the engines could not be downloaded: connect to Debian's mirror"
        try:
            run(download, problem, cwd=place / "deb")
        except ToolError:
            run(["apt-get", "--quiet", "update"], problem)
            run(download, problem, cwd=place / "deb")
        for package in sorted((place / "deb").glob("*.deb")):
            run(["dpkg", "-x", package, place], f"{package.name} could not be unpacked")
        shutil.rmtree(place / "deb")
        tools.stamp("engines", " ".join(PACKAGES))
    return place


class Engines:
    """The engines of one run."""

    def __init__(self, place: pathlib.Path, home: pathlib.Path) -> None:
        self.place = place
        self.home = home
        self.daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon and give both engines the images."""
        self.write_podman()
        self.write_docker()
        images = {"co-busybox:test": self.busybox(), "co-bash:test": self.bash()}
        self.wait()
        for name, root in images.items():
            archive = self.home / "image.tar"
            run(["tar", "-C", root, "-cf", archive, "."], f"{name} could not be packed")
            for engine in ("docker", "podman"):
                program = self.home / engine / engine
                run([program, "import", archive, name], f"{engine} did not take the image {name}")
            archive.unlink()

    def write_podman(self) -> None:
        """Write podman's wrapper, with a configuration for machines without cgroup v2."""
        home, place = self.home, self.place
        config = home / "podman-home" / ".config" / "containers"
        config.mkdir(parents=True)
        shutil.copy(place / "etc/containers/policy.json", config / "policy.json")
        containers = f"""
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
seccomp_profile = "{place}/usr/share/containers/seccomp.json"
[engine]
runtime = "runc"
conmon_path = ["{place}/usr/bin/conmon"]
init_path = "{place}/usr/bin/tini-static"
events_logger = "file"
cgroup_manager = "cgroupfs"
[engine.runtimes]
runc = ["{place}/usr/sbin/runc"]
"""
        (home / "containers.conf").write_text(containers)
        storage = f'[storage]\ndriver = "overlay"\nrunroot = "{home}/run"\ngraphroot = "{home}/graph"\n'
        (home / "storage.conf").write_text(storage)
        machine = f"{platform.machine()}-linux-gnu"
        libraries = f"{place}/usr/lib/{machine}:{place}/lib/{machine}"
        self.write_wrapper(
            "podman",
            f"""export LD_LIBRARY_PATH={libraries} CONTAINERS_CONF={home}/containers.conf
export CONTAINERS_STORAGE_CONF={home}/storage.conf HOME={home}/podman-home
exec {place}/usr/bin/podman "$@"
""",
        )

    def write_docker(self) -> None:
        """Write docker's wrapper and start its daemon, which leaves the machine's network alone."""
        home, place = self.home, self.place
        self.write_wrapper(
            "docker",
            f'export DOCKER_HOST=unix://{home}/docker.sock\nexec {home}/docker/client "$@"\n',
        )
        # A copy, because an ordinary user may not reach the other one.
        shutil.copy(place / "usr/bin/docker", home / "docker" / "client")
        (home / "daemon.json").write_text(json.dumps({}))
        path = f"{place}/usr/sbin:{place}/usr/bin:{os.environ.get('PATH', '')}"
        off = ["iptables", "ip6tables", "ip-forward", "ip-masq", "userland-proxy"]
        command = [
            f"{place}/usr/sbin/dockerd",
            *("--config-file", f"{home}/daemon.json", "--data-root", f"{home}/data"),
            *("--exec-root", f"{home}/exec", "--pidfile", f"{home}/docker.pid"),
            *("-H", f"unix://{home}/docker.sock", "--bridge=none", "--storage-driver", "overlay2"),
            *(f"--{name}=false" for name in off),
        ]
        with open(home / "dockerd.log", "wb") as log:
            self.daemon = subprocess.Popen(
                command,
                env=os.environ | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def write_wrapper(self, name: str, text: str) -> None:
        """Write the script that calls an engine."""
        (self.home / name).mkdir()
        file = self.home / name / name
        file.write_text(f"#!/bin/sh\n{text}")
        file.chmod(0o755)

    def wait(self) -> None:
        """Wait until the daemon answers."""
        until = time.monotonic() + PATIENCE
        docker = [self.home / "docker" / "docker", "version"]
        while subprocess.run(docker, capture_output=True).returncode != 0:
            ended = self.daemon is None or self.daemon.poll() is not None
            if ended or time.monotonic() > until:
                lines = (self.home / "dockerd.log").read_text(errors="replace").splitlines()
                raise ToolError(f"dockerd does not start: {lines[-1] if lines else 'no reason'}")
            time.sleep(0.1)
        # For the tests' ordinary user, whose group nobody else has.
        os.chown(self.home / "docker.sock", -1, SOMEBODY)
        self.home.chmod(0o711)

    def busybox(self) -> pathlib.Path:
        """Return a root directory with busybox alone."""
        root = self.root("busybox")
        shutil.copy(self.place / "bin/busybox", root / "bin/busybox")
        for name in APPLETS:
            (root / "bin" / name).symlink_to("busybox")
        return root

    def bash(self) -> pathlib.Path:
        """Return a root directory with bash and coreutils, from this machine's own files."""
        root = self.root("bash")
        for name in PROGRAMS:
            found = shutil.which(name)
            if found is None:
                continue
            shutil.copy(found, root / "bin" / name)
            needs = subprocess.run(["ldd", found], capture_output=True, text=True).stdout
            for word in needs.split():
                if word.startswith("/") and not (root / word[1:]).exists():
                    (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(word, root / word[1:])
        return root

    def root(self, name: str) -> pathlib.Path:
        """Return a new root directory without programs."""
        root = self.home / "roots" / name
        for part in ("bin", "etc", "tmp", "proc", "sys", "dev", "workspace"):
            (root / part).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        (root / "etc/passwd").write_text("user:x:1000:1000::/workspace:/bin/sh\n")
        return root

    def stop(self) -> None:
        """End what was started."""
        podman = self.home / "podman" / "podman"
        if podman.exists():
            for arguments in (["rm", "--all", "--force", "--time", "0"], ["unmount", "--all"]):
                subprocess.run([podman, *arguments], capture_output=True)
        docker = self.home / "docker" / "docker"
        if self.daemon is not None:
            listed = subprocess.run([docker, "ps", "--all", "--quiet"], capture_output=True, text=True)
            subprocess.run([docker, "rm", "--force", *listed.stdout.split()], capture_output=True)
            self.daemon.terminate()
            try:
                self.daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        # Such as that of a container with the network of the machine, or of one that was being removed.
        mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        for mounted in sorted(mounts, reverse=True):
            if mounted.startswith(f"{self.home}/"):
                subprocess.run(["umount", mounted], capture_output=True)


def main(command: list[str]) -> int:
    """Run the command with the engines, and return its exit status."""
    if not command:
        print("usage: containers.py COMMAND...", file=sys.stderr)
        return 2
    environment = dict(os.environ)
    if environment.get("CO_TEST_NO_CONTAINERS") == "1":
        return subprocess.run(command).returncode
    given = os.environ.get("CO_TOOLS_DIR")
    home = pathlib.Path(given).absolute() if given else ROOT / ".tools"
    left_out = None
    # A short path: that of a socket has 108 bytes at most.
    with tempfile.TemporaryDirectory(prefix="co-engines-", ignore_cleanup_errors=True) as place:
        engines = None
        try:
            if os.geteuid() != 0:
                left_out = "dockerd runs as root only, and this is an ordinary user"
            else:
                engines = Engines(packages(home), pathlib.Path(place))
        except ToolError as error:
            environment["CO_TEST_ENGINES_MISSING"] = str(error)
        try:
            if engines is not None:
                engines.start()
                environment["CO_TEST_ENGINES"] = place
        except ToolError as error:
            left_out = str(error)
        if left_out is not None:
            environment["CO_TEST_NO_CONTAINERS"] = "1"
        try:
            return subprocess.run(command, env=environment).returncode
        finally:
            if engines is not None:
                engines.stop()
            if left_out is not None:
                say(f"left out: all tests with containers, because no engine runs here: {left_out}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
