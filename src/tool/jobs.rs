//! The tools `job_output`, `job_write` and `job_cancel`, for commands that a model started in the background.
//!
//! The chat owns the list of jobs.

pub(super) mod call;

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::schema::{self, BadCall, BuiltIn};
use crate::workspace::judge::JOB_WRITE as WRITE;
use co_llm::ToolSpec;
use co_llm::transcript::Call;

const OUTPUT: &str = "job_output";
const CANCEL: &str = "job_cancel";

/// A call about one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// The job's number in the chat.
    pub job: u64,
    pub action: JobAction,
}

/// An action on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAction {
    Output {
        /// The number of the first line to read, counted from 0; none for the line after the last one that was read.
        since: Option<u64>,
        /// The longest time to wait for new output.
        wait: Duration,
    },
    Write {
        text: String,
        /// True if nothing more will be written to the input.
        close: bool,
    },
    Cancel,
}

/// The arguments of `job_output`, as [`specs`] describes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputArguments {
    job: i64,
    since: Option<i64>,
    wait: Option<i64>,
}

/// The arguments of `job_write`, as [`specs`] describes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    job: i64,
    text: Option<String>,
    close: Option<bool>,
}

/// The arguments of `job_cancel`, as [`specs`] describes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    job: i64,
}

/// Returns the tools about jobs.
pub(super) fn tools() -> [BuiltIn; 3] {
    specs().map(|spec| BuiltIn {
        spec,
        parse: |call| Ok(Box::new(JobRequest::parse(call)?)),
        shown_unread: |_| None,
    })
}

fn specs() -> [ToolSpec; 3] {
    let job = json!({ "type": "integer", "minimum": 0, "description": "The number of the job." });
    let output = "Returns what a job printed since it was last read, and whether it still runs or how it ended. \
        A job is a command that run_shell_command started in the background. \
        To follow a job, give wait instead of calling again and again.";
    let write = "Types text into the standard input of a job, or closes that input, and returns what the job prints \
        next. The person is asked first, unless they allowed it for this job.";
    let cancel = "Ends a job and everything it started.";
    [
        schema::spec(
            OUTPUT,
            output.to_owned(),
            json!({
                "job": job,
                "since": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Read again from this line on; 0 is the first line. Default: where the last \
                        reading ended.",
                },
                "wait": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Seconds to wait for new output. The call returns earlier if the job printed \
                        something and then paused, or ended. Default: 0.",
                },
            }),
            &["job"],
        ),
        schema::spec(
            WRITE,
            write.to_owned(),
            json!({
                "job": job,
                "text": {
                    "type": "string",
                    "description": "The text, typed as it is. End a line with a line break; in a terminal that is \
                        the return key.",
                },
                "close": {
                    "type": "boolean",
                    "description": "Close the standard input after the text; in a terminal, send end-of-file. \
                        Default: false.",
                },
            }),
            &["job"],
        ),
        schema::spec(CANCEL, cancel.to_owned(), json!({ "job": job }), &["job"]),
    ]
}

impl JobRequest {
    /// Parses a call of one of the job tools.
    ///
    /// # Errors
    /// The arguments are invalid, or the call uses another tool.
    fn parse(call: &Call) -> Result<Self, BadCall> {
        match call.name.as_str() {
            OUTPUT => Self::output(call),
            WRITE => Self::write(call),
            CANCEL => {
                let given: CancelArguments = schema::arguments(call)?;
                Ok(Self {
                    job: number(call, "job", given.job)?,
                    action: JobAction::Cancel,
                })
            }
            _ => Err(BadCall::of_another_tool(call)),
        }
    }

    fn output(call: &Call) -> Result<Self, BadCall> {
        let given: OutputArguments = schema::arguments(call)?;
        let since = given.since.map(|line| number(call, "since", line));
        Ok(Self {
            job: number(call, "job", given.job)?,
            action: JobAction::Output {
                since: since.transpose()?,
                wait: Duration::from_secs(number(call, "wait", given.wait.unwrap_or(0))?),
            },
        })
    }

    fn write(call: &Call) -> Result<Self, BadCall> {
        let given: WriteArguments = schema::arguments(call)?;
        let (text, close) = (
            given.text.unwrap_or_default(),
            given.close.unwrap_or_default(),
        );
        if text.is_empty() && !close {
            return Err(BadCall(format!(
                "{WRITE} needs a text, or close = true to end the input."
            )));
        }
        Ok(Self {
            job: number(call, "job", given.job)?,
            action: JobAction::Write { text, close },
        })
    }

    /// Returns the call as one line, for the person.
    pub fn line(&self) -> String {
        let job = self.job;
        match &self.action {
            JobAction::Output { since: None, .. } => format!("{OUTPUT} {job}"),
            JobAction::Output {
                since: Some(line), ..
            } => format!("{OUTPUT} {job} from line {line}"),
            JobAction::Write { .. } => format!("{WRITE} {job}"),
            JobAction::Cancel => format!("{CANCEL} {job}"),
        }
    }
}

/// Returns the text that a call types, line by line, for the person. Invisible characters are escaped.
pub fn typed(text: &str, close: bool) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(escaped).collect();
    if close {
        lines.push("(end of input)".to_owned());
    }
    lines.join("\n")
}

fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\\\");
    let text = text
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\r', "\\r");
    co_text::printable(&text)
}

fn number(call: &Call, name: &str, given: i64) -> Result<u64, BadCall> {
    u64::try_from(given)
        .map_err(|_| BadCall(format!("{name} of {} is a number, 0 or more.", call.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, arguments: serde_json::Value) -> Result<JobRequest, String> {
        let call = Call::new("1", name, arguments);
        JobRequest::parse(&call).map_err(|bad| bad.0)
    }

    #[test]
    fn calls_are_read() {
        let act = |name: &str, arguments| parse(name, arguments).unwrap().action;
        let output = |since, wait| JobAction::Output {
            since,
            wait: Duration::from_secs(wait),
        };
        assert_eq!(act(OUTPUT, json!({"job": 3})), output(None, 0));
        assert_eq!(
            act(OUTPUT, json!({"job": 3, "since": 7, "wait": 20})),
            output(Some(7), 20)
        );
        let write = |text: &str, close| JobAction::Write {
            text: text.into(),
            close,
        };
        assert_eq!(
            act(WRITE, json!({"job": 3, "text": "y\n"})),
            write("y\n", false)
        );
        assert_eq!(
            act(WRITE, json!({"job": 3, "close": true})),
            write("", true)
        );
        assert_eq!(parse(CANCEL, json!({"job": 4})).unwrap().job, 4);
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (name, arguments, word) in [
            (OUTPUT, json!({}), "job"),
            (OUTPUT, json!({"job": -1}), "0 or more"),
            (OUTPUT, json!({"job": 1, "wait": -1}), "0 or more"),
            (WRITE, json!({"job": 1}), "needs a text"),
            (CANCEL, json!({"job": "all"}), "do not fit"),
        ] {
            let error = parse(name, arguments.clone()).unwrap_err();
            assert!(error.contains(word), "{arguments}: {error}");
        }
    }

    #[test]
    fn what_is_typed_hides_nothing() {
        assert_eq!(typed("y\n", false), r"y\n");
        assert_eq!(typed("rm a\nb", true), "rm a\\n\nb\n(end of input)");
        assert_eq!(
            typed("a\\n\u{1b}[A\u{202e}\r\t", false),
            r"a\\n\u{1b}[A\u{202e}\r\t"
        );
        assert_eq!(typed("", true), "(end of input)");
    }
}
