//! Assesses one command. The assessment has its simple commands with their sorts, and the facts that the person's rules need.
//!
//! This module does not know the person's rules; [`crate::verdict`] applies them to the assessment.

use std::collections::BTreeSet;
use std::path::Path;

use crate::bash::{self, Script, SimpleCommand};
use crate::deny::{self, DenyRuleMatch};
use crate::facts::{Facts, LocalFacts, ProgramFact};
use crate::form::{self, CommandForm};
use crate::paths;
use crate::plain;
use crate::prefix;
use crate::programs::Sort;
use crate::reach;
use crate::reason::Reason;
use crate::rules::{self, Pattern};
use crate::sort::{self, SortedCommand};
use crate::unconfined;
use crate::wrappers::{self, Commands, FoundCommand, Role};

/// The findings about a whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The text of the command. If the command is an argument vector, the text is quoted for a shell.
    pub command: String,
    /// All simple commands in the command, including commands that other commands start.
    pub commands: Vec<CommandAssessment>,
    /// Simple commands that only deny and ask rules check: commands that run only under some readings of the text, and commands
    /// that run in a container or on another machine.
    pub possible: Vec<CommandAssessment>,
    /// The reasons, besides its sort, why the command requires approval.
    pub problems: Vec<Reason>,
    pub denied: Vec<DenyRuleMatch>,
    /// True if a part of the command is too long, too large or nested too deeply to be parsed. No rule can match this part.
    pub unread: bool,
    /// True if bash computes a word of the command, for example from a glob.
    pub computes: bool,
    /// True if the command may destroy something.
    pub destructive: bool,
    /// The first sign that the command accesses a secret or a place outside the workspace, as a text for the person.
    pub reach: Option<String>,
    /// The simple commands, if the command consists only of literal words and plain operators. Rules may allow only such a
    /// command.
    pub literal: Option<Vec<RuleCommand>>,
    /// The reason why the kernel cannot confine the command, as a text for the person. It is `None` if the kernel can.
    pub not_confined: Option<String>,
    /// True if the command may run without approval although nothing confines it.
    pub may_run_unconfined: bool,
    /// True if co carries out the command by reading a file itself, without a process.
    pub in_process: bool,
    /// The deny rules of the workspace's own rule file.
    pub workspace_deny: Vec<Pattern>,
    pub workspace_ask: Vec<Pattern>,
    /// The error if the workspace's own rule file cannot be read.
    pub workspace_error: Option<String>,
}

/// The findings about one simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAssessment {
    /// The range of the simple command in the text of the whole command.
    pub span: std::ops::Range<usize>,
    pub sort: Sort,
    /// True if the command uses the network only to fetch packages for the workspace.
    pub fetches: bool,
    /// A description for the person of what the command does. It is empty if the command is read-only.
    pub does: String,
    /// All words of the command. Variables and globs stay as written.
    pub words: Vec<String>,
    /// The normal form of the command.
    pub form: CommandForm,
    /// All normal forms that the command may have. Deny and ask rules check them all.
    pub readings: Vec<CommandForm>,
    /// The files that the command's redirections read or write.
    pub targets: Vec<String>,
    /// The program, its sub-command and the words after it, for the setting `shell_safe_commands`.
    pub name: Vec<String>,
    /// True if the command is shell syntax and starts no program.
    pub syntax: bool,
}

/// The properties of a trial that can show what a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PossibleTrial {
    /// The most dangerous sort among the simple commands. A simple command that fetches packages counts as one that runs code.
    pub sort: Sort,
    /// True if the command fetches packages. Then its trial needs hosts.
    pub fetches: bool,
}

/// A simple command of literal words, in the form that rules check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCommand {
    pub words: Vec<String>,
    /// The reason why no prefix rule applies to the command: it names a secret, a path outside the workspace, or a program that
    /// others can change.
    pub uncovered: Option<Reason>,
    /// The indices of the words that name a program or code. A prefix rule must contain these words.
    pub code: BTreeSet<usize>,
}

impl Assessment {
    /// Returns the trial that can show what the command does. Returns `None` if a part could not be parsed, or if a part uses the
    /// network for more than packages.
    pub(crate) fn trial(&self) -> Option<PossibleTrial> {
        // What a package manager installs is code, which it may run at once.
        let sort = |it: &CommandAssessment| if it.fetches { Sort::RunsCode } else { it.sort };
        let worst = self.commands.iter().map(sort).max()?;
        let reaches_out = self.commands.iter().any(|it| sort(it) == Sort::ReachesOut);
        (!reaches_out && !self.unread).then(|| PossibleTrial {
            sort: worst,
            fetches: self.commands.iter().any(|it| it.fetches),
        })
    }

    /// Returns true if the command is read-only.
    pub fn looks(&self) -> bool {
        let looks = |it: &CommandAssessment| it.sort == Sort::Looks;
        self.problems.is_empty() && self.commands.iter().all(looks)
    }
}

/// Assesses the text of a command.
pub fn assess(command: &str, cwd: &Path, facts: &dyn Facts) -> Assessment {
    let local = &LocalFacts { facts, cwd };
    let script = bash::parse(command);
    assess_script(script, command.to_owned(), plain::commands(command), local)
}

/// Assesses an argument vector that starts without a shell.
pub fn assess_argv(argv: &[String], cwd: &Path, facts: &dyn Facts) -> Assessment {
    let local = &LocalFacts { facts, cwd };
    let command = rules::shell_join(argv);
    if argv.iter().all(|word| word.trim().is_empty()) {
        return Assessment::default();
    }
    let mut at = 0;
    let words = argv.iter().map(|word| {
        let span = at..at + rules::shell_join(&[word]).len();
        at = span.end + 1;
        (word.clone(), span)
    });
    let mut script = Script::default();
    script.commands.push(SimpleCommand::literal(words));
    if let Some((_, c)) = argv.iter().find_map(|word| co_text::first_hidden(word)) {
        let why = format!(
            "it contains an invisible or control character ({})",
            c.escape_unicode()
        );
        script.problems.push(Reason::whole(why));
    }
    let hidden = !script.problems.is_empty();
    let literal = (!hidden).then(|| vec![argv.to_vec()]);
    assess_script(script, command, literal, local)
}

/// Assesses a parsed command. `literal` contains the words of the simple commands. It is `Some` only if the command consists of
/// literal words and plain operators.
fn assess_script(
    script: Script,
    command: String,
    literal: Option<Vec<Vec<String>>>,
    local: &LocalFacts,
) -> Assessment {
    let Commands { found, script, .. } = wrappers::commands(script);
    let inside = local.path(".").inside.is_some();
    let literal = literal.filter(|_| inside);
    let mut assessment = Assessment {
        problems: script.problems,
        unread: script.incomplete,
        literal: literal.map(|commands| rule_commands(commands, local)),
        may_run_unconfined: unconfined::may_run(&command, local),
        command,
        ..Assessment::default()
    };
    if !inside {
        let why = "it runs outside the workspace";
        assessment.problems.push(Reason::whole(why));
        assessment.reach = Some(why.to_owned());
    }
    if script.incomplete && assessment.problems.is_empty() {
        let why = "it holds too many commands, or nests them too deeply";
        assessment.problems.push(Reason::whole(why));
    }
    if script.fork_bomb {
        let bomb = deny::fork_bomb();
        assessment.problems.push(Reason::whole(bomb.why.clone()));
        assessment.denied.push(bomb);
    }
    for found in &found {
        assessment.add(found, &script.functions, local);
    }
    assessment
}

impl Assessment {
    fn add(&mut self, found: &FoundCommand, functions: &[String], local: &LocalFacts) {
        let command = &found.command;
        if found.role != Role::RunsElsewhere {
            for denied in deny::check(command, local) {
                if !self.denied.contains(&denied) {
                    self.denied.push(denied);
                }
            }
        }
        let sorted = sort::sort(found, functions);
        if found.role != Role::Runs {
            self.possible.push(assessed(found, sorted));
            return;
        }
        self.destructive |= sorted.destructive;
        self.computes |= command.computes();
        let reach = self.reach.take();
        self.reach = reach.or_else(|| reach::sign(command, local));
        if sorted.sort == Sort::Looks {
            let reason = paths::unreadable(command, &sorted, local);
            self.problems.extend(reason);
        }
        self.commands.push(assessed(found, sorted));
    }
}

fn assessed(found: &FoundCommand, sorted: SortedCommand) -> CommandAssessment {
    let command = &found.command;
    let targets = command.redirects.iter().map(|it| &it.target);
    CommandAssessment {
        span: command.span.clone(),
        sort: sorted.sort,
        fetches: sorted.fetches,
        does: sorted.does,
        words: command.texts(),
        form: found.form.clone(),
        readings: CommandForm::rule_readings(&form::expanded(&command.words)),
        targets: targets.flat_map(|it| it.forms().to_vec()).collect(),
        name: sorted.name,
        syntax: sorted.syntax,
    }
}

fn rule_commands(commands: Vec<Vec<String>>, local: &LocalFacts) -> Vec<RuleCommand> {
    let rule_command = |words: Vec<String>| RuleCommand {
        uncovered: uncovered(&words, local),
        code: prefix::code_places(&words),
        words,
    };
    commands.into_iter().map(rule_command).collect()
}

/// Returns the reason why no prefix rule applies to a command, or `None` if one may apply.
fn uncovered(words: &[String], local: &LocalFacts) -> Option<Reason> {
    let (name, rest) = words.split_first()?;
    if !name.contains('/')
        && let ProgramFact::Untrusted(path) = local.program(name)
    {
        let path = path.display();
        let why = format!("`{name}` is `{path}`, which others can change");
        return Some(Reason::whole(why));
    }
    rest.iter()
        .find_map(|word| paths::check_rule_word(local, word))
}

impl Assessment {
    /// Returns, for each simple command, the words and the targets of redirections that are known.
    pub fn words(&self) -> Vec<Vec<String>> {
        let words = |it: &CommandAssessment| it.words.iter().chain(&it.targets).cloned().collect();
        self.commands.iter().map(words).collect()
    }
}
