"""The map of the code: what the documents name exists, and the modules of the backend use only those below them."""

from __future__ import annotations

import collections
import pathlib
import re
import subprocess
import unittest
from collections.abc import Iterator

from support import ROOT

#: The roots of Rust paths such as `chat::turn`, in the order in which a name is looked up.
RUST = [ROOT / "src", *ROOT.glob("crates/*/src"), ROOT / "tests" / "it"]


def exists(path: str) -> bool:
    """Return whether `a::b::c` names modules, and then an item in the file of the last one."""
    names = path.split("::")
    crate = ROOT / "crates" / names[0].replace("_", "-") / "src"
    starts = [(crate / "lib", names[1:])] if crate.is_dir() else [(root / names[0], names[1:]) for root in RUST]
    for module, items in starts:
        while file := next((it for it in (module.with_suffix(".rs"), module / "mod.rs") if it.is_file()), None):
            inner = module.parent if module.name == "lib" else module
            if items and ((inner / items[0]).is_dir() or (inner / f"{items[0]}.rs").is_file()):
                module, items = inner / items[0], items[1:]
                continue
            text = file.read_text()
            if all(re.search(rf"\b{item}\b", text) for item in items):
                return True
            break
    return False


def named_paths(code: str) -> Iterator[list[str]]:
    """Yield each path that a Rust file names, also those in the braces of `use`."""
    code = re.sub(r"//[^\n]*|pub\(in [^)]*\)", "", code).split("#[cfg(test)]\nmod tests {")[0]
    for use in re.findall(r"^\s*(?:pub(?:\(\w+\))? )?use ([^;]+);", code, re.MULTILINE):
        prefix: list[str] = []
        for part in re.findall(r"[\w:]+|[{},]", use):
            names = [name for name in part.split("::") if name]
            if part == "{":
                prefix.append("/".join(last))
            elif part == "}":
                prefix.pop()
            elif part != ",":
                last = names
                yield [name for part in prefix for name in part.split("/")] + names
    yield from (path.split("::") for path in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", code))


def without_tests(file: pathlib.Path) -> str:
    """Return the code of a Rust file without comments and its module of tests."""
    return re.sub(r"//[^\n]*", "", file.read_text()).split("#[cfg(test)]\nmod tests {")[0]


Module = tuple[str, ...]


def modules(source: pathlib.Path) -> dict[Module, pathlib.Path]:
    """Return the files of a crate by their modules, without tests."""
    files = {}
    for file in source.rglob("*.rs"):
        module = tuple(name for name in file.relative_to(source).with_suffix("").parts if name not in ("mod", "lib"))
        if module != ("main",) and not any("tests" in name or name.startswith("test_") for name in module):
            files[module] = file
    return files


def named_module(files: dict[Module, pathlib.Path], module: Module, names: list[str]) -> tuple[Module, list[str]]:
    """Return the module that a path in another module leads to, and the rest of the path."""
    first, *rest = names
    at = list(module)
    while first == "super" and rest:
        at, (first, *rest) = at[:-1], rest
    if first == "crate":
        at = []
    elif first not in ("self", "super"):
        rest = [first, *rest]
    length = max(length for length in range(len(at) + len(rest) + 1) if (*at, *rest)[:length] in files)
    return (*at, *rest)[:length], [*at, *rest][length:]


def imports(source: pathlib.Path) -> dict[Module, set[Module]]:
    """Return the modules that each module of a crate names. What a module exports counts as the module that declares it.

    A module that names its parent only to add methods to a type of the parent is a part of it.
    """
    files = modules(source)
    exports, codes = {}, {}
    for module, file in files.items():
        code = re.sub(r"//[^\n]*|pub\(in [^)]*\)", "", file.read_text())
        exporting = re.compile(r"^\s*pub(?:\(\w+\))? use [^;]+;", re.MULTILINE)
        found = [names for use in exporting.findall(code) for names in named_paths(use)]
        exports[module] = {names[-1]: named_module(files, module, names)[0] for names in found}
        codes[module] = exporting.sub("", code).split("#[cfg(test)]\nmod tests {")[0]
    used = {}
    for module, code in codes.items():
        used[module] = {it for it in files if it and it[:-1] == module and re.search(rf"(?<![\w:]){it[-1]}::\w", code)}
        extended = re.findall(r"^impl(?:<[^>]*>)? (\w+)", code, re.MULTILINE)
        for names in named_paths(code):
            target, items = named_module(files, module, names)
            while items and exports[target].get(items[0], target) != target:
                target = exports[target][items[0]]
            is_parent = module[: len(target)] == target
            if target != module and not (is_parent and (not items or items[0] in extended)):
                used[module].add(target)
    return used


def circles(used: dict[Module, set[Module]]) -> dict[Module, set[Module]]:
    """Return what is left of a graph without the modules that are in no circle and use none that is."""
    left = dict(used)
    while free := [module for module in left if not left[module] & left.keys()]:
        for module in free:
            del left[module]
    return {module: targets & left.keys() for module, targets in left.items()}


class DocumentsTest(unittest.TestCase):
    def test_what_they_name_exists(self) -> None:
        self.assertFalse(exists("chat::sessions") or exists("co_policy::decided"))
        for name in ["ARCHITECTURE.md", "FEEL.md"]:
            text = (ROOT / "docs" / name).read_text()
            for path in set(re.findall(r"`([\w.-]+/[\w./*-]*|[\w-]+\.(?:rs|lua|md|toml))`", text)):
                self.assertTrue(any(ROOT.glob(path.rstrip("/"))), f"{name} names {path}")
            for path in set(re.findall(r"`(\w+(?:::\w+)+)`", text)):
                self.assertTrue(exists(path), f"{name} names {path}")
            for spec, title in re.findall(r'`(\w+_spec)` "([^"]+)"', text):
                self.assertIn(title, (ROOT / "tests" / "lua" / f"{spec}.lua").read_text(), f"{name} names {spec}")


    def test_the_targets_and_scripts_that_they_name_exist(self) -> None:
        targets = re.search(r"\.PHONY: (.+)", (ROOT / "Makefile").read_text())[1].split()
        for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
            text = file.read_text()
            for target in re.findall(r"(?m)(?:`|^    )make ([a-z]+)", text):
                self.assertIn(target, targets, file.name)
            for script in re.findall(r"scripts/\w+\.\w+", text):
                self.assertTrue((ROOT / script).exists(), f"{file.name} names {script}")


class CheckoutTest(unittest.TestCase):
    def test_git_ignores_what_neovim_and_python_write(self) -> None:
        for file in ["doc/tags", "scripts/__pycache__/model.pyc"]:
            ignored = subprocess.run(["git", "check-ignore", "--no-index", "-q", file], cwd=ROOT, check=False)
            self.assertEqual(ignored.returncode, 0, file)


class ModulesTest(unittest.TestCase):
    def test_they_use_only_those_below_them(self) -> None:
        for source in [ROOT / "src", ROOT / "crates" / "co-exec" / "src"]:
            rows = re.findall(r"^//! \| (.+?) \|", (source / "lib.rs").read_text(), re.MULTILINE)
            rank = {name: rank for rank, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}
            self.assertGreater(len(rank), 15)
            for module, used in imports(source).items():
                for target in used:
                    if module and target and module[0] != target[0] and {module[0], target[0]} <= rank.keys():
                        names = ["::".join(it) for it in (module, target)]
                        self.assertGreater(rank[target[0]], rank[module[0]], "{} uses {}".format(*names))

    def test_each_file_is_a_module(self) -> None:
        for source in RUST:
            for file in source.rglob("*.rs"):
                module = file.parent if file.name == "mod.rs" else file.with_suffix("")
                parents = [module.parent.with_suffix(".rs"), *(module.parent / name for name in ("mod.rs", "lib.rs", "main.rs"))]
                text = "".join(it.read_text() for it in parents if it.is_file())
                self.assertTrue(module.name in ("lib", "main") or f"mod {module.name};" in text, f"no file declares {file}")

    def test_no_file_or_folder_imports_in_a_circle(self) -> None:
        for source in [ROOT / "src", *ROOT.glob("crates/*/src")]:
            used = imports(source)
            self.assertEqual({}, circles(used), "these files import each other, or one that does")
            for folder in {module[:-1] for module in used}:
                depth = len(folder) + 1
                entries = collections.defaultdict(set)
                for module, targets in used.items():
                    beside = {it[:depth] for it in targets if it[: depth - 1] == folder}
                    if module[: depth - 1] == folder and len(module) >= depth:
                        entries[module[:depth]] |= beside - {module[:depth], folder}
                self.assertEqual({}, circles(entries), "these folders import each other, or one that does")

    def test_no_name_of_a_type_is_declared_more_than_twice(self) -> None:
        declared = collections.defaultdict(list)
        for file in [*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs")]:
            if "tests" not in file.stem and "tests" not in file.parent.name:
                for name in re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", without_tests(file), re.MULTILINE):
                    declared[name].append(file.relative_to(ROOT))
        often = {name: files for name, files in declared.items() if len(files) > 2 and name not in ("Err", "Error", "Result")}
        self.maxDiff = None
        self.assertEqual({}, often, "rename some of them by what they hold")

    def test_the_methods_of_a_type_stand_in_few_files(self) -> None:
        found = collections.defaultdict(set)
        for source in [ROOT / "src", *ROOT.glob("crates/*/src")]:
            for file in modules(source).values():
                for name in re.findall(r"^\s*impl(?:<[^{]*?>)? (\w+)(?:<[^{]*>)? (?:where|\{)", without_tests(file), re.MULTILINE):
                    found[source.parent.name, name].add(str(file.relative_to(ROOT)))
        self.assertIn("src/chat.rs", found[ROOT.name, "Chat"], "the test finds no methods")
        often = {name: sorted(files) for (_, name), files in found.items() if len(files) > 3}
        self.assertEqual({}, often, "give a part of it a type of its own")

    def test_files_are_opened_by_path_in_few_places(self) -> None:
        # What lies below a workspace is opened through `co_exec::beneath`: a command may replace any part of a path by a link.
        own = "co's own directories"
        reasons = {
            "crates/co-exec/src/beneath.rs": "opens the files of workspaces",
            "crates/co-exec/src/regular.rs": "opens files of settings, outside a workspace",
            "crates/co-proxy/src/setup.rs": "/etc/hosts",
            "crates/co-exec/src/container/mounts.rs": "an own directory with closed files",
            "crates/co-exec/src/container/owner.rs": "/proc",
            "crates/co-exec/src/container/remote.rs": "the configuration of the engine",
            "crates/co-exec/src/directory_lock.rs": own,
            "crates/co-exec/src/inherited.rs": "/proc",
            "crates/co-exec/src/limits.rs": "/proc",
            "crates/co-exec/src/output/spill.rs": own,
            "crates/co-exec/src/output/spill/file.rs": own,
            "crates/co-exec/src/process/": "/proc, cgroups, terminals; counts the files of a private TMPDIR",
            "crates/co-exec/src/sandbox/git.rs": "the person's configuration of git",
            "crates/co-exec/src/sandbox/grants.rs": "lists /etc",
            "crates/co-exec/src/sandbox/grants/path.rs": "/etc; lists directories of PATH",
            "crates/co-exec/src/sandbox/grants/place_pattern.rs": "lists toolchains",
            "crates/co-exec/src/sandbox/grants/mount_points.rs": "/proc",
            "crates/co-exec/src/sandbox/layer.rs": own,
            "crates/co-exec/src/sandbox/mounts.rs": "/proc; places in a new mount namespace",
            "crates/co-exec/src/sandbox/plan.rs": "an inherited descriptor",
            "crates/co-exec/src/sandbox/removal.rs": own,
            "crates/co-exec/src/sandbox/restriction.rs": "/proc",
            "crates/co-exec/src/sandbox/rules.rs": "devices; opens entries below the descriptor of their directory",
            "crates/co-exec/src/sandbox/support.rs": own,
            "crates/co-exec/src/sandbox/tmp.rs": own,
            "crates/co-exec/src/sandbox/trial.rs": own,
            "crates/co-exec/src/secrets/survey.rs": "looks for other names of private files, outside a workspace",
            "crates/co-exec/src/settings.rs": "/proc",
            "crates/co-exec/src/watcher.rs": "/proc",
            "crates/co-llm/src/key/source.rs": "a file of a key, which the person names",
            "src/agent/home.rs": own,
            "src/agent/tools.rs": "/dev/urandom",
            "src/program_places.rs": "the first line of a program of the settings",
            "src/services/audit_task.rs": own,
            "src/chat/person/run_editor.rs": own,
            "src/checkpoint/journal.rs": own,
            "src/checkpoint/answers.rs": own,
            "src/checkpoint/log.rs": own,
            "src/checkpoint/store.rs": own,
            "src/config/layers.rs": "files of settings",
            "src/mcp/login_file.rs": own,
            "src/nvim/stdio.rs": "/dev/null",
            "src/paths.rs": own,
            "src/rotation.rs": own,
            "src/shared_file.rs": own,
            "src/store": own,
            "src/workspace/rules.rs": own,
            "src/trial/ignored": own,
            "src/trial/layer.rs": own,
            "src/trust.rs": own,
        }
        by_path = re.compile(
            r"(?<!rustix::)\bfs::(?!fchown|canonicalize)[a-z_]+\b(?!::)|\bFile::(?:open|create|create_new|options)\b|\bOpenOptions::"
            r"|\.read_dir\(|\bregular::(?:read|text)\(|\bopenat\(\s*CWD|\brustix::fs::open\(",
        )
        unused = set(reasons)
        for file in [*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs")]:
            code = re.sub(r"//[^\n]*", "", file.read_text()).split("mod tests {")[0]
            name = str(file.relative_to(ROOT))
            if "tests" not in name and "test_" not in name and by_path.search(code):
                allowed = {it for it in reasons if name.startswith(it)}
                self.assertTrue(allowed, f"{name} opens files by path: use co_exec::beneath, or name the reason")
                unused -= allowed
        self.assertEqual(set(), unused, "these open no file by path")

    def test_git_starts_in_one_place(self) -> None:
        # Anything else goes through `workspace::own_git`, at the read-only level.
        reasons = {
            "crates/co-exec/src/sandbox/git/configured.rs": "a level needs the places of hooks before it exists",
            "lua/co/install.lua": "the checkout of the plugin, which the person chose",
        }
        starts = {".rs": r'Command::new\(&?(?:self\.)?"?git\b', ".lua": r"""['"]git['"],"""}
        found = set()
        for file in [*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("lua/**/*.lua")]:
            of_tests = "tests" in file.stem or "tests" in file.parent.parts
            if not of_tests and re.search(starts[file.suffix], without_tests(file)):
                found.add(str(file.relative_to(ROOT)))
        self.assertEqual(reasons.keys(), found)

    def test_the_contexts_of_a_prompt_come_from_the_backend(self) -> None:
        reasons = {
            "prompt_files.lua": "the person trusts the exact text before it is sent",
        }
        reads = re.compile(r"io\.open|fs_open|readfile|readblob|disk\.read")
        chat = (ROOT / "lua" / "co" / "chat").glob("*.lua")
        self.assertEqual(reasons.keys(), {file.name for file in chat if reads.search(file.read_text())})

    def test_policy_edit_and_text_touch_no_file_process_or_network(self) -> None:
        # The methods are those of `Path` that read the disk.
        system = r"std::(?:fs|process|net|env|os)\b|\.(?:canonicalize|exists|is_dir|is_file|is_symlink|(?:symlink_)?metadata|read_(?:dir|link))\("
        for crate, least in [("policy", 10), ("edit", 10), ("text", 1)]:
            files = [*ROOT.glob(f"crates/co-{crate}/src/**/*.rs")]
            self.assertGreaterEqual(len(files), least)
            for file in files:
                self.assertIsNone(re.search(system, file.read_text()), str(file))

    def test_only_one_knows_the_library_of_rpc(self) -> None:
        for file in (ROOT / "src").rglob("*.rs"):
            if file.relative_to(ROOT / "src").with_suffix("").parts[0] != "nvim":
                self.assertNotIn("use nvim_rs", file.read_text(), str(file))


if __name__ == "__main__":
    unittest.main()
