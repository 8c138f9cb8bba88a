#!/usr/bin/env python3
"""Record a session: a real terminal, the plugin, a scripted model, and somebody's keys.

    "$(python3 scripts/tools.py rich)" scripts/record.py            # what `make record` runs

Writes docs/demo.txt and docs/demo.svg. The model's words are in demo/fix.json: a model that runs here in a moment is too
small to mend a program. It takes tmux besides what the demo takes; Rich draws the screens.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import demo
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, ROWS = 110, 28
PATIENCE_S = 120
TITLE = "co: a model runs the tests, changes a file after a yes, and runs the tests again; then a command of one's own"
OPEN = ":edit change.py"
ASK = ":Co fix the failing test"
LOG = ":Co! git diff --color=always --stat; python3 -m unittest"
SCRIPT = demo.ROOT / "demo" / "fix.json"
RULE = "─" * COLUMNS
COLOURS = [
    (int(colour[:2], 16), int(colour[2:4], 16), int(colour[4:], 16))
    for colour in (
        "14161b e0e2ea 07080d ffc0b9 b3f6c0 fce094 a6dbff ffcaff 8cf8f7 eef1f8 "
        "4f5258 ff8f85 8be9a0 f8d06b 7cc8ff ff9eff 5ef0ef ffffff"
    ).split()
]
THEME = TerminalTheme(COLOURS[0], COLOURS[1], COLOURS[2:10], COLOURS[10:])
# Without fonts from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
VIEW_BOX = re.compile(r'viewBox="([^"]+)"')


class Terminal:
    """A program in a terminal of tmux's, of a server of its own."""

    def __init__(self, command: list[str], project: pathlib.Path, env: dict[str, str]) -> None:
        self.tmux = ["tmux", "-u", "-S", str(project.parent / "tmux.sock"), "-f", "/dev/null"]
        self.env = {**env, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
        self.run("start-server", ";", "set-option", "-g", "status", "off", ";",
                 "set-option", "-g", "default-terminal", "tmux-256color", ";",
                 "set-option", "-ga", "terminal-overrides", ",*:Tc", ";",
                 "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(project),
                 *command)

    def run(self, *arguments: str) -> str:
        """Run one tmux command and return what it prints."""
        done = subprocess.run(
            [*self.tmux, *arguments], env=self.env, capture_output=True, text=True, timeout=30
        )
        if done.returncode != 0:
            raise demo.DemoError(f"tmux could not {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def type(self, text: str) -> None:
        """Type characters."""
        self.run("send-keys", "-l", text)

    def press(self, key: str) -> None:
        """Press a key that has a name."""
        self.run("send-keys", key)

    def text(self) -> str:
        """Return what is on the screen, without its colours."""
        return self.run("capture-pane", "-p")

    def shows(self, pattern: str) -> bool:
        """Return whether a regular expression matches somewhere on the screen."""
        return re.search(pattern, self.text()) is not None

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise demo.DemoError(f"no {what} in {PATIENCE_S} s\n{self.text()}")
            time.sleep(0.1)
        print(f"record: {what}", file=sys.stderr)

    def still(self) -> str:
        """Return the screen with its colours, once it has stopped changing."""
        deadline = time.monotonic() + PATIENCE_S
        before = ""
        while (now := self.run("capture-pane", "-p", "-e")) != before:
            if time.monotonic() > deadline:
                raise demo.DemoError(f"the screen still changes after {PATIENCE_S} s\n{self.text()}")
            before = now
            time.sleep(0.5)
        return now

    def close(self) -> None:
        """End the program and the server."""
        subprocess.run([*self.tmux, "kill-server"], env=self.env, capture_output=True)


class Recording:
    """The screens that were kept, each with what is to be seen and for how long."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, float]] = []

    def keep(self, terminal: Terminal, caption: str, seconds: float) -> None:
        """Keep the screen as it is now."""
        self.kept.append((caption, terminal.still().rstrip("\n"), seconds))

    def text(self) -> str:
        """Return the screens as plain text."""
        parts = []
        for caption, screen, _ in self.kept:
            lines = (line.rstrip() for line in Text.from_ansi(screen).plain.split("\n"))
            parts.append("\n".join([caption, RULE, *lines, RULE, ""]))
        return "\n".join(parts)

    def svg(self) -> str:
        """Return the screens as one picture, in turn; who wants no motion sees the last one."""
        total = sum(seconds for _, _, seconds in self.kept)
        rules, groups, begin = "", "", 0.0
        for index, (_, screen, seconds) in enumerate(self.kept):
            end = begin + seconds
            rules += (
                f"@keyframes k{index}{{0%{{visibility:hidden}}{begin / total:.2%}{{visibility:visible}}"
                f"{end / total:.2%}{{visibility:hidden}}}}.f{index}{{animation-name:k{index}}}"
            )
            groups += f'<g class="f f{index}">{drawn(screen, index)}</g>\n'
            begin = end
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{VIEW_BOX.search(groups)[1]}" role="img">\n'
            f"<title>{TITLE}</title>\n<style>.f{{visibility:hidden;animation:{total}s step-end infinite}}{rules}"
            f"@media (prefers-reduced-motion:reduce){{.f{{animation:none}}.f{index}{{visibility:visible}}}}</style>\n"
            f"{groups}</svg>\n"
        )


def drawn(screen: str, number: int) -> str:
    """Return the picture of one screen."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(screen), end="", no_wrap=True)
    return console.export_svg(title="co", theme=THEME, code_format=FORMAT, unique_id=f"screen{number}")


class ScriptedModel:
    """A server that answers with the words of `SCRIPT`."""

    def __enter__(self) -> str:
        """Start the server and return its address."""
        command = [demo.tool("node"), demo.tool("aimock"), "-p", "0", "--strict", "-f", str(SCRIPT)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if found := re.search(r"listening on (\S+)", line):
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return found[1].rstrip("/")
        raise demo.DemoError("the scripted model did not start")

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.process.kill()
        self.process.wait()


def play(terminal: Terminal, project: pathlib.Path) -> Recording:
    """Ask for a mended program, say yes three times and keep what comes."""
    recording = Recording()

    def answer(pattern: str, what: str, then: Callable[[], bool]) -> None:
        """Say yes to the question that shows a pattern, and wait for what follows."""
        terminal.until(what, lambda: terminal.shows(pattern))
        terminal.type(":Co /approve")
        terminal.press("Enter")

        def approved() -> bool:
            # The window swallows keys for a moment after it is entered.
            if terminal.shows(pattern):
                terminal.type("y")
            return then()

        terminal.until(f"what follows {what}", approved)
        # If one y was too many, Neovim waits for a motion.
        terminal.press("Escape")

    def mended() -> bool:
        return "while cents" in (project / "change.py").read_text(encoding="utf-8")

    terminal.until("the start page", lambda: terminal.shows("what you like"))
    terminal.type(OPEN)
    terminal.press("Enter")
    terminal.type(ASK)
    terminal.until("the prompt", lambda: terminal.shows(ASK + r"\n*$"))
    recording.keep(terminal, "A prompt, typed at the command line.", 3)
    terminal.press("Enter")
    terminal.until("the question", lambda: terminal.shows(r"co 1/1"))
    recording.keep(terminal, "The model wants to run the tests: the question waits, and takes no key.", 4)
    answer(r"│python3 -m unittest", "the tests", lambda: terminal.shows(r"edit_file change\.py  \+1 -1"))
    recording.keep(terminal, "After y: a test fails, and the model asks to change the file. The float shows how.", 5)
    answer(r"edit_file change\.py  \+1 -1", "the change", mended)
    answer(r"│python3 -m unittest", "the tests again", lambda: terminal.shows(r"All three tests pass"))
    terminal.until("the end of the turn", lambda: terminal.shows(r"ready ·"))
    recording.keep(terminal, "After y: the buffer has the change, and the tests pass.", 5)
    terminal.type(LOG)
    terminal.press("Enter")
    terminal.until("the end of the run", lambda: terminal.shows("exit 0"))
    recording.keep(terminal, "A command of one's own, with its colours.", 5)
    return recording


def record(binary: pathlib.Path) -> Recording:
    """Make the terminal and the model, and play."""
    nvim = demo.tool("nvim")
    with tempfile.TemporaryDirectory(prefix="co-demo-", ignore_cleanup_errors=True) as name:
        home = pathlib.Path(name).resolve()
        project = demo.sample(home)
        with ScriptedModel() as address:
            env = demo.environment(home, address, binary.resolve())
            command = [nvim, "-u", str(demo.ROOT / "demo" / "init.lua")]
            terminal = Terminal(command, project, env)
            try:
                return play(terminal, project)
            finally:
                terminal.close()


def main() -> int:
    """Read the arguments, record and write."""
    parser = argparse.ArgumentParser(description="Record the demo into docs/.")
    parser.add_argument("--bin", type=pathlib.Path, help="a backend that is built already")
    parser.add_argument("--to", type=pathlib.Path, default=demo.ROOT / "docs")
    arguments = parser.parse_args()
    try:
        if shutil.which("tmux") is None:
            raise demo.DemoError("recording needs tmux: install it and try again")
        recording = record(arguments.bin or demo.build())
    except demo.DemoError as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    (arguments.to / "demo.txt").write_text(recording.text(), encoding="utf-8")
    (arguments.to / "demo.svg").write_text(recording.svg(), encoding="utf-8")
    print(f"record: written {arguments.to / 'demo.txt'} and {arguments.to / 'demo.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
