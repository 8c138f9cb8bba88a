//! The arguments of `run_shell_command`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::config::MODEL_TIMEOUT;
use crate::tool::event::ExecMode;
use crate::tool::schema::{self, BadCall};
use co_exec::{Caller, CommandSpec, Confinement, Program, Streams, TerminalSize};
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_policy::rules;

/// The name by which the model calls this tool.
pub const NAME: &str = "run_shell_command";

/// The size of the terminal for `pty`. It is large enough for most programs.
const TERMINAL: TerminalSize = TerminalSize {
    columns: 120,
    rows: 40,
};

/// The arguments of a `run_shell_command` call, as [`spec`] describes them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    cmd: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    timeout: Option<i64>,
    stdin: Option<String>,
    pty: Option<bool>,
    background: Option<bool>,
    real: Option<bool>,
}

/// A command that a model wants to run.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRequest {
    pub program: Program,
    /// The working directory that the model named.
    pub cwd: Option<String>,
    /// The time-out that the model named.
    pub timeout: Option<Duration>,
    pub mode: ExecMode,
    /// True if the model wants the command to run for real, without a trial first.
    pub real: bool,
}

/// The conditions under which a command runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecContext {
    pub cwd: PathBuf,
    pub confinement: Confinement,
    /// True if neither the person nor one of their rules approved the command: it is read-only, or a trial.
    pub unasked: bool,
}

/// Returns the description of `run_shell_command` for a model. It mentions jobs if `jobs` is true.
pub(in crate::tool) fn spec(jobs: bool) -> ToolSpec {
    let description = "Runs one command and returns its output (standard output and error together) and how it ended. \
        Each command runs in a fresh bash: cd and variables do not carry over to the next one. \
        When the command ends, co also ends everything it left running.";
    let of_jobs = " If a command does not end by itself, such as a server or a watcher, run it in the background: \
        the call then returns the number of a job at once, for job_output, job_write and job_cancel. \
        Jobs end with the chat.";
    let seconds = MODEL_TIMEOUT.as_secs();
    let TerminalSize { columns, rows } = TERMINAL;
    let mut properties = json!({
        "cmd": {
            "type": "string",
            "description": "The command line, run by `bash --noprofile --norc -c`. Give either cmd or argv.",
        },
        "argv": {
            "type": "array",
            "items": { "type": "string" },
            "description": "A program and its arguments, run without a shell. Give either cmd or argv.",
        },
        "cwd": {
            "type": "string",
            "description": "The directory to run in, inside the workspace. A relative path starts at the working \
                directory. Default: the working directory.",
        },
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "description": format!(
                "Seconds after which the command and everything it started is ended. Default: {seconds}; in the \
                background: no limit. The person may allow less; the result then says so."
            ),
        },
        "stdin": {
            "type": "string",
            "description": "Text for standard input. Default: standard input is empty.",
        },
        "pty": {
            "type": "boolean",
            "description": format!(
                "Run in a terminal of {columns} by {rows} cells, for a program that needs one. Default: false."
            ),
        },
        "background": {
            "type": "boolean",
            "description": "Start the command as a job and return at once. Default: false.",
        },
        "real": {
            "type": "boolean",
            "description": "Do not run the command as a trial: ask the person to run it for real. For a command whose \
                result says that it ran as a trial, if what it left unchanged must change. Default: false.",
        },
    });
    let more = match (jobs, properties.as_object_mut()) {
        (false, Some(properties)) => {
            properties.shift_remove("background");
            " One that only looks runs at once, confined to reading. co tries any other one first, or asks the person about it."
        }
        _ => of_jobs,
    };
    schema::spec(NAME, format!("{description}{more}"), properties, &[])
}

impl CommandRequest {
    /// Parses a `run_shell_command` call.
    ///
    /// # Errors
    /// The arguments are invalid, or the call uses another tool.
    pub(crate) fn parse(call: &Call) -> Result<Self, BadCall> {
        if call.name != NAME {
            return Err(BadCall::of_another_tool(call));
        }
        let arguments: ShellArguments = schema::arguments(call)?;
        let program = match (arguments.cmd, arguments.argv) {
            (Some(cmd), None) if !cmd.trim().is_empty() => Program::Shell(cmd),
            (None, Some(argv)) if argv.first().is_some_and(|name| !name.is_empty()) => {
                Program::Argv(argv)
            }
            (Some(_), Some(_)) => return Err(bad("Give either cmd or argv, not both.")),
            _ => {
                return Err(bad(
                    "The command is empty: give cmd, or argv with a program's name.",
                ));
            }
        };
        let timeout = arguments.timeout.map(seconds).transpose()?;
        let program = match arguments.stdin {
            None => program,
            Some(stdin) => Program::Shell(with_input(&text_of(&program), &stdin)),
        };
        Ok(Self {
            program,
            cwd: arguments.cwd,
            timeout,
            mode: ExecMode {
                terminal: arguments.pty.unwrap_or_default(),
                background: arguments.background.unwrap_or_default(),
            },
            real: arguments.real.unwrap_or_default(),
        })
    }

    /// Returns the command as text for a person.
    pub fn text(&self) -> String {
        text_of(&self.program)
    }

    /// Returns the same request with the command that the person wrote.
    #[must_use]
    pub fn edited(&self, command: String) -> Self {
        Self {
            program: Program::Shell(command),
            ..self.clone()
        }
    }

    /// Returns the working directory, which is inside the workspace.
    ///
    /// # Errors
    /// The directory that the model named does not exist, or is outside of the workspace.
    pub fn place(&self, workspace: &Path, cwd: &Path) -> Result<PathBuf, co_exec::Error> {
        match &self.cwd {
            None => Ok(cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned())),
            Some(asked) => co_exec::confine_cwd(workspace, cwd, asked),
        }
    }

    /// Returns the time-out, which is at most `ceiling`; none if the command has no limit.
    pub fn limit(&self, ceiling: Duration) -> Option<Duration> {
        match self.timeout {
            None if self.mode.background => None,
            asked => Some(asked.unwrap_or(MODEL_TIMEOUT).min(ceiling)),
        }
    }

    /// Returns the kind of the command's input and output.
    pub fn streams(&self) -> Streams {
        match self.mode {
            ExecMode { terminal: true, .. } => Streams::Terminal(TERMINAL),
            ExecMode {
                background: true, ..
            } => Streams::Open,
            ExecMode { .. } => Streams::Whole,
        }
    }

    /// Returns the specification of the command for the executor. Its time-out is at most `ceiling`.
    pub fn spec(&self, context: ExecContext, ceiling: Duration) -> CommandSpec {
        CommandSpec {
            program: self.program.clone(),
            cwd: context.cwd,
            caller: Caller::Agent,
            stdin: None,
            timeout: self.limit(ceiling).unwrap_or(co_exec::UNTIL_IT_ENDS),
            confinement: context.confinement,
            environment: co_exec::Environment::default(),
            extra_env: Vec::new(),
        }
    }
}

fn seconds(given: i64) -> Result<Duration, BadCall> {
    match u64::try_from(given) {
        Ok(seconds) if seconds >= 1 => Ok(Duration::from_secs(seconds)),
        _ => Err(bad("timeout is a number of seconds, 1 or more.")),
    }
}

/// Returns a program as text for a person.
fn text_of(program: &Program) -> String {
    match program {
        Program::Shell(text) => text.clone(),
        Program::Argv(argv) => rules::shell_join(argv),
    }
}

/// Returns the command with its input as a here-document, so that the person and the policy also see the input.
fn with_input(command: &str, input: &str) -> String {
    let mut end = "CO_INPUT".to_owned();
    while input.lines().any(|line| line == end) {
        end.push('_');
    }
    let gap = if input.is_empty() || input.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{{ {command}\n}} <<'{end}'\n{input}{gap}{end}")
}

fn bad(text: &str) -> BadCall {
    BadCall(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: Duration = Duration::from_secs(600);

    fn parse(arguments: serde_json::Value) -> Result<CommandRequest, String> {
        CommandRequest::parse(&Call::new("1", NAME, arguments)).map_err(|bad| bad.0)
    }

    #[test]
    fn a_command_line_and_an_argv_are_read() {
        let request = parse(json!({"cmd": "ls -la"})).unwrap();
        assert_eq!(request.program, Program::Shell("ls -la".to_owned()));
        assert_eq!(request.limit(CEILING), Some(Duration::from_secs(120)));
        assert_eq!(request.streams(), Streams::Whole);
        let request =
            parse(json!({"argv": ["git", "commit", "-m", "it's"], "timeout": 5})).unwrap();
        assert_eq!(request.text(), r"git commit -m 'it'\''s'");
        assert_eq!(request.limit(CEILING), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_job_has_no_time_out_but_the_one_it_was_given() {
        let limit = |arguments| parse(arguments).unwrap().limit(CEILING);
        assert_eq!(limit(json!({"cmd": "serve", "background": true})), None);
        let given = json!({"cmd": "serve", "background": true, "timeout": 5_000});
        assert_eq!(limit(given), Some(CEILING));
    }

    #[test]
    fn streams_are_what_was_asked_for() {
        let streams = |arguments| parse(arguments).unwrap().streams();
        let open = json!({"cmd": "cat", "background": true, "pty": false});
        assert_eq!(streams(open), Streams::Open);
        for background in [false, true] {
            let arguments = json!({"cmd": "top", "background": background, "pty": true});
            assert_eq!(streams(arguments), Streams::Terminal(TERMINAL));
        }
    }

    #[test]
    fn the_input_is_part_of_the_command() {
        let request = parse(json!({"cmd": "python3 -", "stdin": "print(1)"})).unwrap();
        assert_eq!(
            request.text(),
            "{ python3 -\n} <<'CO_INPUT'\nprint(1)\nCO_INPUT"
        );
        let request = parse(json!({"argv": ["wc", "-l"], "stdin": "CO_INPUT\n"})).unwrap();
        assert_eq!(
            request.text(),
            "{ wc -l\n} <<'CO_INPUT_'\nCO_INPUT\nCO_INPUT_"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (arguments, word) in [
            (json!({}), "empty"),
            (json!({"cmd": "  "}), "empty"),
            (json!({"argv": []}), "empty"),
            (json!({"cmd": "ls", "argv": ["ls"]}), "either"),
            (json!({"cmd": "ls", "timeout": -5}), "1 or more"),
            (json!({"cmd": "ls", "timeout": "soon"}), "do not fit"),
            (json!({"cmd": "ls", "color": true}), "color"),
        ] {
            let error = parse(arguments.clone()).unwrap_err();
            assert!(error.contains(word), "{arguments}: {error}");
        }
    }
}
