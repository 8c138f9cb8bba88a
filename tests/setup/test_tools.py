"""scripts/tools.py, against wheels made here: no registry is asked."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import SCRIPTS
import tools

DRIVER = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import tools
tools.SCRIPTS = pathlib.Path(sys.argv[2])
sys.exit(tools.main(sys.argv[3:]))
"""


def make_wheel(directory: pathlib.Path) -> pathlib.Path:
    """Write a wheel that is called typos and holds one program."""
    directory.mkdir()
    wheel = directory / "typos-1.0-py3-none-any.whl"
    info = "typos-1.0.dist-info"
    files = {
        "typos-1.0.data/scripts/typos": "#!/bin/sh\necho checked\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: typos\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(name)
            # A regular file: pip makes no other kind executable.
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return wheel


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # Making a virtual environment takes seconds, so each test gets a copy of one.
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.made = pathlib.Path(temporary.name)
        tools.Tools(cls.made).make_venv("typos")

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        shutil.copytree(self.made, self.home / "tools", symlinks=True)
        self.wheel = make_wheel(self.home / "wheels")
        (self.home / "scripts" / "requirements").mkdir(parents=True)
        self.pin(hashlib.sha256(self.wheel.read_bytes()).hexdigest())

    def pin(self, digest: str) -> None:
        pinned = f"typos==1.0 --hash=sha256:{digest}\n"
        (self.home / "scripts" / "requirements" / "typos.txt").write_text(pinned)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        env = {
            **os.environ,
            "CO_TOOLS_DIR": str(self.home / "tools"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.home / "wheels"),
        }
        command = [sys.executable, "-c", DRIVER, SCRIPTS, self.home / "scripts", *arguments]
        return subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ask(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def test_prints_the_path_alone_and_installs_once(self) -> None:
        status, path, told = self.ask("typos")
        self.assertEqual((status, told.count("installing typos")), (0, 1), told)
        shown = subprocess.run([path.strip()], capture_output=True, text=True, check=True)
        self.assertEqual(shown.stdout, "checked\n")
        self.assertEqual(self.ask("typos"), (0, path, ""))

    def test_two_at_once_install_once(self) -> None:
        asked = [self.start("typos") for _ in range(2)]
        answers = [process.communicate(timeout=120) for process in asked]
        self.assertEqual([process.returncode for process in asked], [0, 0], answers)
        self.assertEqual(answers[0][0], answers[1][0])
        self.assertEqual(sum(err.count("installing typos") for _, err in answers), 1, answers)

    def test_another_pin_is_another_installation(self) -> None:
        self.ask("typos")
        requirements = self.home / "scripts" / "requirements" / "typos.txt"
        requirements.write_text("# a new pin\n" + requirements.read_text())
        status, _, told = self.ask("typos")
        self.assertEqual((status, told.count("installing typos")), (0, 1), told)

    def test_a_wheel_that_is_not_the_pinned_one_is_refused(self) -> None:
        self.pin("0" * 64)
        status, path, told = self.ask("typos")
        self.assertEqual((status, path), (1, ""))
        self.assertIn("tools: typos could not be installed", told)
        self.assertEqual(self.ask("typos")[0], 1, "the failure was remembered as a success")

    def test_what_cannot_be_reached_is_named(self) -> None:
        self.wheel.unlink()
        status, _, told = self.ask("typos")
        self.assertEqual(status, 1)
        self.assertIn("tools: typos could not be installed: connect to the package registry", told)
        self.assertNotIn("Traceback", told)

    def test_an_unknown_tool_is_an_error(self) -> None:
        for arguments in [(), ("emacs",), ("nvim", "node")]:
            status, path, told = self.ask(*arguments)
            self.assertEqual((status, path), (2, ""), arguments)
            self.assertIn("usage: tools.py nvim|", told)


class OnPathTest(unittest.TestCase):
    def found(self, shown: str, status: int = 0) -> bool:
        with tempfile.TemporaryDirectory() as name:
            program = pathlib.Path(name, "nvim")
            program.write_text(f"#!/bin/sh\necho '{shown}'\nexit {status}\n")
            program.chmod(0o755)
            path = os.environ["PATH"]
            os.environ["PATH"] = name
            try:
                found = tools.found_on_path("nvim", tools.OLDEST_NVIM)
            finally:
                os.environ["PATH"] = path
            self.assertIn(found, [program, None])
            return found is not None

    def test_only_a_version_that_is_new_enough_is_taken(self) -> None:
        self.assertTrue(self.found("NVIM v0.10.0"))
        self.assertTrue(self.found("NVIM v0.12.0-dev-1+g0"))
        self.assertTrue(self.found("NVIM v1.0.0"))
        self.assertFalse(self.found("NVIM v0.9.5"))
        self.assertFalse(self.found("NVIM v0.7.2"))

    def test_what_does_not_tell_its_version_is_not_taken(self) -> None:
        self.assertFalse(self.found("hello"))
        self.assertFalse(self.found("NVIM v0.11.4", status=1))
