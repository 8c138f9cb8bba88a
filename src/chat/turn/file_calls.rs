//! The calls that read and search files and ask the editor. They run in this process. They get a verdict like commands, and
//! the chat shows each as one line.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};

use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{CANCELLED, FileCall, JudgedCall};
use super::event::Halt;
use super::run::CallResult;
use crate::buffers::{Buffers, OpenBuffers};
use crate::protocol::{ChatState, EditorAnswer};
use crate::tool::event::CallEvent;
use crate::tool::query::FileQuery;
use crate::workspace::files::places::real_paths;
use crate::workspace::files::{
    Deadline, EditorFacts, FileFacts, FileQueryError, FileScope, QUERY_TIMEOUT,
};
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, Decision, Item, ShownPart};
use co_policy::{Grant, Verdict};

/// The time that a file call may take beyond its time limit, because a file system may hang.
const HANG_TIMEOUT: Duration = Duration::from_secs(2);

/// The hint for the model if a file call is refused.
const READ_WITH_SHELL: &str =
    "If it is needed, read it with run_shell_command: the person is asked then.";

/// A file call that runs or was refused.
pub(super) struct StartedFileCall {
    file_call: FileCall,
    decision: Decision,
    running: Option<JoinHandle<Result<FileFacts, FileQueryError>>>,
}

impl Turn {
    /// Judges a file call.
    pub(super) async fn review_file_call(
        &self,
        call: &Call,
        query: FileQuery,
    ) -> Result<FileCall, String> {
        let (judge, cwd, asked) = (Arc::clone(&self.judge), self.cwd.clone(), query.clone());
        let verdict = tokio::task::spawn_blocking(move || asked.judge(&judge, &cwd));
        let verdict = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            verdict = verdict => verdict.map_err(|error| {
                format!("The call could not be judged ({error}), so it was not run.")
            })?,
        };
        Ok(FileCall {
            call: call.clone(),
            judged: JudgedCall::of_files(query.line(), verdict),
            query,
        })
    }

    /// Records the decision, then starts the file call.
    pub(super) async fn start_file_call(
        &mut self,
        file_call: FileCall,
    ) -> Result<StartedFileCall, Halt> {
        let decision = match &file_call.judged.verdict {
            Verdict::Allow(Grant::ReadOnly | Grant::Unconfined | Grant::InProcess) => {
                Decision::Unasked
            }
            Verdict::Allow(Grant::Rule { rule }) => Decision::Rule { rule: rule.clone() },
            Verdict::Ask(ask) => {
                let reasons: Vec<_> = ask
                    .reasons
                    .iter()
                    .map(|reason| reason.text.as_str())
                    .collect();
                Decision::Forbidden {
                    why: reasons.join("; "),
                }
            }
            Verdict::Deny { why, .. } => Decision::Forbidden { why: why.clone() },
        };
        self.record(Item::Decision {
            call: file_call.call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        let allowed = matches!(file_call.judged.verdict, Verdict::Allow(_));
        let running = allowed.then(|| self.start_query(&file_call.query));
        Ok(StartedFileCall {
            file_call,
            decision,
            running,
        })
    }

    /// Starts a query in a task of its own.
    fn start_query(&self, query: &FileQuery) -> JoinHandle<Result<FileFacts, FileQueryError>> {
        let judge = Arc::clone(&self.judge);
        let cwd = self.cwd.clone();
        let cancel = self.cancel.clone();
        let bytes = self.services.executor.settings().max_output;
        let buffers = self.buffers();
        let query = query.clone();
        tokio::spawn(async move {
            let (place, asked, at) = (Arc::clone(&judge), query.clone(), cwd.clone());
            let path = tokio::task::spawn_blocking(move || asked.place(&place, &at));
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
                        None => judge.readable(),
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

    /// Shows a file call as a line and records its result.
    pub(super) async fn finish_file_call(&mut self, started: StartedFileCall) -> Result<(), Halt> {
        let StartedFileCall {
            file_call:
                FileCall {
                    call,
                    query,
                    judged,
                },
            decision,
            running,
        } = started;
        self.show(CallEvent::Begun(query.shown())).await?;
        let Some(running) = running else {
            let Decision::Forbidden { why } = &decision else {
                return Ok(());
            };
            self.audit(&call, &judged, &decision, CallOutcome::Nothing);
            self.show(CallEvent::Decision(decision.clone())).await?;
            return self
                .answer(&call, format!("Refused: {why}. {READ_WITH_SHELL}"))
                .await;
        };
        self.state(ChatState::Running, query.line()).await?;
        let found = self.wait_for_query(running).await;
        let (
            FileFacts {
                text,
                summary,
                short,
                whole,
            },
            ok,
        ) = match found {
            Ok(facts) => (facts, true),
            Err(FileQueryError(why)) => (FileFacts::failed(why), false),
        };
        let hash = whole.map(|whole| self.seen_texts.add(whole));
        let hash = hash.map_or_else(String::new, |hash| format!("; hash {hash}"));
        self.audit(&call, &judged, &decision, CallOutcome::Look(&summary));
        let RedactedText { text, hidden } = match self.redact_for_model(&text).await {
            Ok(RedactedText { text, hidden }) => RedactedText {
                text: format!("{text}[{summary}{hash}]"),
                hidden,
            },
            Err(withheld) => format!("[{withheld}]").into(),
        };
        let result = CallResult {
            ok,
            shown: ShownPart {
                exceptions: (!short.is_empty()).then(|| co_policy::printable(&short)),
                ..ShownPart::line(co_policy::printable(&summary))
            },
            ..RedactedText { text, hidden }.into()
        };
        self.conclude(&call, result).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Waits for the result of a query. After a cancellation, it gives up if the file system hangs.
    async fn wait_for_query(
        &self,
        running: JoinHandle<Result<FileFacts, FileQueryError>>,
    ) -> Result<FileFacts, FileQueryError> {
        let cancelled = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(HANG_TIMEOUT).await;
        };
        tokio::select! {
            found = running => found.unwrap_or_else(failed),
            () = cancelled => Err(FileQueryError("cancelled".to_owned())),
        }
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
