"""scripts/model.py: a real model that calls tools over both wire formats, and never outlives us."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from typing import Any

from support import SCRIPTS, required

LONG = "You are co, an agent in Neovim. " + "Weigh every step and be brief. " * 200
PATIENCE_S = 180


def schema(required_: str, **properties: str) -> dict[str, Any]:
    """Return the JSON schema of an object."""
    fields = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": fields, "required": [required_]}


TOOLS = {
    "run_shell_command": schema("cmd", cmd="string", timeout="integer", cwd="string"),
    "read_file": schema("path", path="string"),
    "search": schema("pattern", pattern="string"),
}


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip() != "" and not shown.stdout.startswith("Z")


class AnswersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        command = [required("CO_TEST_MODEL_PYTHON"), SCRIPTS / "model.py", "0"]
        cls.model = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        cls.address = cls.model.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.model.stdin.close()
        status = cls.model.wait(timeout=PATIENCE_S)
        cls.model.stdout.close()
        assert status == 0, f"the model ended with {status}"

    def post(self, path: str, body: dict[str, Any]) -> str:
        request = urllib.request.Request(
            self.address + path,
            json.dumps({"model": "smollm2", **body}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.read().decode()

    def chat(self, *messages: dict[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
        """Return the text and the calls of a streamed answer."""
        offered = [
            {"type": "function", "function": {"name": n, "description": n, "parameters": s}}
            for n, s in TOOLS.items()
        ]
        system = {"role": "system", "content": LONG}
        body = {"messages": [system, *messages], "tools": offered, "stream": True}
        text, calls, pieces = "", {}, 0
        for line in self.post("/v1/chat/completions", body).splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                text += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls") or []:
                    name, given = calls.setdefault(call["index"], ("", ""))
                    function = call["function"]
                    pieces += 1
                    name += function.get("name") or ""
                    calls[call["index"]] = (name, given + (function.get("arguments") or ""))
        self.assertTrue(not calls or pieces > 2, "the arguments did not come in pieces")
        return text, [(name, json.loads(given)) for name, given in calls.values()]

    def test_the_address_is_this_machine_only(self) -> None:
        self.assertRegex(self.address, r"^http://127\.0\.0\.1:[1-9][0-9]*$")

    def test_a_command_in_the_prompt_is_called(self) -> None:
        for prompt, cmd in [
            ("create the file notes.txt with touch notes.txt", "touch notes.txt"),
            ("list the files in this folder with ls -la", "ls -la"),
        ]:
            answer = self.chat({"role": "user", "content": prompt})
            self.assertEqual(answer, ("", [("run_shell_command", {"cmd": cmd})]))

    def test_a_plain_question_is_answered_in_words(self) -> None:
        text, calls = self.chat({"role": "user", "content": "what is 2 + 2?"})
        self.assertEqual(calls, [])
        self.assertIn("4", text)

    def test_an_outcome_is_followed_by_a_sentence_and_history_is_kept(self) -> None:
        call = {"name": "run_shell_command", "arguments": '{"cmd": "touch notes.txt"}'}
        past = [
            {"role": "user", "content": "create the file notes.txt with touch notes.txt"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "exit 0"},
        ]
        text, calls = self.chat(*past)
        self.assertEqual(calls, [])
        self.assertTrue(text.strip())
        asked = {"role": "user", "content": "list the files in this folder with ls -la"}
        _, calls = self.chat(*past, {"role": "assistant", "content": text}, asked)
        self.assertEqual(calls, [("run_shell_command", {"cmd": "ls -la"})])

    def test_a_long_outcome_is_cut_to_what_it_can_hold(self) -> None:
        asked = {"role": "user", "content": "print it all with cat notes.txt"}
        call = {"name": "run_shell_command", "arguments": '{"cmd": "cat notes.txt"}'}
        calls = [{"id": "1", "type": "function", "function": call}]
        answer = {"role": "assistant", "content": "", "tool_calls": calls}
        outcome = {"role": "tool", "tool_call_id": "1", "content": "a line of notes\n" * 20_000}
        text, calls = self.chat(asked, answer, outcome)
        self.assertTrue(text.strip() or calls)

    def test_the_anthropic_wire_format_calls_too(self) -> None:
        offered = [{"name": n, "description": n, "input_schema": s} for n, s in TOOLS.items()]
        asked = [{"role": "user", "content": "create the file notes.txt with touch notes.txt"}]
        body = {"max_tokens": 200, "system": LONG, "messages": asked, "tools": offered}
        answer = json.loads(self.post("/v1/messages", body))
        self.assertEqual(answer["stop_reason"], "tool_use")
        self.assertEqual(answer["content"][0]["input"], {"cmd": "touch notes.txt"})


class LifeTest(unittest.TestCase):
    def test_it_ends_when_its_owner_is_killed(self) -> None:
        owner = (
            "import pathlib, sys, time; sys.path.insert(0, sys.argv[1]); import demo\n"
            "model = demo.Model(pathlib.Path(sys.argv[2]))\n"
            "with model as address:\n"
            "    print(model.process.pid, flush=True)\n"
            "    time.sleep(600)\n"
        )
        with tempfile.TemporaryDirectory() as home:
            command = [sys.executable, "-c", owner, SCRIPTS, pathlib.Path(home, "log")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                pid = int(process.stdout.readline())
                self.assertTrue(is_alive(pid))
                os.kill(process.pid, signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE_S
            while is_alive(pid):
                self.assertLess(time.monotonic(), deadline, "the model lives on")
                time.sleep(0.05)

    def test_a_bad_port_is_an_error(self) -> None:
        for arguments in [[], ["x"], ["1", "2"]]:
            command = [required("CO_TEST_MODEL_PYTHON"), SCRIPTS / "model.py", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, "usage: model.py PORT\n")
