//! Carries out the calls that read and search files and ask the editor. They run in this process. They get a verdict like
//! commands, and nobody is asked about them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::{JoinError, JoinHandle};

use super::FileQuery;
use crate::buffers::{Buffers, OpenBuffers};
use crate::protocol::{EditorAnswer, HunkAnswer};
use crate::tool::audit_lines::CallOutcome;
use crate::tool::call::{
    Approved, CANCELLED, CallResult, JudgedCall, PlannedCall, Resolution, RunningCall,
};
use crate::tool::context::{CallContext, Halt};
use crate::tool::event::ShownCall;
use crate::tool::permissions::TurnMemory;
use crate::workspace::files::places::real_paths;
use crate::workspace::files::{
    Deadline, EditorFacts, FileFacts, FileQueryError, FileScope, QUERY_TIMEOUT,
};
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, ShownPart};
use co_policy::{Grant, Verdict};

/// The time that a query may take beyond its time limit, because a file system may hang.
const HANG_TIMEOUT: Duration = Duration::from_secs(2);

/// The hint for the model if a query is refused.
const READ_WITH_SHELL: &str =
    "If it is needed, read it with run_shell_command: the person is asked then.";

/// A call that reads or searches files, or asks the editor.
pub(super) struct QueryCall {
    query: FileQuery,
    judged: Option<JudgedCall>,
}

impl QueryCall {
    pub(super) fn new(query: FileQuery) -> Self {
        Self {
            query,
            judged: None,
        }
    }
}

#[async_trait]
impl PlannedCall for QueryCall {
    fn shown(&self) -> ShownCall {
        self.query.shown()
    }

    async fn judge(&mut self, context: &CallContext, _memory: &TurnMemory) -> Result<(), String> {
        let (judge, cwd, asked) = (
            Arc::clone(&context.judge),
            context.cwd.clone(),
            self.query.clone(),
        );
        let verdict = tokio::task::spawn_blocking(move || asked.judge(&judge, &cwd));
        let verdict = context.unless_cancelled(verdict).await;
        let verdict = verdict.map_err(|_| CANCELLED)?.map_err(|error| {
            format!("The call could not be judged ({error}), so it was not run.")
        })?;
        self.judged = Some(JudgedCall::plain(self.query.line(), verdict));
        Ok(())
    }

    fn resolve(&self, _context: &CallContext, _memory: &TurnMemory) -> Resolution {
        let Some(judged) = &self.judged else {
            return Resolution::Refuse(Decision::Withdrawn);
        };
        match &judged.verdict {
            Verdict::Allow(Grant::ReadOnly | Grant::Unconfined | Grant::InProcess) => {
                Resolution::Run(Decision::Unasked)
            }
            Verdict::Allow(Grant::Rule { rule }) => {
                Resolution::Run(Decision::Rule { rule: rule.clone() })
            }
            Verdict::Ask(ask) => {
                let reasons: Vec<_> = ask
                    .reasons
                    .iter()
                    .map(|reason| reason.text.as_str())
                    .collect();
                Resolution::Refuse(Decision::Forbidden {
                    why: reasons.join("; "),
                })
            }
            Verdict::Deny { why, .. } => {
                Resolution::Refuse(Decision::Forbidden { why: why.clone() })
            }
        }
    }

    fn judged(&self) -> Option<&JudgedCall> {
        self.judged.as_ref()
    }

    fn only_looks(&self) -> bool {
        true
    }

    fn refused(
        &mut self,
        decision: &Decision,
        _hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        let Decision::Forbidden { why } = decision else {
            return None;
        };
        Some(CallResult::answer(format!(
            "Refused: {why}. {READ_WITH_SHELL}"
        )))
    }

    async fn start(
        self: Box<Self>,
        context: Arc<CallContext>,
        approved: Approved,
    ) -> Result<RunningCall, Halt> {
        approved.record(&context).await?;
        let started = Instant::now();
        let running = start_query(&context, &self.query, started);
        Ok(Box::pin(self.finish(context, approved, running, started)))
    }
}

impl QueryCall {
    async fn finish(
        self: Box<Self>,
        context: Arc<CallContext>,
        approved: Approved,
        running: JoinHandle<Result<FileFacts, FileQueryError>>,
        started: Instant,
    ) -> Result<CallResult, Halt> {
        context.host.runs(self.query.line()).await?;
        let found = wait_for_query(&context, running).await;
        let (facts, ok) = match found {
            Ok(facts) => (facts, true),
            Err(FileQueryError(why)) => (FileFacts::failed(why), false),
        };
        let FileFacts {
            text,
            summary,
            short,
            whole,
        } = facts;
        let hash = whole.map(|whole| context.seen_texts.add(whole));
        let hash = hash.map_or_else(String::new, |hash| format!("; hash {hash}"));
        if let Some(judged) = &self.judged {
            let outcome = CallOutcome::Look(&summary);
            context.audit(&approved.id, judged, &approved.decision(), outcome);
        }
        let told = match context.redact_for_model(&text, started).await {
            Ok(RedactedText { text, hidden }) => RedactedText {
                text: format!("{text}[{summary}{hash}]"),
                hidden,
            },
            Err(withheld) => format!("[{withheld}]").into(),
        };
        Ok(CallResult {
            ok,
            shown: ShownPart {
                exceptions: (!short.is_empty()).then(|| co_policy::printable(&short)),
                ..ShownPart::line(co_policy::printable(&summary))
            },
            ..told.into()
        })
    }
}

/// Starts a query in a task of its own, at the moment `started`.
fn start_query(
    context: &CallContext,
    query: &FileQuery,
    started: Instant,
) -> JoinHandle<Result<FileFacts, FileQueryError>> {
    let judge = Arc::clone(&context.judge);
    let cwd = context.cwd.clone();
    let cancel = context.cancel.clone();
    let bytes = context.services.executor.settings().max_output;
    let buffers = context.buffers();
    let query = query.clone();
    tokio::spawn(async move {
        let (place, asked, at) = (Arc::clone(&judge), query.clone(), cwd.clone());
        let path = tokio::task::spawn_blocking(move || asked.place(&place, &at, started));
        let path = unless_it_hangs(path).await?.unwrap_or_else(failed)?;
        let asking = ask_editor(&query, &path, &buffers);
        let (open, answer) = tokio::select! {
            said = asking => said,
            () = cancel.cancelled() => return Err(FileQueryError("cancelled".to_owned())),
        };
        let editor = match answer {
            Some(answer) => {
                let real = unless_it_hangs(tokio::fs::canonicalize(&cwd)).await?;
                let cwd = real.unwrap_or(cwd);
                Some(EditorFacts { answer, cwd })
            }
            None => None,
        };
        let end = Deadline::new(cancel);
        let looking = tokio::task::spawn_blocking(move || {
            query.run(&FileScope {
                path,
                allowed: match editor {
                    Some(_) => Arc::new(move |file: &Path| judge.shows(file)),
                    None => judge.readable_since(started),
                },
                open,
                editor,
                bytes,
                end,
            })
        });
        unless_it_hangs(looking).await?.unwrap_or_else(failed)
    })
}

/// Waits for the result of a query. After a cancellation, it gives up if the file system hangs.
async fn wait_for_query(
    context: &CallContext,
    running: JoinHandle<Result<FileFacts, FileQueryError>>,
) -> Result<FileFacts, FileQueryError> {
    let cancelled = async {
        context.cancel.cancelled().await;
        tokio::time::sleep(HANG_TIMEOUT).await;
    };
    tokio::select! {
        found = running => found.unwrap_or_else(failed),
        () = cancelled => Err(FileQueryError("cancelled".to_owned())),
    }
}

fn failed<T>(error: JoinError) -> Result<T, FileQueryError> {
    Err(FileQueryError(format!("The look failed: {error}.")))
}

/// Asks Neovim what a query has to know: the texts of buffers, or the answer to a question. It has no time limit, because
/// Neovim may wait for a person.
async fn ask_editor(
    query: &FileQuery,
    path: &Path,
    buffers: &Buffers,
) -> (OpenBuffers, Option<EditorAnswer>) {
    match query {
        FileQuery::Read(_) => (buffers.read([path]).await, None),
        FileQuery::Search(_) => (buffers.modified_below(path).await, None),
        FileQuery::Editor(query) => {
            let answer = buffers.query(query.message(path)).await;
            let places = answer.places.clone();
            let files = tokio::task::spawn_blocking(move || real_paths(&places)).await;
            let files = files.unwrap_or_default();
            let open = match files.is_empty() {
                true => OpenBuffers::new(),
                false => buffers.read(files.iter().map(PathBuf::as_path)).await,
            };
            (open, Some(answer))
        }
        FileQuery::List(_) => (OpenBuffers::new(), None),
    }
}

/// Waits for work on files, but gives up if the file system hangs.
async fn unless_it_hangs<T>(work: impl Future<Output = T>) -> Result<T, FileQueryError> {
    let done = tokio::time::timeout(QUERY_TIMEOUT + HANG_TIMEOUT, work).await;
    done.map_err(|_| FileQueryError("given up: the file system does not answer".to_owned()))
}
