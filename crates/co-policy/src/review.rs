//! Reads one command: what of it is proved, what is not, and what no rule may cover.
//!
//! Knows no rule of a person's: [`super::verdict`] weighs what is found here.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Reason;
use super::bash::{self, Join, Script, Simple};
use super::deny::{self, Denied};
use super::facts::{Facts, Kind, Memo};
use super::options::Arg;
use super::proved::{PIPE, Rewritten, Runs, quoted};
use super::rules;
use super::wrap;
use crate::secret_names::secret;

mod expand;
mod segment;

use expand::{Ready, expand};
use segment::{destroys, judge};

/// What one simple command is judged against.
pub struct Scene<'a> {
    pub facts: &'a dyn Facts,
    pub cwd: &'a Path,
}

/// What was found of a whole command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The command; of an argument vector, the words as a shell would have them.
    pub command: String,
    pub segments: Vec<Segment>,
    /// Why the whole is not understood.
    pub refusals: Vec<Reason>,
    pub denied: Vec<Denied>,
    /// Words of every command in it, those inside wrappers too.
    pub looks: Vec<Vec<String>>,
    pub destructive: bool,
    /// What the workspace's own file adds.
    pub deny: Vec<rules::Pattern>,
    pub ask: Vec<rules::Pattern>,
    /// Why the workspace's own file cannot be read.
    pub broken: Option<String>,
    /// Something in it is too long, too many or too deep to be read: no rule can be tried on that.
    pub unread: bool,
    /// The words of each simple command, and the targets of its redirections, as bash expands them now: once for each
    /// directory it may run in. A word that is not known before it runs is here as it is written.
    pub expanded: Vec<Vec<String>>,
    /// co itself reads; no process starts.
    pub in_process: bool,
    /// The locale that a proved command runs in.
    pub locale: &'static str,
}

/// One simple command of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    pub span: Range<usize>,
    /// The words after expansion; none where one cannot be known.
    pub words: Option<Vec<String>>,
    /// The program with its sub-command, for the list of safe commands.
    pub name: Vec<String>,
    /// Why it is not proved; empty is proved.
    pub unproved: Vec<Reason>,
    /// Why a prefix rule does not cover it.
    pub uncovered: Vec<Reason>,
    /// A `cd`, which is no program.
    pub moves: bool,
    pub git: bool,
    /// The command as it runs if all of it is proved.
    pub rewritten: Option<Rewritten>,
}

/// Judges the text of a command.
pub fn assess(command: &str, cwd: &Path, facts: &dyn Facts) -> Assessment {
    let facts = &Memo::new(facts);
    let script = bash::parse(command);
    let mut found = Assessment {
        command: command.to_owned(),
        refusals: script.refusals.clone(),
        locale: facts.locale(),
        ..Assessment::default()
    };
    if script.fork_bomb {
        found.denied.push(Denied {
            rule: "fork-bomb",
            why: "a function that starts itself again and again fills the machine".to_owned(),
        });
    }
    look(&mut found, wrap::through(&script), cwd, facts);
    found.refusals.extend(misplaced(cwd, facts));
    if found.refusals.is_empty() {
        walk(&script, cwd, facts, &mut found);
    } else {
        let loose = Simple {
            words: script.loose.clone(),
            ..Simple::default()
        };
        let all = script.commands.iter().chain([&loose]);
        let words = |simple| expand(simple, cwd, facts).words();
        found.expanded = all.map(words).collect();
    }
    found
}

/// Judges an argument vector, which no shell sees.
pub fn assess_argv(argv: &[String], cwd: &Path, facts: &dyn Facts) -> Assessment {
    let facts = &Memo::new(facts);
    let mut found = Assessment {
        command: rules::shell_join(argv),
        locale: facts.locale(),
        ..Assessment::default()
    };
    if argv.iter().all(|word| word.trim().is_empty()) {
        found.command.clear();
        return found;
    }
    if let Some((_, c)) = argv.iter().find_map(|word| super::text::first_hidden(word)) {
        found.refusals.push(Reason::whole(format!(
            "it holds an invisible or control character ({})",
            c.escape_unicode()
        )));
    }
    let mut at = 0;
    let args = argv
        .iter()
        .map(|word| {
            let length = rules::shell_join(std::slice::from_ref(word)).len();
            let span = at..at + length;
            at += length + 1;
            Arg {
                text: word.clone(),
                span,
                loose_glob: false,
                dynamic: false,
            }
        })
        .collect();
    look(&mut found, wrap::through_argv(argv), cwd, facts);
    found.refusals.extend(misplaced(cwd, facts));
    let ready = Ready {
        span: 0..found.command.len(),
        quoted: argv.iter().map(|word| quoted(word)).collect(),
        args,
        bare: true,
        ..Ready::default()
    };
    found.segments.push(judge(&ready, &[], cwd, facts));
    found
}

/// A command that runs outside the workspace reads there without naming it.
fn misplaced(cwd: &Path, facts: &dyn Facts) -> Option<Reason> {
    let outside = facts.path(cwd, ".").inside.is_none();
    outside.then(|| Reason::whole("it runs outside the workspace".to_owned()))
}

/// Notes every command for deny and ask rules.
fn look(found: &mut Assessment, inside: wrap::Found, cwd: &Path, facts: &dyn Facts) {
    found.unread = inside.incomplete;
    for look in inside.looks {
        for denied in deny::check(&look, cwd, facts) {
            if !found.denied.contains(&denied) {
                found.denied.push(denied);
            }
        }
        found.destructive |= destroys(&look);
        found.looks.push(look.words);
    }
}

/// Directories a list may be in: after success, after failure.
struct Places {
    good: Vec<PathBuf>,
    bad: Vec<PathBuf>,
    /// After the failure of a `cd` that has no cause to fail: only what stands behind `||` is judged there.
    unlikely: Vec<PathBuf>,
}

/// Judges the pipelines in order, following `cd`.
fn walk(script: &Script, cwd: &Path, facts: &dyn Facts, found: &mut Assessment) {
    let mut places = Places {
        good: vec![cwd.to_owned()],
        bad: Vec::new(),
        unlikely: Vec::new(),
    };
    for (join, pipeline) in &script.pipelines {
        let here = match join {
            Join::And => places.good.clone(),
            Join::Or => union(&places.bad, &places.unlikely),
            Join::Then => union(&places.good, &places.bad),
        };
        let here = if here.is_empty() {
            union(&places.good, &places.bad)
        } else {
            here
        };
        let first = found.segments.len();
        let after = pipe(script, pipeline, &here, facts, found);
        for (place, segment) in found.segments[first..].iter_mut().enumerate() {
            if let Some(rewritten) = &mut segment.rewritten {
                rewritten.join = match join {
                    _ if place > 0 => PIPE,
                    Join::And => " && ",
                    Join::Or => " || ",
                    Join::Then => "\n",
                };
            }
        }
        places = match join {
            Join::Then => after,
            Join::And => Places {
                bad: union(&after.bad, &places.bad),
                good: after.good,
                unlikely: union(&after.unlikely, &places.unlikely),
            },
            Join::Or => Places {
                good: union(&after.good, &places.good),
                bad: after.bad,
                unlikely: after.unlikely,
            },
        };
    }
}

fn union(a: &[PathBuf], b: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = a.to_vec();
    all.extend(b.iter().filter(|path| !a.contains(path)).cloned());
    all
}

/// Judges one pipeline in every directory it may run in, and says where that leaves the shell.
fn pipe(
    script: &Script,
    pipeline: &[usize],
    here: &[PathBuf],
    facts: &dyn Facts,
    found: &mut Assessment,
) -> Places {
    let stay = Places {
        good: here.to_vec(),
        bad: here.to_vec(),
        unlikely: Vec::new(),
    };
    if let [only] = pipeline
        && is_cd(&script.commands[*only])
    {
        let (segment, target) = change(&script.commands[*only], here, facts);
        let words = |cwd: &PathBuf| expand(&script.commands[*only], cwd, facts).words();
        found.expanded.extend(here.iter().map(words));
        found.segments.push(segment);
        return match target {
            Some(target) => Places {
                good: vec![target],
                bad: Vec::new(),
                unlikely: here.to_vec(),
            },
            None => stay,
        };
    }
    let mut merged: Vec<Segment> = Vec::new();
    for cwd in here {
        let ready: Vec<Ready> = pipeline
            .iter()
            .map(|index| expand(&script.commands[*index], cwd, facts))
            .collect();
        found.expanded.extend(ready.iter().map(Ready::words));
        for (place, one) in ready.iter().enumerate() {
            let segment = judge(one, &ready[..place], cwd, facts);
            match merged.get_mut(place) {
                None => merged.push(segment),
                Some(before) => before.merge(segment),
            }
        }
    }
    found.segments.append(&mut merged);
    stay
}

impl Segment {
    /// Joins what was found of the same command in another directory.
    fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.unproved, other.unproved),
            (&mut self.uncovered, other.uncovered),
        ] {
            for reason in theirs {
                if !mine.contains(&reason) {
                    mine.push(reason);
                }
            }
        }
        if self.words != other.words {
            self.words = None;
        }
        if self.rewritten != other.rewritten {
            let text = "its file names depend on whether an earlier `cd` succeeds";
            self.unproved
                .push(Reason::at(text.to_owned(), self.span.clone()));
        }
    }
}

fn is_cd(simple: &Simple) -> bool {
    simple.words.first().is_some_and(|word| word.raw == "cd")
}

/// `cd DIR` into the workspace; everything else of `cd` asks.
fn change(simple: &Simple, here: &[PathBuf], facts: &dyn Facts) -> (Segment, Option<PathBuf>) {
    let mut segment = Segment {
        span: simple.span.clone(),
        name: vec!["cd".to_owned()],
        moves: true,
        ..Segment::default()
    };
    let mut ask = |text: &str| {
        let reason = Reason::at(text.to_owned(), simple.span.clone());
        segment.unproved.push(reason.clone());
        segment.uncovered.push(reason);
    };
    let target = match (simple.words.get(1), simple.words.len()) {
        (Some(word), 2) => word
            .literal()
            .filter(|target| !target.starts_with('-') && !target.is_empty()),
        _ => None,
    };
    let (Some(target), [cwd]) = (target, here) else {
        ask("where `cd` leads cannot be told");
        return (segment, None);
    };
    if !simple.redirects.is_empty() || !simple.assignments.is_empty() {
        ask("where `cd` leads cannot be told");
        return (segment, None);
    }
    let fact = facts.path(cwd, &target);
    match fact.inside {
        Some(_) if fact.kind == Kind::Directory && !fact.enterable => {
            ask("the directory may not be entered");
            (segment, None)
        }
        Some(inside) if fact.kind == Kind::Directory && inside.written == inside.real => {
            if secret(&inside.real).is_some() {
                ask("it moves into a directory that looks like a secret");
                return (segment, None);
            }
            let words = ["cd", &target].map(quoted);
            segment.rewritten = Some(Rewritten::new(&Runs::Builtin, "", &words, ""));
            segment.words = Some(vec!["cd".to_owned(), target]);
            (segment, Some(fact.absolute))
        }
        Some(_) if fact.kind == Kind::Directory => {
            ask("`cd` follows a link");
            (segment, None)
        }
        Some(_) => {
            ask("the directory is not there");
            (segment, None)
        }
        None => {
            ask("it moves out of the workspace");
            (segment, None)
        }
    }
}
