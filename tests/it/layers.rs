//! The code map holds: who may know whom, and no file is forgotten.

mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use source::{Found, read};

use crate::support::ROOT;

/// Who may know whom, from the top down: a module names only modules below its own row.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "app",
            "nvim",
            "shell",
            "session",
            "tool",
            "error",
            "store",
            "audit",
            "editor",
            "config",
            "protocol",
            "llm",
            "policy",
            "exec",
            "paths",
            "logging",
            "transcript",
        ],
    ),
    (
        "app",
        &[
            "nvim",
            "shell",
            "session",
            "tool",
            "error",
            "store",
            "audit",
            "editor",
            "config",
            "protocol",
            "llm",
            "policy",
            "exec",
            "secrets",
            "paths",
            "logging",
            "transcript",
        ],
    ),
    ("nvim", &["error", "editor", "protocol", "exec"]),
    (
        "shell",
        &[
            "session",
            "tool",
            "error",
            "editor",
            "config",
            "protocol",
            "exec",
            "transcript",
        ],
    ),
    (
        "session",
        &[
            "tool",
            "error",
            "store",
            "audit",
            "editor",
            "config",
            "protocol",
            "llm",
            "policy",
            "exec",
            "secrets",
            "transcript",
            "trust",
        ],
    ),
    (
        "tool",
        &[
            "error",
            "editor",
            "config",
            "llm",
            "policy",
            "exec",
            "fnv",
            "regular",
            "repository",
            "secrets",
            "shared_file",
            "transcript",
        ],
    ),
    (
        "error",
        &[
            "store",
            "config",
            "protocol",
            "llm",
            "policy",
            "exec",
            "paths",
            "logging",
            "transcript",
        ],
    ),
    ("store", &["paths", "transcript"]),
    ("audit", &["exec", "paths", "transcript"]),
    ("editor", &["protocol", "exec", "transcript"]),
    ("config", &["llm", "policy", "exec"]),
    ("protocol", &["exec", "transcript"]),
    ("llm", &["transcript"]),
    ("policy", &["secrets"]),
    ("exec", &["fnv", "regular", "repository", "secrets"]),
    ("secrets", &["regular", "repository"]),
    ("fnv", &[]),
    ("trust", &["regular", "shared_file"]),
    ("repository", &["regular"]),
    ("regular", &[]),
    ("shared_file", &[]),
    ("paths", &[]),
    ("logging", &[]),
    ("transcript", &[]),
];

/// What lies outside the package and who alone may know it.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("nvim_rs", &["nvim"]),
    ("rmpv", &["nvim", "protocol"]),
    ("genai", &["llm"]),
];

/// What those that only think may not touch.
const INPUT_OUTPUT: &[&str] = &[
    "std::fs",
    "std::process",
    "std::net",
    "std::env",
    "std::os",
    "tokio",
    "nix",
    "rustix",
    "reqwest",
    "tempfile",
];

const PURE: &[&str] = &["policy", "transcript", "protocol"];

/// Returns what is wrong with one use of `path` in the module `module`.
fn judge(module: &str, path: &[String]) -> Option<String> {
    let [first, second, ..] = path else {
        return outside(module, path);
    };
    if first != "crate" {
        return outside(module, path);
    }
    if second == module {
        return None;
    }
    let row = ARROWS.iter().find(|(name, _)| *name == module);
    let Some((_, below)) = row else {
        return Some(format!("{module} is not in the table of arrows"));
    };
    // Renamed or taken whole, the crate would hide whom a module knows.
    (!below.contains(&second.as_str())).then(|| format!("{module} may not know {second}"))
}

fn outside(module: &str, path: &[String]) -> Option<String> {
    let text = path.join("::");
    let starts = |prefix: &str| text == prefix || text.starts_with(&format!("{prefix}::"));
    let owned = |(name, owners): &&(&str, &[&str])| starts(name) && !owners.contains(&module);
    if let Some((name, _)) = OUTSIDE.iter().find(owned) {
        return Some(format!("{module} may not know {name}"));
    }
    let touches = INPUT_OUTPUT.iter().find(|prefix| starts(prefix));
    touches
        .filter(|_| PURE.contains(&module))
        .map(|prefix| format!("{module} may not use {prefix}"))
}

/// Returns the Rust files below `dir`, relative to it.
fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(path.strip_prefix(dir).unwrap().to_owned());
            }
        }
    }
    found
}

/// Returns the module that a file is, from the crate's root.
fn module(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if matches!(
        names.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        names.pop();
    }
    names
}

/// Where the module `name`, declared in `file`, may be.
fn places(file: &Path, name: &str) -> [PathBuf; 2] {
    let dir: PathBuf = module(file).iter().collect();
    [
        dir.join(format!("{name}.rs")),
        dir.join(name).join("mod.rs"),
    ]
}

/// Returns the files reached by `mod` from `root`; with `tests`, those only tests are built from too.
fn reached(dir: &Path, root: &str, tests: bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![PathBuf::from(root)];
    while let Some(file) = left.pop() {
        let Found { modules, .. } = read(&text(&dir.join(&file)), &module(&file));
        for declared in modules.iter().filter(|declared| tests || !declared.test) {
            let there = |place: &PathBuf| dir.join(place).is_file();
            left.extend(places(&file, &declared.name).into_iter().filter(there));
        }
        found.insert(file);
    }
    found
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn arrows_point_down_only() {
    for (row, (name, below)) in ARROWS.iter().enumerate() {
        for known in *below {
            let at = ARROWS.iter().position(|(other, _)| other == known);
            assert!(
                at.is_some_and(|at| at > row),
                "{name} stands below {known}, or {known} is unknown"
            );
        }
    }
}

#[test]
fn nobody_knows_whom_they_must_not() {
    let src = Path::new(ROOT).join("src");
    let mut wrong = Vec::new();
    let mut uses = 0;
    for file in reached(&src, "lib.rs", false) {
        let place = module(&file);
        let Some(top) = place.first() else { continue };
        let found = read(&text(&src.join(&file)), &place);
        uses += found.paths.iter().filter(|path| path[0] == "crate").count();
        let judged = found.paths.iter().filter_map(|path| judge(top, path));
        wrong.extend(judged.map(|why| format!("src/{}: {why}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(uses > 10, "only {uses} uses of its own were found in src");
}

#[test]
fn no_file_is_forgotten() {
    let src = Path::new(ROOT).join("src");
    let mut built = reached(&src, "lib.rs", true);
    built.extend(reached(&src, "main.rs", true));
    built.extend(reached(&src, "bin/co-launch.rs", true));
    same(&built, &files(&src), "src");
    let it = Path::new(ROOT).join("tests/it");
    same(&reached(&it, "main.rs", true), &files(&it), "tests/it");
}

#[track_caller]
fn same(built: &BTreeSet<PathBuf>, there: &BTreeSet<PathBuf>, dir: &str) {
    let forgotten: Vec<_> = there.difference(built).collect();
    assert!(
        forgotten.is_empty(),
        "no module names {forgotten:?} of {dir}"
    );
    assert!(
        built.is_subset(there) && built.len() > 10,
        "{dir}: {built:?}"
    );
}

#[test]
fn every_module_has_a_row() {
    let src = Path::new(ROOT).join("src");
    let found = read(&text(&src.join("lib.rs")), &[]);
    for module in &found.modules {
        let row = ARROWS.iter().find(|(name, _)| *name == module.name);
        assert!(
            row.is_some(),
            "{} has no row in the table of arrows",
            module.name
        );
    }
    assert!(found.modules.len() > 10);
}

/// What is wrong with `code` in the file `file` of `src`.
fn wrong(file: &str, code: &str) -> Vec<String> {
    let place = module(Path::new(file));
    let found = read(code, &place);
    let judged = found.paths.iter();
    judged.filter_map(|path| judge(&place[0], path)).collect()
}

#[test]
fn forbidden_arrows_are_seen_however_they_are_written() {
    let check = |file: &str, code: &str, told: &str| {
        assert_eq!(wrong(file, code), [told], "{file}: {code}");
    };
    let session = "exec may not know session";
    check("exec.rs", "use crate::session::Session;", session);
    check("exec/pty.rs", "use crate::{session, exec::Spec};", session);
    check(
        "exec/pty.rs",
        "use crate::{exec::{Spec, pty::{self}}, session::{A}};",
        "exec may not know session",
    );
    check(
        "exec/mod.rs",
        "fn f() { let x = crate::session::start(); }",
        session,
    );
    check("exec/pty.rs", "use super::super::session;", session);
    check("exec/pty.rs", "use super::super::{session};", session);
    check("exec.rs", "use super::session;", session);
    check(
        "exec.rs",
        "mod inner { use super::super::session; }",
        session,
    );
    check("exec.rs", "pub use crate::session::Session as S;", session);
    check(
        "exec.rs",
        "macro_rules! m { () => { $crate::session::f() } }",
        session,
    );
    check("exec.rs", "use crate as co;", "exec may not know *");
    check("exec.rs", "use crate::*;", "exec may not know *");
    check("exec.rs", "pub(in crate::session) fn f() {}", session);
    check(
        "tool.rs",
        "use nvim_rs::Value;",
        "tool may not know nvim_rs",
    );
    check(
        "tool.rs",
        "type V = ::rmpv::Value;",
        "tool may not know rmpv",
    );
    check(
        "policy.rs",
        "use std::{collections::HashMap, fs};",
        "policy may not use std::fs",
    );
    check(
        "policy.rs",
        "fn f() { std::process::exit(1) }",
        "policy may not use std::process",
    );
    check(
        "policy/bash.rs",
        "async fn f() { tokio::task::yield_now().await }",
        "policy may not use tokio",
    );
    check(
        "unheard.rs",
        "use crate::exec;",
        "unheard is not in the table of arrows",
    );
}

#[test]
fn what_is_no_use_is_let_be() {
    let check = |file: &str, code: &str| assert_eq!(wrong(file, code), [""; 0], "{file}: {code}");
    check(
        "exec.rs",
        "// use crate::session;\n/* crate::session /* crate::llm */ */ fn f() {}",
    );
    check(
        "exec.rs",
        "//! See [`crate::session`].\nfn f<'a>(x: &'a str) -> char { '\"' }",
    );
    check(
        "exec.rs",
        r##"const A: &str = "crate::session \" crate::llm"; const B: &str = r#"crate::llm "x" "#;"##,
    );
    check(
        "exec.rs",
        "#[cfg(test)]\nmod tests { use crate::session; fn f() { {} } }",
    );
    check(
        "exec.rs",
        "#[cfg(test)]\n#[allow(unused)]\nuse crate::session;\nfn f() {}",
    );
    check(
        "exec.rs",
        "use self::pty; use crate::exec::pty; use super::exec;",
    );
    check(
        "exec/pty.rs",
        "use super::Spec; fn f(x: super::super::exec::Spec) {}",
    );
    check("exec/pty.rs", "mod inner { use super::super::Spec; }");
    check(
        "exec.rs",
        "fn f() { std::fs::read(\"x\"); tokio::spawn(async {}); x.session.crate_name }",
    );
    check(
        "session.rs",
        "use crate::{exec, llm::Fault}; use super::tool;",
    );
    check(
        "nvim/mod.rs",
        "use nvim_rs::compat::tokio::Compat; use rmpv::Value;",
    );
}

#[test]
fn modules_are_found_with_those_of_tests() {
    let found = read(
        "mod a; pub(crate) mod b;\n#[cfg(test)]\nmod tests; mod c { mod d; }",
        &[],
    );
    let names: Vec<_> = found.modules.iter().map(|m| (&*m.name, m.test)).collect();
    assert_eq!(
        names,
        [("a", false), ("b", false), ("tests", true), ("c/d", false)]
    );
    assert_eq!(
        places(Path::new("a.rs"), "b"),
        ["a/b.rs", "a/b/mod.rs"].map(PathBuf::from)
    );
    assert_eq!(
        places(Path::new("a/mod.rs"), "b"),
        ["a/b.rs", "a/b/mod.rs"].map(PathBuf::from)
    );
    assert_eq!(
        places(Path::new("main.rs"), "b"),
        ["b.rs", "b/mod.rs"].map(PathBuf::from)
    );
}
