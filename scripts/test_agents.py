#!/usr/bin/env python3
"""Runs real agents in co, offline: codex by its adapter, with a scripted model on loopback. `make test-agents` calls it.

It installs what `scripts/agents` pins into `.tools/`, and builds the backend. A turn edits two files and tries to leave its walls; then
`/undo` must give back every byte.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "agents")]

from responses import Responses  # noqa: E402
from tools import ToolError, Tools  # noqa: E402

SECRET = "hunter2-of-the-person"
BEFORE = {"a.txt": "one\ntwo\n", "b.txt": "no newline"}


def check(holds: bool, what: str, seen: object) -> None:
    """Print a result; end with an error if it is not the wanted one."""
    print(f"  {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        sys.exit(f"{what}; seen:\n{seen}")


def turn(home: pathlib.Path, tools: Tools) -> dict:
    """Run one turn of codex in a new home directory, and return what happened."""
    work = home / "work"
    for directory in (work, home / ".codex", home / ".ssh"):
        directory.mkdir(parents=True)
    (home / ".ssh" / "id").write_text(SECRET)
    for name, text in BEFORE.items():
        (work / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", work], check=True)
    # Nobody may reach this one: no rule names its port.
    other = socket.create_server(("127.0.0.1", 0))
    escapes = f"cat {home}/.ssh/id; echo x > {home}/outside; echo x > .git/hooks/pre-commit"
    reach = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{other.getsockname()[1]}' && echo reached; echo tried"
    server = Responses(["printf 'one\\n2\\n' > a.txt; printf more >> b.txt; echo new > c.txt", f"{escapes}; {reach}"])
    model = {"name": "fake", "base_url": f"http://127.0.0.1:{server.server_port}/v1", "wire_api": "responses", "requires_openai_auth": False}
    config = {"model": "m", "model_provider": "fake", "model_providers": {"fake": model}}
    agent = {
        "cmd": [str(tools.codex_acp())],
        "env": {"MODEL_PROVIDER": "fake", "CODEX_CONFIG": json.dumps(config)},
        "hosts": [f"127.0.0.1:{server.server_port}"],
    }
    settings = {"bin": str(ROOT / "target" / "debug" / "co-nvim"), "agents": {"codex": agent}}
    nvim = os.environ.get("CO_TEST_NVIM") or tools.nvim()
    script = [nvim, "--headless", "--clean", "-l", ROOT / "scripts" / "agents" / "turn.lua"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CO_CLI_"))}
    done = subprocess.run(
        [*script, ROOT, json.dumps(settings), "edit the files"],
        cwd=work,
        env=env | {"HOME": str(home), "NVIM_LOG_FILE": "/dev/null"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    server.shutdown()
    other.setblocking(False)
    try:
        other.accept()
        reached = True
    except BlockingIOError:
        reached = False
    return json.loads(done.stdout) | {"reached": reached, "requests": server.requests}


def main() -> None:
    """Check one turn of codex."""
    subprocess.run(["cargo", "build", "--locked"], cwd=ROOT, check=True)
    tools = Tools(pathlib.Path(os.environ.get("CO_TOOLS_DIR", ROOT / ".tools")).absolute())
    # codex does not find its own programs if its directory is below $TMPDIR.
    tools.home.mkdir(exist_ok=True)
    home = pathlib.Path(tempfile.mkdtemp(prefix="agents-", dir=tools.home.resolve()))
    try:
        print("codex, confined, with a scripted model:", flush=True)
        seen = turn(home, tools)
        text = json.dumps(seen, indent=1)
        check(seen["ended"] and "All through." in seen["chat"] and seen["requests"] >= 3, "its turn ends", text)
        check(seen["after"] == {"a.txt": "one\n2\n", "b.txt": "no newlinemore", "c.txt": "new\n"}, "it edits files", text)
        check(seen["undone"] and seen["restored"] == BEFORE, "/undo gives back every byte", text)
        check(SECRET not in text and "tried" in seen["chat"], "it reads no secret", text)
        check(not (home / "outside").exists(), "it writes nothing outside", text)
        check(not (home / "work" / ".git" / "hooks" / "pre-commit").exists(), "it makes no hook", text)
        check(not seen["reached"], "it reaches no other host", text)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    try:
        main()
    except ToolError as error:
        sys.exit(f"test-agents: {error}")
