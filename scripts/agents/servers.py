"""Real tool servers in co, offline, with a scripted model: those of npm and PyPI that need no network, confined, and one over HTTP
that wants a login (`login_server.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import models
from tools import Tools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SECRET = "hunter2-of-the-person"
CALL = "call_server_tool"


class Calls(models.Messages):
    """A model that calls tools of servers, and remembers the results."""

    results: dict[int, str]
    tools: list[str]

    def answer(self, path: str, request: dict) -> object:
        self.tools = [tool["name"] for tool in request.get("tools", [])]
        parts = [part for message in request.get("messages", []) if isinstance(message["content"], list) for part in message["content"]]
        results = [part for part in parts if part["type"] == "tool_result"]
        self.results = {int(part["tool_use_id"].split("_")[1]): json.dumps(part["content"]) for part in results}
        self.whole = json.dumps(request.get("messages", []))
        return super().answer(path, request)


@dataclass
class Try:
    """A call of a tool, and the check of its result."""

    tool: str
    arguments: dict
    #: Whether the result is the right one.
    holds: Callable[[str], bool]
    what: str


def tries(home: pathlib.Path) -> list[Try]:
    """Return the calls."""
    work = str(home / "work")
    entity = {"name": "co", "entityType": "program", "observations": ["confines servers"]}
    no_secret: Callable[[str], bool] = lambda text: SECRET not in text  # noqa: E731
    return [
        Try("everything__echo", {"message": "hello"}, lambda text: "Echo: hello" in text, "everything: a text"),
        Try("everything__get-sum", {"a": 1, "b": 2}, lambda text: "3" in text, "everything: numbers"),
        Try("everything__get-env", {}, lambda text: "PATH" in text and SECRET not in text, "everything: no variables of the person"),
        Try("everything__get-tiny-image", {}, lambda text: "image/png" in text, "everything: an image"),
        Try("everything__get-resource-links", {"count": 2}, lambda text: "link to" in text, "everything: links"),
        Try("everything__get-structured-content", {"location": "Chicago"}, lambda text: "temperature" in text, "everything: structured content"),
        Try("everything__trigger-long-running-operation", {"duration": 1, "steps": 2}, lambda text: "completed" in text, "everything: progress"),
        Try("everything__trigger-elicitation-request", {}, lambda text: "User provided" in text, "everything: a form"),
        Try("filesystem__read_text_file", {"path": f"{work}/a.txt"}, lambda text: "text of a" in text, "filesystem: reads a file"),
        Try("filesystem__read_text_file", {"path": f"{work}/.env"}, no_secret, "filesystem: reads no .env"),
        Try("filesystem__read_text_file", {"path": f"{home}/.ssh/id"}, no_secret, "filesystem: reads no ~/.ssh"),
        Try("filesystem__write_file", {"path": f"{work}/new", "content": "x"}, lambda _: not (home / "work/new").exists(), "filesystem: writes nothing"),
        Try("memory__create_entities", {"entities": [entity]}, lambda text: "confines servers" in text, "memory: keeps something"),
        Try("memory__read_graph", {}, lambda text: "confines servers" in text, "memory: finds it again"),
        Try("git__git_log", {"repo_path": work}, lambda text: "the first commit" in text, "git: reads the log"),
        Try("git__git_commit", {"repo_path": work, "message": "x"}, lambda _: commits(home / "work") == 1, "git: commits nothing"),
        Try("time__get_current_time", {"timezone": "UTC"}, lambda text: "datetime" in text, "time: tells the time"),
        Try("hub__greet", {"name": "Ann"}, lambda text: "Good day, Ann!" in text, "a server over HTTP: answers after a login"),
    ]


def commits(repository: pathlib.Path) -> int:
    """Return the number of commits."""
    command = ["git", "-C", repository, "rev-list", "--count", "HEAD"]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@contextlib.contextmanager
def login_server(tools: Tools) -> Iterator[str]:
    """Run the server that wants a login. Return its address."""
    program = [tools.venv / "bin" / "python", ROOT / "scripts" / "agents" / "login_server.py"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def settings(work: pathlib.Path, tools: Tools) -> dict:
    """Install the servers of this machine, and return their settings."""
    node = str(tools.node())
    of_node = {name: str(tools.npm(f"@modelcontextprotocol/server-{name}/dist/index.js", "servers")) for name in ("everything", "filesystem", "memory")}
    tools.wheels("mcp", "connect to the package registry and try again")
    programs = tools.venv / "bin"
    return {
        "everything": {"cmd": [node, of_node["everything"]]},
        "filesystem": {"cmd": [node, of_node["filesystem"], str(work)]},
        "memory": {"cmd": [node, of_node["memory"]], "env": {"MEMORY_FILE_PATH": "~/memory.jsonl"}},
        "git": {"cmd": [str(programs / "mcp-server-git"), "--repository", str(work)]},
        "time": {"cmd": [str(programs / "mcp-server-time"), "--local-timezone", "UTC"]},
    }


def run(home: pathlib.Path, tools: Tools, given: dict) -> dict:
    """Run one turn in a headless Neovim, and return what happened."""
    nvim = os.environ.get("CO_TEST_NVIM") or tools.nvim()
    env = {variable: value for variable, value in os.environ.items() if not variable.startswith(("XDG_", "CO_CLI_"))}
    script = [nvim, "--headless", "--clean", "-l", ROOT / "scripts" / "agents" / "servers.lua"]
    done = subprocess.run(
        [*script, ROOT, json.dumps(given), "try @mcp:memory:memory://knowledge-graph"],
        cwd=home / "work",
        env=env | {"HOME": str(home), "NVIM_LOG_FILE": "/dev/null", "ANTHROPIC_API_KEY": "none", "OUTER": SECRET},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def check(home: pathlib.Path, tools: Tools, passes: Callable[[bool, str, object], None]) -> None:
    """Run one turn that calls tools of all servers, and check the results."""
    work = home / "work"
    work.mkdir()
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text(SECRET)
    (work / "a.txt").write_text("text of a\n")
    (work / ".env").write_text(f"KEY={SECRET}\n")
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for command in (["init", "--quiet"], ["add", "a.txt"], [*author, "commit", "--quiet", "-m", "the first commit"]):
        subprocess.run(["git", "-C", work, *command], check=True)
    calls = tries(home)
    model = Calls([(CALL, {"name": it.tool, "arguments": it.arguments}) for it in calls])
    given = {
        "bin": str(ROOT / "target" / "debug" / "co-nvim"),
        "provider": "anthropic",
        "base_url": f"http://{model.address}",
        "model": "claude-sonnet-4-5",
        "mcp_servers": settings(work, tools),
        "mcp_wait": 60,
    }
    with login_server(tools) as address:
        given["mcp_servers"]["hub"] = {"url": f"{address}/mcp"}
        seen = run(home, tools, given)
    model.shutdown()
    text = json.dumps(seen, indent=1)
    passes(seen["ended"] and models.TEXT in seen["chat"], "the turn ends", text)
    passes(any("you are logged in to the tool server hub" in line for line in seen["log"]), "a login by the browser", text)
    passes(CALL in model.tools and "everything__echo" not in model.tools, "the model searches the tools of six servers", model.tools)
    passes("a resource" not in model.whole and "@mcp:memory" in model.whole, "a resource is attached", model.whole[:2000])
    passes("/mcp:everything:simple-prompt" in seen["slashes"], "prompts are slash commands", seen["slashes"])
    for number, it in enumerate(calls, start=1):
        result = model.results.get(number, "no result")
        passes(number in model.results and it.holds(result), it.what, result)
