"""What is pinned is pinned whole, agrees with itself, and names no place to fetch it from."""

from __future__ import annotations

import json
import re
import tomllib
import unittest

from support import ROOT, SCRIPTS


class PinsTest(unittest.TestCase):
    def test_every_wheel_has_a_version_and_hashes(self) -> None:
        files = sorted((SCRIPTS / "requirements").glob("*.txt"))
        self.assertGreaterEqual(len(files), 4)
        for file in files:
            lines = re.sub(r"\\\n", " ", file.read_text()).splitlines()
            wheels = [line for line in lines if line and not line.startswith("#")]
            self.assertTrue(wheels, file)
            for wheel in wheels:
                self.assertRegex(wheel, r"^[a-z0-9-]+==[0-9.]+( +--hash=sha256:[0-9a-f]{64})+$", file)

    def test_npm_packages_are_exact_and_have_hashes(self) -> None:
        wanted = json.loads((SCRIPTS / "npm" / "package.json").read_text())["dependencies"]
        locked = json.loads((SCRIPTS / "npm" / "package-lock.json").read_text())["packages"]
        self.assertEqual(locked[""]["dependencies"], wanted)
        for name, version in wanted.items():
            self.assertEqual(locked[f"node_modules/{name}"]["version"], version)
        for name, package in locked.items():
            if name:
                self.assertTrue(package["integrity"].startswith("sha512-"), name)

    def test_no_lock_file_names_a_mirror(self) -> None:
        own = "registry+https://github.com/rust-lang/crates.io-index"
        cargo = tomllib.loads((ROOT / "Cargo.lock").read_text())
        self.assertEqual({p["source"] for p in cargo["package"] if "source" in p}, {own})
        self.assertNotIn("http", (SCRIPTS / "npm" / "package-lock.json").read_text())
        for file in (SCRIPTS / "requirements").glob("*.txt"):
            self.assertNotRegex(file.read_text(), r"https?:|--(extra-)?index-url|--find-links")

    def test_the_oldest_rust_is_the_same_everywhere(self) -> None:
        package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
        oldest = package["rust-version"]
        places = ("README.md", "doc/co.txt", "lua/co/install.lua", ".github/workflows/ci.yml")
        for name in places:
            self.assertIn(oldest, (ROOT / name).read_text(), name)

    def test_plugin_and_backend_have_the_same_versions(self) -> None:
        workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
        for file in (ROOT / "Cargo.toml", *sorted(ROOT.glob("crates/*/Cargo.toml"))):
            package = tomllib.loads(file.read_text())["package"]
            self.assertEqual(package["version"], {"workspace": True}, file)
        protocol = re.search(r"PROTOCOL: u32 = (\d+);", (ROOT / "src" / "protocol.rs").read_text())
        assert protocol is not None
        self.assertIn(
            f"version = '{workspace['package']['version']}', protocol = {protocol[1]} ",
            (ROOT / "lua" / "co" / "version.lua").read_text(),
        )

    def test_the_build_has_one_spelling(self) -> None:
        told = [ROOT / "README.md", ROOT / "doc" / "co.txt", *ROOT.glob("lua/**/*.lua")]
        told += ROOT.glob("plugin/*.lua")
        for file in told:
            self.assertNotIn("make build", file.read_text(), file)
        naming = ("backend/executable.lua", "backend/init.lua", "health.lua")
        for file in (ROOT / "README.md", *(ROOT / "lua" / "co" / name for name in naming)):
            self.assertIn(":Co /install", file.read_text(), file)
        spelled = [ROOT / "LICENSE", ROOT / "Makefile", *ROOT.glob(".github/workflows/*.yml")]
        for files, profile in ((told, "--profile local"), (spelled, "--release")):
            for file in files:
                for command in re.findall(r"\bcargo build\b.+?--locked", file.read_text()):
                    self.assertEqual(command, f"cargo build {profile} --locked", file)
        for name, profile in (
            ("LICENSE", "--release"),
            ("Makefile", "--release"),
            ("doc/co.txt", "--profile local"),
            ("lua/co/install.lua", "--profile local"),
        ):
            self.assertIn(f"cargo build {profile} --locked", (ROOT / name).read_text(), name)

    def test_licenses_that_are_named_are_there(self) -> None:
        for name in re.findall(r"licenses/[\w.-]+|LICENSE-\w+", (ROOT / "LICENSE").read_text()):
            self.assertGreater((ROOT / name).stat().st_size, 1000, name)
