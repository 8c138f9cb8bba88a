"""The files of a release: only the program that was tagged, under the name that the installer asks for."""

from __future__ import annotations

import hashlib
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

from support import ROOT

import release


class ReleaseTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = pathlib.Path(directory.name)

    def program(self, reported: str) -> pathlib.Path:
        """Return a program that reports this for --version."""
        file = self.home / "built"
        file.write_text(f"#!/bin/sh\necho '{reported}'\n")
        file.chmod(0o755)
        return file

    def test_a_tag_of_another_version_is_refused(self) -> None:
        release.check_tag(f"v{release.version()}")
        with self.assertRaisesRegex(release.ReleaseError, "the tag is v0.0.0, and Cargo.toml"):
            release.check_tag("v0.0.0")

    def test_a_program_that_needs_libraries_is_refused(self) -> None:
        with self.assertRaisesRegex(release.ReleaseError, "is not linked statically"):
            release.make_program(pathlib.Path(sys.executable).resolve(), "x", self.home / "dist")

    def test_a_program_of_another_version_is_refused(self) -> None:
        built = self.program("co-nvim 0.0.0 (protocol 1)")
        with mock.patch.object(release, "needs_libraries", return_value=False):
            with self.assertRaisesRegex(release.ReleaseError, "says that it is co-nvim 0.0.0"):
                release.make_program(built, "x", self.home / "dist")

    def test_a_program_has_its_checksum_beside_it(self) -> None:
        built = self.program(f"co-nvim {release.version()} (protocol 1)")
        with mock.patch.object(release, "needs_libraries", return_value=False):
            made = release.make_program(built, "x86_64-unknown-linux-musl", self.home / "dist")
        self.assertEqual(made.read_bytes(), built.read_bytes())
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        checksum = made.with_name("co-nvim-x86_64-unknown-linux-musl.sha256")
        self.assertEqual(checksum.read_text(), f"{digest}  {made.name}\n")
        subprocess.run(["sha256sum", "--check", "--quiet", checksum], cwd=made.parent, check=True)

    def test_the_licenses_name_every_crate(self) -> None:
        with tarfile.open(release.make_licenses(self.home)) as archive:
            names = archive.getnames()
            file = archive.extractfile("licenses/crates.txt")
            assert file is not None
            crates = file.read().decode()
        self.assertLessEqual({"LICENSE", "licenses/LGPL-3.0.txt", "licenses/GPL-3.0.txt"}, set(names))
        for head in (r"nvim-rs \S+: LGPL-3.0", r"option-ext \S+: MPL-2.0", r"tokio \S+: MIT"):
            self.assertRegex(crates, rf"(?m)^{head}")
        # These run at build time only, or in tests.
        self.assertNotRegex(crates, r"(?m)^(serde_derive|cc|proptest) ")

    def test_the_installer_asks_for_what_is_released(self) -> None:
        workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
        installer = (ROOT / "lua" / "co" / "install.lua").read_text()
        targets = set(re.findall(r"- target: (\S+)", workflow))
        self.assertEqual(targets, set(re.findall(r"'(\w+-unknown-linux-musl)'", installer)))
