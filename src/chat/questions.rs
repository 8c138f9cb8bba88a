//! The open questions of a session. A question that is dropped is a no.

use tokio::sync::oneshot;

use super::turn::{Allowance, Reply};
use super::{Answered, Session};
use crate::editor::Editor;
use crate::protocol::{Answer, Ask, Level, Scope, ToEditor};

pub(super) struct Asks {
    editor: Editor,
    open: Vec<(u64, oneshot::Sender<Reply>)>,
}

impl Asks {
    pub(super) fn new(editor: Editor) -> Self {
        Self {
            editor,
            open: Vec::new(),
        }
    }

    /// Puts a question before the person.
    pub(super) fn put(&mut self, ask: Ask, reply: oneshot::Sender<Reply>) {
        self.open.push((ask.id, reply));
        self.editor.tell(ToEditor::Ask(ask));
    }

    /// Settles a question; one that is not, or no longer, this session's is left alone: answering twice is harmless.
    pub(super) fn answer(&mut self, id: u64, reply: Reply) {
        let Some(index) = self.open.iter().position(|(open, _)| *open == id) else {
            return;
        };
        let word = match &reply {
            Reply::Once => "approved",
            Reply::Always(_) => "always",
            Reply::Deny(_) => "denied",
            Reply::Edited(_) => "edited",
        };
        let (_, sender) = self.open.swap_remove(index);
        let heard = sender.send(reply).is_ok();
        self.settled(id, if heard { word } else { "withdrawn" });
    }

    /// Takes a question away that needs no answer any more.
    pub(super) fn withdraw(&mut self, id: u64) {
        if let Some(index) = self.open.iter().position(|(open, _)| *open == id) {
            self.open.swap_remove(index);
            self.settled(id, "withdrawn");
        }
    }

    /// Takes every question away: nobody waits for an answer any more.
    pub(super) fn withdraw_all(&mut self) {
        for (id, _) in std::mem::take(&mut self.open) {
            self.settled(id, "withdrawn");
        }
    }

    fn settled(&self, id: u64, decision: &str) {
        self.editor.tell(ToEditor::Settled {
            id,
            decision: decision.to_owned(),
        });
    }
}

impl Session {
    /// Takes over what `always` allows from now on.
    pub(super) async fn allow(&mut self, allowance: Allowance) {
        match allowance {
            Allowance::Everything => {
                self.standing.everything = true;
                self.show_state();
            }
            Allowance::Rule(rule) => self.standing.rules.push(rule),
            Allowance::Job(job) => self.standing.jobs.push(job),
            // The judge of the next turn knows it.
            Allowance::Saved(workspace, rule) => {
                if let Err(error) = self.services.save_rule(workspace, rule.clone()).await {
                    self.services.notice(
                        Level::Error,
                        format!("the rule holds for this session but could not be saved: {error}"),
                    );
                    self.standing.rules.push(rule);
                }
            }
        }
    }

    /// Takes in what the person said.
    pub(super) fn answered(&mut self, answered: Answered) {
        let reply = match answered.decision {
            Answer::Once => Reply::Once,
            Answer::Always => Reply::Always(answered.scope.unwrap_or(Scope::Command)),
            Answer::Deny => Reply::Deny(answered.reason.filter(|reason| !reason.trim().is_empty())),
            Answer::Edited => match answered
                .command
                .filter(|command| !command.trim().is_empty())
            {
                Some(command) => Reply::Edited(command),
                None => Reply::Deny(None),
            },
        };
        self.asks.answer(answered.id, reply);
    }
}
