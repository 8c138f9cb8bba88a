//! The tool `explore`: a scout works in a context of its own, and reports. A scout changes nothing and asks nothing, so a call of
//! this tool needs no approval.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use super::call::{
    CallAction, CallKind, CallResult, DecidedCall, JudgedCall, NotRun, PlannedCall, ReadyCall,
    RunningCall, joined,
};
use super::context::{CallContext, CallHalt};
use super::event::{CallEvent, ScoutProgress, ShownCall};
use super::permissions::TurnMemory;
use super::schema::{self, BadCall, BuiltIn, arguments};
use super::scout::{ScoutEnd, ScoutTask, calls_in_words};
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, ShownPart, Usage};
use co_text::{one_line, shorten};

/// The name by which the model calls this tool.
pub const NAME: &str = "explore";

/// The largest number of steps of a scout.
pub const MOST_STEPS: u32 = 30;

/// The largest number of bytes of a task.
const LONGEST_TASK: usize = 16 * 1024;
/// The largest number of bytes of a task that the chat shows.
const LONGEST_SHOWN: usize = 200;

/// The result of a call for a scout that the person sent. The scout's report follows as the answer.
const FOLLOWS: &str = "The scout has reported. Its report follows.";

/// A call that sends a scout.
#[derive(Debug, Clone)]
struct ScoutCall(ScoutTask);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task: String,
}

/// Returns the tool `explore`.
pub(super) fn tool() -> BuiltIn {
    let description = format!(
        "Sends a scout, which looks around in a context of its own and returns a short report with file:line. Use it for a broad \
         question about the project, if you need the answer but not all that must be read for it. The scout only looks: it \
         reads and searches files, changes nothing and asks nobody. It has {MOST_STEPS} steps. Send several at once, in one step, for \
         separate questions."
    );
    let properties = json!({
        "task": {
            "type": "string",
            "description": "What to find out, and all that the scout must know for it: it does not see this chat.",
        },
    });
    BuiltIn {
        spec: schema::spec(NAME, description, properties, &["task"]),
        parse: |call| Ok(Box::new(ScoutCall::parse(call)?)),
        shown_unread: |_| None,
    }
}

/// Returns the largest number of steps of a scout. `max_steps` is the limit of steps of a turn; 0 means no limit.
pub fn most_steps(max_steps: u32) -> u32 {
    match max_steps {
        0 => MOST_STEPS,
        most => most.min(MOST_STEPS),
    }
}

/// Returns the call that represents a scout that the person sent.
pub fn call_of_person(id: String, task: &str) -> Call {
    Call::new(id, NAME, json!({ "task": task }))
}

impl ScoutCall {
    fn parse(call: &Call) -> Result<Self, BadCall> {
        let Arguments { task } = arguments(call)?;
        match task.trim() {
            "" => Err(BadCall("The task is empty.".to_owned())),
            task if task.len() > LONGEST_TASK => Err(BadCall(format!(
                "The task is longer than {LONGEST_TASK} bytes: name files in it instead of their text."
            ))),
            task => Ok(Self(ScoutTask {
                call: call.id.clone(),
                task: task.to_owned(),
                attached: Vec::new(),
            })),
        }
    }
}

/// Returns a task as one line for the person.
fn shown(task: &str) -> String {
    one_line(&shorten(task, LONGEST_SHOWN))
}

/// A scout that runs. If this value is dropped, the scout ends.
pub struct SentScout {
    running: JoinHandle<ScoutEnd>,
    _ends: DropGuard,
}

/// Shows a scout in the chat, and starts it.
///
/// # Errors
/// The turn is cancelled.
pub async fn send(context: &CallContext, asked: ScoutTask) -> Result<SentScout, CallHalt> {
    let begun = ScoutProgress {
        call: asked.call.clone(),
        task: shown(&asked.task),
        ..ScoutProgress::default()
    };
    context.to_chat.show(CallEvent::Scouted(begun)).await?;
    let cancel = context.cancel.child_token();
    let own = CallContext {
        cancel: cancel.clone(),
        ..context.clone()
    };
    Ok(SentScout {
        running: tokio::spawn(context.scouts.scout(own, asked)),
        _ends: cancel.drop_guard(),
    })
}

impl SentScout {
    /// Waits for the end of the scout. Returns the result of its call, which contains the report.
    pub async fn result(self, context: &CallContext) -> CallResult {
        let ended = self.running.await;
        let ended = ended
            .unwrap_or_else(|error| ScoutEnd::failed(format!("The scout ended badly ({error}).")));
        let ScoutEnd {
            report,
            looked,
            calls,
            usage,
        } = ended;
        let report = match report {
            // It may quote what has become known as a secret since the scout read it.
            Ok(report) => context.redact_for_model(&report, Instant::now()).await,
            Err(why) => Err(why),
        };
        let took = match usage == Usage::default() {
            true => String::new(),
            false => usage.to_string(),
        };
        let calls = calls_in_words(calls);
        match report {
            Ok(told) => CallResult {
                ok: true,
                shown: ShownPart {
                    output: [0, told.text.len()],
                    status: joined(&[&calls, &took]),
                    exceptions: Some(calls),
                    took,
                    looked,
                    ..ShownPart::default()
                },
                ..told.into()
            },
            Err(why) => CallResult {
                shown: ShownPart {
                    exceptions: Some(one_line(&why)),
                    took,
                    looked,
                    ..ShownPart::line(one_line(&why))
                },
                ..CallResult::answer(why)
            },
        }
    }

    /// Waits for the end of a scout that the person sent. Returns the result of its call, and the report; none if the scout
    /// failed.
    pub async fn answer(self, context: &CallContext) -> (CallResult, Option<String>) {
        let mut result = self.result(context).await;
        if !result.ok {
            return (result, None);
        }
        let told = RedactedText {
            text: FOLLOWS.to_owned(),
            hidden: result.told.hidden,
        };
        result.shown.output = [0, 0];
        let report = std::mem::replace(&mut result.told, told);
        (result, Some(report.text))
    }
}

#[async_trait]
impl PlannedCall for ScoutCall {
    fn shown(&self) -> ShownCall {
        ShownCall::Scout {
            call: self.0.call.clone(),
            task: shown(&self.0.task),
        }
    }

    async fn judge(
        &self,
        _context: &CallContext,
        _memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        // It starts before its result is awaited, beside other scouts, so it is no `LookingCall`.
        Ok(JudgedCall {
            kind: CallKind::Looks,
            ..JudgedCall::free(self.clone())
        })
    }
}

#[async_trait]
impl CallAction for ScoutCall {
    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let context = Arc::clone(context);
        Ok(ReadyCall {
            level: None,
            runs: Some(format!("explore {}", shown(&self.0.task))),
            start: Box::pin(async move {
                let scout = send(&context, self.0).await?;
                let rest: RunningCall = Box::pin(async move { Ok(scout.result(&context).await) });
                Ok(rest)
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_a_text_that_is_not_too_long() {
        let check = |task: &str, part: &str| {
            let bad = ScoutCall::parse(&call_of_person("1".to_owned(), task)).unwrap_err();
            assert!(bad.0.contains(part), "{bad}");
        };
        check(" \n", "empty");
        check(&"x".repeat(LONGEST_TASK + 1), "longer");
        let explore = ScoutCall::parse(&call_of_person("1".to_owned(), " a\nb\u{202e} ")).unwrap();
        assert_eq!(explore.0.task, "a\nb\u{202e}");
        let ShownCall::Scout { task, .. } = explore.shown() else {
            panic!("{:?}", explore.shown());
        };
        assert!(!task.contains(['\n', '\u{202e}']), "{task}");
    }
}
