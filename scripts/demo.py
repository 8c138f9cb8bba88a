#!/usr/bin/env python3
"""Try co: Neovim with the plugin and a real local model, in a copy of a small project.

    python3 scripts/demo.py              # what `make demo` runs
    python3 scripts/demo.py --check      # drives the same by keys and looks at what comes (no person)
    python3 scripts/demo.py --check --times 5

Everything the demo writes is in a temporary directory, gone with it; your own settings and
chats are neither read nor touched.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from types import TracebackType

SCRIPTS = pathlib.Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
# What of the person's environment would change the demo: settings, and an editor around this one.
LEFT_OUT = ("CO_", "NVIM", "VIM", "MYVIMRC", "GIT_")


class DemoError(Exception):
    """Why there is no demo, in one sentence that says what to do."""


class Model:
    """The model's server; it lives until the block ends, or until this process does."""

    def __init__(self, log: pathlib.Path) -> None:
        self.log = log
        with open(log, "wb") as stderr:
            # It ends when this pipe closes, and the kernel closes it whatever ends us.
            self.process = subprocess.Popen(
                [tool("model"), SCRIPTS / "model.py", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> str:
        """Return the server's address once it answers."""
        address = self.process.stdout.readline().strip()
        if address:
            return address
        self.process.wait()
        raise DemoError(f"the model did not start:\n{self.log.read_text(errors='replace').strip()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def tool(name: str) -> str:
    """Return the path of a tool, which is installed if it is not there."""
    command = [sys.executable, SCRIPTS / "tools.py", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise DemoError(f"there is no demo without {name}: see the line above")
    return done.stdout.strip()


def build() -> pathlib.Path:
    """Build the backend and return its path."""
    if shutil.which("cargo") is None:
        raise DemoError("the demo needs a Rust toolchain: install rustup and try again")
    print("demo: building the backend; the first time takes a few minutes", file=sys.stderr)
    if subprocess.run(["cargo", "build", "--profile", "local", "--locked"], cwd=ROOT).returncode != 0:
        raise DemoError("the backend did not build: see the lines above")
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    metadata = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return pathlib.Path(json.loads(metadata.stdout)["target_directory"], "local", "co-nvim")


def sample(home: pathlib.Path) -> pathlib.Path:
    """Make a copy of the sample project, a git repository of its own, and return it."""
    project = home / "sample"
    shutil.copytree(ROOT / "demo" / "sample", project)
    who = ["-c", "user.name=co demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    plain = {**inherited(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "A till"]):
        subprocess.run(["git", *command], cwd=project, env=plain, check=True)
    return project


def inherited() -> dict[str, str]:
    """Return the environment without what would change the demo."""
    return {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}


def environment(home: pathlib.Path, address: str, binary: pathlib.Path) -> dict[str, str]:
    """Return the environment of the demo's Neovim."""
    env = inherited()
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        env[f"XDG_{name}_HOME"] = str(home / name.lower())
    env |= {"CO_DEMO_ROOT": str(ROOT), "CO_DEMO_BIN": str(binary), "CO_DEMO_MODEL": address}
    return env


def run(arguments: argparse.Namespace) -> int:
    """Show the demo, or check it, and return the exit status."""
    if not arguments.check and not sys.stdin.isatty():
        raise DemoError("the demo needs a terminal: run it in one, or with --check")
    nvim, binary = tool("nvim"), arguments.bin or build()
    with tempfile.TemporaryDirectory(prefix="co-demo-", ignore_cleanup_errors=True) as name:
        home = pathlib.Path(name).resolve()
        project = sample(home)
        with Model(home / "model.log") as address:
            env = environment(home, address, binary.resolve())
            command = [nvim, "-u", str(ROOT / "demo" / "init.lua")]
            if arguments.check:
                import demo_check

                return demo_check.check(command, project, env, arguments.times)
            # Neovim has the terminal; a <C-c> there is its own business.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return subprocess.run(command, cwd=project, env=env).returncode


def stop(number: int, _frame: object) -> None:
    """Turn a signal into an exit, so that what was started is stopped."""
    sys.exit(128 + number)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="Try co with a real local model.")
    parser.add_argument("--check", action="store_true", default=bool(os.environ.get("DEMO_CHECK")))
    parser.add_argument("--times", type=int, default=1, help="how often --check types the prompts")
    parser.add_argument("--bin", type=pathlib.Path, help="a backend that is built already")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        return run(arguments)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
