//! Assesses one simple command: the proof, and the reasons why no prefix rule covers it.

use std::path::Path;

use super::expand::ExpandedCommand;
use crate::args::{Arg, PipelineStage};
use crate::assessment::Segment;
use crate::facts::{LocalFacts, ProgramFact};
use crate::git;
use crate::paths;
use crate::programs::{self, Special};
use crate::proved::{CommandTarget, Rewritten, quoted};
use crate::reason::Reason;
use crate::special;
use crate::text::has_word;
use crate::wrappers::FoundCommand;

/// Assesses one command. `before` are the commands of the pipeline before it.
pub(super) fn assess_simple(
    command: &ExpandedCommand,
    before: &[ExpandedCommand],
    local: &LocalFacts,
) -> Segment {
    let mut segment = prove(command, before, local);
    // A proved command names nothing that keeps a rule from covering it.
    if !segment.unproved.is_empty() {
        add_uncovered(command, &mut segment, local);
    }
    segment
}

fn prove(command: &ExpandedCommand, before: &[ExpandedCommand], local: &LocalFacts) -> Segment {
    let mut segment = Segment {
        span: command.span.clone(),
        unproved: command.problems.clone(),
        uncovered: command.problems.clone(),
        ..Segment::default()
    };
    let Some((first, args)) = command.args.split_first() else {
        let reason = Reason::at("there is no program in it", command.span.clone());
        segment.unproved.push(reason.clone());
        segment.uncovered.push(reason);
        return segment;
    };
    segment.words = command
        .args
        .iter()
        .map(|arg| (!arg.dynamic).then(|| arg.text.clone()))
        .collect();
    segment.git = first.text == "git";
    segment.name = command_name(&first.text, args);
    match resolve_program(command, first, local) {
        Ok(target) => segment.rewritten = Some(rewrite(command, &target, local)),
        Err(reason) => {
            segment.unproved.push(reason);
            return segment;
        }
    }
    let Some(table) = programs::lookup(&first.text) else {
        return segment;
    };
    let asks_for_help = match args {
        [only] => match only.text.as_str() {
            "--version" => true,
            // `git --help` opens a page of the manual.
            "--help" => first.text != "git",
            _ => false,
        },
        _ => false,
    };
    let is_build_tool = table.special == Some(Special::Version);
    if asks_for_help && !is_build_tool && command.problems.is_empty() {
        return segment;
    }
    if first.text == "xargs" && !before.is_empty() {
        let stages: Vec<PipelineStage> = before.iter().filter_map(ExpandedCommand::stage).collect();
        segment
            .unproved
            .extend(special::xargs::check_pipeline(&stages, args, local));
        return segment;
    }
    if first.text == "echo" {
        segment.unproved.extend(
            args.iter()
                .filter(|arg| arg.dynamic && !has_only_harmless_variables(&arg.text))
                .map(|arg| arg.reason(format!("`{}` may hold a secret", arg.text))),
        );
    }
    segment
        .unproved
        .extend(special::check(&first.text, table, args, local));
    segment
}

/// True if each variable in an operand of `echo` is known to hold no secret.
fn has_only_harmless_variables(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let tail = &rest[at + 1..];
        let end = tail
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(tail.len());
        let name = if tail.starts_with('?') {
            "?"
        } else {
            &tail[..end]
        };
        if !["?", "PWD", "HOME", "PATH", "USER", "SHELL", "LANG", ""].contains(&name) {
            return false;
        }
        rest = &tail[name.len()..];
    }
    true
}

fn command_name(first: &str, args: &[Arg]) -> Vec<String> {
    let sub = (first == "git").then(|| git::subcommand(args)).flatten();
    match sub {
        Some((name, _)) => name.split(' ').map(str::to_owned).collect(),
        None => [first.to_owned()]
            .into_iter()
            .chain(args.iter().map(|arg| arg.text.clone()))
            .collect(),
    }
}

/// Returns the target of the command's name. The name must be plain and in the tables, its program in a trusted place.
fn resolve_program(
    command: &ExpandedCommand,
    first: &Arg,
    local: &LocalFacts,
) -> Result<CommandTarget, Reason> {
    const BUILTINS: [&str; 11] = [
        "echo", "printf", "test", "[", "true", "false", ":", "pwd", "type", "command", "cd",
    ];
    let ask = |text: String| Err(first.reason(text));
    let name = first.text.as_str();
    if first.dynamic || first.loose_glob || !command.plain_name {
        return ask("the program's name is not written plainly".to_owned());
    }
    if name.contains('/') {
        return ask(format!("`{name}` is run by its path"));
    }
    let Some(table) = programs::lookup(name) else {
        return ask(format!(
            "nothing is known of `{name}`, or it does more than look"
        ));
    };
    if command.in_shell && BUILTINS.contains(&name) {
        return Ok(CommandTarget::Builtin);
    }
    let target = match local.program(name) {
        ProgramFact::Trusted(path) => CommandTarget::Program(path),
        ProgramFact::Missing => CommandTarget::Missing,
        ProgramFact::Untrusted(path) => {
            return ask(format!(
                "`{name}` is `{}`, which others can change",
                path.display()
            ));
        }
    };
    let untrusted = special::trusted::check_started_programs(name, &table.starts, local);
    untrusted.into_iter().next().map_or(Ok(target), Err)
}

/// Returns the command as bash runs it. For xargs it also contains the path of the program that xargs starts.
fn rewrite(command: &ExpandedCommand, target: &CommandTarget, local: &LocalFacts) -> Rewritten {
    let mut words = command.quoted.clone();
    if let Some((first, args)) = command.args.split_first()
        && first.text == "xargs"
        && let Some((name, inner)) = special::xargs::inner_command(args)
    {
        let path = match local.program(name) {
            ProgramFact::Trusted(path) | ProgramFact::Untrusted(path) => path,
            ProgramFact::Missing => Path::new("/nonexistent").join(name),
        };
        words[args.len() - inner.len()] = quoted(&path.to_string_lossy());
    }
    Rewritten::new(target, &command.assignments, &words, &command.redirections)
}

/// Adds the reasons why no prefix rule covers the command.
fn add_uncovered(command: &ExpandedCommand, segment: &mut Segment, local: &LocalFacts) {
    if let Some(first) = command.args.first()
        && !first.text.contains('/')
        && let ProgramFact::Untrusted(path) = local.program(&first.text)
    {
        segment.uncovered.push(first.reason(format!(
            "`{}` is `{}`, which others can change",
            first.text,
            path.display()
        )));
    }
    for (place, arg) in command.args.iter().enumerate() {
        if arg.dynamic {
            segment.uncovered.push(arg.unknown());
        } else if place > 0 {
            segment
                .uncovered
                .extend(paths::check_unknown_word(local, arg));
        }
    }
}

/// True for a command that removes or overwrites something. The question to the person says so.
pub(super) fn is_destructive(command: &FoundCommand) -> bool {
    const DESTROYERS: &str = "rm rmdir unlink mv dd truncate shred wipefs blkdiscard kill pkill killall chmod \
        chown chattr reboot shutdown";
    const OF_GIT: &str = "reset clean restore filter-branch gc prune rebase checkout rm";
    let Some(name) = command.words.first() else {
        return !command.writes.iter().all(|target| target == "/dev/null");
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    let has = |words: &[&str]| {
        command
            .words
            .iter()
            .any(|word| words.contains(&word.as_str()))
    };
    has_word(DESTROYERS, name)
        || name.starts_with("mkfs")
        || command.writes.iter().any(|target| {
            !target.starts_with("/dev/") && !target.bytes().all(|b| b.is_ascii_digit())
        })
        || match name {
            "git" => {
                command.words.iter().any(|word| has_word(OF_GIT, word))
                    || (has(&["push"])
                        && has(&[
                            "--force",
                            "-f",
                            "--force-with-lease",
                            "--delete",
                            "--mirror",
                        ]))
                    || (has(&["branch", "tag"]) && has(&["-d", "-D", "--delete"]))
                    || (has(&["stash"]) && has(&["drop", "clear"]))
            }
            "find" => has(&["-delete"]),
            "sed" => command
                .words
                .iter()
                .any(|word| word.starts_with("-i") || word.starts_with("--in-place")),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::is_destructive;
    use crate::{bash, wrappers};

    #[test]
    fn destructive_commands() {
        let destructive = |text: &str| {
            let found = wrappers::commands_in_script(&bash::parse(text));
            found.commands.iter().any(is_destructive)
        };
        for command in [
            "rm x",
            "/bin/rm x",
            "rmdir x",
            "unlink x",
            "mv a b",
            "dd of=x",
            "truncate -s 0 x",
            "shred x",
            "wipefs x",
            "blkdiscard x",
            "kill 1",
            "pkill x",
            "killall x",
            "chmod 0 x",
            "chown x y",
            "chattr +i x",
            "reboot",
            "shutdown",
            "mkfs.ext4 x",
            "ls > out",
            "> out",
            "git reset --hard",
            "git clean -fd",
            "git restore x",
            "git filter-branch",
            "git gc",
            "git prune",
            "git rebase x",
            "git checkout x",
            "git rm x",
            "git push --force",
            "git push -f",
            "git push --force-with-lease",
            "git push origin --delete x",
            "git push --mirror",
            "git branch -d x",
            "git branch -D x",
            "git tag --delete x",
            "git stash drop",
            "git stash clear",
            "find . -delete",
            "find . -exec rm {} +",
            "sed -i s/a/b/ x",
            "sed --in-place s/a/b/ x",
        ] {
            assert!(destructive(command), "{command}");
        }
        for command in [
            "ls -l",
            "ls > /dev/null",
            "> /dev/null",
            "ls >&2",
            "git push",
            "git push origin x",
            "git branch x",
            "git tag x",
            "git stash",
            "git commit -m x",
            "git log --delete -f",
            "git log drop",
            "find . -print",
            "sed s/a/b/ x",
            "cargo test",
            "grep -i x y",
        ] {
            assert!(!destructive(command), "{command}");
        }
    }
}
