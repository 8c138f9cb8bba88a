//! Commands that the person typed at the prompt with `!`, and commands of trials that the person runs for real with `/real`. The
//! transcript keeps a notice about each end of a typed command, for the person alone. The model is told the end of a command of a
//! trial.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::cancellable;
use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::chat::person::command::{HostQuestions, PersonCommand, StartedCommand};
use crate::chat::person::wants_terminal;
use crate::error;
use crate::network::OpenAccess;
use crate::protocol::{Asker, RunOptions};
use crate::services::Services;
use crate::services::foreground::ForegroundGuard;
use crate::tool::command::request::CommandRequest;
use crate::tool::event::{CallEnd, CallEvent};
use co_exec::{Caller, Confinement, Screen, Streams};
use co_llm::transcript::{Decision, Item, ShownPart};
use co_policy::Verdict;
use co_text::{code, short_command};

/// The start of the note to the model about a command of a trial that the person ran for real.
const RAN_FOR_REAL: &str = "The person ran the command of a trial for real";

/// The time that a chat waits for its cancelled commands when it closes.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// The typed commands of a chat.
pub(in crate::chat) struct TypedCommands {
    running: usize,
    tell: mpsc::UnboundedSender<TypedEvent>,
    events: mpsc::UnboundedReceiver<TypedEvent>,
    /// Notices and notes that wait to be recorded until the model's text pauses.
    unrecorded: Vec<Item>,
    /// Cancels the commands that have started since the last cancel.
    cancel: Option<CancellationToken>,
}

/// An event of a typed command.
pub(in crate::chat) enum TypedEvent {
    Started {
        block: u64,
        screen: Arc<Screen>,
        hint: Option<String>,
    },
    Ended {
        end: CallEnd,
        /// The number of its output; none if it did not start.
        output: Option<u64>,
        /// The line for the transcript; none if the command could not start.
        item: Option<Box<Item>>,
    },
}

impl TypedCommands {
    pub(in crate::chat) fn new() -> Self {
        // The channel needs no bound: a person types these.
        let (tell, events) = mpsc::unbounded_channel();
        Self {
            running: 0,
            tell,
            events,
            unrecorded: Vec::new(),
            cancel: None,
        }
    }

    /// Returns true if a command runs.
    pub(in crate::chat) fn any_runs(&self) -> bool {
        self.running > 0
    }

    /// Waits for the next event, for [`Chat::typed_event`].
    pub(in crate::chat) async fn next_event(&mut self) -> TypedEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Never: this list itself holds a sender, so the channel stays open.
            None => std::future::pending().await,
        }
    }

    /// Cancels the commands that run.
    pub(in crate::chat) fn cancel(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
    }

    /// Counts a new command. The sender takes its events.
    fn begin(&mut self) -> mpsc::UnboundedSender<TypedEvent> {
        self.running += 1;
        self.tell.clone()
    }
}

impl Chat {
    /// Shows an event of a typed command. The notice about an end waits for [`Self::record_typed`] while a turn runs.
    pub(in crate::chat) async fn typed_event(&mut self, event: TypedEvent) {
        let caller = Caller::Person;
        match event {
            TypedEvent::Started {
                block,
                screen,
                hint,
            } => {
                self.flush().await;
                if let Some(text) = hint {
                    self.show(ChatEvent::Notice { text, caller });
                }
                self.show(CallEvent::OutputStarted { block, screen }.into());
                return self.show_state();
            }
            TypedEvent::Ended { end, output, item } => {
                if let Some(block) = output {
                    self.show(CallEvent::OutputEnded { block }.into());
                }
                self.show(CallEvent::Ended(end).into());
                self.typed.unrecorded.extend(item.map(|it| *it));
            }
        }
        self.typed.running = self.typed.running.saturating_sub(1);
        self.show_state();
        if self.running.is_none() {
            self.record_typed().await;
        }
    }

    /// Records the ends of typed commands. Call it only between two pieces of the model's text.
    pub(in crate::chat) async fn record_typed(&mut self) {
        let ended = std::mem::take(&mut self.typed.unrecorded);
        for item in ended {
            let told = match &item {
                Item::Note { text, .. } => Some(ChatEvent::ToldModel(text.clone())),
                _ => None,
            };
            if self.recorder.record(item).await
                && let Some(told) = told
            {
                self.show(told);
            }
        }
    }

    /// Waits for the ends of the typed commands. They must be cancelled already.
    pub(in crate::chat) async fn end_typed(&mut self) {
        let all = async {
            while self.typed.any_runs() {
                let event = self.typed.next_event().await;
                self.typed_event(event).await;
            }
        };
        if tokio::time::timeout(CANCEL_TIMEOUT, all).await.is_err() {
            tracing::warn!("the typed commands of a chat that ended are still there");
        }
        self.record_typed().await;
    }

    /// Runs a command that the person typed. Its output appears in the chat.
    pub(in crate::chat) async fn run_typed(&mut self, command: &str, options: RunOptions) {
        if command.is_empty() {
            return self.complain("type a command after the !");
        }
        let cwd = self.dirs.cwd.clone();
        self.start_typed(command, cwd, options, false).await;
    }

    /// Runs the command of the last trial of this chat for real.
    pub(in crate::chat) async fn run_tried(&mut self) {
        if self.running.is_some() {
            return self
                .complain("a turn is running: /real runs the command of the last trial after it");
        }
        let items = self.recorder.items();
        let Some((at, request)) = last_tried(items) else {
            return self.complain("no command of this chat ran as a trial");
        };
        let has_run =
            |item: &Item| matches!(item, Item::Note { text, .. } if text.starts_with(RAN_FOR_REAL));
        if items[at..].iter().any(has_run) {
            return self.complain("the command of the last trial has already run for real");
        }
        if request.mode.terminal {
            return self.complain("it ran in a terminal: run it with `:Co! ++pty`");
        }
        let cwd = match request.place(&self.dirs.workspace, &self.dirs.cwd) {
            Ok(cwd) => cwd,
            Err(error) => return self.complain(error::text_of(&error).plain()),
        };
        let judge = self.services.judge(&self.dirs.workspace);
        let (program, place) = (request.program.clone(), cwd.clone());
        let judged = blocking(move || {
            let found = judge.assess(&program, &place, true);
            Ok::<_, String>(judge.verdict(&found, &[]))
        });
        match judged.await {
            Ok(Verdict::Deny { why, .. }) => {
                return self.complain(format!("not run: a deny rule refuses it: {why}"));
            }
            Ok(_) => {}
            Err(why) => return self.complain(format!("not run: {why}")),
        }
        let limit = request.limit(self.services.config.max_timeout());
        let options = RunOptions {
            timeout: limit.map(|it| it.as_secs()),
            ..RunOptions::default()
        };
        self.start_typed(&request.text(), cwd, options, true).await;
    }

    /// Starts a command. With `tells_model`, the model gets its end.
    async fn start_typed(
        &mut self,
        command: &str,
        cwd: PathBuf,
        options: RunOptions,
        tells_model: bool,
    ) {
        self.flush().await;
        let block = self.services.id();
        self.show(ChatEvent::TypedCommand {
            block,
            command: co_text::printable(command),
        });
        // `<C-c>` cancels all typed commands by this token.
        let all = self
            .typed
            .cancel
            .get_or_insert_with(|| self.cancel.child_token());
        let listed = self.services.foreground.add(self.id, block, command);
        let typed = TypedCommand {
            services: Arc::clone(&self.services),
            workspace: self.dirs.workspace.clone(),
            cwd,
            block,
            command: command.to_owned(),
            tells_model,
            cancel: all.child_token(),
            tell: self.typed.begin(),
            questions: HostQuestions {
                asker: Asker::Chat(self.id),
                host: self.commands.host(),
            },
        };
        self.show_state();
        tokio::spawn(typed.run(options, listed));
    }
}

/// A typed command of a chat.
struct TypedCommand {
    services: Arc<Services>,
    workspace: PathBuf,
    cwd: PathBuf,
    /// The number of its output.
    block: u64,
    command: String,
    /// The model gets its end.
    tells_model: bool,
    cancel: CancellationToken,
    tell: mpsc::UnboundedSender<TypedEvent>,
    questions: HostQuestions,
}

impl TypedCommand {
    /// Runs the command until it ends or is cancelled. `listed` keeps it in the list of the chat's commands.
    async fn run(self, options: RunOptions, listed: ForegroundGuard) {
        let done = self.carry_out(options).await;
        drop(listed);
        let item = done.as_ref().ok().map(|(_, end)| {
            let name = code(&co_text::printable(&short_command(&self.command)));
            match self.tells_model {
                false => Item::Notice {
                    text: format!("{name} ended: {}", end.shown.status),
                },
                true => Item::Note {
                    text: format!("{RAN_FOR_REAL}: {name}. It ended: {}", end.shown.status),
                    once: false,
                },
            }
        });
        let (output, end) = done.unwrap_or_else(|why| {
            let not_run = self.ended(false, format!("not run: {why}"));
            (None, not_run)
        });
        self.tell(TypedEvent::Ended {
            end,
            output,
            item: item.map(Box::new),
        });
    }

    /// Returns the end of the command as one line.
    fn ended(&self, ok: bool, status: String) -> CallEnd {
        CallEnd {
            typed: Some(self.block),
            ok,
            shown: ShownPart::line(status),
            hidden: 0,
            spill: None,
        }
    }

    /// Returns the number of its output, if it started, and its end.
    async fn carry_out(&self, options: RunOptions) -> Result<(Option<u64>, CallEnd), String> {
        let _person_run = self.services.person_runs().await;
        let StartedCommand {
            running,
            access,
            conditions,
            editor: _editor,
        } = tokio::select! {
            begun = self.begin(options) => begun?,
            // A container engine may not answer for a long time.
            () = self.cancel.cancelled() => return Ok((None, self.ended(false, "cancelled".to_owned()))),
        };
        self.tell(TypedEvent::Started {
            block: self.block,
            screen: running.screen(),
            hint: wants_terminal::hint_at_start(&self.command),
        });
        let outcome = cancellable::outcome(running, self.cancel.cancelled()).await;
        let hosts = access.map(OpenAccess::close).unwrap_or_default();
        let status = conditions.status(&outcome, &hosts);
        let usual = status == outcome.status();
        let mut end = self.ended(outcome.ok(), status);
        end.shown.exceptions = usual.then(|| outcome.exceptions());
        end.shown.took = outcome.took();
        end.spill.clone_from(&outcome.spill);
        Ok((Some(self.block), end))
    }

    async fn begin(&self, options: RunOptions) -> Result<StartedCommand, String> {
        let typed = PersonCommand {
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            stdin: None,
            terminal: false,
            open: false,
            options,
            confinement: Confinement::Plain,
        };
        let workspace = || self.workspace.clone();
        typed
            .start_confined(
                &self.services,
                workspace,
                Streams::Whole,
                self.questions.clone(),
            )
            .await
    }

    fn tell(&self, event: TypedEvent) {
        // It fails if the chat has ended.
        let _ = self.tell.send(event);
    }
}

/// Returns the last command that ran as a trial, with the index of the decision to try it.
fn last_tried(items: &[Item]) -> Option<(usize, CommandRequest)> {
    let is_tried = |item: &Item| matches!(item, Item::Decision { decision, .. } if *decision == Decision::Tried);
    let at = items.iter().rposition(is_tried)?;
    let Item::Decision { call: id, .. } = &items[at] else {
        return None;
    };
    let mut before = items[..at].iter().rev();
    let mut edited = None;
    let call = before.find_map(|item| match item {
        Item::CommandEdited { call, command } if call == id => {
            edited.get_or_insert_with(|| command.clone());
            None
        }
        Item::Call(call) if call.id == *id => Some(call),
        _ => None,
    })?;
    let request = CommandRequest::parse(call).ok()?;
    Some(match edited {
        Some(command) => (at, request.edited(command)),
        None => (at, request),
    })
}
