//! Carries out the calls that read and search files, or ask the editor. They run in this process. Each gets a verdict, as a
//! command does, but never a question.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::{JoinError, JoinHandle};

use super::{FileQuery, VERBS};
use crate::buffers::{Buffers, OpenBuffers};
use crate::protocol::{EditorAnswer, HunkAnswer};
use crate::tool::call::{
    AuditedText, CANCELLED, CallAction, CallEffect, CallKind, CallResult, DecidedCall, JudgedCall,
    NotRun, PlannedCall, ReadyCall, Resolution, RunningCall,
};
use crate::tool::context::{CallContext, CallHalt};
use crate::tool::event::{ShownCall, in_words};
use crate::tool::permissions::TurnMemory;
use crate::workspace::files::places::real_paths;
use crate::workspace::files::{
    Deadline, EditorFacts, FileQueryError, FileQueryResult, FileScope, QUERY_TIMEOUT,
};
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, ShownPart};
use co_policy::{Grant, Verdict};

/// The time that co waits for a query after the query's own time limit. After that, co assumes that the file system hangs.
const HANG_TIMEOUT: Duration = Duration::from_secs(2);

/// The hint for the model after a refused query.
const READ_WITH_SHELL: &str =
    "If it is needed, read it with run_shell_command: the person is asked then.";

#[async_trait]
impl PlannedCall for FileQuery {
    fn shown(&self) -> ShownCall {
        let line = self.line();
        ShownCall::Query(in_words(&line, &VERBS).unwrap_or(line))
    }

    async fn judge(
        &self,
        context: &CallContext,
        _memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        let (judge, cwd) = (Arc::clone(&context.judge), context.cwd.clone());
        let asked = self.clone();
        let verdict = tokio::task::spawn_blocking(move || Self::judge(&asked, &judge, &cwd));
        let verdict = context.unless_cancelled(verdict).await;
        let verdict = verdict.map_err(|_| CANCELLED)?.map_err(|error| {
            format!("The call could not be judged ({error}), so it was not run.")
        })?;
        Ok(JudgedCall {
            audited: Some(AuditedText::plain(self.line(), &verdict)),
            resolution: resolution(verdict),
            kind: CallKind::Looks,
            action: Box::new(self.clone()),
        })
    }
}

/// Returns the resolution of a verdict on a query. The person is never asked about queries.
fn resolution(verdict: Verdict) -> Resolution {
    let why = match verdict {
        Verdict::Allow(Grant::Rule { rule }) => return Resolution::Run(Decision::Rule { rule }),
        Verdict::Allow(_) => return Resolution::Run(Decision::Unasked),
        Verdict::Ask(ask) => {
            let reasons: Vec<_> = ask.reasons.into_iter().map(|it| it.text).collect();
            reasons.join("; ")
        }
        Verdict::Deny { why, .. } => why,
    };
    Resolution::Refuse(Decision::Forbidden { why })
}

#[async_trait]
impl CallAction for FileQuery {
    fn refused(
        self: Box<Self>,
        decision: &Decision,
        _hunks: Option<&[HunkAnswer]>,
    ) -> Option<CallResult> {
        let Decision::Forbidden { why } = decision else {
            return None;
        };
        let told = format!("Refused: {why}. {READ_WITH_SHELL}");
        Some(CallResult::answer(told))
    }

    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let context = Arc::clone(context);
        Ok(ReadyCall {
            level: None,
            runs: Some(self.line()),
            start: Box::pin(async move {
                let started = Instant::now();
                let running = start_query(&context, &self, started);
                let rest: RunningCall = Box::pin(finish_query(context, running, started));
                Ok(rest)
            }),
        })
    }
}

async fn finish_query(
    context: Arc<CallContext>,
    running: JoinHandle<Result<FileQueryResult, FileQueryError>>,
    started: Instant,
) -> Result<CallResult, CallHalt> {
    let found = wait_for_query(&context, running).await;
    let (result, ok) = match found {
        Ok(result) => (result, true),
        Err(FileQueryError(why)) => (FileQueryResult::failed(why), false),
    };
    let FileQueryResult {
        text,
        summary,
        short,
        whole,
    } = result;
    let hash = whole.map(|whole| context.seen_texts.add(whole));
    let hash = hash.map_or_else(String::new, |hash| format!("; hash {hash}"));
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
            exceptions: (!short.is_empty()).then(|| co_text::printable(&short)),
            ..ShownPart::line(co_text::printable(&summary))
        },
        effect: Some(CallEffect::of_co(summary)),
        ..told.into()
    })
}

/// Starts a query in a separate task. `started` is the time of the start.
fn start_query(
    context: &CallContext,
    query: &FileQuery,
    started: Instant,
) -> JoinHandle<Result<FileQueryResult, FileQueryError>> {
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
        let said = cancel.run_until_cancelled(asking).await;
        let (open, answer) = said.ok_or_else(|| FileQueryError("cancelled".to_owned()))?;
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

/// Waits for the result of a query. After a cancellation, gives up if the file system hangs.
async fn wait_for_query(
    context: &CallContext,
    running: JoinHandle<Result<FileQueryResult, FileQueryError>>,
) -> Result<FileQueryResult, FileQueryError> {
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

/// Asks Neovim for the data that a query needs: the texts of buffers, or the answer to a query about the editor. Has no time
/// limit, because Neovim may wait for the person.
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

/// Waits for work on files. Gives up if the file system hangs.
async fn unless_it_hangs<T>(work: impl Future<Output = T>) -> Result<T, FileQueryError> {
    let done = tokio::time::timeout(QUERY_TIMEOUT + HANG_TIMEOUT, work).await;
    done.map_err(|_| FileQueryError("given up: the file system does not answer".to_owned()))
}
