//! `:Co! ++try` runs a command as a trial, and then asks the person which of its changes to keep.
//!
//! Trials in chats use the same code: `tool::tried` reads the changes and keeps them. The question has the same form as in a
//! chat.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::questions::RunQuestions;
use crate::agent::TrialGrants;
use crate::blocking::blocking;
use crate::chat::person::command::RunConditions;
use crate::checkpoint::ChangeCause;
use crate::editor::LiveOutput;
use crate::network::HostReport;
use crate::protocol::{Asker, HunkAnswer, Question, ToEditor};
use crate::services::Services;
use crate::tool::permissions::Reply;
use crate::tool::tried::{self, NO_CHANGE_YET, TriedCommand};
use crate::trial::TrialPlace;
use crate::workspace::confinement_hint::may_have_failed;
use crate::workspace::edits::comments;
use crate::workspace::judge::workspace_of;
use co_exec::{Caller, CommandOutcome, Program};
use co_llm::transcript::Decision;
use co_text::{counted, one_line};

/// The remark about a trial whose changes are dropped.
const DROPPED: &str = "its changes are dropped";
/// The hint that follows the reason why a trial is not possible.
const FOR_REAL: &str = ":Co! without ++try runs it for real";

/// A run whose command ran as a trial.
pub(super) struct TrialRun<'a> {
    pub(super) services: &'a Services,
    pub(super) questions: &'a RunQuestions,
    /// A token that the person cancels. It is also cancelled when Neovim ends.
    pub(super) token: &'a CancellationToken,
    pub(super) run: u64,
    pub(super) command: String,
    pub(super) cwd: PathBuf,
}

/// A command that has ended with all its processes.
pub(super) struct EndedCommand<'a> {
    pub(super) outcome: &'a CommandOutcome,
    pub(super) conditions: &'a RunConditions,
    /// The hosts that the command wanted to contact.
    pub(super) hosts: &'a HostReport,
}

/// The result of a trial after the person's answer.
struct SettledTrial {
    /// The clause about the result in the status of the run.
    words: String,
    /// True if the person wants to run the command for real.
    again: bool,
}

/// Creates the layer of a trial in the workspace that contains the directory `cwd`.
///
/// # Errors
/// A sentence that says why trials are not possible here, and what to do.
pub(super) async fn begin(services: &Services, cwd: PathBuf) -> Result<TrialPlace, String> {
    if services.probe.isolation().await.in_container() {
        return Err(format!(
            "your commands run in a container here, which has no trials: {FOR_REAL}"
        ));
    }
    let real = blocking(move || {
        let advice = |error| {
            let place = cwd.display();
            format!("{place} cannot be entered ({error}): go to a directory that exists")
        };
        cwd.canonicalize().map_err(advice)
    });
    let judge = services.judge(&workspace_of(&real.await?));
    let checked = Arc::clone(&judge);
    let checked = blocking(move || checked.check_trial()).await;
    checked.map_err(|why| format!("{why}; {FOR_REAL}"))?;
    tried::begin(services, judge).await
}

/// Returns the additional access of a trial whose command starts the program of an agent; none if it starts no such program.
///
/// # Errors
/// A sentence: the directory of the agent cannot be created.
pub(super) async fn grants(
    services: &Arc<Services>,
    command: &str,
    cwd: &Path,
) -> Result<Option<TrialGrants>, String> {
    let (services, cwd) = (Arc::clone(services), cwd.to_owned());
    let command = command.to_owned();
    let program = Program::Shell(command.clone());
    blocking(move || {
        let workspace = workspace_of(&cwd);
        let judge = services.judge(&workspace);
        let commands = judge.assess(&program, &cwd, false).words();
        TrialGrants::find((&command, &commands), &services, judge.root())
    })
    .await
}

impl TrialRun<'_> {
    /// Compares the trial with the workspace after its command has ended, shows the changes, and carries out the person's answer.
    pub(super) async fn end(
        &self,
        place: TrialPlace,
        showing: LiveOutput,
        EndedCommand {
            outcome,
            conditions,
            hosts,
        }: EndedCommand<'_>,
    ) {
        let status = |words: &str| format!("{}; tried: {words}", conditions.status(outcome, hosts));
        self.services.editor.tell(ToEditor::RunStarted {
            run: self.run,
            command: self.command.clone(),
            cwd: self.cwd.display().to_string(),
            owner: None,
            detail: Some("co compares what it changed".to_owned()),
        });
        let (words, tried) = self.read(place, outcome).await;
        showing.finish(ToEditor::RunEnded {
            run: self.run,
            status: status(&words),
            exit: outcome.exit,
            spill: outcome.spill.clone(),
            left: tried.is_some(),
        });
        let Some(mut tried) = tried else {
            return;
        };
        tried.summary.notes.extend(hosts.words());
        let settled = self.settle(tried).await;
        self.services.editor.tell(ToEditor::LeftEnded {
            run: self.run,
            status: status(&settled.words),
            again: settled.again,
        });
    }

    /// Reads the changes of the trial. Returns a clause about them. If the person must answer, also returns the trial.
    async fn read(
        &self,
        place: TrialPlace,
        outcome: &CommandOutcome,
    ) -> (String, Option<TriedCommand>) {
        let failed = may_have_failed(outcome);
        let read = TriedCommand::read(self.services, place, (outcome, Caller::Person), failed);
        let Some(read) = self.token.run_until_cancelled(read).await else {
            return (DROPPED.to_owned(), None);
        };
        match read {
            Err(why) => (why, None),
            Ok(tried) if tried.needs_no_answer() => (tried.only_ignored(), None),
            Ok(tried) if tried.change.is_none() && !tried.summary.runs_again => {
                (format!("nothing was kept: {}", tried.why_nothing()), None)
            }
            Ok(tried) => (waiting(&tried, failed), Some(tried)),
        }
    }

    /// Asks the person about the changes, and keeps or drops them.
    async fn settle(&self, mut tried: TriedCommand) -> SettledTrial {
        let dropped = |words: &str| SettledTrial {
            words: words.to_owned(),
            again: false,
        };
        let runs_again = tried.summary.runs_again;
        let words = match self.ask(&mut tried).await {
            Some(Reply::Once) if !runs_again => self.keep(tried, None).await,
            Some(Reply::Reviewed(hunks)) if !runs_again && hunks.iter().any(|it| it.accept) => {
                self.keep(tried, Some(hunks)).await
            }
            Some(Reply::Once | Reply::Real) => {
                return SettledTrial {
                    words: format!("{DROPPED}, and it runs for real"),
                    again: true,
                };
            }
            Some(_) => return dropped(DROPPED),
            None => return dropped(&format!("{DROPPED}, because the question got no answer")),
        };
        dropped(&words)
    }

    /// Asks the person. Returns `None` if the question is withdrawn.
    async fn ask(&self, tried: &mut TriedCommand) -> Option<Reply> {
        let question = Question {
            id: self.services.id(),
            asker: Asker::Run(self.run),
            command: co_text::printable(&self.command),
            cwd: one_line(&self.cwd.display().to_string()),
            confinement: self.services.probe.name().to_owned(),
            tried: Some(tried.summary.clone()),
            change: tried.change.take(),
            ..Question::default()
        };
        let id = question.id;
        let (reply, answer) = oneshot::channel();
        self.questions.open().put(question, reply);
        tokio::select! {
            () = self.token.cancelled() => {
                self.questions.open().withdraw(id);
                None
            }
            answer = answer => answer.ok(),
        }
    }

    /// Keeps the changes, or only the parts that the person accepted. Returns a clause about the result.
    async fn keep(&self, mut tried: TriedCommand, hunks: Option<Vec<HunkAnswer>>) -> String {
        let _person_run = self.services.person_runs().await;
        let unsent = hunks.as_deref().and_then(comments);
        let mut words = match self.try_keep(&mut tried, hunks).await {
            Ok(words) => words,
            Err(why) => format!("its changes were not kept: {why}"),
        };
        if unsent.is_some() {
            words.push_str("; no model gets your comments");
        }
        words
    }

    async fn try_keep(
        &self,
        tried: &mut TriedCommand,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<String, String> {
        tried.accept(hunks).await?;
        let plan = tried.plan(self.services).await?;
        if plan.is_empty() {
            return Ok(format!("nothing was kept: {}", tried.why_nothing()));
        }
        // The changes belong to no chat, so no `/undo` takes them back.
        let by = ChangeCause::change(self.command.clone(), Decision::Approved);
        let kept = plan.carry_out(self.services, by).await?;
        tried.settle_ignored(kept.is_all()).await;
        let unsaved = match kept.unsaved.is_empty() {
            true => String::new(),
            false => format!("; unsaved in its buffer: {}", kept.unsaved.join(", ")),
        };
        Ok(format!("{}{unsaved}", kept.noted()))
    }
}

/// Returns the clause about a trial whose question is open.
fn waiting(tried: &TriedCommand, failed: bool) -> String {
    let changes = match tried.changes.count() {
        _ if failed => "it may have failed because it was a trial".to_owned(),
        _ if tried.summary.runs_again => "it changed .git, which a trial cannot keep".to_owned(),
        count => format!("it would change {}", counted(count, "file")),
    };
    format!("{changes}; {NO_CHANGE_YET}, :Co /approve goes to the question")
}
