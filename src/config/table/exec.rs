//! The settings of commands: time, environment, output and limits.

use std::time::Duration;

use crate::config::setting::{Applies, Setting, setting};
use crate::config::units::{DAY, MIB, TIB, index};
use crate::config::value::Kind;

/// The settings of commands, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "shell_max_timeout",
        "600",
        Kind::Number(1..=7 * DAY, |c, v| {
            c.exec.max_timeout = Duration::from_secs(v)
        }),
        "Seconds a command may run at most, whatever the model asks for. A model's job that was \
         given no time-out has none. Your own commands may have another limit, |co-run_timeout|.",
    ),
    setting(
        "run_environment",
        "restricted",
        Kind::Choice(&["restricted", "inherit"], |c, v| {
            c.run_inherits = v == "inherit"
        }),
        "The shell and environment of your own commands, those of :Co! and ! in a chat. restricted is \
         bash with the variables that the model's commands have and a few more. inherit is 'shell' with \
         'shellcmdflag' and Neovim's environment, less what never passes. |:Co-++env| chooses for \
         one run; |co-environment| and |co-inherit| list both.",
    ),
    setting(
        "run_timeout",
        "(shell_max_timeout)",
        Kind::Number(0..=7 * DAY, |c, v| c.run_timeout = Some(v)),
        "Seconds that your own commands may run, also more than shell_max_timeout; 0 is no limit. \
         |:Co-++timeout| chooses for one run.",
    ),
    setting(
        "shell_env_allow",
        "CARGO_HOME,RUSTUP_HOME,GOPATH,GOROOT,JAVA_HOME,NVM_DIR,VIRTUAL_ENV,CONDA_PREFIX,PYENV_ROOT,\
         LC_*,TZ,COLORTERM",
        Kind::Variables(|c, v| c.exec.env_allow = v),
        "Environment variables that commands see, besides PATH, HOME and the like.",
    ),
    setting(
        "shell_login_path",
        "false",
        Kind::Flag(|c, v| c.exec.login_path = v),
        "Take PATH from the login shell, for a Neovim that was started from a desktop.",
    ),
    setting(
        "shell_max_output",
        "30000",
        Kind::Size(1000..=4 * MIB, |c, v| c.exec.max_output = index(v)),
        "Bytes of one command's output that the model reads at most: its beginning and its end.",
    ),
    setting(
        "shell_screen_lines",
        "10000",
        Kind::Number(100..=1_000_000, |c, v| c.exec.screen_lines = index(v)),
        "Lines of one run that its buffer keeps.",
    ),
    setting(
        "shell_spill_max",
        "64MiB",
        Kind::Size(0..=TIB, |c, v| c.exec.spill_max = v),
        "Bytes of one command's output that are kept in a file. Of more, the file has the first half and \
         the last half of so many bytes, and between them a line that counts the lines and bytes left \
         out. 0 keeps none.",
    ),
    setting(
        "shell_spill_age",
        "7",
        Kind::Number(0..=3650, |c, v| {
            c.exec.spill_age = Duration::from_secs(v * DAY)
        }),
        "Days those files are kept.",
    )
    .applies(Applies::Restart),
    setting(
        "shell_spill_total",
        "1GiB",
        Kind::Size(0..=16 * TIB, |c, v| c.exec.spill_total = v),
        "Bytes of all those files together; the oldest go first.",
    )
    .applies(Applies::Restart),
    setting(
        "shell_flood_max",
        "1GiB",
        Kind::Size(MIB..=16 * TIB, |c, v| c.exec.flood_max = v),
        "Bytes of output after which a command is ended.",
    ),
    setting(
        "shell_memory",
        "(three quarters of the machine's)",
        Kind::SizeLimit(16 * MIB, |c, v| c.exec.memory = v),
        "Most memory that a model's command and all that it started may use together. co kills a command that \
         uses more.",
    ),
    setting(
        "shell_processes",
        "(512, and 64 for each processor)",
        Kind::Limit(8..=4_194_304, |c, v| c.exec.processes = v),
        "Most processes and threads that a model's command and all that it started may have together. co \
         kills a command that has more.",
    ),
    setting(
        "shell_tmp_size",
        "4GiB",
        Kind::SizeLimit(MIB, |c, v| c.exec.tmp_size = v),
        "Most bytes that a model's command may keep in its private $TMPDIR, if it is confined. co kills a \
         command that keeps more. Commands that run unasked have 512MiB at most.",
    ),
    setting(
        "unasked_timeout",
        "60",
        Kind::Number(1..=7 * DAY, |c, v| {
            c.unasked_timeout = Duration::from_secs(v)
        }),
        "Most seconds that a command may take that runs unasked. |co-shell_max_timeout| applies too. \
         Jobs, and commands that your rules allow, do not have this limit.",
    ),
    setting(
        "unasked_memory",
        "2GiB",
        Kind::SizeLimit(16 * MIB, |c, v| c.exec.unasked_memory = v),
        "The same as |co-shell_memory| for commands that run unasked, if it is less.",
    ),
    setting(
        "unasked_processes",
        "(64, and 2 for each processor)",
        Kind::Limit(8..=4_194_304, |c, v| c.exec.unasked_processes = v),
        "The same as |co-shell_processes| for commands that run unasked, if it is less.",
    ),
    setting(
        "trial_size",
        "2GiB",
        Kind::SizeLimit(MIB, |c, v| c.exec.trial_size = v),
        "The most that a trial may write in the workspace, see |co-trials|. co ends a trial that writes more.",
    ),
    setting(
        "trial_files",
        "1000000",
        Kind::Limit(1000..=1_000_000_000, |c, v| c.exec.trial_files = v),
        "The most files that a trial may make or change in the workspace. Its caches may have a tenth of that. co ends a trial \
         that exceeds this.",
    ),
    setting(
        "trial_cache",
        "5GiB",
        Kind::SizeLimit(MIB, |c, v| c.exec.trial_cache = v),
        "The most that trials leave for later ones in all workspaces: ignored files and the caches of programs, see \
         |co-trials|. co removes those of the workspace first whose last trial is the longest ago. It ends a trial whose \
         caches alone are more.",
    ),
    setting(
        "unasked_open_files",
        "256",
        Kind::Limit(16..=1_000_000, |c, v| c.exec.unasked_open_files = v),
        "The same as |co-shell_open_files| for commands that run unasked, if it is less.",
    ),
    setting(
        "shell_cpu_seconds",
        "none",
        Kind::Limit(1..=7 * DAY, |c, v| c.exec.cpu_seconds = v),
        "Processor seconds of each process of a command.",
    ),
    setting(
        "shell_open_files",
        "none",
        Kind::Limit(16..=1_000_000, |c, v| c.exec.open_files = v),
        "Files that each process of a command may have open. In a trial, and if a confined command of the model runs, it is at \
         most 1024.",
    ),
    setting(
        "shell_file_size",
        "none",
        Kind::SizeLimit(MIB, |c, v| c.exec.file_size = v),
        "The largest file that a command may write.",
    ),
];
