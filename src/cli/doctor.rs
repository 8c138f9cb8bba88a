//! The command `co-nvim doctor`: checks the machine and the settings, and gives advice about faults.
//!
//! It changes nothing and never shows a key. It asks each provider in the settings for its list of models, and sends no other
//! request.

mod agents;
mod check;
mod container;
mod landlock;
mod provider;
mod servers;
mod system;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use lexopt::{Arg::*, Parser};

use crate::config::{self, Config, ConfinementSetting, Layers, LoadedSettings};
use crate::paths::Paths;
use crate::protocol::PROTOCOL;
use crate::workspace::confinement::Isolation;
use crate::workspace::judge::{rule_faults, workspace_of};
use co_exec::LimitEnforcement;
use co_exec::container::{EngineFault, check_engine};
use co_exec::sandbox::SandboxReport;

pub use check::{Check, CheckLevel};

/// The arguments of `doctor`.
#[derive(Debug, Clone, Default)]
pub struct DoctorArguments {
    /// True if the output is a JSON array of [`Check`]s.
    pub json: bool,
    /// The version of the Neovim that started the doctor, such as `0.11.2`.
    pub nvim: Option<String>,
    /// The settings from Lua. It is null if no editor started the doctor.
    pub lua: serde_json::Value,
    /// The names of all environment variables.
    pub variables: Vec<String>,
    /// The environment for the program of the container engine.
    pub environment: Vec<(OsString, OsString)>,
}

impl DoctorArguments {
    /// Parses the arguments. Returns `None` if they ask for help.
    ///
    /// # Errors
    /// The first argument that is unknown.
    pub fn parse(args: Vec<OsString>) -> Result<Option<Self>, String> {
        let mut parsed = Self::default();
        let mut parser = Parser::from_args(args);
        while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
            match arg {
                Short('h') | Long("help") => return Ok(None),
                Long("json") => parsed.json = true,
                Long("nvim") => {
                    let version = parser.value().ok();
                    parsed.nvim = version.map(|it| it.to_string_lossy().into_owned());
                }
                Long("settings") => {
                    let text = parser.value().unwrap_or_default();
                    parsed.lua =
                        serde_json::from_slice(text.as_encoded_bytes()).unwrap_or_default();
                }
                Short(letter) => return Err(format!("-{letter}")),
                Long(name) => return Err(format!("--{name}")),
                Value(word) => return Err(word.to_string_lossy().into_owned()),
            }
        }
        Ok(Some(parsed))
    }
}

/// The results of the tests that ran before the checks.
#[derive(Debug, Clone)]
pub struct Findings {
    pub sandbox: SandboxReport,
    /// The result of testing a command's access to hosts, as a clause for the person.
    pub hosts: Result<&'static str, String>,
}

/// Runs all checks and prints their results. The exit status is 1 if one of the results is an error.
pub async fn run(args: DoctorArguments, found: Findings, env: config::Env<'_>) -> ExitCode {
    let checks = checks(&args, &found, env).await;
    let text = if args.json {
        let array = serde_json::to_string(&checks).unwrap_or_else(|_| "[]".to_owned());
        format!("{array}\n")
    } else {
        checks.iter().map(lines).collect()
    };
    let printed = std::io::stdout().write_all(text.as_bytes());
    let failed = checks.iter().any(|check| check.level == CheckLevel::Error);
    if printed.is_err() || failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs all checks.
pub async fn checks(args: &DoctorArguments, found: &Findings, env: config::Env<'_>) -> Vec<Check> {
    let probe = &found.sandbox;
    let mut checks = vec![Check::ok(
        "version",
        format!("co-nvim {}, protocol {PROTOCOL}", env!("CARGO_PKG_VERSION")),
    )];
    checks.extend(args.nvim.as_deref().map(system::nvim));
    let paths = Paths::discover(env);
    checks.extend(system::directories(&paths));
    let paths = paths.ok();
    let file = paths.as_ref().map(Paths::config_file);
    let layers = Layers {
        file: file.as_deref(),
        lua: &args.lua,
        env,
        variables: &args.variables,
    };
    let LoadedSettings { given, problems } = layers.read();
    let config = given.config();
    checks.extend(settings(problems, args.lua.is_null()));
    checks.extend(questions(
        &config,
        given.is_from_environment("auto_confirm"),
    ));
    checks.push(system::shell(env).await);
    checks.extend(provider::checks(&config, env).await);
    checks.extend(agents::checks(&config, env));
    let root = std::env::current_dir().map(|cwd| workspace_of(&cwd));
    let workspace = root.as_deref().ok();
    checks.extend(servers::checks(&config, env, workspace, paths.as_ref()));
    checks.push(sandbox(probe));
    checks.extend(root.as_ref().ok().and_then(|root| trials(probe, root)));
    checks.extend(hosts(found));
    checks.extend(landlock::check(probe));
    let engine = check_engine(config.container(), &args.environment).await;
    checks.push(approved_commands(probe, &config, engine.as_ref().map(drop)));
    checks.push(container::check(&config, engine).await);
    // No command runs unasked in a home directory, or above it.
    let home = env("HOME").unwrap_or_default();
    let root = root.ok().filter(|root| !Path::new(&home).starts_with(root));
    checks.extend(root.map(|root| system::watcher(&root)));
    let root = rustix::process::geteuid().is_root();
    checks.push(limits(&LimitEnforcement::find(), root));
    checks
}

fn settings(problems: Vec<String>, in_shell: bool) -> Vec<Check> {
    if problems.is_empty() {
        let understood = "every setting given is understood";
        let unseen = "only :checkhealth co knows those of vim.g.co and setup{}";
        return vec![match in_shell {
            true => Check::ok("settings", format!("{understood}; {unseen}")),
            false => Check::ok("settings", understood),
        }];
    }
    let advice = "correct or remove it; :help co-settings lists every setting";
    problems
        .into_iter()
        .map(|problem| Check::bad("settings", CheckLevel::Error, problem, advice))
        .collect()
}

/// Reports faults in the person's rules, and reports if `auto_confirm` turns questions off in the environment.
fn questions(config: &Config, from_environment: bool) -> Vec<Check> {
    let warn =
        |message: String, advice: &str| Check::bad("questions", CheckLevel::Warn, message, advice);
    let faults = rule_faults(&config.policy).into_iter();
    let mut checks: Vec<Check> = faults
        .map(|fault| {
            warn(
                fault,
                ":help co-unasked lists what may run without a question",
            )
        })
        .collect();
    if config.auto_confirm && from_environment {
        checks.push(warn(
            "CO_CLI_AUTO_CONFIRM in the environment is on: what the model asks for runs without a question"
                .to_owned(),
            "unset it, unless you want that here",
        ));
    }
    checks
}

/// Checks the confinement of commands that run without approval.
fn sandbox(probe: &SandboxReport) -> Check {
    let kernel = probe.support().words();
    match probe.confined() {
        Ok(()) => Check::ok("sandbox", kernel),
        Err(why) if !probe.is_known() => Check::bad(
            "sandbox",
            CheckLevel::Warn,
            format!("{why}; until then nearly every command asks"),
            "correct what it names: open files and processes that may be had, the file of co-nvim",
        ),
        Err(_) => Check::bad(
            "sandbox",
            CheckLevel::Warn,
            format!("{kernel}; nothing can confine a command, so nearly every command asks"),
            "use Linux 5.13 or newer with Landlock in its list of security modules (`lsm=`)",
        ),
    }
}

/// Checks that commands can run as trials. Returns `None` if the system cannot confine commands at all.
fn trials(probe: &SandboxReport, workspace: &Path) -> Option<Check> {
    probe.confined().ok()?;
    Some(match probe.trials(workspace) {
        Ok(()) => Check::ok(
            "trials",
            "a command can run as a trial, which leaves the workspace as it is",
        ),
        Err(refused) => Check::bad(
            "trials",
            CheckLevel::Warn,
            refused.to_string(),
            "a trial needs namespaces and an overlay over the workspace; without trials, co asks before it runs such a command",
        ),
    })
}

/// Shows which hosts a command can connect to. Returns `None` if the system cannot confine commands at all.
fn hosts(found: &Findings) -> Option<Check> {
    found.sandbox.confined().ok()?;
    Some(match &found.hosts {
        Ok(words) => Check::ok("hosts", *words),
        Err(why) => Check::bad(
            "hosts",
            CheckLevel::Warn,
            why.clone(),
            "until then, sandbox_network = \"ask\" gives confined commands no network",
        ),
    })
}

/// Shows what approved commands may access.
fn approved_commands(
    probe: &SandboxReport,
    config: &Config,
    engine: Result<(), &EngineFault>,
) -> Check {
    let isolation = Isolation::new(config, probe);
    let isolation = isolation.with_engine(engine.map_err(EngineFault::clone));
    match isolation.approved_words() {
        Ok(words) if isolation.other() == Some(ConfinementSetting::Landlock) => Check::ok(
            "approved commands",
            format!(
                "{words}; sandbox_backend = \"landlock\", or :Co /sandbox landlock until :Co /restart or the end of Neovim, confines \
                 them to the workspace"
            ),
        ),
        Ok(words) => Check::ok("approved commands", words),
        Err(refused) => Check::bad(
            "approved commands",
            CheckLevel::Error,
            format!("approved commands are refused: {refused}"),
            "set sandbox_backend to what works here; auto takes the strongest",
        ),
    }
}

/// Shows how co enforces the limits on a model's commands.
fn limits(hold: &LimitEnforcement, root: bool) -> Check {
    let watched = "co itself checks the memory and processes of a model's command";
    match hold {
        LimitEnforcement::Kernel(dir) => Check::ok(
            "limits",
            format!(
                "the kernel enforces the limits of memory and processes of a model's command, in {}",
                dir.display()
            ),
        ),
        LimitEnforcement::Group(_) | LimitEnforcement::Watched if root => Check::bad(
            "limits",
            CheckLevel::Warn,
            format!("{watched}; a fork bomb that runs as root may first make the machine unusable"),
            "run Neovim as an ordinary user, or in a cgroup v2 with memory and pids controllers",
        ),
        LimitEnforcement::Group(dir) => Check::ok(
            "limits",
            format!(
                "{watched}, and kills its process tree in one call, in {}",
                dir.display()
            ),
        ),
        LimitEnforcement::Watched => Check::ok(
            "limits",
            format!("{watched}; it cannot make a control group here"),
        ),
    }
}

fn lines(check: &Check) -> String {
    let level = match check.level {
        CheckLevel::Ok => "ok   ",
        CheckLevel::Warn => "warn ",
        CheckLevel::Error => "error",
    };
    let advice = check.advice.as_ref();
    let advice = advice.map_or_else(String::new, |advice| format!("      {advice}\n"));
    format!("{level} {}: {}\n{advice}", check.name, check.message)
}

#[cfg(test)]
mod tests;
