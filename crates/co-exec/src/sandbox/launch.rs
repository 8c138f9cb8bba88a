//! The launcher process. It restricts itself as its plan says, then becomes the command by exec.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sched::CloneFlags;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::filter::{self, FilterConfig};
use super::mounts::ProtectError;
use super::plan::{ConfinedPlan, HiddenPaths, Mounts, PathBytes, Plan, Task};
use super::start_gate::LauncherGate;
use super::support::SandboxSupport;
use super::{LAUNCH, mounts, namespaces, network, pid_namespace, restriction, rules, trial};
use crate::confinement::level::{Calls, Network};
use crate::inherited;
use crate::limits::ProcessLimits;
use crate::process::{cgroup, spawn};

/// The exit status for a command that could not be started, as in shells.
const CANNOT_START: u8 = 126;

/// Acts as the launcher if the command line `args` says so. `name` is the name of the program, for messages.
///
/// Call it first in `main`, before any thread or runtime starts. Returns `None` for an ordinary start of the program. Otherwise,
/// this process restricts itself and becomes the command. If that fails, prints one sentence on standard error and returns the
/// exit status.
pub fn launch_main(name: &str, args: &[OsString]) -> Option<ExitCode> {
    if args.get(1).is_none_or(|first| first != LAUNCH) {
        return None;
    }
    let message = match args.get(2).and_then(|it| Task::read(it)) {
        None => "this is how a confined command is started, not a command for people".to_owned(),
        Some(Task::Probe(mounts)) => return Some(print_support(&probe(mounts.as_deref()))),
        Some(Task::Start(plan)) => run(&plan, &args[3..]),
    };
    // If standard error is closed, nobody can be told.
    let _ = writeln!(std::io::stderr(), "{name}: {message}");
    Some(ExitCode::from(CANNOT_START))
}

/// Restricts this process, and then becomes the command or starts it in a PID namespace. If that fails, returns the reason.
fn run(plan: &Plan, argv: &[OsString]) -> String {
    let Some((program, rest)) = argv.split_first() else {
        return "there is no command to run".to_owned();
    };
    let not_started = |error: io::Error| format!("{} did not start: {error}", program.display());
    if let Err(why) = limit(plan) {
        return format!("the command was not started, because its limits could not be set: {why}");
    }
    let Some(confined) = &plan.confined else {
        return not_started(Command::new(program).args(rest).exec());
    };
    let _locks = match enter_namespaces(confined, &plan.limits) {
        Ok(locks) => locks,
        Err(why) => return unconfined(&why),
    };
    let Some(namespace) = &confined.processes else {
        return match confine(confined, &plan.cwd.0) {
            Ok(()) => not_started(Command::new(program).args(rest).exec()),
            Err(why) => unconfined(&why),
        };
    };
    let start = || {
        confine(confined, &plan.cwd.0).map_err(|why| unconfined(&why))?;
        spawn::start_here(argv, namespace.terminal).map_err(not_started)
    };
    let Err(why) = pid_namespace::enter(namespace, start);
    why
}

fn unconfined(why: &str) -> String {
    format!("the command was not started, for it could not be confined: {why}")
}

/// Sets the limits of the command. Enters the cgroup first, because mounts may later hide the file for entering it.
fn limit(plan: &Plan) -> Result<(), String> {
    if let Some(group) = &plan.group {
        cgroup::enter(&group.dir.0, &group.limits).map_err(|e| {
            format!("it cannot enter its control group ({e}), see `co-nvim doctor`")
        })?;
    }
    plan.limits.set()
}

/// Closes all files except the standard streams, enters the namespaces of the plan, and protects files that the command must not
/// change or read. Returns the locks to hold until the command ends.
fn enter_namespaces(plan: &ConfinedPlan, limits: &ProcessLimits) -> Result<Vec<OwnedFd>, String> {
    let gate = plan.gate.map(LauncherGate::inherited).transpose();
    let gate = gate.map_err(|e| format!("it cannot wait until it may start ({e})"))?;
    inherited::close(2, gate.as_ref().map(LauncherGate::fd))
        .map_err(|e| format!("inherited files stay open ({e})"))?;
    let Some(mounts) = &plan.mounts else {
        return match plan.network {
            Network::Own => Err("it has no namespaces for a network of its own".to_owned()),
            Network::None | Network::Machine => Ok(Vec::new()),
        };
    };
    let processes = plan.processes;
    let processes = processes.map_or(CloneFlags::empty(), |_| CloneFlags::CLONE_NEWPID);
    let locks = namespaces::enter(mounts, plan.network, processes)?;
    let listeners = network::listen(&plan.ports)
        .map_err(|e| format!("no socket for its way to the network ({e})"))?;
    let protected = mounts::hold(mounts).and_then(|()| mounts::hide(&mounts.hidden));
    match (gate, &protected) {
        (Some(gate), Ok(())) => gate
            .pass(listeners)
            .map_err(|e| format!("nobody waits for it ({e})"))?,
        (Some(gate), Err(ProtectError::Moved(path))) => gate.refuse(path),
        _ => {}
    }
    protected.map_err(|error| error.to_string())?;
    limits.set_in_namespace()?;
    Ok(locks)
}

/// Confines this process. Installs the filter of system calls last, because it would refuse the other steps.
fn confine(plan: &ConfinedPlan, cwd: &Path) -> Result<(), String> {
    // Entered by its path, so that it is below the new mounts.
    std::env::set_current_dir(cwd)
        .map_err(|e| format!("{} cannot be entered ({e})", cwd.display()))?;
    drop_capabilities().map_err(|e| format!("capabilities stay ({e})"))?;
    rules::enter(plan)?;
    let config = FilterConfig {
        calls: plan.calls,
        abi: plan.abi,
        network: plan.network,
        mounted: plan.mounts.is_some(),
        pid_namespace: plan.processes.is_some(),
    };
    seccompiler::apply_filter(&filter::program(config)).map_err(|e| e.to_string())
}

/// Drops all capabilities, and prevents programs from getting any at exec.
fn drop_capabilities() -> rustix::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    for bit in 0..64 {
        // Without CAP_SETPCAP the bounding set stays, but no_new_privs makes it useless. The first number that does
        // not exist ends the list.
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if let Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) =
            rustix::thread::remove_capability_from_bounding_set(capability)
        {
            break;
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)
}

/// Tries each sandbox feature in this process, which must exit afterwards. Tries a trial with the mounts `of_trial`.
fn probe(of_trial: Option<&Mounts>) -> SandboxSupport {
    let trials = of_trial.map_or_else(
        || Err("there is no directory to try it in".to_owned()),
        trial::probe,
    );
    let mounts = Mounts {
        hidden: HiddenPaths {
            by: Some(PathBytes::from("/dev")),
            paths: vec![PathBytes::from("/dev")],
        },
        ..Mounts::default()
    };
    let enter = |others| {
        mounts::enter(&mounts, others).map_err(|error| restriction::of_namespaces(&error))?;
        mounts::hide(&mounts.hidden).map_err(|error| error.to_string())
    };
    let own = network::namespaces(Network::Own) | CloneFlags::CLONE_NEWPID;
    let own_network = enter(own).and_then(|()| network::set_up(Network::Own));
    let pids = match own_network {
        Ok(()) => Ok(()),
        Err(_) => enter(CloneFlags::CLONE_NEWPID),
    };
    let own_proc = pids.is_ok() && pid_namespace::can_mount_proc();
    let pid_namespaces = pids.is_ok();
    let namespaces = pids.or_else(|_| enter(CloneFlags::empty()));
    let capabilities = drop_capabilities();
    let landlock = rules::probe();
    let config = FilterConfig {
        calls: Calls::Look,
        abi: 1,
        network: Network::None,
        mounted: false,
        pid_namespace: false,
    };
    let seccomp = seccompiler::apply_filter(&filter::program(config));
    let why = [
        landlock.as_ref().err().cloned(),
        seccomp
            .as_ref()
            .err()
            .map(|e| format!("no seccomp filter: {e}")),
        capabilities
            .err()
            .map(|e| format!("capabilities cannot be dropped: {e}")),
        namespaces
            .as_ref()
            .err()
            .map(|e| format!("no mount namespace: {e}")),
    ];
    SandboxSupport {
        abi: landlock.ok(),
        seccomp: seccomp.is_ok() && capabilities.is_ok(),
        namespaces: namespaces.is_ok(),
        pid_namespaces,
        own_proc,
        trials: trials.is_ok(),
        own_network: own_network.is_ok(),
        why: why.into_iter().flatten().next(),
        why_no_own_network: own_network.err(),
        why_no_trials: trials.err(),
    }
}

fn print_support(support: &SandboxSupport) -> ExitCode {
    let told = serde_json::to_vec(support).map(|text| std::io::stdout().write_all(&text));
    if matches!(told, Ok(Ok(()))) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(CANNOT_START)
    }
}
