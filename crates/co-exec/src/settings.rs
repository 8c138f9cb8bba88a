//! The settings of the executor, with their defaults and ranges.

pub(crate) mod container;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::places::home;
use crate::settings::container::ContainerSettings;

/// The settings of an [`Executor`](crate::Executor).
#[derive(Debug, Clone, PartialEq)]
pub struct ExecSettings {
    /// The names of variables that commands get besides those of co's own allowlist, or patterns such as `PREFIX_*`.
    pub env_allow: Vec<String>,
    /// True to use the PATH of the login shell.
    pub login_path: bool,
    /// The highest time-out of a model's command.
    pub max_timeout: Duration,
    /// The most bytes of a command's output that are passed to a model.
    pub max_output: usize,
    /// The number of lines that a screen keeps of one run.
    pub screen_lines: usize,
    /// The most bytes of one spill file. From a longer output, the file has the first and the last part, each half of this size.
    /// 0 means no spill files.
    pub spill_max: u64,
    /// The most bytes that a command may print. A command that prints more is ended.
    pub flood_max: u64,
    /// The directory for spill files, with mode 0700.
    pub spill_dir: PathBuf,
    /// The age at which spill files are removed.
    pub spill_age: Duration,
    /// The most bytes of all spill files together.
    pub spill_total: u64,
    /// The most bytes of memory for a model's command with all its processes. Here and in the fields below, `None` means no
    /// limit.
    pub memory: Option<u64>,
    /// The most processes and threads for a model's command.
    pub processes: Option<u64>,
    /// The most bytes in the private temporary directory of a model's confined command.
    pub tmp_size: Option<u64>,
    /// The most bytes that a trial may write in the workspace.
    pub trial_size: Option<u64>,
    /// The most files that a trial may write in the workspace. In the caches, a trial may write a tenth of this number.
    pub trial_files: Option<u64>,
    /// The most bytes of ignored files and caches that trials keep for later trials, in all workspaces together.
    pub trial_cache: Option<u64>,
    /// The most bytes of memory for a command that runs without a question, if this is lower than `memory`.
    pub unasked_memory: Option<u64>,
    /// The most processes and threads for a command that runs without a question, if this is lower than `processes`.
    pub unasked_processes: Option<u64>,
    /// The most open files of each process of a command that runs without a question, if this is lower than `open_files`.
    pub unasked_open_files: Option<u64>,
    /// The most seconds of processor time for each process of any command.
    pub cpu_seconds: Option<u64>,
    /// The most open files for each process of any command.
    pub open_files: Option<u64>,
    /// The size in bytes that a file may reach when a process of any command writes it.
    pub file_size: Option<u64>,
    /// True if commands should get namespaces. They get only those that the kernel allows.
    pub namespaces: bool,
    /// Paths outside the workspace that confined commands may read besides system paths and tools. `~/` stands for the home
    /// directory.
    pub read_roots: Vec<PathBuf>,
    pub container: ContainerSettings,
}

impl ExecSettings {
    /// Returns the default settings, with the given directory for spill files.
    pub fn new(spill_dir: PathBuf) -> Self {
        Self {
            env_allow: home::variables()
                .chain(["LC_*", "TZ", "COLORTERM"])
                .map(str::to_owned)
                .collect(),
            login_path: false,
            max_timeout: Duration::from_secs(600),
            max_output: 30_000,
            screen_lines: 10_000,
            spill_max: 64 << 20,
            flood_max: 1 << 30,
            spill_dir,
            spill_age: Duration::from_secs(7 * 24 * 3600),
            spill_total: 1 << 30,
            memory: default_memory(),
            processes: Some(default_processes()),
            tmp_size: Some(4 << 30),
            trial_size: Some(2 << 30),
            trial_files: Some(1_000_000),
            trial_cache: Some(5 << 30),
            unasked_memory: Some(2 << 30),
            unasked_processes: Some(default_unasked_processes()),
            unasked_open_files: Some(256),
            cpu_seconds: None,
            open_files: None,
            file_size: None,
            namespaces: true,
            read_roots: home::READ_ROOTS
                .split_whitespace()
                .map(PathBuf::from)
                .collect(),
            container: ContainerSettings::default(),
        }
    }
}

impl ExecSettings {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    /// The first setting that is out of range, together with its range.
    pub fn check(&self) -> Result<(), Error> {
        let seconds = self.max_timeout.as_secs();
        check_range("shell_max_timeout", seconds, 1..=7 * 86_400)?;
        check_range("shell_max_output", self.max_output as u64, 1_000..=4 << 20)?;
        check_range(
            "shell_screen_lines",
            self.screen_lines as u64,
            100..=1_000_000,
        )?;
        check_range("shell_spill_max", self.spill_max, 0..=1 << 40)?;
        check_range("shell_flood_max", self.flood_max, 1 << 20..=1 << 44)?;
        check_range("shell_spill_total", self.spill_total, 0..=1 << 44)?;
        let limits = [
            ("shell_memory", self.memory, 1 << 20..=u64::MAX),
            ("shell_processes", self.processes, 8..=1 << 22),
            ("shell_tmp_size", self.tmp_size, 1 << 20..=u64::MAX),
            ("trial_size", self.trial_size, 1 << 20..=u64::MAX),
            ("trial_files", self.trial_files, 1_000..=u64::MAX),
            ("trial_cache", self.trial_cache, 1 << 20..=u64::MAX),
            ("unasked_memory", self.unasked_memory, 1 << 20..=u64::MAX),
            ("unasked_processes", self.unasked_processes, 8..=1 << 22),
            ("unasked_open_files", self.unasked_open_files, 8..=1 << 20),
            ("shell_cpu_seconds", self.cpu_seconds, 1..=1 << 31),
            ("shell_open_files", self.open_files, 8..=1 << 20),
            ("shell_file_size", self.file_size, 0..=u64::MAX),
        ];
        for (name, value, range) in limits {
            if let Some(value) = value {
                check_range(name, value, range)?;
            }
        }
        match self.env_allow.iter().find(|name| !names_variables(name)) {
            Some(name) => Err(Error::EnvName(name.clone())),
            None => Ok(()),
        }
    }
}

fn check_range(name: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<(), Error> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::Setting { name, value, range })
}

/// Returns three quarters of the machine's memory in bytes. Returns `None` if the size is unknown.
fn default_memory() -> Option<u64> {
    let facts = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = facts
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024 / 4 * 3)
}

/// Returns the default number of processes and threads for a model's command: enough for a build that uses every processor, but
/// low enough that co notices a fork bomb while the machine still responds.
fn default_processes() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    512 + 64 * processors
}

/// Returns the default number of processes and threads for a command that runs without a question: enough for the runtimes of
/// read-only programs. Java and Go start threads for every processor.
fn default_unasked_processes() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    64 + 2 * processors
}

/// Returns whether `name` is the name of a variable, or a pattern such as `PREFIX_*`.
pub fn names_variables(name: &str) -> bool {
    let stem = name.strip_suffix('*').unwrap_or(name);
    !stem.is_empty()
        && !stem.starts_with(|c: char| c.is_ascii_digit())
        && stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
