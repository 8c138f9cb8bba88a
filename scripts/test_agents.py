#!/usr/bin/env python3
"""Runs real agents and tool servers in co, offline, with a scripted model on loopback. `make test-agents` calls it; words name the agents,
or are `servers`.

It installs what `scripts/agents` pins into `.tools/`, and builds the backend. A turn of each agent edits two files and tries to leave
its walls. Then a review takes one hunk back, and `/undo` must give back every byte.
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
from collections.abc import Callable
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "agents")]

import models  # noqa: E402
import servers  # noqa: E402
from tools import ToolError, Tools  # noqa: E402

SERVERS = "servers"
SECRET = "hunter2-of-the-person"
LINES = [f"line {number}\n" for number in range(20)]
BEFORE = {"a.txt": "".join(LINES), "b.txt": "no newline"}
EDIT = "sed -i 's/^line 1$/first/; s/^line 18$/last/' a.txt; printf more >> b.txt; echo new > c.txt"
AFTER = {"a.txt": BEFORE["a.txt"].replace("line 1\n", "first\n").replace("line 18\n", "last\n"), "b.txt": "no newlinemore", "c.txt": "new\n"}


@dataclass
class Agent:
    """A real agent."""

    #: The file of the package that is its program.
    program: str
    #: The words after the program.
    arguments: list[str]
    #: The scripted model.
    model: type[models.Model]
    #: The name of the tool that runs a command, and its arguments.
    shell: Callable[[str], models.Call]
    #: Variables that lead it to the model, for the address of the model.
    env: Callable[[str], dict[str, str]]
    #: Files of the person's home directory that it reads, with their texts.
    files: dict[str, str] = field(default_factory=dict)


def described(name: str) -> Callable[[str], models.Call]:
    """Return the tool of an agent that takes a command and a description."""
    return lambda command: (name, {"command": command, "description": "try"})


def codex_env(address: str) -> dict[str, str]:
    """Return the variables that lead codex to a model."""
    fake = {"name": "fake", "base_url": f"http://{address}/v1", "wire_api": "responses", "requires_openai_auth": False}
    config = {"model": "m", "model_provider": "fake", "model_providers": {"fake": fake}}
    return {"MODEL_PROVIDER": "fake", "CODEX_CONFIG": json.dumps(config)}


def opencode_env(address: str) -> dict[str, str]:
    """Return the variables that lead opencode to a model."""
    options = {"baseURL": f"http://{address}/v1", "apiKey": "none"}
    fake = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": {"m": {"name": "m"}}}
    config = {"model": "fake/m", "small_model": "fake/m", "provider": {"fake": fake}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "true"}


AGENTS = {
    "claude": Agent(
        "@agentclientprotocol/claude-agent-acp/dist/index.js",
        [],
        models.Messages,
        described("Bash"),
        lambda address: {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://{address}"},
        {".claude/CLAUDE.md": "The person's own instructions.\n", ".claude/settings.json": '{"permissions":{"defaultMode":"default"}}'},
    ),
    "codex": Agent(
        "@agentclientprotocol/codex-acp/dist/index.js",
        [],
        models.Responses,
        lambda command: ("exec_command", {"cmd": command}),
        codex_env,
        {".codex/AGENTS.md": "The person's own instructions.\n"},
    ),
    "gemini": Agent(
        "@google/gemini-cli/bundle/gemini.js",
        ["--acp"],
        models.Gemini,
        described("run_shell_command"),
        lambda address: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": f"http://{address}"},
        {".gemini/GEMINI.md": "The person's own instructions.\n", ".gemini/settings.json": '{"privacy":{"usageStatisticsEnabled":false}}'},
    ),
    "opencode": Agent(
        "opencode-linux-x64/bin/opencode",
        ["acp"],
        models.Completions,
        described("bash"),
        opencode_env,
        {".config/opencode/AGENTS.md": "The person's own instructions.\n", ".config/opencode/opencode.json": '{"autoupdate":false}'},
    ),
}


def check(holds: bool, what: str, seen: object) -> None:
    """Print a result; end with an error if it is not the wanted one."""
    print(f"  {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        sys.exit(f"{what}; seen:\n{seen}")


def turn(name: str, home: pathlib.Path, tools: Tools) -> dict:
    """Run one turn of an agent in a new home directory, and return what happened."""
    agent = AGENTS[name]
    work = home / "work"
    texts = agent.files | {".ssh/id": SECRET} | {f"work/{file}": text for file, text in BEFORE.items()}
    for file, text in texts.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    subprocess.run(["git", "init", "--quiet", work], check=True)
    # Nobody may reach this one: no rule names its port.
    other = socket.create_server(("127.0.0.1", 0))
    escapes = f"cat {home}/.ssh/id; echo x > {home}/outside; echo x > .git/hooks/pre-commit"
    obeyed = "".join(f"; echo x >> {home}/{file}" for file in agent.files)
    reach = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{other.getsockname()[1]}' && echo reached; echo tried"
    model = agent.model([agent.shell(EDIT), agent.shell(f"{escapes}{obeyed}; {reach}")])
    settings = {
        "bin": str(ROOT / "target" / "debug" / "co-nvim"),
        "agents": {
            name: {
                "cmd": [str(tools.agent(agent.program)), *agent.arguments],
                "env": agent.env(model.address),
                "hosts": [model.address],
            }
        },
    }
    nvim = os.environ.get("CO_TEST_NVIM") or tools.nvim()
    script = [nvim, "--headless", "--clean", "-l", ROOT / "scripts" / "agents" / "turn.lua"]
    env = {variable: value for variable, value in os.environ.items() if not variable.startswith(("XDG_", "CO_CLI_"))}
    done = subprocess.run(
        [*script, ROOT, name, json.dumps(settings), "edit the files"],
        cwd=work,
        env=env | {"HOME": str(home), "NVIM_LOG_FILE": "/dev/null"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    model.shutdown()
    other.setblocking(False)
    try:
        other.accept()
        reached = True
    except BlockingIOError:
        reached = False
    kept = all((home / file).read_text() == text for file, text in agent.files.items())
    return json.loads(done.stdout) | {"reached": reached, "requests": model.requests, "kept": kept}


def check_turn(name: str, home: pathlib.Path, tools: Tools) -> None:
    """Check one turn of an agent."""
    print(f"{name}, confined, with a scripted model:", flush=True)
    seen = turn(name, home, tools)
    text = json.dumps(seen, indent=1)
    check(seen["ended"] and models.TEXT in seen["chat"] and seen["requests"] >= 3, "its turn ends", text)
    check(seen["after"] == AFTER, "it edits files", text)
    reviewed = AFTER | {"a.txt": BEFORE["a.txt"].replace("line 18\n", "last\n")}
    check(seen["reviewed"] == reviewed, "a review takes one hunk back", text)
    check(seen["undone"] and seen["restored"] == BEFORE, "/undo gives back every byte", text)
    check(SECRET not in text and "tried" in seen["chat"], "it reads no secret", text)
    check(not (home / "outside").exists() and seen["kept"], "it writes nothing outside, and no file that it obeys later", text)
    check(not (home / "work" / ".git" / "hooks" / "pre-commit").exists(), "it makes no hook", text)
    check(not seen["reached"], "it reaches no other host", text)


def main() -> None:
    """Check one turn of each agent."""
    known = [*AGENTS, SERVERS]
    names = sys.argv[1:] or known
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such agent: {', '.join(unknown)}; the words are: {', '.join(known)}")
    subprocess.run(["cargo", "build", "--locked"], cwd=ROOT, check=True)
    tools = Tools(pathlib.Path(os.environ.get("CO_TOOLS_DIR", ROOT / ".tools")).absolute())
    tools.home.mkdir(exist_ok=True)
    for name in names:
        # codex does not find its own programs if its directory is below $TMPDIR.
        home = pathlib.Path(tempfile.mkdtemp(prefix="agents-", dir=tools.home.resolve()))
        try:
            if name == SERVERS:
                print("tool servers, confined, with a scripted model:", flush=True)
                servers.check(home, tools, check)
            else:
                check_turn(name, home, tools)
        finally:
            shutil.rmtree(home)


if __name__ == "__main__":
    try:
        main()
    except ToolError as error:
        sys.exit(f"test-agents: {error}")
