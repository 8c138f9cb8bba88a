//! The arguments of `co-nvim exec`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::{Arg::*, Parser};

use crate::config::{Config, ConfinementSetting};
use crate::paths::Paths;
use co_exec::sandbox::Launcher;
use co_exec::{Caller, ExecSettings, Program};
use co_policy::{HostPattern, HostPatternError};

/// The text of `co-nvim exec --help` after [`USAGE`].
pub(in crate::cli) const HELP: &str = "\
Runs COMMAND by a shell, or PROGRAM without one, as co runs what a model asks for: with a clean
environment, for a limited time, and ending all it started. Your settings hold (config.toml and
CO_CLI_ variables).
  --cwd DIR          where it runs, instead of here
  --timeout SECONDS  how long it may run, shell_max_timeout at most and by default
  --keep             leave running what it leaves running, as :Co! does; not in a container, which is
                     removed at the end. With --try: see there
  --try              what it changes in the workspace goes to a layer over it, and is printed as a diff
                     when it has ended. Without network but the hosts of --allow-host, and those of your
                     settings if sandbox_network is ask. --keep then makes these changes, --drop makes
                     none, and --ask asks on the terminal. The default is --ask on a terminal, else
                     --drop. Changes of ignored files and in .git are dropped
  --allow-host HOST  with --try or --backend landlock, the command may reach this host, such as
                     example.org, *.example.org or example.org:8080, by HTTP and HTTPS through a proxy
                     of co. Without a port, 80 and 443 are meant. localhost:8080 is that port of this
                     machine. Give it for each host. co asks about others on a terminal, and else
                     refuses them
  --read-only        only reads and a private TMPDIR, no network
  --backend NAME     what holds it, sandbox_backend by default. landlock: writes only in the workspace,
                     network as sandbox_network says; docker: in a container; subprocess: all that
                     the user may; auto: the strongest that works here
  --input TEXT       its standard input, empty by default
  --json             one JSON object when it has ended, instead of its output as it comes
Exits as the command does, with 124 where its time was up, 125 where it was not started, and
128 and the signal's number where a signal ended it; not with 0 where its output was not written.
With --try, exits with 123 where not all could be kept that was to be: standard error names the rest.
";

/// The usage line of `co-nvim exec`.
pub(in crate::cli) const USAGE: &str = "usage: co-nvim exec [--cwd DIR] [--timeout SECONDS] [--keep] [--read-only] \
    [--backend subprocess|landlock|docker|auto] [--try [--keep|--drop|--ask]] [--allow-host HOST]... [--input TEXT] [--json] COMMAND\n       \
    co-nvim exec [OPTIONS] -- PROGRAM [ARGUMENT]...";

/// The parsed arguments of `co-nvim exec`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExecRequest {
    pub(super) program: Program,
    pub(super) cwd: PathBuf,
    pub(super) timeout: Option<Duration>,
    pub(super) caller: Caller,
    pub(super) read_only: bool,
    /// True if the command runs as a trial, with its changes in a layer.
    pub(super) trial: bool,
    /// The option that decides about the changes of the trial, if one is given.
    pub(super) after_trial: Option<AfterTrial>,
    /// The hosts that the command may connect to. The command must run as a trial or at the workspace level.
    pub(super) allow_hosts: Vec<HostPattern>,
    /// The confinement. It is `None` if the settings choose it.
    pub(super) confinement: Option<ConfinementSetting>,
    pub(super) input: Option<String>,
    pub(super) json: bool,
}

/// The decision about the changes of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterTrial {
    Keep,
    Drop,
    Ask,
}

/// Parses the arguments after `exec`. Paths are relative to `cwd`. `max` is the longest allowed time-out.
///
/// # Errors
/// A sentence for the person about the wrong argument.
pub(super) fn parse(args: &[OsString], cwd: &Path, max: Duration) -> Result<ExecRequest, String> {
    let mut request = ExecRequest {
        program: Program::Shell(String::new()),
        cwd: cwd.to_owned(),
        timeout: None,
        caller: Caller::Agent,
        read_only: false,
        trial: false,
        after_trial: None,
        allow_hosts: Vec::new(),
        confinement: None,
        input: None,
        json: false,
    };
    let (mut command, mut after) = (None, Vec::new());
    let mut parser = Parser::from_args(args.to_vec());
    loop {
        let mut rest = parser.try_raw_args();
        if rest
            .as_mut()
            .is_some_and(|rest| rest.next_if(|arg| arg == "--").is_some())
        {
            let argv: Result<_, _> = rest.into_iter().flatten().map(text).collect();
            command = Some(Program::Argv(argv?));
            break;
        }
        let Some(arg) = parser.next().map_err(said)? else {
            break;
        };
        match arg {
            Long("cwd") => request.cwd = cwd.join(value(&mut parser)?),
            Long("timeout") => request.timeout = Some(seconds(&value(&mut parser)?, max)?),
            Long("keep") => after.push(AfterTrial::Keep),
            Long("drop") => after.push(AfterTrial::Drop),
            Long("ask") => after.push(AfterTrial::Ask),
            Long("try") => request.trial = true,
            Long("allow-host") => request.allow_hosts.push(host(&value(&mut parser)?)?),
            Long("read-only") => request.read_only = true,
            Long("backend") => request.confinement = Some(confinement(&value(&mut parser)?)?),
            Long("input") => request.input = Some(value(&mut parser)?),
            Long("json") => request.json = true,
            Short(letter) => return Err(format!("unknown option -{letter}\n{USAGE}")),
            Long(name) => return Err(format!("unknown option --{name}\n{USAGE}")),
            Value(_) if command.is_some() => return Err(format!("more than one command\n{USAGE}")),
            Value(line) => command = Some(Program::Shell(text(line)?)),
        }
    }
    request.program = command.ok_or(USAGE)?;
    after.dedup();
    match (&after[..], request.trial) {
        ([], _) => {}
        ([AfterTrial::Keep], false) => request.caller = Caller::Person,
        (_, false) => return Err("--drop and --ask need --try".to_owned()),
        ([AfterTrial::Ask], true) if request.json => {
            return Err("--json prints nothing to ask about: give --keep or --drop".to_owned());
        }
        ([after], true) => request.after_trial = Some(*after),
        (_, true) => return Err("give one of --keep, --drop and --ask".to_owned()),
    }
    let can_reach = request.trial || request.confinement == Some(ConfinementSetting::Landlock);
    if !can_reach && !request.allow_hosts.is_empty() {
        return Err("--allow-host needs --try or --backend landlock".to_owned());
    }
    if request.trial && (request.read_only || request.confinement.is_some()) {
        return Err("--try is a confinement: leave out --read-only and --backend".to_owned());
    }
    Ok(request)
}

fn host(text: &str) -> Result<HostPattern, String> {
    let host = text.parse();
    host.map_err(|error: HostPatternError| format!("--allow-host: {error}"))
}

fn value(parser: &mut Parser) -> Result<String, String> {
    text(parser.value().map_err(said)?)
}

fn text(arg: OsString) -> Result<String, String> {
    arg.into_string()
        .map_err(|arg| format!("`{}` is not UTF-8", arg.display()))
}

/// Returns a sentence about an argument that cannot be parsed.
fn said(error: lexopt::Error) -> String {
    match error {
        lexopt::Error::MissingValue {
            option: Some(option),
        } => format!("{option} wants a value\n{USAGE}"),
        other => format!("{other}\n{USAGE}"),
    }
}

fn seconds(text: &str, max: Duration) -> Result<Duration, String> {
    let range = || {
        format!(
            "a time-out of {text} is out of range: give 1 to {} s, or raise shell_max_timeout \
             (CO_CLI_SHELL_MAX_TIMEOUT)",
            max.as_secs()
        )
    };
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|asked| (Duration::from_secs(1)..=max).contains(asked))
        .ok_or_else(range)
}

fn confinement(word: &str) -> Result<ConfinementSetting, String> {
    ConfinementSetting::from_word(word).ok_or_else(|| {
        let words = ConfinementSetting::ALL
            .map(ConfinementSetting::word)
            .join(", ");
        format!("`--backend {word}` is unknown: give one of {words}")
    })
}

/// The settings and the launcher for commands.
pub struct Machine {
    pub paths: Paths,
    pub config: Config,
    /// The executor's settings, which are made from `config`.
    pub settings: ExecSettings,
    pub launcher: Launcher,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<ExecRequest, String> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        parse(&args, Path::new("/nowhere"), Duration::from_secs(600))
    }

    #[test]
    fn reads_the_options() {
        let it = asked(&[
            "--cwd",
            "d",
            "--timeout",
            "2.5",
            "--keep",
            "--json",
            "echo hi",
        ])
        .unwrap();
        assert_eq!(it.program, Program::Shell("echo hi".into()));
        assert_eq!(it.cwd, Path::new("/nowhere/d"));
        assert_eq!(it.timeout, Some(Duration::from_millis(2_500)));
        assert!(it.json && it.caller == Caller::Person && !it.read_only);
        assert_eq!(it.confinement, None);
        let it = asked(&["--read-only", "--", "ls", "--json"]).unwrap();
        assert_eq!(
            it.program,
            Program::Argv(vec!["ls".into(), "--json".into()])
        );
        assert!(!it.json && it.read_only);
        let it = asked(&["--backend", "landlock", "true"]).unwrap();
        assert_eq!(it.confinement, Some(ConfinementSetting::Landlock));
    }

    #[test]
    fn keep_means_the_changes_of_a_trial() {
        let it = asked(&["--keep", "--try", "make"]).unwrap();
        assert_eq!((it.trial, it.caller), (true, Caller::Agent));
        assert_eq!(it.after_trial, Some(AfterTrial::Keep));
        assert_eq!(asked(&["--try", "make"]).unwrap().after_trial, None);
    }

    #[test]
    fn names_what_is_wrong() {
        for (args, expected) in [
            (&[][..], "usage"),
            (&["a", "b"], "more than one command"),
            (&["--what", "a"], "unknown option --what"),
            (&["--timeout"], "wants a value"),
            (&["--timeout", "0", "a"], "1 to 600 s"),
            (&["--timeout", "-5", "a"], "1 to 600 s"),
            (&["--timeout", "nan", "a"], "1 to 600 s"),
            (&["--timeout", "601", "a"], "raise shell_max_timeout"),
            (&["--drop", "a"], "need --try"),
            (&["--try", "--keep", "--drop", "a"], "give one of"),
            (&["--try", "--ask", "--json", "a"], "--keep or --drop"),
            (
                &["--allow-host", "a.example", "a"],
                "needs --try or --backend landlock",
            ),
            (
                &["--try", "--allow-host", "https://a.example", "a"],
                "is no rule about hosts",
            ),
            (&["--try", "--read-only", "a"], "leave out --read-only"),
            (
                &["--backend", "magic", "a"],
                "`--backend magic` is unknown: give one of subprocess, landlock, docker, auto",
            ),
        ] {
            let error = asked(args).unwrap_err();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }
}
