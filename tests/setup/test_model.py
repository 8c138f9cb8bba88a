"""scripts/model.py never outlives its owner. `editor::model` uses its answers."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import SCRIPTS, required

PATIENCE_S = 180


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip() != "" and not shown.stdout.startswith("Z")


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
