//! Calls that look at the workspace in this process: judged like commands, shown in a line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::super::render;
use super::audit_records::CameTo;
use super::calls::{CANCELLED, Judged};
use super::{Halt, Turn};
use crate::protocol::State;
use crate::tool::files::{Deadline, FileFacts, FileQuery, FileQueryError, FileScope, LONGEST};
use co_llm::transcript::{Call, Decision, Item};
use co_policy::{Grant, Verdict};

/// How much longer than its time a look is waited for; a file system that hangs is left behind.
const GRACE: Duration = Duration::from_secs(2);

/// Where a look is refused, the model may still ask the person.
const ELSEWHERE: &str =
    "If it is needed, read it with run_shell_command: the person is asked then.";

/// A look that was judged.
pub(super) struct Looking {
    call: Call,
    look: FileQuery,
    judged: Judged,
}

/// A look that is being taken, or was refused.
pub(super) struct Taken {
    looking: Looking,
    decision: Decision,
    seen: Option<JoinHandle<Result<FileFacts, FileQueryError>>>,
}

impl Turn {
    pub(super) async fn review_look(
        &self,
        call: &Call,
        look: FileQuery,
    ) -> Result<Looking, String> {
        let (judge, cwd, asked) = (Arc::clone(&self.judge), self.cwd.clone(), look.clone());
        let verdict = tokio::task::spawn_blocking(move || judge.judge_query(&asked, &cwd));
        let verdict = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            verdict = verdict => verdict.map_err(|error| {
                format!("The call could not be judged ({error}), so it was not run.")
            })?,
        };
        Ok(Looking {
            call: call.clone(),
            judged: Judged {
                command: look.line(),
                segments: Vec::new(),
                words: Vec::new(),
                verdict,
            },
            look,
        })
    }

    /// Puts the decision on disk, then begins to look.
    pub(super) async fn start_look(&mut self, looking: Looking) -> Result<Taken, Halt> {
        let decision = match &looking.judged.verdict {
            Verdict::Allow(Grant::Proof(_) | Grant::InProcess) => Decision::Proved,
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
            call: looking.call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        let allowed = matches!(looking.judged.verdict, Verdict::Allow(_));
        let seen = allowed.then(|| self.take(&looking.look));
        Ok(Taken {
            looking,
            decision,
            seen,
        })
    }

    fn take(&self, look: &FileQuery) -> JoinHandle<Result<FileFacts, FileQueryError>> {
        let judge = Arc::clone(&self.judge);
        let asked: PathBuf = self.cwd.join(look.path());
        let end = Deadline::new(self.cancel.clone());
        let bytes = self.services.executor.settings().max_output;
        let look = look.clone();
        tokio::task::spawn_blocking(move || {
            let path = asked.canonicalize();
            let path = path.map_err(|error| {
                FileQueryError(format!("Cannot look at {}: {error}.", look.path()))
            })?;
            look.run(&FileScope {
                path,
                allowed: judge.readable(),
                bytes,
                end,
            })
        })
    }

    /// Shows a look in a line and records what it came to.
    pub(super) async fn finish_look(&mut self, taken: Taken) -> Result<(), Halt> {
        let Taken {
            looking: Looking { call, look, judged },
            decision,
            seen,
        } = taken;
        self.show(&render::look(&look)).await?;
        let Some(seen) = seen else {
            let Decision::Forbidden { why } = &decision else {
                return Ok(());
            };
            self.audit(&call, &judged, &decision, CameTo::Nothing);
            self.show(&render::decision(&decision)).await?;
            return self
                .answer(&call, format!("Refused: {why}. {ELSEWHERE}"))
                .await;
        };
        self.state(State::Running, look.line()).await?;
        let seen = self.seen(seen).await;
        let (text, summary, ok) = match seen {
            Ok(FileFacts { text, summary }) => (text, summary, true),
            Err(FileQueryError(why)) => (String::new(), why, false),
        };
        self.audit(&call, &judged, &decision, CameTo::Look(&summary));
        let told = format!("{}[{summary}]", self.redact_for_model(&text).await);
        self.conclude(&call, told, ok, None).await?;
        self.show(&render::summary(&summary)).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    async fn seen(
        &self,
        seen: JoinHandle<Result<FileFacts, FileQueryError>>,
    ) -> Result<FileFacts, FileQueryError> {
        let cancelled = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            seen = seen => seen.unwrap_or_else(|error| Err(FileQueryError(format!("The look failed: {error}.")))),
            () = cancelled => Err(FileQueryError("cancelled".to_owned())),
            () = tokio::time::sleep(LONGEST + GRACE) => {
                Err(FileQueryError("given up: the file system does not answer".to_owned()))
            }
        }
    }
}
