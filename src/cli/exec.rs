//! `co-nvim exec`: one command through the executor, for people and tests.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exec::guard::Guard;
use crate::exec::{
    Caller, Confinement, Executor, Job, Launcher, Outcome, Patch, Program, Screen, Settings, Setup,
    Spec, detach_terminal,
};

/// What `co-nvim exec --help` says below [`USAGE`].
pub(super) const HELP: &str = "\
Runs COMMAND by a shell, or PROGRAM without one, as co runs what a model asks for: with a clean
environment, for a limited time, and ending all it started.
  --cwd DIR          where it runs, instead of here
  --timeout SECONDS  how long it may run, shell_max_timeout at most and by default
  --keep             leave running what it leaves running, as :Co! does
  --read-only        only reads and a private TMPDIR, no network
  --backend NAME     landlock: writes only in the workspace; subprocess: all that the user may
  --input TEXT       its standard input, empty by default
  --json             one JSON object when it has ended, instead of its output as it comes
Exits as the command does, with 124 where its time was up, 125 where it was not started, and
128 and the signal's number where a signal ended it; not with 0 where its output was not written.
";

/// What `co-nvim exec` takes.
pub(super) const USAGE: &str = "usage: co-nvim exec [--cwd DIR] [--timeout SECONDS] [--keep] [--read-only] \
    [--backend subprocess|landlock] [--input TEXT] [--json] COMMAND\n       \
    co-nvim exec [OPTIONS] -- PROGRAM [ARGUMENT]...";

/// How long the last of what is shown is safe from signals once it has ended: the one that cancelled may come twice.
const UNREAD: Duration = Duration::from_secs(1);

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    program: Program,
    cwd: PathBuf,
    timeout: Option<Duration>,
    caller: Caller,
    confinement: Confinement,
    input: Option<String>,
    json: bool,
}

/// Runs the command that the arguments after `exec` name, confined by `launcher` where they say so.
pub fn main(args: &[OsString], settings: Settings, launcher: Launcher, guard: Guard) -> ExitCode {
    detach_terminal();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(run(args, settings, launcher, guard)),
        Err(error) => fail(&format!("cannot start a runtime: {error}")),
    };
    ExitCode::from(code)
}

async fn run(args: &[OsString], settings: Settings, launcher: Launcher, guard: Guard) -> u8 {
    let request = std::env::current_dir()
        .map_err(|error| {
            format!("cannot tell the working directory ({error}): go to one that exists")
        })
        .and_then(|cwd| parse(args, &cwd, settings.max_timeout));
    let request = match request {
        Ok(request) => request,
        Err(message) => return fail(&message),
    };
    let max_timeout = settings.max_timeout;
    let setup = Setup {
        launcher: Some(launcher),
        sole: true,
        program: std::env::current_exe().ok(),
        ..Setup::new(settings)
    };
    let spec = Spec {
        program: request.program,
        cwd: request.cwd,
        caller: request.caller,
        stdin: request.input.map(String::into_bytes),
        timeout: request.timeout.unwrap_or(max_timeout),
        confinement: request.confinement,
        extra_env: Vec::new(),
    };
    let executor = match Executor::new(setup) {
        Ok(executor) => executor,
        Err(error) => return fail(&error.to_string()),
    };
    // Before there is anything that must not be left behind.
    let told = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    let (Ok(interrupt), Ok(terminate)) = told else {
        return fail("cannot hear signals");
    };
    let code = match executor.start(spec).await {
        Ok(job) => follow(job, request.json, interrupt, terminate).await,
        Err(error) => fail(&error.to_string()),
    };
    if request.caller == Caller::Person {
        guard.release();
    } else {
        executor.shutdown().await;
    }
    code
}

/// Shows the run as it goes, or what it came to as JSON; returns the code to exit with.
async fn follow(job: Job, json: bool, mut interrupt: Signal, mut terminate: Signal) -> u8 {
    let mut told = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let cancel = job.canceller();
    let (say, last) = oneshot::channel();
    let shown = match show((!json).then(|| job.screen()), last) {
        Ok(shown) => shown,
        Err(error) => {
            return fail(&format!(
                "cannot start a thread that shows what it prints ({error}): end a few processes, or raise the limit of them (ulimit -u)"
            ));
        }
    };
    let mut outcome = tokio::spawn(job.outcome());
    let outcome = loop {
        tokio::select! {
            outcome = &mut outcome => break outcome,
            () = told() => cancel.cancel(),
        }
    };
    let Ok(outcome) = outcome else {
        return fail("the command's supervisor failed");
    };
    // It fails where that thread did, and then there is nobody to say it.
    let _ = say.send(if json {
        in_json(&outcome)
    } else {
        format!("[{}]", outcome.status())
    });
    let given_up = async {
        let heard = async {
            loop {
                told().await;
            }
        };
        let _ = tokio::time::timeout(UNREAD, heard).await;
        told().await;
    };
    let unwritten = tokio::select! {
        // It ends without a word where that thread failed.
        shown = shown => shown.unwrap_or(Ok(())),
        () = given_up => Ok(()),
    };
    let code = code(&outcome);
    let Err(error) = unwritten else {
        return code;
    };
    fail(&format!(
        "its output could not be written ({error}): write it where there is room"
    ));
    // Who reads the output must not take a part of it for all.
    if code == 0 { 1 } else { code }
}

/// Writes on a thread of its own: who is slow to read must hold up neither the command's time nor a signal.
///
/// First what `screen` shows as it goes, if there is one, then the last line: on standard error beside a screen,
/// else on standard output. What it returns is told when all of it is written, or that it could not be.
fn show(
    screen: Option<Arc<Screen>>,
    last: oneshot::Receiver<String>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (over, end) = oneshot::channel();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("show".to_owned());
    thread.spawn(move || {
        let shown = screen.as_ref().map_or(Ok(()), |screen| {
            let mut shown = Shown::default();
            while runtime.block_on(screen.changed()) {
                // What cannot be written ends the showing; the command goes on to its end.
                if let Some(patch) = screen.take() {
                    shown.write(&patch, &mut io::stdout().lock())?;
                }
            }
            shown.end(&mut io::stdout().lock())
        });
        let ended = match (last.blocking_recv(), screen) {
            // Nobody is left to whom it could be told that standard error is not to be written to.
            (Ok(line), Some(_)) => {
                let _ = writeln!(io::stderr().lock(), "{line}");
                Ok(())
            }
            (Ok(line), None) => writeln!(io::stdout().lock(), "{line}"),
            (Err(_), _) => Ok(()),
        };
        let written = shown.and(ended);
        // That nobody reads any more is no fault of anybody's.
        let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        let _ =
            over.send(written.or_else(|error| if closed(&error) { Ok(()) } else { Err(error) }));
    })?;
    Ok(end)
}

fn in_json(outcome: &Outcome) -> String {
    let pids: Vec<i32> = outcome.background.iter().map(|it| it.pid).collect();
    // A name that is not UTF-8 is no JSON.
    let appeared: Vec<_> = outcome
        .appeared
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    let value = json!({
        "output": outcome.output,
        "exit": outcome.exit,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "cancelled": outcome.cancelled,
        "flooded": outcome.flooded,
        "background_pids": pids,
        "background": outcome.background,
        "kept": outcome.kept,
        "wall_ms": u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
        "bytes": outcome.bytes,
        "lines": outcome.lines,
        "spill": outcome.spill,
        "level": outcome.level,
        "appeared": appeared,
        "nothing_found": outcome.nothing_found,
        "ok": outcome.ok(),
    });
    value.to_string()
}

fn code(outcome: &Outcome) -> u8 {
    if outcome.timed_out {
        return 124;
    }
    let signal = outcome.signal.map(|signal| 128 + signal);
    let code = outcome.exit.or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// What was written of a run; of a flood each screenful as it passes.
#[derive(Debug, Default)]
struct Shown {
    /// The line of the run that the cursor is on, and what is written of it.
    line: u64,
    text: Option<String>,
}

impl Shown {
    fn write(&mut self, patch: &Patch, out: &mut impl Write) -> io::Result<()> {
        for (number, line) in (patch.skipped + patch.from as u64..).zip(&patch.lines) {
            if number > self.line && self.text.take().is_some() {
                writeln!(out)?;
                self.line += 1;
            }
            if number > self.line {
                writeln!(out, "[{} lines not shown]", number - self.line)?;
                self.line = number;
            }
            if number < self.line {
                continue;
            }
            match self
                .text
                .as_ref()
                .map(|text| line.strip_prefix(text.as_str()))
            {
                None => write!(out, "{line}")?,
                Some(Some(more)) => write!(out, "{more}")?,
                Some(None) => write!(out, "\r{line}\x1b[K")?,
            }
            self.text = Some(line.clone());
        }
        out.flush()
    }

    fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.text.take() {
            Some(_) => writeln!(out),
            None => Ok(()),
        }
    }
}

fn parse(args: &[OsString], cwd: &Path, max: Duration) -> Result<Request, String> {
    let mut request = Request {
        program: Program::Shell(String::new()),
        cwd: cwd.to_owned(),
        timeout: None,
        caller: Caller::Agent,
        confinement: Confinement::Plain,
        input: None,
        json: false,
    };
    let mut read_only = false;
    let mut workspace = false;
    let mut command = None;
    let text = |arg: &OsString| {
        let text = arg.to_str().map(str::to_owned);
        text.ok_or_else(|| format!("`{}` is not UTF-8", arg.display()))
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let arg = text(arg)?;
        let mut value = || {
            let value = args
                .next()
                .ok_or_else(|| format!("{arg} wants a value\n{USAGE}"));
            value.and_then(&text)
        };
        match arg.as_str() {
            "--cwd" => request.cwd = cwd.join(value()?),
            "--timeout" => request.timeout = Some(seconds(&value()?, max)?),
            "--keep" => request.caller = Caller::Person,
            "--read-only" => read_only = true,
            "--backend" => workspace = confines(&value()?)?,
            "--input" => request.input = Some(value()?),
            "--json" => request.json = true,
            "--" => {
                let argv: Result<_, _> = args.by_ref().map(&text).collect();
                command = Some(Program::Argv(argv?));
            }
            option if option.starts_with('-') => {
                return Err(format!("unknown option {option}\n{USAGE}"));
            }
            _ if command.is_some() => return Err(format!("more than one command\n{USAGE}")),
            _ => command = Some(Program::Shell(arg)),
        }
    }
    request.program = command.ok_or(USAGE)?;
    let root = root(&request.cwd);
    request.confinement = match (read_only, workspace) {
        (true, _) => Confinement::ReadOnly { workspace: root },
        (false, true) => Confinement::Workspace {
            workspace: root,
            network: false,
        },
        (false, false) => Confinement::Plain,
    };
    Ok(request)
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

fn confines(backend: &str) -> Result<bool, String> {
    match backend {
        "subprocess" => Ok(false),
        "landlock" => Ok(true),
        other => Err(format!(
            "no backend `{other}` here: give subprocess or landlock"
        )),
    }
}

/// Returns the nearest directory above `cwd` that holds `.git`, else `cwd`.
fn root(cwd: &Path) -> PathBuf {
    let found = cwd.ancestors().find(|dir| dir.join(".git").exists());
    found.unwrap_or(cwd).to_owned()
}

fn fail(message: &str) -> u8 {
    let _ = writeln!(io::stderr().lock(), "co-nvim: {message}");
    125
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<Request, String> {
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
        assert!(it.json && it.caller == Caller::Person && it.confinement == Confinement::Plain);
        let it = asked(&["--read-only", "--", "ls", "--json"]).unwrap();
        assert_eq!(
            it.program,
            Program::Argv(vec!["ls".into(), "--json".into()])
        );
        assert!(!it.json && matches!(it.confinement, Confinement::ReadOnly { .. }));
        let it = asked(&["--backend", "landlock", "true"]).unwrap();
        assert!(matches!(
            it.confinement,
            Confinement::Workspace { network: false, .. }
        ));
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
            (&["--backend", "magic", "a"], "no backend `magic`"),
        ] {
            let error = asked(args).unwrap_err();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }

    #[test]
    fn the_workspace_is_where_git_is() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(root(&inner), inner);
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        assert_eq!(root(&inner), dir.path());
    }

    #[test]
    fn writes_each_line_once() {
        let mut shown = Shown::default();
        let mut out = Vec::new();
        for (skipped, from, lines) in [
            (0, 0, &["a"][..]),
            (0, 1, &["b"]),
            (0, 1, &["bc", "d"]),
            (7, 0, &["x", "y"]),
            (0, 0, &["a", "bc", "d", "e", "e", "e", "e", "x", "y", "z"]),
        ] {
            let lines = lines.iter().map(|&it| it.to_owned()).collect();
            let patch = Patch {
                skipped,
                from,
                lines,
                styles: Vec::new(),
            };
            shown.write(&patch, &mut out).unwrap();
        }
        shown.end(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\nbc\nd\n[4 lines not shown]\nx\ny\nz\n");
    }
}
