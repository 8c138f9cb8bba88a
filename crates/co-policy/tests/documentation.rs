//! Rules against command lines from the documentation of programs.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use co_policy::facts::{Facts, FileKind, PathFact, ProgramFact, WorkspacePath};
use co_policy::{Pattern, Rules, assess, decide};

/// A workspace without files, where each program is trusted.
struct EmptyWorkspace;

const WORKSPACE: &str = "/work";

impl Facts for EmptyWorkspace {
    fn program(&self, name: &str, _: &Path) -> ProgramFact {
        ProgramFact::Trusted(Path::new("/usr/bin").join(name))
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        let absolute = co_policy::paths::normalize_lexically(&cwd.join(path));
        let inside = absolute.strip_prefix(WORKSPACE).map(Path::to_owned).ok();
        PathFact {
            inside: inside.map(|path: PathBuf| WorkspacePath {
                written: path.clone(),
                real: path,
            }),
            kind: FileKind::Missing,
            absolute,
            readable: false,
            secret: false,
            co_file: false,
            holds_co_files: false,
            home: false,
        }
    }
}

/// Returns the verdict on a command by one rule: `deny git push`.
fn verdict(rule: &str, command: &str) -> &'static str {
    let (kind, rule) = rule.split_once(' ').expect("a rule has a kind");
    let rule: Vec<Pattern> = vec![rule.parse().expect("a rule")];
    let mut rules = Rules::default();
    match kind {
        "deny" => rules.deny = rule,
        "ask" => rules.ask = rule,
        "allow" => rules.allow = rule,
        _ => panic!("{kind} is no kind of rule"),
    }
    let assessment = assess(command, Path::new(WORKSPACE), &EmptyWorkspace);
    decide(&assessment, &rules, &[]).word()
}

#[test]
fn rules_match_the_commands_of_the_documentation() {
    let table = include_str!("documentation.txt").lines();
    let mut wrong = String::new();
    let mut count = 0;
    for line in table.filter(|line| !line.is_empty() && !line.starts_with("## ")) {
        let columns: Vec<&str> = line.split('\t').filter(|it| !it.is_empty()).collect();
        let [_document, rule, command, expected] = columns.as_slice() else {
            panic!("{line:?} does not have four columns");
        };
        count += 1;
        let said = verdict(rule, &command.replace('⏎', "\n"));
        if said != *expected {
            let _infallible = writeln!(wrong, "{rule}: {command}: {said} instead of {expected}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count >= 200, "the table has {count} lines");
}
