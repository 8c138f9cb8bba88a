//! The option tables: what each known program may be given unasked.
//!
//! The tables are the TOML files beside this one; `programs/README.md` says how to read and extend
//! them. An option that is not in its program's table asks.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// What an option does with what stands after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// Text, attached or in the next word.
    Value,
    /// A file that is read, attached or in the next word.
    File,
    /// Text, attached or in the next word if there is one.
    UnlessLast,
    /// Text, only attached: `--color=always`.
    Attached,
    /// A name and a text, in the next two words.
    Pair,
}

/// Why an option asks.
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

/// An option of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Fine(Takes),
    Asks(Effect),
}

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Operands {
    /// Each one is read.
    #[default]
    Files,
    /// Each one is read and must not be a directory.
    RegularFiles,
    Text,
    None,
    /// The first one is a pattern, unless an option of `pattern_options` gave it; the rest are read.
    Pattern,
    /// Names of revisions, or paths: only what leaves the workspace or is secret asks.
    Git,
}

/// A program whose operands or options are a language of their own.
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

/// A program as its table describes it.
#[derive(Debug)]
pub struct Program {
    pub options: HashMap<String, Known>,
    pub operands: Operands,
    pub max: Option<usize>,
    /// `-20` is a count.
    pub numeric: bool,
    /// `-la` is `-l -a`.
    pub cluster: bool,
    /// False where a letter's value is the next word whatever follows the letter, as long as that is no number.
    pub attaches: bool,
    /// Options end at the first operand.
    pub options_first: bool,
    pub pattern_options: Vec<String>,
    /// Programs that it runs by their bare names, whatever it is given.
    pub starts: Vec<String>,
    pub special: Option<Special>,
    /// False where it tells no more of a file than its name and sizes.
    pub reads_content: bool,
    /// True where xargs may run it at all.
    pub xargs: bool,
}

impl Program {
    /// True where some option writes or runs something, so that a file name must not become an option.
    pub fn has_dangerous_options(&self) -> bool {
        self.options
            .values()
            .any(|known| matches!(known, Known::Asks(Effect::Writes | Effect::Runs)))
    }
}

/// Returns the table of a program; git's sub-commands are `git status` and so on.
pub fn lookup(name: &str) -> Option<&'static Program> {
    PROGRAMS.get(name)
}

/// Returns every name the tables know.
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
    fn lists(&self) -> [(&str, Known); 12] {
        use Effect::{Follows, Hangs, Leaks, Network, Runs, Writes};
        [
            (&self.flags, Known::Fine(Takes::Nothing)),
            (&self.values, Known::Fine(Takes::Value)),
            (&self.files, Known::Fine(Takes::File)),
            (&self.unless_last, Known::Fine(Takes::UnlessLast)),
            (&self.attached, Known::Fine(Takes::Attached)),
            (&self.pairs, Known::Fine(Takes::Pair)),
            (&self.writes, Known::Asks(Writes)),
            (&self.runs, Known::Asks(Runs)),
            (&self.hangs, Known::Asks(Hangs)),
            (&self.network, Known::Asks(Network)),
            (&self.leaks, Known::Asks(Leaks)),
            (&self.follows, Known::Asks(Follows)),
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
