#!/usr/bin/env python3
"""Record sessions: a real terminal, the plugin, a scripted model, and somebody's keys.

    "$(python3 scripts/tools.py rich)" scripts/record.py            # what `make record` runs
    "$(python3 scripts/tools.py rich)" scripts/record.py --only flood

Writes docs/recordings/NAME.txt and NAME.svg for each scene. The model's words are in demo/NAME.json: a model that runs here in a
moment is too small to mend a program. It takes tmux besides what the demo takes; Rich draws the screens.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import demo
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from tools import Tools

COLUMNS, ROWS = 110, 28
PATIENCE_S = 120
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
RUNS = re.compile("[\u2800-\u28ff]")
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
        """Return the screen with its colours, once nothing but the sign of a running call changes."""
        deadline = time.monotonic() + PATIENCE_S
        before = ""
        while RUNS.sub("", now := self.run("capture-pane", "-p", "-e")) != RUNS.sub("", before):
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

    def __init__(self, title: str) -> None:
        self.title = title
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
            f"<title>{self.title}</title>\n<style>.f{{visibility:hidden;animation:{total}s step-end infinite}}{rules}"
            f"@media (prefers-reduced-motion:reduce){{.f{{animation:none}}.f{index}{{visibility:visible}}}}</style>\n"
            f"{groups}</svg>\n"
        )


def drawn(screen: str, number: int) -> str:
    """Return the picture of one screen."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(screen), end="", no_wrap=True)
    return console.export_svg(title="co", theme=THEME, code_format=FORMAT, unique_id=f"screen{number}")


class ScriptedModel:
    """A server that answers with the words of a file."""

    def __init__(self, script: pathlib.Path) -> None:
        self.script = script

    def __enter__(self) -> str:
        """Start the server and return its address."""
        command = [demo.tool("node"), demo.tool("aimock"), "-p", "0", "--strict", "-f", str(self.script)]
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


@dataclass(frozen=True)
class Scene:
    """The session of one recording. `play` types the keys and keeps what comes."""

    name: str
    title: str
    play: Callable[[Terminal, pathlib.Path, Recording], None]
    # More files in the sample project.
    files: dict[str, str] = field(default_factory=dict)


def command(terminal: Terminal, text: str) -> None:
    """Type a command of Neovim, and wait until it is on the screen."""
    terminal.type(text)
    terminal.until("the command", lambda: terminal.shows(re.escape(text) + r"\s*$"))


def answer(terminal: Terminal, key: str, pattern: str, what: str, then: Callable[[], bool]) -> None:
    """Answer the question that shows a pattern, and wait for what follows."""
    terminal.until(what, lambda: terminal.shows(pattern))
    terminal.type(":Co /approve")
    terminal.press("Enter")

    def answered() -> bool:
        # The window takes an answer only after a pause.
        if terminal.shows(pattern):
            time.sleep(0.6)
        if terminal.shows(pattern):
            terminal.type(key)
        return then()

    terminal.until(f"what follows {what}", answered)
    # If one key was too many, Neovim waits for a motion.
    terminal.press("Escape")


def mend(terminal: Terminal, project: pathlib.Path, recording: Recording) -> None:
    """Ask for a mended program, and say yes three times."""

    def mended() -> bool:
        return "while cents" in (project / "change.py").read_text(encoding="utf-8")

    command(terminal, ":Co fix the failing test")
    recording.keep(terminal, "A prompt, typed at the command line.", 3)
    terminal.press("Enter")
    terminal.until("the question", lambda: terminal.shows(r"co 1/1"))
    recording.keep(terminal, "The model wants to run the tests: the question waits, and takes no key.", 4)
    tests = r"│python3 -m unittest"
    answer(terminal, "y", tests, "the tests", lambda: terminal.shows(r"edit_file change\.py  \+1 -1"))
    recording.keep(terminal, "After y: a test fails, and the model asks to change the file. The float shows how.", 5)
    answer(terminal, "y", r"edit_file change\.py  \+1 -1", "the change", mended)
    answer(terminal, "y", tests, "the tests again", lambda: terminal.shows(r"All three tests pass"))
    terminal.until("the end of the turn", lambda: terminal.shows(r"ready ·"))
    recording.keep(terminal, "After y: the buffer has the change, and the tests pass.", 5)
    terminal.type(":Co /undo")
    terminal.press("Enter")
    terminal.until("the difference", lambda: terminal.shows(r"/undo  \+1 -1"))
    recording.keep(terminal, "/undo shows what the turn changed, and would take it back after y.", 5)


def rounds(terminal: Terminal, project: pathlib.Path, recording: Recording) -> None:
    """Say yes to two changes, review them afterwards, and comment on one."""

    def written() -> bool:
        return (project / "receipt.py").exists()

    def key(key: str, pattern: str) -> None:
        """Press a key until the review shows a pattern. It ignores keys right after it opens a file."""

        def seen() -> bool:
            if not terminal.shows(pattern):
                terminal.type(key)
                time.sleep(0.6)
            return terminal.shows(pattern)

        terminal.until(f"what follows {key}", seen)

    command(terminal, ":Co print receipts")
    terminal.press("Enter")
    edit = r"edit_file change\.py  \+2 -2"
    answer(terminal, "y", edit, "the change", lambda: terminal.shows(r"receipt\.py  \+7"))
    answer(terminal, "y", r"write_file receipt\.py  \+7", "the new file", written)
    terminal.until("the count", lambda: terminal.shows(r"3 changes in 2 files"))
    recording.keep(terminal, "After two yeses: the winbar counts the changes that nobody has reviewed yet.", 4)
    terminal.type(":Co /review")
    terminal.press("Enter")
    terminal.until("the review", lambda: terminal.shows(r"file 1 of 2 "))
    recording.keep(terminal, "/review has all of them, file by file.", 4)
    key("n", r"is taken back when")
    recording.keep(terminal, "n takes a change back, y accepts it.", 4)
    key("y", r"file 2 of 2 ")
    key("c", r"Comment on change 1")
    terminal.type("print euros, not cents")
    terminal.press("Enter")
    terminal.until("the comment", lambda: terminal.shows(r"print euros, not cents"))
    recording.keep(terminal, "c comments on a change. Without an answer, it stays open for the next round.", 4)
    terminal.type("q")
    terminal.until("the end", lambda: terminal.shows(r"1 change in 1 file"))
    for line in (":cclose", ":Co"):
        terminal.type(line)
        terminal.press("Enter")
    terminal.until("the draft", lambda: terminal.shows(r"receipt\.py:1: print euros"))
    recording.keep(terminal, "q carries the answers out. The comment is the draft of the next prompt.", 6)


def search(terminal: Terminal, project: pathlib.Path, recording: Recording) -> None:
    """Ask for a search that meets a secret file, and say no to reading that file."""
    command(terminal, ":Co where is a key of an API used?")
    recording.keep(terminal, "A prompt, typed at the command line.", 3)
    terminal.press("Enter")
    terminal.until("the search", lambda: terminal.shows(r"│cat \.env"))
    recording.keep(
        terminal, "The search only reads, so it ran unasked. The next command names a secret file, and asks.", 6
    )
    answer(terminal, "n", r"│cat \.env", "the secret", lambda: terminal.shows(r"not read\."))
    terminal.until("the end of the turn", lambda: terminal.shows(r"ready ·"))
    recording.keep(terminal, "After n. The search got nothing out of the file either: the kernel held it.", 5)


def flood(terminal: Terminal, project: pathlib.Path, recording: Recording) -> None:
    """Run a command that prints millions of lines, and type meanwhile."""
    command(terminal, ":Co! seq -f 'line %.0f' 5000000; sleep 2; echo done")
    recording.keep(terminal, "A command of one's own: it prints five million lines.", 3)
    terminal.press("Enter")
    terminal.until("the first lines", lambda: terminal.shows(r"\nline \d+"))
    terminal.type("Go# typed while it prints")
    terminal.until("the last line", lambda: terminal.shows(r"\nline 5000000"))
    recording.keep(terminal, "One types on meanwhile.", 4)
    terminal.press("Escape")
    terminal.until("the end", lambda: terminal.shows(r"\nexit 0"))
    recording.keep(terminal, "The end: its exit status, its time and its lines.", 4)
    terminal.press("C-w")
    terminal.type("jgg")
    terminal.until("the start", lambda: terminal.shows(r"earlier lines"))
    recording.keep(terminal, "The buffer keeps the last 10,000 lines. gf on the count opens the whole output.", 5)


def agent(terminal: Terminal, project: pathlib.Path, recording: Recording) -> None:
    """Let Claude Code work, and review what it changed."""

    def mended() -> bool:
        return "while cents" in (project / "change.py").read_text(encoding="utf-8")

    command(terminal, ":Co /agent claude")
    terminal.press("Enter")
    terminal.until("the agent", lambda: terminal.shows(r"claude works in this chat"))
    command(terminal, ":Co fix the failing test")
    terminal.press("Enter")
    hosts = r"wants to reach"
    terminal.until("the question about the hosts", lambda: terminal.shows(hosts))
    recording.keep(terminal, "Claude Code in a chat. co asks about the hosts of its vendor; it reaches no others.", 5)
    first, second = r"run this command: sed -i", r"run this command: cat ~"
    answer(terminal, "y", hosts, "the hosts", lambda: terminal.shows(first))
    recording.keep(terminal, "Claude Code asks for permission: the question has its own options.", 5)
    answer(terminal, "1", first, "the command", lambda: terminal.shows(second))
    answer(terminal, "1", second, "the key", lambda: terminal.shows(r"All through\."))
    terminal.until("the end of the turn", lambda: mended() and terminal.shows(r"1 change in 1 file"))
    recording.keep(terminal, "The kernel keeps it from the key, whatever was allowed. The winbar counts its changes.", 6)
    terminal.type(":Co /review")
    terminal.press("Enter")
    terminal.until("the review", lambda: terminal.shows(r"change 1 of 1"))
    recording.keep(terminal, "/review has what its command changed, part by part. /undo takes all of it back.", 6)


def claude(home: pathlib.Path, run: Callable[[dict[str, str]], None]) -> None:
    """Run with the settings of Claude Code and a scripted model for it."""
    sys.path.append(str(demo.SCRIPTS / "agents"))
    import models

    person = home / "home"
    for file, text in ((".ssh/id_ed25519", "a private key\n"), (".claude/settings.json", '{"permissions":{"defaultMode":"default"}}')):
        (person / file).parent.mkdir(parents=True, exist_ok=True)
        (person / file).write_text(text, encoding="utf-8")
    shell = [
        ("sed -i 's/if cents >= coin/while cents >= coin/' change.py", "Mend the loop"),
        ("cat ~/.ssh/id_ed25519", "Read a key"),
    ]
    model = models.Messages([("Bash", {"command": line, "description": what}) for line, what in shell])
    program = Tools(demo.ROOT / ".tools").agent("@agentclientprotocol/claude-agent-acp/dist/index.js")
    variables = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://{model.address}"}
    settings = {"claude": {"cmd": [str(program)], "env": variables, "hosts": [model.address]}}
    try:
        run({"HOME": str(person), "CO_DEMO_AGENTS": json.dumps(settings)})
    finally:
        model.shutdown()


SCENES = [
    Scene("mend", "co: a model runs the tests, changes a file after a yes, and runs the tests again", mend),
    Scene("rounds", "co: a review of what a model changed, with a comment that becomes the next prompt", rounds),
    Scene("search", "co: a model searches without a question, and the kernel keeps a secret file from it", search, {
        ".env": "API_KEY=sk-0123456789abcdef\n",
        "rates.py": (
            "import os\n\nURL = 'https://rates.example/today'\n\n\n"
            "def headers():\n    return {'X-Api-Key': os.environ['API_KEY']}\n"
        ),
    }),
    Scene("agent", "co: Claude Code works in a chat, confined, and its changes are reviewed", agent),
    Scene("flood", "co: five million lines of a command, and typing meanwhile", flood),
]


def record(scene: Scene, binary: pathlib.Path) -> Recording:
    """Make the terminal and the model, and play."""
    nvim = demo.tool("nvim")
    recording = Recording(scene.title)
    with tempfile.TemporaryDirectory(prefix="co-demo-", ignore_cleanup_errors=True) as name:
        home = pathlib.Path(name).resolve()
        project = demo.sample(home)
        for file, text in scene.files.items():
            (project / file).write_text(text, encoding="utf-8")
        script = demo.ROOT / "demo" / f"{scene.name}.json"
        # A scene without a script asks no model.
        with ScriptedModel(script) if script.exists() else contextlib.nullcontext("http://127.0.0.1:9") as address:
            env = demo.environment(home, address, binary.resolve()) | {"CO_CLI_MODEL": "scripted"}

            def play(more: dict[str, str]) -> None:
                command = [nvim, "-u", str(demo.ROOT / "demo" / "init.lua"), "change.py"]
                terminal = Terminal(command, project, env | more)
                try:
                    terminal.until("the file", lambda: terminal.shows("change.py .*All"))
                    scene.play(terminal, project, recording)
                finally:
                    terminal.close()

            if scene.name == "agent":
                claude(home, play)
            else:
                play({})
    return recording


def main() -> int:
    """Read the arguments, record and write."""
    parser = argparse.ArgumentParser(description="Record sessions into docs/recordings/.")
    parser.add_argument("--only", choices=[scene.name for scene in SCENES], help="one of them")
    parser.add_argument("--bin", type=pathlib.Path, help="a backend that is built already")
    parser.add_argument("--to", type=pathlib.Path, default=demo.ROOT / "docs" / "recordings")
    arguments = parser.parse_args()
    try:
        if shutil.which("tmux") is None:
            raise demo.DemoError("recording needs tmux: install it and try again")
        binary = arguments.bin or demo.build()
        for scene in SCENES:
            if arguments.only not in (None, scene.name):
                continue
            recording = record(scene, binary)
            (arguments.to / f"{scene.name}.txt").write_text(recording.text(), encoding="utf-8")
            (arguments.to / f"{scene.name}.svg").write_text(recording.svg(), encoding="utf-8")
            print(f"record: written {arguments.to / scene.name}.txt and .svg")
    except demo.DemoError as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
