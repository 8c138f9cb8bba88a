"""The scripts and the Makefile: what runs, runs all of it, and a failure is one."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import ROOT, SCRIPTS, required


def bash(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the scripts here run."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


class ScriptsTest(unittest.TestCase):
    def test_every_script_compiles(self) -> None:
        for file in [*SCRIPTS.glob("*.py"), *pathlib.Path(__file__).parent.glob("*.py")]:
            compile(file.read_text(), str(file), "exec")
        for file in [ROOT / ".ci" / "run", *SCRIPTS.glob("*.sh")]:
            subprocess.run(["bash", "-n", file], check=True)

    def test_what_is_run_by_name_can_be(self) -> None:
        self.assertTrue(os.access(ROOT / ".ci" / "run", os.X_OK))

    def test_parts_all_run_and_one_failure_fails(self) -> None:
        done = bash("source scripts/parts.sh; part a true; part b false; part c echo ran; finish")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ran\n", done.stdout)
        self.assertTrue(done.stdout.endswith("== failed: b;\n"), done.stdout)

    def test_parts_that_all_succeed_succeed(self) -> None:
        done = bash("source scripts/parts.sh; part a true; part c true; finish")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("failed", done.stdout)

    def test_a_missing_tool_ends_the_script(self) -> None:
        done = bash("source scripts/parts.sh; x=$(tool emacs); echo went on")
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("went on", done.stdout)

    def test_make_help_lists_every_target(self) -> None:
        makefile = (ROOT / "Makefile").read_text()
        phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
        shown = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True)
        self.assertEqual(sorted(re.findall(r"^  make (\w+)", shown.stdout, re.MULTILINE)), sorted(phony))


class StyluaTest(unittest.TestCase):
    def stylua(self, lua: str, *flags: str) -> tuple[int, str, str]:
        with tempfile.TemporaryDirectory() as name:
            file = pathlib.Path(name, "a.lua")
            file.write_text(lua)
            module = subprocess.run(
                ["python3", SCRIPTS / "tools.py", "stylua"], capture_output=True, text=True, check=True
            )
            command = [required("CO_TEST_NODE"), SCRIPTS / "stylua.mjs", module.stdout.strip()]
            done = subprocess.run([*command, *flags, name], capture_output=True, text=True)
            return done.returncode, file.read_text(), done.stderr

    def test_a_badly_formatted_file_is_told_and_left(self) -> None:
        status, after, told = self.stylua("local a = {1}\nlocal b = 'x'\n", "--check")
        self.assertEqual((status, after), (1, "local a = {1}\nlocal b = 'x'\n"))
        self.assertIn("a.lua: not formatted from line 1\n", told)

    def test_it_is_mended_by_the_projects_settings(self) -> None:
        status, after, _ = self.stylua('if a then\n\tb("x")\nend\n')
        self.assertEqual((status, after), (0, "if a then\n  b('x')\nend\n"))
        self.assertEqual(self.stylua(after, "--check")[0], 0)

    def test_what_is_not_lua_fails(self) -> None:
        self.assertEqual(self.stylua("local = 1\n", "--check")[0], 1)
