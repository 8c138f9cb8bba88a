"""Drive the demo as a person would: keys typed into a Neovim that has a terminal.

Neovim draws into a pseudo-terminal of ours and is asked over its own socket, with its own client,
what its windows hold.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable

# On a busy machine the model takes many times as long as on an idle one.
DEADLINE_S = 240
# Longer than the pause of the keys after which a question takes an answer.
PAUSE_S = 0.6
# The text of every window, and of those that float.
EVERYWHERE = "join(map(range(1, winnr('$')), 'join(getbufline(winbufnr(v:val), 1, \"$\"), \"\\n\")'), \"\\n\")"
FLOATING = (
    "join(map(filter(range(1, winnr('$')), 'nvim_win_get_config(win_getid(v:val)).relative != \"\"'), "
    "'join(getbufline(winbufnr(v:val), 1, \"$\"), \"\\n\")'), \"\\n\")"
)
# The text of the chat that is shown.
CHAT = (
    "join(getbufline(winbufnr(get(filter(range(1, winnr('$')), 'bufname(winbufnr(v:val)) =~ \"co://chat/\"'), 0, -1)), "
    '1, "$"), "\\n")'
)


class CheckError(Exception):
    """What was waited for and did not come."""


class Editor:
    """A Neovim on a pseudo-terminal."""

    def __init__(self, command: list[str], project: pathlib.Path, env: dict[str, str]) -> None:
        self.nvim = command[0]
        self.env = env
        self.socket = str(project.parent / "nvim.sock")
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [*command, "--listen", self.socket],
            cwd=project,
            env={**env, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self) -> None:
        """Read what Neovim draws, so that it never waits for us."""
        try:
            while os.read(self.ours, 65536):
                pass
        except OSError:
            return

    def type(self, keys: str) -> None:
        """Type keys."""
        self.ask("--remote-send", keys)

    def value(self, expression: str) -> str:
        """Return what an expression comes to, or nothing while Neovim cannot say."""
        return self.ask("--remote-expr", expression)

    def ask(self, flag: str, text: str) -> str:
        """Send one thing to Neovim's socket."""
        try:
            done = subprocess.run(
                [self.nvim, "--headless", "--clean", "--server", self.socket, flag, text],
                env=self.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=10,
            )
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout if done.returncode == 0 else ""

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if self.process.poll() is not None:
                raise CheckError(f"Neovim ended before {what}")
            if time.monotonic() > deadline:
                shown = self.value(EVERYWHERE).strip()
                told = self.value("execute('messages')").strip()
                raise CheckError(f"no {what}\n--- windows\n{shown}\n--- messages\n{told}")
            time.sleep(0.1)
        print(f"demo: {what}", file=sys.stderr)

    def shows(self, what: str, text: str, where: str = EVERYWHERE) -> None:
        """Wait until a window shows a text."""
        self.until(what, lambda: text in self.value(where))

    def leave(self) -> None:
        """Quit, and see that Neovim ends."""
        self.type("<C-\\><C-N>:qa!<CR>")
        if self.process.wait(timeout=DEADLINE_S) != 0:
            raise CheckError(f"Neovim ended with status {self.process.returncode}")


def check(command: list[str], project: pathlib.Path, env: dict[str, str], times: int) -> int:
    """Type what the start page says, the prompts several times, and return 0 if all of it comes true."""
    editor = Editor(command, project, env)
    try:
        editor.shows("the start page", "what you like")
        editor.type(":Co! ls -la<CR>")
        editor.shows("the files, run by hand", "test_change.py")
        for _ in range(times):
            ask(editor)
        editor.leave()
    except (CheckError, subprocess.TimeoutExpired) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        editor.process.kill()
        editor.process.wait()
        os.close(editor.ours)
    print("demo: the demo works")
    return 0


def ask(editor: Editor) -> None:
    """Type the two prompts into a new chat, and answer the question."""
    editor.type("<C-\\><C-N>:Co /new<CR>")

    def empty() -> bool:
        # Neovim says nothing at all while it is busy.
        text = editor.value(f"'chat: ' .. {CHAT}")
        return text.startswith("chat:") and "## Co" not in text

    editor.until("a new chat", empty)
    editor.type("<C-\\><C-N>:Co show the size of change.py with du -h change.py<CR>")

    def size() -> str:
        # The model's answer must have what the command printed.
        printed = re.search(r"^ *(\S+)\tchange\.py$", editor.value(CHAT), re.MULTILINE)
        return printed[1] if printed else "no size"

    editor.until("the size in the model's answer", lambda: size() in answer(editor))
    editor.type("<C-\\><C-N>:Co run the tests with python3 -m unittest<CR>")
    editor.shows("the question about the tests", "python3 -m unittest", FLOATING)
    if "FAILED" in editor.value(CHAT):
        raise CheckError("the command ran before it was approved")
    editor.type("<C-\\><C-N>:Co /approve<CR>")

    typed = time.monotonic()

    def approved() -> bool:
        nonlocal typed
        # The window ignores keys until the first pause, so that none typed elsewhere answers it.
        if time.monotonic() - typed > PAUSE_S and "unittest" in editor.value(FLOATING):
            typed = time.monotonic()
            editor.type("y")
        return "FAILED" in editor.value(CHAT)

    editor.until("the tests' output", approved)
    editor.until("the model's closing sentence", lambda: "failed" in answer(editor).lower())


def answer(editor: Editor) -> str:
    """Return what the model wrote after the last output of a command."""
    calls = list(re.finditer(r"^  [✓✗·] .*\n(?:    .*\n)*", editor.value(CHAT), re.MULTILINE))
    return calls[-1].string[calls[-1].end() :] if calls else ""
