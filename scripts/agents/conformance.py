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
PASSING = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
]


def check(home: pathlib.Path, tools: Tools, passes: Callable[[bool, str, object], None]) -> None:
    """Run the scenarios.

    Left out are logins of programs without a person, a server that says nothing about its login, not even whether it supports PKCE, and
    one whose issuer is not the address of its metadata (2025-03-26).
    """
    subprocess.run(["cargo", "build", "--locked", "-p", "co-mcp", "--example", "conformance"], cwd=ROOT, check=True)
    client = ROOT / "target" / "debug" / "examples" / "conformance"
    suite = tools.npm("@modelcontextprotocol/conformance/dist/index.js", "conformance")
    for scenario in PASSING:
        command = [tools.node(OLDEST_NODE), suite, "client", "--command", client, "--scenario", scenario]
        done = subprocess.run(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        passes(done.returncode == 0, f"conformance: {scenario}", done.stdout[-3000:])
