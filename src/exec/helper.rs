//! What this program does when it starts itself again: set limits and become a command.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit};

use super::Settings;

/// First argument of a start that is to become a command.
const BECOME: &str = "--become";

/// Does what the arguments (the program's name first) ask, if they are the executor's own.
///
/// `main` calls it before anything else: it must find one thread and no runtime.
pub fn run(args: &[OsString]) -> Option<ExitCode> {
    let rest = args.get(2..)?;
    match args[1].to_str()? {
        BECOME => Some(become_command(rest)),
        _ => None,
    }
}

/// Returns what must be set of a command before its first instruction, as arguments of [`wrap`].
pub(super) fn limits(settings: &Settings) -> Vec<OsString> {
    let limits = [
        ("memory", settings.memory),
        ("cpu", settings.cpu_seconds),
        ("files", settings.open_files),
        ("size", settings.file_size),
    ];
    limits
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?).into()))
        .collect()
}

/// Returns the command that sets `limits` and becomes `argv`.
pub(super) fn wrap(helper: &Path, limits: Vec<OsString>, argv: Vec<OsString>) -> Vec<OsString> {
    let start = [helper.as_os_str().to_owned(), BECOME.into()];
    start
        .into_iter()
        .chain(limits)
        .chain(["--".into()])
        .chain(argv)
        .collect()
}

fn become_command(args: &[OsString]) -> ExitCode {
    let mut args = args.iter();
    for arg in args.by_ref().take_while(|arg| *arg != "--") {
        if let Err(error) = apply(arg) {
            eprintln!("co-nvim: cannot set {}: {error}", arg.display());
            return ExitCode::from(126);
        }
    }
    let Some(program) = args.next() else {
        eprintln!("co-nvim: no command after `--`");
        return ExitCode::from(126);
    };
    let error = Command::new(program).args(args).exec();
    eprintln!("co-nvim: cannot start {}: {error}", program.display());
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    ExitCode::from(if missing { 127 } else { 126 })
}

fn apply(arg: &OsStr) -> std::io::Result<()> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let (name, value) = arg
        .to_str()
        .and_then(|it| it.split_once('='))
        .ok_or_else(invalid)?;
    let value: u64 = value.parse().map_err(|_| invalid())?;
    let resource = match name {
        "memory" => Resource::As,
        "cpu" => Resource::Cpu,
        "files" => Resource::Nofile,
        "size" => Resource::Fsize,
        _ => return Err(invalid()),
    };
    // What the system allows less of is limited already, and to raise that is its owner's alone.
    let most = rustix::process::getrlimit(resource).maximum;
    let within = |value: u64| Some(most.map_or(value, |most| value.min(most)));
    // Where both are the same SIGKILL comes at once, which says nothing; SIGXCPU does.
    let grace = u64::from(resource == Resource::Cpu);
    let limit = Rlimit {
        current: within(value),
        maximum: within(value.saturating_add(grace)),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}
