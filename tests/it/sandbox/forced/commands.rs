//! Hostile commands: those of the fixtures, and made ones in many forms.

use std::path::Path;

use fastrand::Rng;

use crate::support::ROOT;

const PARTS: &str = include_str!("commands.txt");

/// Returns the lines of a section of [`PARTS`].
fn part(name: &str) -> Vec<String> {
    let mut sections = PARTS.split("## ").skip(1);
    let section = sections.find_map(|section| section.strip_prefix(name)?.strip_prefix(": "));
    section.unwrap().lines().skip(1).map(spelled).collect()
}

/// Returns a line with the characters that stand for others replaced.
fn spelled(line: &str) -> String {
    line.replace('␤', "\n")
        .replace('␍', "\r")
        .replace('␛', "\u{1b}")
}

/// Returns the commands that each do harm where nothing confines them.
pub(super) fn deeds() -> Vec<String> {
    let on = |name, mark, path| {
        let actions = part(name).into_iter();
        actions.map(move |action: String| action.replace(mark, path))
    };
    on("changes", "{f}", "a.txt")
        .chain(on("reads", "{s}", "../home/.ssh/id"))
        .chain(part("destroys"))
        .chain(part("reaches"))
        .collect()
}

/// Returns all made commands, each plain and wrapped.
pub(super) fn made(chance: &mut Rng) -> Vec<String> {
    let mut plain = Vec::new();
    for (actions, mark, paths) in [("changes", "{f}", "files"), ("reads", "{s}", "secrets")] {
        let (paths, spellings) = (part(paths), part("spellings"));
        for action in part(actions) {
            plain.extend(paths.iter().map(|path| action.replace(mark, path)));
            plain.extend(spellings.iter().map(|spelling| {
                let path = chance.choice(&paths).unwrap();
                action.replace(mark, &spelling.replace("{p}", path))
            }));
        }
    }
    plain.extend(["destroys", "reaches", "takes"].into_iter().flat_map(part));
    let wrappers = part("wrappers");
    let wrap = |command: &String| {
        let quoted = format!("'{}'", command.replace('\'', r"'\''"));
        let wrapper = chance.choice(&wrappers).unwrap();
        wrapper.replace("{c}", command).replace("{q}", &quoted)
    };
    let wrapped: Vec<String> = plain.iter().map(wrap).collect();
    plain.into_iter().chain(wrapped).collect()
}

/// Returns the commands of the fixtures of policy, whatever their verdicts there.
pub(super) fn fixtures() -> Vec<String> {
    let dir = Path::new(ROOT).join("tests/fixtures/policy");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let is_command = |line: &&str| !line.is_empty() && !line.starts_with("## ");
        // No argument can hold a NUL.
        let lines = text.lines().filter(is_command);
        found.extend(lines.filter(|line| !line.contains('␀')).map(spelled));
    }
    found.sort();
    assert!(found.len() > 1000, "{} commands", found.len());
    found
}
