//! The tables of known programs and their options.
//!
//! The tables are TOML files in `programs/`; the README there explains them. An option that is not in its program's table
//! requires approval.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    Nothing,
    /// Text, attached or in the next word.
    Text,
    /// A file to read, attached or in the next word.
    File,
    /// Text, attached or in the next word if there is one.
    UnlessLast,
    /// Text, only attached: `--color=always`.
    Attached,
    /// A name and a text, in the next two words.
    Pair,
}

/// The effect for which an option requires approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Writes,
    Runs,
    Hangs,
    Network,
    Leaks,
    /// Follows symbolic links, which may leave the workspace.
    Follows,
}

/// The table entry of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionRule {
    /// The option is safe.
    Safe(OptionValue),
    /// The option requires approval.
    Asks(Effect),
}

/// The meaning of a program's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Operands {
    /// Files to read.
    #[default]
    Files,
    /// Files to read, no directories.
    RegularFiles,
    Text,
    None,
    /// A pattern, unless one of `pattern_options` is given, then files to read.
    Pattern,
    /// Revisions or paths, which must not leave the workspace or be secret.
    Git,
}

/// A program with its own checks in the module `special`, because a table cannot describe its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Special {
    Awk,
    CommandV,
    Date,
    Echo,
    Find,
    Git,
    GitBranch,
    GitConfig,
    GitReflog,
    GitRemote,
    GitStash,
    GitTag,
    GitWorktree,
    Gzip,
    Jq,
    Printf,
    Ps,
    Sed,
    Seq,
    Strings,
    Tar,
    Test,
    Version,
    Xargs,
    Yq,
}

/// The table of a program.
#[derive(Debug)]
pub struct Program {
    pub options: HashMap<String, OptionRule>,
    pub operands: Operands,
    /// Number of operands that are read. One more would be written.
    pub max: Option<usize>,
    /// True if `-20` is a count.
    pub numeric: bool,
    /// True if `-la` is `-l -a`.
    pub cluster: bool,
    /// False if the value of a letter is always the next word, except for a number.
    pub attaches: bool,
    /// True if options end at the first operand.
    pub options_first: bool,
    /// Options that give the pattern, so that all operands are files.
    pub pattern_options: Vec<String>,
    /// Programs that it always starts by their names.
    pub starts: Vec<String>,
    pub special: Option<Special>,
    /// False if it prints no more of a file than its name and sizes.
    pub reads_content: bool,
    /// True if xargs may start it.
    pub xargs: bool,
}

impl Program {
    /// True if an option writes or runs something, so that no file name may become an option.
    pub fn has_dangerous_options(&self) -> bool {
        self.options
            .values()
            .any(|known| matches!(known, OptionRule::Asks(Effect::Writes | Effect::Runs)))
    }
}

/// Returns the table of a program. Each sub-command of git has its own: `git status`.
pub fn lookup(name: &str) -> Option<&'static Program> {
    PROGRAMS.get(name)
}

/// Returns the names of all programs in the tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.keys().map(String::as_str)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramFile {
    program: Vec<ProgramEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramEntry {
    names: Vec<String>,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    values: String,
    #[serde(default)]
    files: String,
    #[serde(default)]
    unless_last: String,
    #[serde(default)]
    attached: String,
    #[serde(default)]
    pairs: String,
    #[serde(default)]
    writes: String,
    #[serde(default)]
    runs: String,
    #[serde(default)]
    hangs: String,
    #[serde(default)]
    network: String,
    #[serde(default)]
    leaks: String,
    #[serde(default)]
    follows: String,
    #[serde(default)]
    operands: Operands,
    max: Option<usize>,
    #[serde(default)]
    numeric: bool,
    #[serde(default = "yes")]
    cluster: bool,
    #[serde(default = "yes")]
    attaches: bool,
    #[serde(default)]
    options_first: bool,
    #[serde(default)]
    pattern_options: Vec<String>,
    #[serde(default)]
    starts: Vec<String>,
    special: Option<Special>,
    #[serde(default)]
    xargs: bool,
    #[serde(default = "yes")]
    reads_content: bool,
    /// Names of option sets defined in `[[shared]]` of the same file.
    #[serde(default)]
    shares: Vec<String>,
}

fn yes() -> bool {
    true
}

impl ProgramEntry {
    fn lists(&self) -> [(&str, OptionRule); 12] {
        use Effect::{Follows, Hangs, Leaks, Network, Runs, Writes};
        [
            (&self.flags, OptionRule::Safe(OptionValue::Nothing)),
            (&self.values, OptionRule::Safe(OptionValue::Text)),
            (&self.files, OptionRule::Safe(OptionValue::File)),
            (&self.unless_last, OptionRule::Safe(OptionValue::UnlessLast)),
            (&self.attached, OptionRule::Safe(OptionValue::Attached)),
            (&self.pairs, OptionRule::Safe(OptionValue::Pair)),
            (&self.writes, OptionRule::Asks(Writes)),
            (&self.runs, OptionRule::Asks(Runs)),
            (&self.hangs, OptionRule::Asks(Hangs)),
            (&self.network, OptionRule::Asks(Network)),
            (&self.leaks, OptionRule::Asks(Leaks)),
            (&self.follows, OptionRule::Asks(Follows)),
        ]
    }
}

static PROGRAMS: LazyLock<HashMap<String, Program>> = LazyLock::new(|| {
    const FILES: [&str; 6] = [
        include_str!("programs/files.toml"),
        include_str!("programs/search.toml"),
        include_str!("programs/text.toml"),
        include_str!("programs/system.toml"),
        include_str!("programs/git.toml"),
        include_str!("programs/tools.toml"),
    ];
    let entries: Vec<ProgramEntry> = FILES
        .iter()
        .flat_map(|source| {
            toml::from_str::<ProgramFile>(source)
                .expect("the built-in tables are tested to parse")
                .program
        })
        .collect();
    let shared: HashMap<&str, &ProgramEntry> = entries
        .iter()
        .filter(|entry| entry.names.len() == 1 && entry.names[0].starts_with('@'))
        .map(|entry| (entry.names[0].as_str(), entry))
        .collect();
    let mut all = HashMap::new();
    for entry in entries
        .iter()
        .filter(|entry| !entry.names[0].starts_with('@'))
    {
        for name in &entry.names {
            let mut options = HashMap::new();
            let sources = entry
                .shares
                .iter()
                .filter_map(|share| shared.get(share.as_str()).copied())
                .chain([entry]);
            for (list, known) in sources.flat_map(ProgramEntry::lists) {
                options.extend(list.split_whitespace().map(|o| (o.to_owned(), known)));
            }
            all.insert(
                name.clone(),
                Program {
                    options,
                    operands: entry.operands,
                    max: entry.max,
                    numeric: entry.numeric,
                    cluster: entry.cluster,
                    attaches: entry.attaches,
                    options_first: entry.options_first,
                    pattern_options: entry.pattern_options.clone(),
                    starts: entry.starts.clone(),
                    special: entry.special,
                    reads_content: entry.reads_content,
                    xargs: entry.xargs,
                },
            );
        }
    }
    all
});

#[cfg(test)]
mod tests {
    use super::{lookup, names};

    #[test]
    fn tables_parse() {
        assert!(names().count() > 90);
        assert!(lookup("git status").is_some());
    }
}
