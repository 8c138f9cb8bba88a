"""The tests of the protocol for clients, against co's client: `@modelcontextprotocol/conformance`, on loopback."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable

from tools import Tools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

#: The oldest Node that runs the tests.
OLDEST_NODE = (22, 0)

#: The scenarios that pass.
PASSING = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]


def check(home: pathlib.Path, tools: Tools, passes: Callable[[bool, str, object], None]) -> None:
    """Run the scenarios. Those about a login by OAuth are left out: co has none."""
    subprocess.run(["cargo", "build", "--locked", "-p", "co-mcp", "--example", "conformance"], cwd=ROOT, check=True)
    client = ROOT / "target" / "debug" / "examples" / "conformance"
    suite = tools.npm("@modelcontextprotocol/conformance/dist/index.js", "conformance")
    for scenario in PASSING:
        command = [tools.node(OLDEST_NODE), suite, "client", "--command", client, "--scenario", scenario]
        done = subprocess.run(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        passes(done.returncode == 0, f"conformance: {scenario}", done.stdout[-3000:])
