#!/usr/bin/env python3
"""Make the files of a release; `.github/workflows/release.yml` runs this.

    python3 scripts/release.py tag v0.1.0                          # is that this version?
    python3 scripts/release.py program x86_64-unknown-linux-musl   # dist/co-nvim-… with its checksum
    python3 scripts/release.py licenses                            # dist/co-nvim-licenses.tar.gz

`lua/co/install.lua` downloads the program under the name that it gets here.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
# In the checkout; LICENSE says that they go with the program.
OWN = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "licenses")


class ReleaseError(Exception):
    """The reason why this cannot be released, in one sentence."""


def output(*command: str | pathlib.Path) -> str:
    """Return what a program prints; its failure is an error."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(map(str, command))} failed (exit {done.returncode})")
    return done.stdout


def version() -> str:
    """Return the version of co."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def check_tag(tag: str) -> None:
    """Refuse a tag of another version."""
    if tag != f"v{version()}":
        raise ReleaseError(f"the tag is {tag}, and Cargo.toml has the version {version()}")


def needs_libraries(program: pathlib.Path) -> bool:
    """Return whether a program needs a dynamic loader or a shared library."""
    return re.search(r"\bINTERP\b|\(NEEDED\)", output("readelf", "-dlW", program)) is not None


def make_program(built: pathlib.Path, target: str, dist: pathlib.Path) -> pathlib.Path:
    """Check a program that was built, and put it with its checksum into `dist`."""
    if needs_libraries(built):
        raise ReleaseError(f"{built} is not linked statically")
    reported = output(built, "--version")
    if not reported.startswith(f"co-nvim {version()} (protocol "):
        raise ReleaseError(f"{built} says that it is {reported.strip()}")
    dist.mkdir(exist_ok=True)
    made = dist / f"co-nvim-{target}"
    shutil.copy(built, made)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    made.with_name(f"{made.name}.sha256").write_text(f"{digest}  {made.name}\n")
    return made


def linked_crates() -> list[dict]:
    """Return the packages of other authors that the program links, by name."""
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1",
                                 "--filter-platform", "x86_64-unknown-linux-musl"))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    linked, left = set(), [metadata["resolve"]["root"]]
    while left:
        here = left.pop()
        if here in linked:
            continue
        linked.add(here)
        for dep in nodes[here]["deps"]:
            kinds = {kind["kind"] for kind in dep["dep_kinds"]}
            macro = any("proc-macro" in it["kind"] for it in packages[dep["pkg"]]["targets"])
            if None in kinds and not macro:
                left.append(dep["pkg"])
    foreign = [packages[it] for it in linked if packages[it]["source"] is not None]
    return sorted(foreign, key=lambda it: (it["name"], it["version"]))


def notices(package: dict) -> str:
    """Return the licence of a package with the texts that it carries."""
    head = f"{package['name']} {package['version']}: {package['license']}"
    authors = ", ".join(package["authors"])
    texts = [head + (f"\nby {authors}" if authors else "")]
    directory = pathlib.Path(package["manifest_path"]).parent
    for file in sorted(directory.iterdir()):
        if re.match(r"(licen[sc]e|copying|copyright|notice|unlicense)", file.name, re.I) and file.is_file():
            texts.append(f"--- {file.name}\n{file.read_text(errors='replace').strip()}")
    return "\n\n".join(texts)


def make_licenses(dist: pathlib.Path) -> pathlib.Path:
    """Put the licences of co and of all that it links into an archive in `dist`."""
    rule = "\n\n" + "=" * 80 + "\n\n"
    crates = rule.join(notices(package) for package in linked_crates()).encode()
    standard = pathlib.Path(output("rustc", "--print", "sysroot").strip(), "share/doc/rust")
    dist.mkdir(exist_ok=True)
    made = dist / "co-nvim-licenses.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        for name in OWN:
            archive.add(ROOT / name, name)
        # The standard library, and the C library, which the package musl describes.
        for file in (standard / "COPYRIGHT-library.html", pathlib.Path("/usr/share/doc/musl/copyright")):
            if file.exists():
                archive.add(file, f"licenses/{'musl' if file.name == 'copyright' else 'rust'}-{file.name}")
        entry = tarfile.TarInfo("licenses/crates.txt")
        entry.size = len(crates)
        archive.addfile(entry, io.BytesIO(crates))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("tag").add_argument("tag")
    parts.add_parser("program").add_argument("target")
    parts.add_parser("licenses")
    arguments = parser.parse_args()
    try:
        if arguments.part == "tag":
            check_tag(arguments.tag)
        elif arguments.part == "program":
            built = ROOT / "target" / arguments.target / "release" / "co-nvim"
            print(make_program(built, arguments.target, DIST))
        else:
            print(make_licenses(DIST))
    except ReleaseError as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
