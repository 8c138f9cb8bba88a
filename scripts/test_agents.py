#!/usr/bin/env python3
"""Runs real agents and tool servers in co, offline, with a scripted model on loopback. `make test-agents` calls it; words name the agents,
or are `servers` or `conformance`: the tests of the protocol for the client of tool servers.

It installs what `scripts/agents` pins into `.tools/`, and builds the backend. A turn of each agent calls the tools of co, edits two files
and tries to leave its walls. Then a review takes one hunk back, and `/undo` must give back every byte. After that, each agent calls a tool
of co as a program in a terminal of Neovim. An agent whose own tools co can switch off also makes the edits by the tools of co alone.
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

import conformance  # noqa: E402
import models  # noqa: E402
import servers  # noqa: E402
from tools import ToolError, Tools  # noqa: E402

SERVERS = "servers"
CONFORMANCE = "conformance"
PROMPT = "edit the files"
CO = str(ROOT / "target" / "debug" / "co-nvim")
SECRET = "hunter2-of-the-person"
LINES = [f"line {number}\n" for number in range(20)]
BEFORE = {"a.txt": "".join(LINES), "b.txt": "no newline"}
EDIT = "sed -i 's/^line 1$/first/; s/^line 18$/last/' a.txt; printf more >> b.txt; echo new > c.txt"
AFTER = {"a.txt": BEFORE["a.txt"].replace("line 1\n", "first\n").replace("line 18\n", "last\n"), "b.txt": "no newlinemore", "c.txt": "new\n"}
#: Calls of tools of co. There is no language server for the second one.
OWN = [
    ("editor_context", {"what": "quickfix"}),
    ("rename_symbol", {"path": "a.txt", "name": "line", "new_name": "row"}),
    ("run_shell_command", {"cmd": "echo $((6 * 7))-by-co"}),
]
#: What the results of these calls have, and nothing else.
SEEN = ["in-the-quickfix-list", "annot rename line", "42-by-co"]


#: The same edits by the tools of co.
EDIT_BY_CO = [
    ("edit_file", {"path": "a.txt", "edits": [{"old": "line 1\n", "new": "first\n"}, {"old": "line 18\n", "new": "last\n"}]}),
    ("run_shell_command", {"cmd": "printf more >> b.txt; echo new > c.txt"}),
]


@dataclass
class Terminal:
    """An agent as a program in a terminal."""

    #: The file of the package that is its program.
    program: str
    #: The words after the program, which carry out a prompt.
    arguments: list[str]
    #: The files of the person's home directory for the address of the model. They name `co-nvim mcp` as the help says.
    files: Callable[[str], dict[str, str]]


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
    #: The name by which it calls a tool of co.
    own: Callable[[str], str]
    terminal: Terminal
    #: Variables that lead it to the model, for the address of the model.
    env: Callable[[str], dict[str, str]]
    #: Files of the person's home directory that it reads, with their texts.
    files: dict[str, str] = field(default_factory=dict)
    #: co can switch its own tools off.
    alone: bool = False


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


def codex_files(address: str) -> dict[str, str]:
    """Return the settings of codex in a terminal."""
    fake = f'[model_providers.fake]\nname = "fake"\nbase_url = "http://{address}/v1"\nwire_api = "responses"\nrequires_openai_auth = false\n'
    server = f'[mcp_servers.co]\ncommand = "{CO}"\nargs = ["mcp"]\nenv_vars = ["NVIM"]\n'
    return {".codex/config.toml": f'model = "m"\nmodel_provider = "fake"\n{fake}{server}'}


def opencode_files(_: str) -> dict[str, str]:
    """Return the settings of opencode in a terminal."""
    server = {"type": "local", "command": [CO, "mcp"], "enabled": True}
    return {".config/opencode/opencode.json": json.dumps({"autoupdate": False, "mcp": {"co": server}})}


def json_file(path: str, more: dict, server: dict) -> Callable[[str], dict[str, str]]:
    """Return a file of settings that names `co-nvim mcp`, and more."""
    servers = {"co": {"command": CO, "args": ["mcp"]} | server}
    return lambda _: {path: json.dumps({"mcpServers": servers} | more)}


AGENTS = {
    "claude": Agent(
        "@agentclientprotocol/claude-agent-acp/dist/index.js",
        [],
        models.Messages,
        described("Bash"),
        lambda tool: f"mcp__co__{tool}",
        Terminal(
            "@agentclientprotocol/claude-agent-acp/dist/index.js",
            ["--cli", "-p", PROMPT, "--allowedTools", "mcp__co__editor_context"],
            json_file(".claude.json", {}, {}),
        ),
        lambda address: {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://{address}"},
        {".claude/CLAUDE.md": "The person's own instructions.\n", ".claude/settings.json": '{"permissions":{"defaultMode":"default"}}'},
        alone=True,
    ),
    "codex": Agent(
        "@agentclientprotocol/codex-acp/dist/index.js",
        [],
        models.Responses,
        lambda command: ("exec_command", {"cmd": command}),
        lambda tool: f"mcp__co/{tool}",
        Terminal(
            "@openai/codex/bin/codex.js",
            ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
            codex_files,
        ),
        codex_env,
        {".codex/AGENTS.md": "The person's own instructions.\n"},
    ),
    "gemini": Agent(
        "@google/gemini-cli/bundle/gemini.js",
        ["--acp"],
        models.Gemini,
        described("run_shell_command"),
        lambda tool: f"mcp_co_{tool}",
        Terminal(
            "@google/gemini-cli/bundle/gemini.js",
            ["-p", PROMPT, "--yolo"],
            json_file(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}}, {"env": {"NVIM": "$NVIM"}}),
        ),
        lambda address: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": f"http://{address}"},
        {".gemini/GEMINI.md": "The person's own instructions.\n", ".gemini/settings.json": '{"privacy":{"usageStatisticsEnabled":false}}'},
    ),
    "opencode": Agent(
        "opencode-linux-x64/bin/opencode",
        ["acp"],
        models.Completions,
        described("bash"),
        lambda tool: f"co_{tool}",
        Terminal("opencode-linux-x64/bin/opencode", ["run", PROMPT], opencode_files),
        opencode_env,
        {".config/opencode/AGENTS.md": "The person's own instructions.\n", ".config/opencode/opencode.json": '{"autoupdate":false}'},
    ),
}


def check(holds: bool, what: str, seen: object) -> None:
    """Print a result; end with an error if it is not the wanted one."""
    print(f"  {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        sys.exit(f"{what}; seen:\n{seen}")


def turn(name: str, home: pathlib.Path, tools: Tools, alone: bool = False) -> dict:
    """Run one turn of an agent in a new home directory, and return what happened. `alone`: it has only the tools of co."""
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
    own = [(agent.own(tool), arguments) for tool, arguments in (EDIT_BY_CO if alone else OWN)]
    of_agent = [] if alone else [agent.shell(EDIT), agent.shell(f"{escapes}{obeyed}; {reach}")]
    model = agent.model([*own, *of_agent])
    settings = {
        "bin": CO,
        "agents": {
            name: {
                "cmd": [str(tools.agent(agent.program)), *agent.arguments],
                "env": agent.env(model.address),
                "hosts": [model.address],
                "tools": "co" if alone else "own",
            }
        },
    }
    nvim = os.environ.get("CO_TEST_NVIM") or tools.nvim()
    script = [nvim, "--headless", "--clean", "-l", ROOT / "scripts" / "agents" / "turn.lua"]
    env = {variable: value for variable, value in os.environ.items() if not variable.startswith(("XDG_", "CO_CLI_"))}
    done = subprocess.run(
        [*script, ROOT, name, json.dumps(settings), PROMPT],
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
    return json.loads(done.stdout) | {"reached": reached, "requests": model.requests, "kept": kept, "whole": model.whole}


def check_turn(name: str, home: pathlib.Path, tools: Tools) -> None:
    """Check one turn of an agent."""
    print(f"{name}, confined, with a scripted model:", flush=True)
    seen = turn(name, home, tools)
    text = json.dumps(seen, indent=1)
    check(seen["ended"] and models.TEXT in seen["chat"] and seen["requests"] >= 6, "its turn ends", text)
    check(all(it in seen["whole"] for it in SEEN), "it calls the tools of co", text)
    check(seen["after"] == AFTER, "it edits files", text)
    reviewed = AFTER | {"a.txt": BEFORE["a.txt"].replace("line 18\n", "last\n")}
    check(seen["reviewed"] == reviewed, "a review takes one hunk back", text)
    check(seen["undone"] and seen["restored"] == BEFORE, "/undo gives back every byte", text)
    check(SECRET not in text and "tried" in seen["chat"], "it reads no secret", text)
    check(not (home / "outside").exists() and seen["kept"], "it writes nothing outside, and no file that it obeys later", text)
    check(not (home / "work" / ".git" / "hooks" / "pre-commit").exists(), "it makes no hook", text)
    check(not seen["reached"], "it reaches no other host", text)


def check_alone(name: str, home: pathlib.Path, tools: Tools) -> None:
    """Check an agent that has only the tools of co."""
    seen = turn(name, home, tools, alone=True)
    text = json.dumps(seen, indent=1)
    check(seen["ended"] and models.TEXT in seen["chat"], "without tools of its own, its turn ends", text)
    check(f'"name": "{AGENTS[name].shell("")[0]}"' not in seen["whole"], "it has no tool of its own", text)
    check(seen["after"] == AFTER, "it edits files by the tools of co", text)
    check(seen["undone"] and seen["restored"] == BEFORE, "/undo gives back every byte of that", text)


def check_terminal(name: str, home: pathlib.Path, tools: Tools) -> None:
    """Check an agent as a program in a terminal of Neovim."""
    agent = AGENTS[name]
    model = agent.model([(agent.own("editor_context"), {"what": "quickfix"})])
    work = home / "work"
    texts = agent.terminal.files(model.address) | {f"work/{file}": text for file, text in BEFORE.items()}
    for file, text in texts.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    subprocess.run(["git", "init", "--quiet", work], check=True)
    command = [str(tools.agent(agent.terminal.program)), *agent.terminal.arguments]
    nvim = os.environ.get("CO_TEST_NVIM") or tools.nvim()
    script = [nvim, "--headless", "--clean", "-l", ROOT / "scripts" / "agents" / "terminal.lua"]
    env = {variable: value for variable, value in os.environ.items() if not variable.startswith(("XDG_", "CO_CLI_"))}
    done = subprocess.run(
        [*script, ROOT, json.dumps({"bin": CO}), json.dumps(command)],
        cwd=work,
        env=env | agent.env(model.address) | {"HOME": str(home), "PWD": str(work), "NVIM_LOG_FILE": "/dev/null", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    model.shutdown()
    seen = json.loads(done.stdout)
    text = json.dumps(seen | {"whole": model.whole}, indent=1)
    check(seen["status"] == 0 and seen["asked"] == [str(work)], "in a terminal of Neovim, the person is asked once about its directory", text)
    check(SEEN[0] in model.whole, "there it calls a tool of co", text)


def main() -> None:
    """Check one turn of each agent."""
    known = [*AGENTS, SERVERS, CONFORMANCE]
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
            elif name == CONFORMANCE:
                print("the client of tool servers:", flush=True)
                conformance.check(home, tools, check)
            else:
                (home / "chat").mkdir()
                check_turn(name, home / "chat", tools)
                check_terminal(name, home / "terminal", tools)
                if AGENTS[name].alone:
                    (home / "alone").mkdir()
                    check_alone(name, home / "alone", tools)
        finally:
            shutil.rmtree(home)


if __name__ == "__main__":
    try:
        main()
    except ToolError as error:
        sys.exit(f"test-agents: {error}")
