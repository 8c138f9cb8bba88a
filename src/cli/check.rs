//! The command `co-nvim check`: prints the policy's verdict on a command, and the reasons.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg::*, Parser};
use serde_json::json;

use super::common;
use super::setup::Setup;
use crate::workspace::judge::workspace_of;
use co_exec::Program;
use co_policy::{Assessment, CommandForm, FormOption, Grant, Reason, Verdict};
use co_text::printable;

const USAGE: &str = "usage: co-nvim check [--cwd DIR] [--json] [COMMAND]
Says what policy thinks of COMMAND, and why. With no COMMAND, reads one JSON string a line
from standard input and writes one word a line: auto, ask or deny.
";

struct CheckArguments {
    cwd: Option<PathBuf>,
    json: bool,
    command: Option<String>,
}

/// Runs `check` with its arguments.
pub fn run(args: Vec<OsString>, setup: Setup) -> ExitCode {
    let arguments = match parse(args) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return say(USAGE),
        Err(why) => return fail(&format!("{why}\n{USAGE}")),
    };
    let cwd = arguments.cwd.unwrap_or_else(|| PathBuf::from("."));
    let cwd = match common::real_directory(&cwd) {
        Ok(cwd) => cwd,
        Err(why) => return fail(&format!("{why}\n")),
    };
    let confined = setup.launcher.report().confined().is_ok();
    let auto_confirm = setup.auto_confirm;
    let judge = setup.judge(workspace_of(&cwd));
    let assess = |command: String| judge.assess(&Program::Shell(command), &cwd, confined);
    let verdict = |assessment: &Assessment| match judge.verdict(assessment, &[]) {
        Verdict::Ask(question) if auto_confirm && !question.unread => Judged::Confirmed,
        verdict => Judged::Verdict(verdict),
    };
    let outcome = match arguments.command {
        Some(command) => {
            let assessment = assess(command.clone());
            let verdict = verdict(&assessment);
            let text = match arguments.json {
                true => format!("{}\n", to_json(&verdict, &assessment)),
                false => match &verdict {
                    Judged::Verdict(verdict) => explain(verdict, &command),
                    Judged::Confirmed => {
                        "auto: auto_confirm is on, so it runs without a question\n".to_owned()
                    }
                },
            };
            io::stdout().write_all(text.as_bytes())
        }
        None => many(|command| verdict(&assess(command))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error}\n")),
    }
}

fn parse(args: Vec<OsString>) -> Result<Option<CheckArguments>, String> {
    let mut arguments = CheckArguments {
        cwd: None,
        json: false,
        command: None,
    };
    let mut parser = Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Short('h') | Long("help") => return Ok(None),
            Long("json") => arguments.json = true,
            Long("cwd") => {
                let dir = parser.value().map_err(|_| "--cwd lacks its directory")?;
                arguments.cwd = Some(dir.into());
            }
            Short(letter) => return Err(format!("check has no option -{letter}")),
            Long(name) => return Err(format!("check has no option --{name}")),
            Value(_) if arguments.command.is_some() => {
                return Err("check takes one command; put it in quotes".to_owned());
            }
            Value(command) => arguments.command = Some(command.to_string_lossy().into_owned()),
        }
    }
    Ok(Some(arguments))
}

/// The verdict on a command, or the setting that makes the verdict unnecessary.
enum Judged {
    Verdict(Verdict),
    /// co would ask about the command, but the setting `auto_confirm` is on.
    Confirmed,
}

impl Judged {
    fn word(&self) -> &'static str {
        match self {
            Self::Verdict(verdict) => verdict.word(),
            Self::Confirmed => "auto",
        }
    }
}

fn many(verdict: impl Fn(String) -> Judged) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let command: String = serde_json::from_str(&line).map_err(|error| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a line of standard input is not a JSON string: {error}"),
            )
        })?;
        writeln!(out, "{}", verdict(command).word())?;
        out.flush()?;
    }
    Ok(())
}

/// Returns the verdict and the normal form of each simple command as JSON.
fn to_json(judged: &Judged, assessment: &Assessment) -> serde_json::Value {
    let mut told = match judged {
        Judged::Verdict(verdict) => verdict_json(verdict),
        Judged::Confirmed => json!({ "verdict": "auto", "by": "auto_confirm" }),
    };
    let forms = assessment.commands.iter().map(|it| form_json(&it.form));
    told["commands"] = forms.collect();
    told
}

fn form_json(form: &CommandForm) -> serde_json::Value {
    let options = |own: bool| -> serde_json::Value {
        let options = form.options.iter().filter(|it| own == (it.depth == 0));
        let option = |it: &FormOption| json!({ "name": it.name(), "value": it.value });
        options.map(option).collect()
    };
    json!({
        "program": form.program,
        "program_options": options(true),
        "subcommand": form.subcommand,
        "options": options(false),
        "operands": form.operands.iter().map(|it| &it.text).collect::<Vec<_>>(),
    })
}

fn verdict_json(verdict: &Verdict) -> serde_json::Value {
    match verdict {
        Verdict::Allow(Grant::ReadOnly) => {
            json!({ "verdict": "auto", "by": "sort", "level": "read-only" })
        }
        Verdict::Allow(Grant::Unconfined | Grant::InProcess) => {
            json!({ "verdict": "auto", "by": "sort", "level": "none" })
        }
        Verdict::Allow(Grant::Rule { rule }) => {
            json!({ "verdict": "auto", "by": "rule", "rule": rule })
        }
        Verdict::Ask(ask) => json!({
            "verdict": "ask",
            "reasons": ask.reasons.iter().map(|reason| json!({
                "text": printable(&reason.text),
                "span": reason.span.as_ref().map(|span| [span.start, span.end]),
            })).collect::<Vec<_>>(),
            "destructive": ask.destructive,
            "prefix": ask.prefix.as_ref().map(ToString::to_string),
        }),
        Verdict::Deny { why, rule } => json!({ "verdict": "deny", "why": why, "rule": rule }),
    }
}

/// Returns the verdict for a person. The text shows each reason below the part of the command that it refers to.
fn explain(verdict: &Verdict, command: &str) -> String {
    match verdict {
        Verdict::Allow(Grant::ReadOnly) => {
            "auto: it only looks; it runs at the read-only level\n".to_owned()
        }
        Verdict::Allow(Grant::Unconfined | Grant::InProcess) => {
            "auto: it only looks, and needs no confinement\n".to_owned()
        }
        Verdict::Allow(Grant::Rule { rule }) => {
            format!("auto: your rule `{}` allows it\n", printable(rule))
        }
        Verdict::Deny { why, rule } => {
            format!("deny: {} (rule `{}`)\n", printable(why), printable(rule))
        }
        Verdict::Ask(ask) => {
            let mut text = "ask\n".to_owned();
            for reason in &ask.reasons {
                text.push_str(&underline(reason, command));
            }
            if let Some(prefix) = &ask.prefix {
                text.push_str(&format!("  a rule could be: {prefix}\n"));
            }
            text
        }
    }
}

fn underline(reason: &Reason, command: &str) -> String {
    let says = printable(&reason.text);
    let parts = reason.span.as_ref().and_then(|span| {
        let (before, from) = command.split_at_checked(span.start)?;
        Some((before, from, command.get(span.clone())?))
    });
    let Some((before, from, marked)) = parts else {
        return format!("  {says}\n");
    };
    let before = printable(before.rsplit('\n').next().unwrap_or_default());
    let from = printable(from.split('\n').next().unwrap_or_default());
    let marked = printable(marked.split('\n').next().unwrap_or_default());
    let indent = " ".repeat(before.chars().count());
    let carets = "^".repeat(marked.chars().count().max(1));
    format!("  {before}{from}\n  {indent}{carets} {says}\n")
}

fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(text: &str) -> ExitCode {
    let _shown = io::stderr().write_all(text.as_bytes());
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_stands_below_what_it_speaks_of() {
        let command = "ls &&\nfind . -delete";
        let at = command.find("-delete").unwrap();
        let reason = Reason::at("it removes".to_owned(), at..command.len());
        assert_eq!(
            underline(&reason, command),
            "  find . -delete\n         ^^^^^^^ it removes\n"
        );
        assert_eq!(
            underline(&Reason::whole("x\u{7}".to_owned()), "y"),
            "  x\\u{7}\n"
        );
    }

    #[test]
    fn arguments() {
        let parse = |text: &str| parse(text.split(' ').map(OsString::from).collect());
        assert!(parse("--json ls").unwrap().unwrap().json);
        assert_eq!(
            parse("-- --json").unwrap().unwrap().command.as_deref(),
            Some("--json")
        );
        assert!(parse("ls -la").is_err());
        assert!(parse("--nope").is_err());
        assert!(parse("--cwd").is_err());
        let cwd = |text| parse(text).unwrap().unwrap().cwd;
        assert_eq!(cwd("--cwd /x ls"), cwd("--cwd=/x ls"));
        assert!(parse("--help").unwrap().is_none());
    }
}
