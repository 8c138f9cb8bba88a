//! The table of programs: what each does, and the few options that change it.
//!
//! The rows are TOML files in `programs/`; the README there explains them.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A kind of command. The order is from the most harmless to the worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// It reads and prints.
    #[default]
    Looks,
    /// It writes files of the workspace.
    Changes,
    /// It runs code of the project, or code of its own.
    RunsCode,
    /// It reaches the network, other machines, services, processes or users.
    ReachesOut,
    /// Nothing is known of it.
    Unknown,
}

/// The part of its operands that a program reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// The contents of files.
    #[default]
    Content,
    /// Names and sizes of files, not their contents.
    Names,
    /// The contents of files, but the first operand is a pattern or a script.
    Pattern,
    /// No files.
    Text,
}

/// A sort, with the sentence that says what the program would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    pub sort: Sort,
    #[serde(default)]
    pub does: String,
    /// True if what it changes cannot be brought back.
    #[serde(default)]
    pub for_good: bool,
}

/// Options that change the sort.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    names: String,
    sort: Sort,
    #[serde(default)]
    does: String,
    #[serde(default)]
    for_good: bool,
}

/// The row of a program or of a sub-command.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    names: Vec<String>,
    sort: Sort,
    #[serde(default)]
    does: String,
    #[serde(default)]
    for_good: bool,
    /// True if it may destroy something, although that can often be brought back.
    #[serde(default)]
    pub destroys: bool,
    #[serde(default)]
    pub reads: Reads,
    #[serde(default)]
    pub options: Vec<Options>,
    #[serde(default)]
    values: String,
    pub alone: Option<Effect>,
    pub max: Option<usize>,
    pub beyond: Option<Effect>,
    #[serde(default)]
    pub whole_options: bool,
    #[serde(default)]
    pub bundle: bool,
    #[serde(default)]
    pub syntax: bool,
}

impl Options {
    /// The effect of a command with one of these options.
    pub fn effect(&self) -> Effect {
        Effect {
            sort: self.sort,
            does: self.does.clone(),
            for_good: self.for_good,
        }
    }

    /// True if one of these options has this name, or is a start such as `of=` or `:` of the word.
    pub fn matches(&self, word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        self.names.split_whitespace().any(|listed| {
            listed == name || (listed.ends_with(['=', ':', '+']) && word.starts_with(listed))
        })
    }

    /// True if one of these options is this letter after a dash.
    pub fn has_letter(&self, letter: char) -> bool {
        self.names.split_whitespace().any(|listed| {
            listed
                .strip_prefix('-')
                .is_some_and(|it| it.chars().eq([letter]))
        })
    }
}

impl Program {
    /// The effect without any of the options that change it.
    pub fn effect(&self) -> Effect {
        Effect {
            sort: self.sort,
            does: self.does.clone(),
            for_good: self.for_good,
        }
    }

    /// True if the option's value may be the next word.
    pub fn takes_value(&self, option: &str) -> bool {
        self.values
            .split_whitespace()
            .any(|listed| listed == option)
    }
}

/// Returns the row of a program or sub-command: `ls`, `git log`.
pub fn lookup(name: &str) -> Option<&'static Program> {
    PROGRAMS.get(name)
}

/// True if the table has a row for the program or for one of its sub-commands.
pub fn is_known(program: &str) -> bool {
    let of_program = |name: &String| name.split(' ').next() == Some(program);
    PROGRAMS.keys().any(of_program)
}

/// Returns the names of all programs and sub-commands that only look.
pub fn that_look() -> impl Iterator<Item = &'static str> {
    let looks = PROGRAMS.iter().filter(|(_, row)| row.sort == Sort::Looks);
    looks.map(|(name, _)| name.as_str())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramFile {
    program: Vec<Program>,
}

static PROGRAMS: LazyLock<HashMap<String, Program>> = LazyLock::new(|| {
    let mut all = HashMap::new();
    for row in rows() {
        for name in &row.names {
            all.insert(name.clone(), row.clone());
        }
    }
    all
});

fn rows() -> Vec<Program> {
    const FILES: [&str; 5] = [
        include_str!("programs/shell.toml"),
        include_str!("programs/files.toml"),
        include_str!("programs/git.toml"),
        include_str!("programs/build.toml"),
        include_str!("programs/system.toml"),
    ];
    let read = |source| {
        let file: ProgramFile =
            toml::from_str(source).expect("the built-in tables are tested to parse");
        file.program
    };
    FILES.into_iter().flat_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Sort, rows};

    #[test]
    fn each_program_has_one_row() {
        let mut seen = HashSet::new();
        for name in rows().into_iter().flat_map(|row| row.names) {
            assert!(seen.insert(name.clone()), "{name} has two rows");
        }
        assert!(seen.len() > 600, "{}", seen.len());
    }

    #[test]
    fn what_asks_has_a_sentence() {
        for row in rows() {
            let options = row.options.iter().map(super::Options::effect);
            let others = row.alone.iter().chain(&row.beyond).cloned();
            for effect in options.chain(others).chain([row.effect()]) {
                let asks = effect.sort != Sort::Looks;
                assert_eq!(asks, !effect.does.is_empty(), "{:?}: {effect:?}", row.names);
            }
        }
    }
}
