//! The table of programs: the effect of each program, and the few options that change this effect.
//!
//! The rows are TOML files in `programs/`; the README there explains them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use crate::text::has_word;

/// The kind of effect of a command, from the most harmless to the most dangerous.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// The command is read-only: it reads and prints.
    #[default]
    Looks,
    /// The command writes files of the workspace.
    Changes,
    /// The command runs code of the project, or other code that it is given.
    RunsCode,
    /// The command affects the network, other machines, services, processes or users.
    ReachesOut,
    /// The effect of the command is unknown.
    Unknown,
}

/// The kind of data that a program reads by its operands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandData {
    /// The contents of files.
    #[default]
    Content,
    /// The names and sizes of files, but not their contents.
    Names,
    /// The contents of files. The first operand is a pattern or a script, not a file.
    Pattern,
    /// Nothing: the operands are plain text.
    Text,
}

/// A sort, with a sentence about what the program does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    pub sort: Sort,
    #[serde(default)]
    pub does: String,
    /// True if the effect cannot be undone.
    #[serde(default)]
    pub for_good: bool,
    /// True if the program uses the network only to fetch packages for the workspace. Then a trial may run it.
    #[serde(default)]
    pub fetches: bool,
}

/// Options that change the sort of their program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    names: String,
    sort: Sort,
    #[serde(default)]
    does: String,
    #[serde(default)]
    for_good: bool,
    #[serde(default)]
    fetches: bool,
}

/// A list of options. Each entry has all names of one option, which are joined by `|` in the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OptionList(Vec<Vec<String>>);

impl<'de> Deserialize<'de> for OptionList {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let names = |option: &str| option.split('|').map(str::to_owned).collect();
        Ok(Self(text.split_whitespace().map(names).collect()))
    }
}

impl OptionList {
    /// Returns true if the list has an option with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names(name).is_some()
    }

    /// Returns true if the list has an option with one of these names.
    pub(crate) fn has_any(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Returns all names of the option that has this name. Returns `None` if the list does not have the option. A name in the
    /// list that ends in `.` matches all names that start with it.
    fn names(&self, name: &str) -> Option<&[String]> {
        let is = |it: &String| it == name || (it.ends_with('.') && name.starts_with(it.as_str()));
        let has = |names: &&Vec<String>| names.iter().any(is);
        self.0.iter().find(has).map(Vec::as_slice)
    }
}

/// The kind of value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OptionValue {
    None,
    /// An optional value. It can only be in the same word as the option: `--color=always`.
    Attached,
    /// A required value, which stands in the word of the option or in the next word.
    Needed,
    /// All words after the option are its value.
    Rest,
}

/// The row of a program or of a sub-command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    names: Vec<String>,
    /// The sort of the program without options. It is `None` if another row for the same program has it.
    sort: Option<Sort>,
    does: String,
    for_good: bool,
    fetches: bool,
    /// True if the program may destroy something, even if this can often be undone.
    pub destroys: bool,
    pub reads: OperandData,
    pub options: Vec<Options>,
    flags: OptionList,
    values: OptionList,
    attached: OptionList,
    pub alone: Option<Effect>,
    pub max: Option<usize>,
    pub beyond: Option<Effect>,
    pub(crate) whole_options: bool,
    pub(crate) bundle: bool,
    pub syntax: bool,
    /// True if the tables have all options and sub-commands of the program.
    pub(crate) complete: bool,
    /// True if the program's options may also stand after its sub-commands.
    pub(crate) global: bool,
    /// The options whose value names a program or is code.
    pub(crate) code: OptionList,
    /// The options whose value is a command line for a shell.
    pub(crate) texts: OptionList,
    /// The options whose value is the directory in which the program runs.
    pub(crate) dirs: OptionList,
    /// The options whose value may define a sub-command, such as `alias.x=push`.
    pub(crate) definitions: OptionList,
    /// The options that are followed by a command, up to `;` or `+`.
    pub(crate) actions: OptionList,
    /// The options that are followed by the name of a module and its arguments.
    pub(crate) modules: OptionList,
    /// The largest number of operands that are command lines for a shell.
    pub(crate) text_operands: usize,
    /// The number of operands before the command that this program starts.
    pub(crate) command: Option<usize>,
    /// True if the command that this program starts stands after `--`.
    pub(crate) command_after_dashes: bool,
    /// True if all options must stand before the operands.
    pub(crate) options_first: bool,
    /// True if the program joins the words of the started command into a command line for a shell.
    pub(crate) joins: bool,
    /// The options with which the program adds no words to the command that it starts. It is `None` if the program never adds
    /// words.
    pub(crate) adds_words_unless: Option<OptionList>,
    /// True if the started command runs in a container or on another machine.
    pub(crate) elsewhere: bool,
    /// True if `NAME=value` may stand before the operands.
    pub(crate) assigns: bool,
    /// The words of the command line that name a program or contain code.
    pub(crate) given: Option<GivenCode>,
    /// The number of operands in the prefix that the answer `always` offers.
    pub(crate) prefix: Option<usize>,
    /// The full names of other sub-commands, such as `git diff`, whose options this sub-command also accepts.
    pub(crate) like: Vec<String>,
    /// Equivalent commands. Deny and ask rules for them also apply to this command.
    pub(crate) same: Vec<SameCommand>,
    /// The sub-command that runs a script of the project, such as `run` in `yarn run build`. It is set only if the program also
    /// accepts the script's name without it (`yarn build`).
    scripts: Option<String>,
    /// Other names of the program, separated by spaces.
    also: String,
    /// Sub-commands that have no row, separated by spaces.
    commands: String,
    /// Other names of sub-commands, with the usual name of each.
    aliases: HashMap<String, String>,
}

/// An equivalent command for a sub-command with certain options.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SameCommand {
    /// The options or operands that the sub-command must have for this equivalence. A word such as `+` matches operands that
    /// start with it. The text is empty if no word is required.
    #[serde(default)]
    pub with: String,
    /// The number of operands to drop from the start of this command to get the equivalent command.
    #[serde(default)]
    pub without: usize,
    /// The words of the equivalent command: the program, its sub-command, and options.
    pub words: String,
}

/// The words of a command that name a program or contain code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GivenCode {
    /// The first operand.
    First,
    /// All operands.
    Operands,
    /// The operands of the form `NAME=value`.
    Variables,
    /// The words after `--`.
    AfterDashes,
    /// All words.
    Words,
}

impl Options {
    /// Returns the effect of a command that has one of these options.
    pub fn effect(&self) -> Effect {
        Effect {
            sort: self.sort,
            does: self.does.clone(),
            for_good: self.for_good,
            fetches: self.fetches,
        }
    }

    /// Returns true if one of these options has one of the names.
    pub(crate) fn names_any(&self, names: &[String]) -> bool {
        let listed = |listed: &str| names.iter().any(|name| name == listed);
        self.names.split_whitespace().any(listed)
    }

    /// Returns true if an operand is in this list, or starts with an entry such as `of=` or `:`.
    pub(crate) fn begins(&self, operand: &str) -> bool {
        let begins =
            |listed: &str| listed.ends_with(['=', ':', '+']) && operand.starts_with(listed);
        let exact = |listed: &str| listed == operand && (!listed.starts_with('-') || listed == "-");
        let mut names = self.names.split_whitespace();
        names.any(|listed| exact(listed) || begins(listed))
    }

    /// Returns true if `--` is in this list.
    pub(crate) fn has_dashes(&self) -> bool {
        has_word(&self.names, "--")
    }
}

impl Program {
    /// Returns the sort of the program without options that change it. Returns `None` if this row has no sort.
    pub(crate) fn sort(&self) -> Option<Sort> {
        self.sort
    }

    /// Adds the content of another row for the same program or sub-command.
    fn join(&mut self, other: Self) {
        let (base, more) = match self.sort {
            Some(_) => (self.clone(), other),
            None => (other, self.clone()),
        };
        let lists = |a: OptionList, b: OptionList| OptionList([a.0, b.0].concat());
        *self = Self {
            flags: lists(base.flags, more.flags),
            values: lists(base.values, more.values),
            attached: lists(base.attached, more.attached),
            code: lists(base.code, more.code),
            texts: lists(base.texts, more.texts),
            dirs: lists(base.dirs, more.dirs),
            definitions: lists(base.definitions, more.definitions),
            actions: lists(base.actions, more.actions),
            modules: lists(base.modules, more.modules),
            whole_options: base.whole_options || more.whole_options,
            complete: base.complete || more.complete,
            global: base.global || more.global,
            command: base.command.or(more.command),
            command_after_dashes: base.command_after_dashes || more.command_after_dashes,
            text_operands: base.text_operands.max(more.text_operands),
            options_first: base.options_first || more.options_first,
            joins: base.joins || more.joins,
            adds_words_unless: base.adds_words_unless.or(more.adds_words_unless),
            elsewhere: base.elsewhere || more.elsewhere,
            assigns: base.assigns || more.assigns,
            given: base.given.or(more.given),
            prefix: base.prefix.or(more.prefix),
            scripts: base.scripts.or(more.scripts),
            also: format!("{} {}", base.also, more.also),
            like: [base.like, more.like].concat(),
            same: [base.same, more.same].concat(),
            commands: format!("{} {}", base.commands, more.commands),
            aliases: base.aliases.into_iter().chain(more.aliases).collect(),
            ..base
        };
    }

    /// Returns the effect of the program without options that change it.
    pub(crate) fn effect(&self) -> Effect {
        Effect {
            sort: self.sort.unwrap_or_default(),
            does: self.does.clone(),
            for_good: self.for_good,
            fetches: self.fetches,
        }
    }

    /// Returns the sub-command that runs the project's script `name`. Returns `None` if `name` is itself a sub-command of the
    /// program.
    pub(crate) fn runs_script(&self, name: &str) -> Option<&str> {
        self.scripts
            .as_deref()
            .filter(|_| !has_word(&self.commands, name))
    }

    /// Returns all names of the option with this name, and the kind of its value.
    pub(crate) fn option(&self, name: &str) -> Option<(Vec<String>, OptionValue)> {
        let mut lists = self.lists().into_iter();
        lists.find_map(|(list, value)| Some((list.names(name)?.to_vec(), value)))
    }

    /// Returns true if the option with this name changes the sort.
    pub(crate) fn changes_sort(&self, name: &str) -> bool {
        let name = [name.to_owned()];
        self.options.iter().any(|it| it.names_any(&name))
    }

    /// Returns true if the flags of this row have this name. The name `+` stands for all words that begin with it.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.flags.has(name)
    }

    /// Returns the options that have a name with the prefix `start`, and the kind of value of each.
    pub(crate) fn options_from(
        &self,
        start: &str,
    ) -> impl Iterator<Item = (Vec<String>, OptionValue)> {
        let listed = self.lists().into_iter().flat_map(|(list, value)| {
            let options = list.0.iter();
            options.map(move |names| (names.clone(), value))
        });
        let effects = self
            .options
            .iter()
            .flat_map(|it| it.names.split_whitespace());
        let effects = effects.map(|name| (vec![name.to_owned()], OptionValue::None));
        let begins = |names: &[String]| names.iter().any(|name| name.starts_with(start));
        let mut found: Vec<(Vec<String>, OptionValue)> =
            listed.filter(|(names, _)| begins(names)).collect();
        for (names, value) in effects.filter(|(names, _)| begins(names)) {
            if !found.iter().any(|(known, _)| known.contains(&names[0])) {
                found.push((names, value));
            }
        }
        found.into_iter()
    }

    /// Returns the lists of options with the kind of value in each. The lists that only describe syntax come first.
    fn lists(&self) -> [(&OptionList, OptionValue); 8] {
        [
            (&self.values, OptionValue::Needed),
            (&self.attached, OptionValue::Attached),
            (&self.flags, OptionValue::None),
            (&self.modules, OptionValue::Rest),
            (&self.code, OptionValue::Needed),
            (&self.texts, OptionValue::Needed),
            (&self.dirs, OptionValue::Needed),
            (&self.definitions, OptionValue::Needed),
        ]
    }
}

/// Returns the row of a program or sub-command, such as `ls` or `git log`.
pub fn lookup(name: &str) -> Option<&'static Program> {
    TABLE.programs.get(name).map(|row| &**row)
}

/// Returns the name of a program in the table, and the sub-command that the program's own name contains. For example, `pip3` is
/// `pip`, and `git-push` is `git` with `push`.
pub(crate) fn canonical(program: &str) -> (String, Option<String>) {
    let program = program.strip_suffix(".exe").unwrap_or(program);
    // Runners of packages take a version: `npx eslint@8`.
    let program = program.split(['@', '=']).next().unwrap_or(program);
    let versionless = program.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    let joined = program.split_once('-').filter(|(program, sub)| {
        let known = lookup(program).is_some_and(|row| row.complete);
        known && subcommand(program, sub).is_some()
    });
    match joined {
        _ if lookup(program).is_some() => (program.to_owned(), None),
        _ if TABLE.also.contains_key(program) => (TABLE.also[program].clone(), None),
        Some((program, sub)) => (program.to_owned(), Some(sub.to_owned())),
        None if lookup(versionless).is_some() => (versionless.to_owned(), None),
        None => (program.to_owned(), None),
    }
}

/// Returns true if the table has sub-commands for this program or sub-command.
pub(crate) fn has_subcommands(parent: &str) -> bool {
    TABLE.subcommands.contains_key(parent)
}

/// Returns the usual name of a sub-command, with its program: `cargo build` for `b` of `cargo`.
pub(crate) fn subcommand(parent: &str, word: &str) -> Option<&'static str> {
    let found = TABLE.subcommands.get(parent)?.get(word)?;
    Some(found.as_str())
}

/// Returns true if the table has this sub-command under its usual name.
pub(crate) fn is_subcommand(program: &str, subcommand: &[String]) -> bool {
    let name = format!("{program} {}", subcommand.join(" "));
    name.rsplit_once(' ')
        .is_some_and(|(parent, word)| self::subcommand(parent, word).is_some())
}

/// Returns the usual names of the sub-commands that start with `start`.
pub(crate) fn subcommands_from(parent: &str, start: &str) -> impl Iterator<Item = &'static str> {
    let children = TABLE.subcommands.get(parent).into_iter().flatten();
    let begin = children.filter(move |(word, _)| word.starts_with(start));
    begin.map(|(_, usual)| usual.as_str())
}

/// Returns true if the table has a row for the program or for one of its sub-commands.
pub fn is_known(program: &str) -> bool {
    lookup(program).is_some() || has_subcommands(program)
}

/// Returns the names of all read-only programs and sub-commands.
pub fn that_look() -> impl Iterator<Item = &'static str> {
    let looks = TABLE
        .programs
        .iter()
        .filter(|(_, row)| row.sort == Some(Sort::Looks));
    looks.map(|(name, _)| name.as_str())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramFile {
    program: Vec<Program>,
}

/// Maps the names of programs and sub-commands to their rows. Names of the same row share it.
struct Table {
    programs: HashMap<String, Arc<Program>>,
    /// The sub-commands of each program or sub-command. Maps each word that may stand on the command line, such as an alias, to
    /// the canonical name.
    subcommands: HashMap<String, BTreeMap<String, String>>,
    /// The main name of each program, by its other names.
    also: HashMap<String, String>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        programs: HashMap::new(),
        subcommands: HashMap::new(),
        also: HashMap::new(),
    };
    let rows: Vec<_> = rows().into_iter().map(Arc::new).collect();
    for row in &rows {
        for name in &row.names {
            let known = table.programs.entry(name.clone());
            known
                .and_modify(|it| Arc::make_mut(it).join((**row).clone()))
                .or_insert_with(|| Arc::clone(row));
            table.add_subcommand(name, name);
            let also = row.also.split_whitespace();
            table
                .also
                .extend(also.map(|it| (it.to_owned(), name.clone())));
            for word in row.commands.split_whitespace() {
                let name = format!("{name} {word}");
                table.add_subcommand(&name, &name);
            }
        }
    }
    // The names that aliases stand for win over rows and lists.
    for row in &rows {
        for (name, (alias, usual)) in row
            .names
            .iter()
            .flat_map(|it| row.aliases.iter().map(move |pair| (it, pair)))
        {
            table.add_subcommand(&format!("{name} {alias}"), &format!("{name} {usual}"));
        }
    }
    table
});

impl Table {
    fn add_subcommand(&mut self, name: &str, usual: &str) {
        let Some((parent, word)) = name.rsplit_once(' ') else {
            return;
        };
        let known = self.subcommands.entry(parent.to_owned()).or_default();
        known.insert(word.to_owned(), usual.to_owned());
        if !self.subcommands_have(parent) {
            self.add_subcommand(parent, parent);
        }
    }

    fn subcommands_have(&self, name: &str) -> bool {
        let Some((parent, word)) = name.rsplit_once(' ') else {
            return true;
        };
        let known = self.subcommands.get(parent);
        known.is_some_and(|words| words.contains_key(word))
    }
}

fn rows() -> Vec<Program> {
    const FILES: [&str; 14] = [
        include_str!("programs/shell.toml"),
        include_str!("programs/files.toml"),
        include_str!("programs/git.toml"),
        include_str!("programs/build.toml"),
        include_str!("programs/system.toml"),
        include_str!("programs/wrappers.toml"),
        include_str!("programs/code.toml"),
        include_str!("programs/same.toml"),
        include_str!("programs/options/git.toml"),
        include_str!("programs/options/build.toml"),
        include_str!("programs/options/packages.toml"),
        include_str!("programs/options/containers.toml"),
        include_str!("programs/options/cluster.toml"),
        include_str!("programs/options/services.toml"),
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
        let effects = rows().into_iter().filter(|row| row.sort.is_some());
        for name in effects.flat_map(|row| row.names) {
            assert!(seen.insert(name.clone()), "{name} has two rows");
        }
        assert!(seen.len() > 600, "{}", seen.len());
    }

    #[test]
    fn each_option_has_one_kind_of_value() {
        let mut several = std::collections::BTreeSet::new();
        for (name, row) in &super::TABLE.programs {
            let mut kinds = std::collections::HashMap::new();
            for (list, value) in row.lists().into_iter().take(3) {
                for option in list.0.iter().flatten() {
                    let before = kinds.insert(option, value);
                    if before.is_some_and(|it| it != value) {
                        several.insert(format!("{name}: {option}"));
                    }
                }
            }
        }
        assert!(several.is_empty(), "{several:#?}");
    }

    #[test]
    fn what_asks_has_a_sentence() {
        for row in rows().into_iter().filter(|row| row.sort.is_some()) {
            let options = row.options.iter().map(super::Options::effect);
            let others = row.alone.iter().chain(&row.beyond).cloned();
            for effect in options.chain(others).chain([row.effect()]) {
                let reaches_out = effect.sort == Sort::ReachesOut;
                assert!(
                    reaches_out || !effect.fetches,
                    "{:?}: {effect:?}",
                    row.names
                );
                let asks = effect.sort != Sort::Looks;
                assert_eq!(asks, !effect.does.is_empty(), "{:?}: {effect:?}", row.names);
            }
        }
    }
}
