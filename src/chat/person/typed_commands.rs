//! Commands that the person typed at the prompt with `!`. The model gets neither the commands nor their outputs. The
//! transcript keeps a notice about each end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::chat::events::ChatEvent;
use crate::chat::person::{command::PersonCommand, wants_terminal};
use crate::chat::text::{code, short};
use crate::chat::{Chat, cancellable, secret_access};
use crate::error;
use crate::protocol::RunOptions;
use crate::tool::shell::ExecMode;
use co_exec::Caller;
use co_llm::transcript::Item;

/// The time that a chat waits for its cancelled commands when it closes.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// The typed commands of a chat.
pub(in crate::chat) struct TypedCommands {
    running: usize,
    tell: mpsc::UnboundedSender<String>,
    ended: mpsc::UnboundedReceiver<String>,
    /// Notices that wait until the model's text pauses.
    unshown: Vec<String>,
    /// Cancels the commands that have started since the last cancel.
    cancel: Option<CancellationToken>,
}

impl TypedCommands {
    pub(in crate::chat) fn new() -> Self {
        // The channel needs no bound: a person types these.
        let (tell, ended) = mpsc::unbounded_channel();
        Self {
            running: 0,
            tell,
            ended,
            unshown: Vec::new(),
            cancel: None,
        }
    }

    /// Returns true if a command runs.
    pub(in crate::chat) fn any_runs(&self) -> bool {
        self.running > 0
    }

    /// Waits for the end of a command; [`Chat::tell_typed`] then shows it.
    pub(in crate::chat) async fn ended(&mut self) {
        // The list has a sender, so the channel never closes.
        if let Some(text) = self.ended.recv().await {
            self.running = self.running.saturating_sub(1);
            self.unshown.push(text);
        }
    }

    /// Cancels the commands that run.
    pub(in crate::chat) fn cancel(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
    }

    /// Counts a new command. The sender takes the notice about its end.
    fn begin(&mut self) -> mpsc::UnboundedSender<String> {
        self.running += 1;
        self.tell.clone()
    }
}

impl Chat {
    /// Records and shows the ends of typed commands. Call it only between two pieces of the model's text.
    pub(in crate::chat) async fn tell_typed(&mut self) {
        let ended = std::mem::take(&mut self.typed.unshown);
        if !ended.is_empty() {
            self.show_state();
        }
        for text in ended {
            self.recorder
                .record(Item::Notice { text: text.clone() })
                .await;
            let caller = Caller::Person;
            self.show(ChatEvent::Notice { text, caller });
        }
    }

    /// Waits for the ends of the typed commands. They must be cancelled already.
    pub(in crate::chat) async fn end_typed(&mut self) {
        let all = async {
            while self.typed.any_runs() {
                self.typed.ended().await;
            }
        };
        if tokio::time::timeout(CANCEL_TIMEOUT, all).await.is_err() {
            tracing::warn!("the typed commands of a chat that ended are still there");
        }
        self.tell_typed().await;
    }

    /// Runs a command that the person typed. Its output appears in the chat.
    pub(in crate::chat) async fn run_typed(&mut self, command: &str, options: RunOptions) {
        if command.is_empty() {
            return self.complain("type a command after the !");
        }
        self.flush().await;
        self.show(ChatEvent::Command {
            command: co_policy::printable(command),
            mode: ExecMode::default(),
            caller: Caller::Person,
        });
        let confinement = match self
            .services
            .probe
            .for_approved(|| &self.dirs.workspace)
            .await
        {
            Ok(confinement) => confinement,
            Err(refused) => return self.complain(refused.to_string()),
        };
        let cwd = &self.dirs.cwd;
        let confinement =
            secret_access::open_named(&self.services, confinement, command, cwd).await;
        if let Err(why) = self.services.prepare(&confinement).await {
            return self.complain(why);
        }
        let typed = PersonCommand {
            command: command.to_owned(),
            cwd: self.dirs.cwd.clone(),
            stdin: None,
            terminal: false,
            open: false,
            options,
            confinement,
        };
        let (spec, conditions) = typed.spec(&self.services);
        let person_run = self.services.person_runs().await;
        let running = self.services.executor.start(spec).await;
        let running = match running {
            Ok(running) => running,
            Err(error) => {
                return self.show(ChatEvent::NotRun {
                    why: error::text_of(&error).plain(),
                    caller: Caller::Person,
                });
            }
        };
        if let Some(text) = wants_terminal::hint_at_start(command) {
            let caller = Caller::Person;
            self.show(ChatEvent::Notice { text, caller });
        }
        let block = self.services.id();
        self.show(ChatEvent::OutputStarted {
            block,
            screen: running.screen(),
            caller: Caller::Person,
        });
        let front_end = Arc::clone(&self.front_end);
        // `<C-c>` cancels all typed commands by this token.
        let all = self
            .typed
            .cancel
            .get_or_insert_with(|| self.cancel.child_token());
        let cancel = all.child_token();
        let listed = self.services.foreground.add(self.id, block, command);
        let name = co_policy::printable(&short(command));
        let end = self.typed.begin();
        self.show_state();
        tokio::spawn(async move {
            let outcome = cancellable::outcome(running, cancel.cancelled()).await;
            let empty = outcome.bytes == 0;
            front_end.show(ChatEvent::OutputEnded { block, empty });
            drop((listed, person_run));
            let text = format!("{} ended: {}", code(&name), conditions.status(&outcome));
            // It fails if the chat has ended.
            let _ = end.send(text);
        });
    }
}
