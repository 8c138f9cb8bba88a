"""The scripts: what runs, runs all of it, and a failure is one."""

from __future__ import annotations

import os
import subprocess
import unittest

from support import ROOT


def bash(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the scripts here run."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


class ScriptsTest(unittest.TestCase):
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
