"""What the demo starts from. That it works is checked by `scripts/demo.py --check`."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock
from xml.etree import ElementTree

from support import ROOT, SCRIPTS
import demo


class SampleTest(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.project = demo.sample(pathlib.Path(temporary.name))

    def test_it_is_a_repository_without_changes(self) -> None:
        command = ["git", "-C", self.project, "status", "--porcelain"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(shown.stdout, "")
        self.assertTrue((self.project / ".git").is_dir())


class RecordingTest(unittest.TestCase):
    def test_what_the_readme_shows_is_there_and_small(self) -> None:
        shown = {
            "mend": ("fix the failing test", "co 1/1", "while cents", "Ran 3 tests", "/undo"),
            "rounds": ("3 changes in 2 files", "is taken back when the review ends", "print euros, not cents", "receipt.py:1"),
            "search": ("grep -rn", ".env: Permission denied", "looks like a secret", "you: no"),
            "agent": ("api.anthropic.com", "claude asks to run this command", "Permission denied", "change 1 of 1"),
            "flood": ("seq -f", "line 5000000", "exit 0", "earlier lines", "typed while"),
        }
        directory = ROOT / "docs" / "recordings"
        self.assertEqual({file.stem for file in directory.iterdir()}, set(shown))
        self.assertEqual(set(re.findall(r"\(docs/recordings/(\w+)\.svg\)", (ROOT / "README.md").read_text())), set(shown))
        for name, texts in shown.items():
            drawn = directory / f"{name}.svg"
            self.assertLess(drawn.stat().st_size, 200_000)
            words = "".join(ElementTree.parse(drawn).getroot().itertext()).replace("\xa0", " ")
            for text in texts:
                self.assertIn(text, words)
                self.assertIn(text, (directory / f"{name}.txt").read_text())


class EnvironmentTest(unittest.TestCase):
    def test_nothing_of_the_persons_own_reaches_it(self) -> None:
        own = {
            "CO_CLI_AUTO_CONFIRM": "of the person",
            "NVIM": "/run/nvim.sock",
            "NVIM_APPNAME": "mine",
            "VIMRUNTIME": "/elsewhere",
            "XDG_CONFIG_HOME": "/home/me/.config",
            "XDG_STATE_HOME": "/home/me/.local/state",
        }
        with mock.patch.dict(os.environ, own):
            env = demo.environment(pathlib.Path("/tmp/d"), "http://127.0.0.1:1", pathlib.Path("/b"))
        self.assertFalse(set(own.values()) & set(env.values()))
        self.assertEqual(env["XDG_STATE_HOME"], "/tmp/d/state")
        self.assertEqual(env["PATH"], os.environ["PATH"])

    def test_without_a_terminal_it_says_what_to_do(self) -> None:
        env = {name: value for name, value in os.environ.items() if name != "DEMO_CHECK"}
        done = subprocess.run(
            [sys.executable, SCRIPTS / "demo.py"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr, "demo: the demo needs a terminal: run it in one, or with --check\n"
        )
