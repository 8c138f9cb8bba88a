//! The table of all settings, by topic.

use std::time::Duration;

use super::names;
use super::value::Kind;
use super::{Network, SandboxBackend};

/// The time from which a setting applies if it changes while the backend runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// At once, in every chat, for all that starts later.
    Now,
    /// In chats that begin later.
    NextChat,
    /// In the next backend.
    Restart,
}

impl Applies {
    /// Returns the wording of the help.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Now => "at once",
            Self::NextChat => "from the next chat",
            Self::Restart => "after |co-/restart|",
        }
    }
}

/// One setting.
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// Former names, which are still understood.
    pub(super) former: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) applies: Applies,
    /// The default as text for the environment; in parentheses if no text means it.
    pub(super) default: &'static str,
    /// [`super::help`] puts the words of the provider table in the place of `{...}`.
    pub(super) help: &'static str,
}

impl Setting {
    /// Returns the name of its environment variable.
    pub(super) fn variable(&self) -> String {
        names::variable(self.name)
    }

    /// Returns its name, then its former names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.former.iter().copied())
    }

    const fn applies(self, applies: Applies) -> Self {
        Self { applies, ..self }
    }

    const fn formerly(self, former: &'static [&'static str]) -> Self {
        Self { former, ..self }
    }
}

/// Returns a setting that applies at once; [`Setting::applies`] changes that.
const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        former: &[],
        kind,
        applies: Applies::Now,
        default,
        help,
    }
}

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
const DAY: u64 = 24 * 3600;

/// Converts a number that [`Kind`] has found in range.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Every setting, in the order of the help.
pub(super) static TABLE: &[Setting] = &[
    setting(
        "provider",
        "(the first whose key is set, else {fallback})",
        Kind::Choice {
            of: &co_llm::provider_table::NAMES,
            set: |c, v| c.llm.provider = Some(v.to_owned()),
        },
        "The provider that answers. If it is not set, a base_url means a server that speaks OpenAI's \
         protocol, and a model that starts with {model_prefixes} means its maker. Else the first of \
         {key_variables} that is in the environment names the provider; without any, {fallback} \
         on this machine answers.",
    )
    .applies(Applies::NextChat),
    setting(
        "model",
        "(the provider's usual one)",
        Kind::Text(|c, v| c.llm.model = Some(v)),
        "The model's name, as its provider calls it.",
    )
    .applies(Applies::NextChat),
    setting(
        "base_url",
        "(the provider's own)",
        Kind::Url(|c, v| c.llm.base_url = Some(v)),
        "Where requests are sent, such as http://127.0.0.1:8080/v1/.",
    )
    .applies(Applies::NextChat),
    setting(
        "api_key_env",
        "(the provider's usual one)",
        Kind::Text(|c, v| c.llm.key_env = Some(v)),
        "The environment variable that holds the key. The key itself is never a setting.",
    )
    .applies(Applies::NextChat),
    setting(
        "api_key_file",
        "(none)",
        Kind::Path(|c, v| c.llm.key_file = Some(v)),
        "A file that holds the key and that nobody else can read.",
    )
    .applies(Applies::NextChat),
    setting(
        "api_key_cmd",
        "(none)",
        Kind::Argv(|c, v| c.llm.key_cmd = Some(v)),
        "A program that prints the key, and its arguments, such as { 'pass', 'show', 'openai' }. It is asked again after the server \
         refused what it printed.",
    )
    .applies(Applies::NextChat),
    setting(
        "headers",
        "{}",
        Kind::Pairs(|c, v| c.llm.headers = v),
        "Headers that go with every request.",
    )
    .applies(Applies::NextChat),
    setting(
        "extra_body",
        "(none)",
        Kind::Object(|c, v| c.llm.extra_body = Some(v)),
        "Fields that are put into every request's body, such as { temperature = 0 }. A gateway to Claude caches if it gets { cache_control = { type = 'ephemeral' } }.",
    )
    .applies(Applies::NextChat),
    setting(
        "max_output_tokens",
        "none",
        Kind::Limit {
            least: 1,
            most: u32::MAX as u64,
            set: |c, v| c.llm.max_output_tokens = v.map(small),
        },
        "The longest answer to ask for, in tokens; none leaves it to the provider.",
    )
    .applies(Applies::NextChat),
    setting(
        "context_window",
        "none",
        Kind::Limit {
            least: 1000,
            most: 1_000_000_000,
            set: |c, v| c.llm.context_window = v,
        },
        "How many tokens the model can read. Needed only for models that co does not know. Ollama is \
         asked for that many, as far as its model holds them; unset, for what is set there, else 8192.",
    )
    .applies(Applies::NextChat),
    setting(
        "prices",
        "{}",
        Kind::Prices(|c, v| c.prices = v),
        "What models cost, by their name or as provider/model, such as { ['my-model'] = { input = 3, \
         cached = 0.3, output = 15 } }. The winbar, /usage and /export then say what a chat has cost. \
         No price is built in.",
    ),
    setting(
        "stall_timeout",
        "120",
        Kind::Number {
            least: 1,
            most: 3600,
            set: |c, v| c.stall_timeout = Duration::from_secs(v),
        },
        "Seconds a model may send nothing before its answer counts as broken off.",
    )
    .applies(Applies::NextChat),
    setting(
        "max_steps",
        "50",
        Kind::Number {
            least: 0,
            most: 100_000,
            set: |c, v| c.max_steps = small(v),
        },
        "Requests to the model in one turn before it must sum up; 0 is no limit.",
    ),
    setting(
        "show_reasoning",
        "false",
        Kind::Flag(|c, v| c.show_reasoning = v),
        "Show what the model thinks before it answers, where its provider tells.",
    ),
    setting(
        "redact",
        "true",
        Kind::Flag(|c, v| c.redact = v),
        "Hide secrets from the model, in output and context. See |co-secrets|.",
    ),
    setting(
        "session_prune_days",
        "none",
        Kind::Limit {
            least: 1,
            most: 100_000,
            set: |c, v| c.session_prune_days = v.map(small),
        },
        "Sessions untouched for this many days are removed; none keeps them all.",
    )
    .applies(Applies::Restart),
    setting(
        "auto_confirm",
        "false",
        Kind::Flag(|c, v| c.auto_confirm = v),
        "Run what the model asks for without a question. Deny rules still refuse, what is longer than 10,000 \
         characters still asks, and the winbar says that it is on.",
    ),
    setting(
        "allow",
        "",
        Kind::Words(|c, v| c.policy.allow = v),
        "Commands that run without a question, as an approved one would: cargo test covers \
         cargo test --lib.",
    ),
    setting(
        "ask",
        "",
        Kind::Words(|c, v| c.policy.ask = v),
        "Commands that are always asked about.",
    ),
    setting(
        "deny",
        "",
        Kind::Words(|c, v| c.policy.deny = v),
        "Commands that are refused without a question; nothing overrules it.",
    ),
    setting(
        "shell_lift_deny",
        "",
        Kind::Words(|c, v| c.policy.deny_lifted = v),
        "Names of built-in deny rules that shall not refuse: root-deletion, raw-disk, fork-bomb, own-files.",
    ),
    setting(
        "shell_safe_commands",
        "(the built-in list)",
        Kind::Words(|c, v| c.policy.safe_commands = Some(v)),
        "Programs that may be proven read-only and then run without a question. What is given takes \
         the built-in list's place; an empty list proves nothing.",
    ),
    setting(
        "auto_without_sandbox",
        "true",
        Kind::Flag(|c, v| c.auto_without_sandbox = v),
        "Run what is proven read-only without a question even where the kernel has no read-only \
         sandbox to hold it; false asks there.",
    )
    .applies(Applies::Restart),
    setting(
        "shell_max_timeout",
        "600",
        Kind::Number {
            least: 1,
            most: 7 * DAY,
            set: |c, v| c.exec.max_timeout = Duration::from_secs(v),
        },
        "Seconds a command may run at most, whatever the model asks for. A model's job that was \
         given no time-out has none. Your own commands may have another limit, |co-run_timeout|.",
    )
    .formerly(&["sandbox_max_timeout"]),
    setting(
        "run_environment",
        "restricted",
        Kind::Choice {
            of: &["restricted", "inherit"],
            set: |c, v| c.run_inherits = v == "inherit",
        },
        "The shell and environment of your own commands, those of :Co! and ! in a chat. restricted is \
         bash with the variables that the model's commands have and a few more. inherit is 'shell' with \
         'shellcmdflag' and Neovim's environment, less what never passes. |:Co-++env| chooses for \
         one run; |co-environment| and |co-inherit| list both.",
    ),
    setting(
        "run_timeout",
        "(shell_max_timeout)",
        Kind::Number {
            least: 0,
            most: 7 * DAY,
            set: |c, v| c.run_timeout = Some(v),
        },
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
        Kind::Size {
            least: 1000,
            most: 4 * MIB,
            set: |c, v| c.exec.max_output = index(v),
        },
        "Bytes of one command's output that the model reads at most: its beginning and its end.",
    ),
    setting(
        "shell_screen_lines",
        "10000",
        Kind::Number {
            least: 100,
            most: 1_000_000,
            set: |c, v| c.exec.screen_lines = index(v),
        },
        "Lines of one run that its buffer keeps.",
    ),
    setting(
        "shell_spill_max",
        "64MiB",
        Kind::Size {
            least: 0,
            most: TIB,
            set: |c, v| c.exec.spill_max = v,
        },
        "Bytes of one command's output that are kept in a file. Of more, the file has the first half and \
         the last half of so many bytes, and between them a line that counts the lines and bytes left \
         out. 0 keeps none.",
    ),
    setting(
        "shell_spill_age",
        "7",
        Kind::Number {
            least: 0,
            most: 3650,
            set: |c, v| c.exec.spill_age = Duration::from_secs(v * DAY),
        },
        "Days those files are kept.",
    )
    .applies(Applies::Restart),
    setting(
        "shell_spill_total",
        "1GiB",
        Kind::Size {
            least: 0,
            most: 16 * TIB,
            set: |c, v| c.exec.spill_total = v,
        },
        "Bytes of all those files together; the oldest go first.",
    )
    .applies(Applies::Restart),
    setting(
        "shell_flood_max",
        "1GiB",
        Kind::Size {
            least: MIB,
            most: 16 * TIB,
            set: |c, v| c.exec.flood_max = v,
        },
        "Bytes of output after which a command is ended.",
    ),
    setting(
        "shell_memory",
        "(three quarters of the machine's)",
        Kind::SizeLimit {
            least: 16 * MIB,
            set: |c, v| c.exec.memory = v,
        },
        "Most memory that a model's command and all that it started may use together. co kills a command that \
         uses more.",
    ),
    setting(
        "shell_processes",
        "(512, and 64 for each processor)",
        Kind::Limit {
            least: 8,
            most: 4_194_304,
            set: |c, v| c.exec.processes = v,
        },
        "Most processes and threads that a model's command and all that it started may have together. co \
         kills a command that has more.",
    ),
    setting(
        "shell_tmp_size",
        "4GiB",
        Kind::SizeLimit {
            least: MIB,
            set: |c, v| c.exec.tmp_size = v,
        },
        "Most bytes that a model's command may keep in its private $TMPDIR, if it is confined. co kills a \
         command that keeps more.",
    ),
    setting(
        "unasked_timeout",
        "60",
        Kind::Number {
            least: 1,
            most: 7 * DAY,
            set: |c, v| c.unasked_timeout = Duration::from_secs(v),
        },
        "Most seconds that a command which co proved to only read may run. |co-shell_max_timeout| applies too. \
         Jobs, and commands that your rules allow, do not have this limit.",
    ),
    setting(
        "unasked_memory",
        "2GiB",
        Kind::SizeLimit {
            least: 16 * MIB,
            set: |c, v| c.exec.unasked_memory = v,
        },
        "The same as |co-shell_memory| for commands that run unasked, if it is less.",
    ),
    setting(
        "unasked_processes",
        "256",
        Kind::Limit {
            least: 8,
            most: 4_194_304,
            set: |c, v| c.exec.unasked_processes = v,
        },
        "The same as |co-shell_processes| for commands that run unasked, if it is less.",
    ),
    setting(
        "shell_cpu_seconds",
        "none",
        Kind::Limit {
            least: 1,
            most: 7 * DAY,
            set: |c, v| c.exec.cpu_seconds = v,
        },
        "Processor seconds of each process of a command.",
    ),
    setting(
        "shell_open_files",
        "none",
        Kind::Limit {
            least: 16,
            most: 1_000_000,
            set: |c, v| c.exec.open_files = v,
        },
        "Files that each process of a command may have open.",
    ),
    setting(
        "shell_file_size",
        "none",
        Kind::SizeLimit {
            least: MIB,
            set: |c, v| c.exec.file_size = v,
        },
        "The largest file that a command may write.",
    ),
    setting(
        "sandbox_backend",
        "subprocess",
        Kind::Choice {
            of: &["subprocess", "landlock", "docker", "auto"],
            set: |c, v| c.sandbox_backend = SandboxBackend::from_word(v).unwrap_or(SandboxBackend::Subprocess),
        },
        "The way approved commands run: as plain processes (subprocess), or confined to the workspace by the \
         kernel (landlock). Landlock also protects git's hooks and configuration, so `git init` and `git \
         config` fail. Commands so confined cannot open secret files, see |co-secret-files|. If the chosen way \
         cannot work here, co refuses every such command with the reason; \
         auto takes the strongest that can. docker is not in this version: with it, no approved command runs. \
         :Co /sandbox chooses another until the backend ends.",
    )
    .applies(Applies::Restart),
    setting(
        "sandbox_network",
        "none",
        Kind::Choice {
            of: &["none", "host"],
            set: |c, v| {
                c.sandbox_network = if v == "host" {
                    Network::Host
                } else {
                    Network::None
                };
            },
        },
        "The network of commands that landlock holds.",
    )
    .applies(Applies::Restart),
    setting(
        "sandbox_namespaces",
        "true",
        Kind::Flag(|c, v| c.exec.namespaces = v),
        "Give sandboxed commands mounts of their own, in a user namespace, where the kernel lets us.",
    )
    .applies(Applies::Restart),
    setting(
        "hide_secrets",
        "true",
        Kind::Flag(|c, v| c.hide_secrets = v),
        "Hide files with names of secrets (.env, keys) from commands that landlock confines, where the \
         kernel has namespaces. Commands that run unasked never see them there.",
    )
    .applies(Applies::Restart),
    setting(
        "docker_image",
        "co-cli-sandbox",
        Kind::Text(|c, v| c.docker_image = v),
        "The image of the container. Not used: docker is not in this version.",
    )
    .applies(Applies::Restart),
    setting(
        "sandbox_mem_limit",
        "1GiB",
        Kind::Size {
            least: 16 * MIB,
            most: TIB,
            set: |c, v| c.sandbox_mem_limit = v,
        },
        "Memory of the container. Not used: docker is not in this version.",
    )
    .applies(Applies::Restart),
    setting(
        "sandbox_cpus",
        "1",
        Kind::Decimal {
            least: 0.01,
            most: 1024.0,
            set: |c, v| c.sandbox_cpus = v,
        },
        "Processors of the container. Not used: docker is not in this version.",
    )
    .applies(Applies::Restart),
];
