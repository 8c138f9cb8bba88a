//! Commands that the person typed at the prompt. The model never hears of them; how each ended is kept with the
//! conversation, as a line for the person.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{Session, opens, person, render};
use crate::editor::Target;
use crate::error;
use crate::protocol::{RunOptions, ToEditor};
use crate::tool::shell::ExecMode;
use co_llm::transcript::Item;

/// How long the commands of a session that ends are waited for; the executor ends them within.
const PATIENCE: Duration = Duration::from_secs(3);

/// The typed commands of a session.
pub(super) struct Typed {
    running: usize,
    tell: mpsc::UnboundedSender<String>,
    ended: mpsc::UnboundedReceiver<String>,
    /// Ends that are not on the screen yet: an answer streams there.
    untold: Vec<String>,
}

impl Typed {
    pub(super) fn new() -> Self {
        // As many as a person types.
        let (tell, ended) = mpsc::unbounded_channel();
        Self {
            running: 0,
            tell,
            ended,
            untold: Vec::new(),
        }
    }

    /// Whether one runs whose end is not known yet.
    pub(super) fn any_runs(&self) -> bool {
        self.running > 0
    }

    /// Waits for the end of one, which is told by [`Session::tell_typed`].
    pub(super) async fn ended(&mut self) {
        // It holds a sender itself, so this never closes.
        if let Some(text) = self.ended.recv().await {
            self.running = self.running.saturating_sub(1);
            self.untold.push(text);
        }
    }

    /// Counts one more; its end is sent there.
    fn begin(&mut self) -> mpsc::UnboundedSender<String> {
        self.running += 1;
        self.tell.clone()
    }
}

impl Session {
    /// Puts the ends of typed commands on record and shows them, where nothing that was said is torn by it.
    pub(super) async fn tell_typed(&mut self) {
        let ended = std::mem::take(&mut self.typed.untold);
        if !ended.is_empty() {
            self.show_state();
        }
        for text in ended {
            self.recorder
                .record(Item::Notice { text: text.clone() })
                .await;
            self.paragraph(&format!("> {text}"));
        }
    }

    /// Waits for the typed commands, which were cancelled.
    pub(super) async fn end_typed(&mut self) {
        let all = async {
            while self.typed.any_runs() {
                self.typed.ended().await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!("the typed commands of a session that ended are still there");
        }
        self.tell_typed().await;
    }

    /// Runs a command that the person typed at the prompt, its output in the chat, no model.
    pub(super) async fn shell(&mut self, command: &str, options: RunOptions) {
        if command.is_empty() {
            return self.complain("type a command after the !");
        }
        self.flush().await;
        self.paragraph(&render::call(
            &co_policy::printable(command),
            ExecMode::default(),
        ));
        let confinement = match self
            .services
            .probe
            .for_approved(|| &self.place.workspace)
            .await
        {
            Ok(confinement) => confinement,
            Err(refused) => return self.complain(refused.to_string()),
        };
        let cwd = &self.place.cwd;
        let confinement = opens::open_named(&self.services, confinement, command, cwd).await;
        let typed = person::Typed {
            command: command.to_owned(),
            cwd: self.place.cwd.clone(),
            stdin: None,
            terminal: false,
            options,
            confinement,
        };
        let (spec, ceiling) = typed.spec(&self.services);
        let job = self.services.executor.start(spec).await;
        let job = match job {
            Ok(job) => job,
            Err(error) => {
                return self.append(format!("*not run: {}*\n\n", error::text_of(&error).plain()));
            }
        };
        let (session, block) = (self.id, self.services.id());
        let showing = self
            .services
            .editor
            .show(Target::Block { session, block }, job.screen());
        // One token above all that was typed: <C-c> ends each of them.
        let all = self
            .shell_cancel
            .get_or_insert_with(|| self.cancel.child_token());
        let (canceller, cancel) = (job.canceller(), all.child_token());
        let running = self.services.foreground.add(session, block, command);
        let name = co_policy::printable(&render::short(command));
        let end = self.typed.begin();
        self.show_state();
        self.page.block();
        tokio::spawn(async move {
            let outcome = job.outcome();
            tokio::pin!(outcome);
            let outcome = tokio::select! {
                outcome = &mut outcome => outcome,
                () = cancel.cancelled() => {
                    canceller.cancel();
                    outcome.await
                }
            };
            showing.finish(ToEditor::Block {
                session,
                block,
                patch: None,
                done: true,
            });
            drop(running);
            let text = format!(
                "{} ended: {}",
                render::code(&name),
                ceiling.status(&outcome)
            );
            // A session that is gone needs no news.
            let _ = end.send(text);
        });
    }
}
