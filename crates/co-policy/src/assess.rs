//! Assesses one command: collects what is proved and the reasons against the rest.
//!
//! This module knows no rules of the person; [`crate::verdict`] applies them to the assessment.

use std::path::{Path, PathBuf};

use crate::args::Arg;
use crate::assessment::{Assessment, Segment};
use crate::bash::{self, Join, Script, Simple};
use crate::deny::{self, Denied};
use crate::facts::cache::CachedFacts;
use crate::facts::{Facts, FileKind, LocalFacts};
use crate::proved::{CommandTarget, PIPE, Rewritten, quoted};
use crate::reason::Reason;
use crate::rules;
use crate::secret_names::secret;
use crate::wrappers;

mod expand;
mod simple;

use expand::{ExpandedCommand, expand};
use simple::{assess_simple, is_destructive};

/// Assesses the text of a command.
pub fn assess(command: &str, cwd: &Path, facts: &dyn Facts) -> Assessment {
    let facts = &CachedFacts::new(facts);
    let local = &LocalFacts { facts, cwd };
    let script = bash::parse(command);
    let mut assessment = Assessment {
        command: command.to_owned(),
        refusals: script.refusals.clone(),
        locale: facts.locale(),
        ..Assessment::default()
    };
    if script.fork_bomb {
        assessment.denied.push(Denied {
            rule: "fork-bomb",
            why: "a function that starts itself again and again fills the machine".to_owned(),
        });
    }
    record_commands(
        &mut assessment,
        wrappers::commands_in_script(&script),
        local,
    );
    assessment.refusals.extend(check_location(local));
    if assessment.refusals.is_empty() {
        assess_pipelines(&script, local, &mut assessment);
    } else {
        let loose = Simple {
            words: script.loose.clone(),
            ..Simple::default()
        };
        let all = script.commands.iter().chain([&loose]);
        let words = |simple| expand(simple, local).words();
        assessment.expanded = all.map(words).collect();
    }
    assessment
}

/// Assesses an argument vector, which starts without a shell.
pub fn assess_argv(argv: &[String], cwd: &Path, facts: &dyn Facts) -> Assessment {
    let facts = &CachedFacts::new(facts);
    let local = &LocalFacts { facts, cwd };
    let mut assessment = Assessment {
        command: rules::shell_join(argv),
        locale: facts.locale(),
        ..Assessment::default()
    };
    if argv.iter().all(|word| word.trim().is_empty()) {
        assessment.command.clear();
        return assessment;
    }
    if let Some((_, c)) = argv.iter().find_map(|word| crate::text::first_hidden(word)) {
        assessment.refusals.push(Reason::whole(format!(
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
    record_commands(&mut assessment, wrappers::commands_in_argv(argv), local);
    assessment.refusals.extend(check_location(local));
    let ready = ExpandedCommand {
        span: 0..assessment.command.len(),
        quoted: argv.iter().map(|word| quoted(word)).collect(),
        args,
        plain_name: true,
        ..ExpandedCommand::default()
    };
    assessment.segments.push(assess_simple(&ready, &[], local));
    assessment
}

/// Refuses a command that runs outside the workspace: it may read there without an argument.
fn check_location(local: &LocalFacts) -> Option<Reason> {
    let outside = local.path(".").inside.is_none();
    outside.then(|| Reason::whole("it runs outside the workspace"))
}

/// Records every command inside the command, for deny and ask rules.
fn record_commands(
    assessment: &mut Assessment,
    nested: wrappers::NestedCommands,
    local: &LocalFacts,
) {
    assessment.unread = nested.incomplete;
    for command in nested.commands {
        for denied in deny::check(&command, local) {
            if !assessment.denied.contains(&denied) {
                assessment.denied.push(denied);
            }
        }
        assessment.destructive |= is_destructive(&command);
        assessment.all_commands.push(command.words);
    }
}

/// The directories in which the shell may be after a pipeline.
struct Directories {
    after_success: Vec<PathBuf>,
    after_failure: Vec<PathBuf>,
    /// After a `cd` that should succeed has failed. Only commands after `||` are assessed there.
    after_unlikely_failure: Vec<PathBuf>,
}

/// Assesses the pipelines in order and follows each `cd`.
fn assess_pipelines(script: &Script, local: &LocalFacts, assessment: &mut Assessment) {
    let mut directories = Directories {
        after_success: vec![local.cwd.to_owned()],
        after_failure: Vec::new(),
        after_unlikely_failure: Vec::new(),
    };
    for (join, pipeline) in &script.pipelines {
        let here = match join {
            Join::And => directories.after_success.clone(),
            Join::Or => union(
                &directories.after_failure,
                &directories.after_unlikely_failure,
            ),
            Join::Then => union(&directories.after_success, &directories.after_failure),
        };
        let here = if here.is_empty() {
            union(&directories.after_success, &directories.after_failure)
        } else {
            here
        };
        let first = assessment.segments.len();
        let after = assess_pipeline(script, pipeline, &here, local.facts, assessment);
        for (place, segment) in assessment.segments[first..].iter_mut().enumerate() {
            if let Some(rewritten) = &mut segment.rewritten {
                rewritten.join = match join {
                    _ if place > 0 => PIPE,
                    Join::And => " && ",
                    Join::Or => " || ",
                    Join::Then => "\n",
                };
            }
        }
        directories = match join {
            Join::Then => after,
            Join::And => Directories {
                after_failure: union(&after.after_failure, &directories.after_failure),
                after_success: after.after_success,
                after_unlikely_failure: union(
                    &after.after_unlikely_failure,
                    &directories.after_unlikely_failure,
                ),
            },
            Join::Or => Directories {
                after_success: union(&after.after_success, &directories.after_success),
                after_failure: after.after_failure,
                after_unlikely_failure: after.after_unlikely_failure,
            },
        };
    }
}

fn union(a: &[PathBuf], b: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = a.to_vec();
    all.extend(b.iter().filter(|path| !a.contains(path)).cloned());
    all
}

/// Assesses one pipeline in each directory in which it may run. Returns the directories of the shell after it.
fn assess_pipeline(
    script: &Script,
    pipeline: &[usize],
    here: &[PathBuf],
    facts: &dyn Facts,
    assessment: &mut Assessment,
) -> Directories {
    let stay = Directories {
        after_success: here.to_vec(),
        after_failure: here.to_vec(),
        after_unlikely_failure: Vec::new(),
    };
    if let [only] = pipeline
        && is_cd(&script.commands[*only])
    {
        let (segment, target) = assess_cd(&script.commands[*only], here, facts);
        let words = |cwd| expand(&script.commands[*only], &LocalFacts { facts, cwd }).words();
        assessment
            .expanded
            .extend(here.iter().map(|cwd| words(cwd)));
        assessment.segments.push(segment);
        return match target {
            Some(target) => Directories {
                after_success: vec![target],
                after_failure: Vec::new(),
                after_unlikely_failure: here.to_vec(),
            },
            None => stay,
        };
    }
    let mut merged: Vec<Segment> = Vec::new();
    for cwd in here {
        let local = &LocalFacts { facts, cwd };
        let ready: Vec<ExpandedCommand> = pipeline
            .iter()
            .map(|index| expand(&script.commands[*index], local))
            .collect();
        assessment
            .expanded
            .extend(ready.iter().map(ExpandedCommand::words));
        for (place, one) in ready.iter().enumerate() {
            let segment = assess_simple(one, &ready[..place], local);
            match merged.get_mut(place) {
                None => merged.push(segment),
                Some(before) => before.merge(segment),
            }
        }
    }
    assessment.segments.append(&mut merged);
    stay
}

fn is_cd(simple: &Simple) -> bool {
    simple.words.first().is_some_and(|word| word.raw == "cd")
}

/// Assesses `cd`. It is proved only for a directory of the workspace that is written out.
fn assess_cd(simple: &Simple, here: &[PathBuf], facts: &dyn Facts) -> (Segment, Option<PathBuf>) {
    let mut segment = Segment {
        span: simple.span.clone(),
        name: vec!["cd".to_owned()],
        is_cd: true,
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
        Some(_) if fact.kind == FileKind::Directory && !fact.enterable => {
            ask("the directory may not be entered");
            (segment, None)
        }
        Some(inside) if fact.kind == FileKind::Directory && inside.written == inside.real => {
            if secret(&inside.real).is_some() {
                ask("it moves into a directory that looks like a secret");
                return (segment, None);
            }
            let words = ["cd", &target].map(quoted);
            segment.rewritten = Some(Rewritten::new(&CommandTarget::Builtin, "", &words, ""));
            segment.words = Some(vec!["cd".to_owned(), target]);
            (segment, Some(fact.absolute))
        }
        Some(_) if fact.kind == FileKind::Directory => {
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
