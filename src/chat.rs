//! One chat: a task that owns the transcript, its file, the open questions and the jobs.
//!
//! It must not know RPC, a provider's protocol or markdown. It gets messages from the person ([`Msg`]) and from its turn
//! (`turn::TurnEvent`), handles them one at a time, and sends [`ChatEvent`]s to its front end.

mod advice;
mod blocking;
pub mod cancellable;
pub mod events;
mod handle;
pub mod instructions;
pub mod jobs;
mod message;
pub mod person;
pub mod prompt;
mod readiness;
mod record;
mod retell;
mod rewind;
pub mod secret_access;
pub mod services;
mod show;
mod steering;
pub mod text;
mod turn;
mod undo;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::events::{ChatEvent, FrontEnd};
use self::instructions::WorkspaceInstructions;
use self::jobs::Jobs;
use self::person::questions::OpenQuestions;
use self::person::typed_commands::TypedCommands;
use self::record::Recorder;
use self::services::Services;
use self::turn::{
    CLOSED, CUT_OFF, Permissions, Purpose, Queue, Snapshot, Turn, TurnEnd, TurnEvent,
};
use crate::config::ModelChoice;
use crate::protocol::{ChatState, LineRange, NoticeLevel};
use crate::tool::edits::{EditRange, SeenTexts};
use co_llm::transcript::{self, Context, End, Item, Outcome, ShownPart, Usage};
use co_llm::{Fault, Provider};

pub use self::handle::ChatHandle;
pub use self::message::{Msg, Prompt, WorkDirs};

/// The most messages from a turn that wait: a fast model sends pieces in bursts.
const MAX_WAITING_EVENTS: usize = 256;

/// The result of a call that ran, if its outcome could not be written or the turn failed.
const EFFECT_UNKNOWN: &str =
    "cut off: the turn ended before this call did; whether it took effect is not known";

/// The notice if a prompt would start another transcript than the one on the screen.
const NOT_RESUMED: &str = "not sent, because the chat could not be resumed: /resume it, or send the prompt again to start a new chat";

struct Chat {
    id: u64,
    services: Arc<Services>,
    /// Sends changed `services` to the running turn.
    new_services: watch::Sender<Arc<Services>>,
    dirs: WorkDirs,
    /// Cancelled when the backend ends.
    app: CancellationToken,
    cancel: CancellationToken,
    /// None until the first turn needs one.
    provider: Option<Arc<dyn Provider>>,
    /// The model and the effort that the person chose for this chat.
    choice: ModelChoice,
    recorder: Recorder,
    questions: OpenQuestions,
    jobs: Jobs,
    queue: VecDeque<Prompt>,
    /// The number of prompts that started a turn or were dropped. Prompts that were given back do not count.
    taken_prompts: u64,
    /// The person cancelled and has typed nothing since. Another cancel drops the queue.
    cancel_pressed: bool,
    running: Option<RunningTurn>,
    permissions: Permissions,
    /// The lines that the last prompt asked to change.
    range: Option<LineRange>,
    /// The texts of files that the model has read.
    seen_texts: SeenTexts,
    /// The instructions that the last turn got.
    instructions: WorkspaceInstructions,
    /// Receives the files that the person no longer trusts.
    revoked: broadcast::Receiver<PathBuf>,
    /// The usage of the whole chat.
    usage: Usage,
    /// The usage of the current or last turn.
    turn_usage: Usage,
    window_used: Option<u64>,
    state: ChatState,
    detail: String,
    /// The front end knows the start of the answer that `/retry` replaces.
    answering: bool,
    front_end: Arc<dyn FrontEnd>,
    /// The transcript could not be resumed. The next prompt must not start another one without notice.
    resume_failed: bool,
    typed: TypedCommands,
    /// The last `/undo` or `/redo`, if it is not complete.
    undo: Option<undo::OpenUndo>,
}

struct RunningTurn {
    events: mpsc::Receiver<TurnEvent>,
    cancel: CancellationToken,
    task: JoinHandle<TurnEnd>,
}

impl Chat {
    fn new(id: u64, services: Arc<Services>, dirs: WorkDirs, app: CancellationToken) -> Self {
        Self {
            id,
            dirs,
            cancel: app.child_token(),
            app,
            provider: None,
            choice: ModelChoice::default(),
            recorder: Recorder::new(Arc::clone(&services)),
            questions: OpenQuestions::new(services.editor.clone()),
            jobs: Jobs::new(Arc::clone(&services), id, &[]),
            queue: VecDeque::new(),
            taken_prompts: 0,
            cancel_pressed: false,
            running: None,
            permissions: Permissions::default(),
            range: None,
            seen_texts: SeenTexts::default(),
            instructions: WorkspaceInstructions::None,
            revoked: services.instructions.revoked(),
            usage: Usage::default(),
            turn_usage: Usage::default(),
            window_used: None,
            state: ChatState::Idle,
            detail: String::new(),
            answering: false,
            front_end: (services.front_ends)(id),
            resume_failed: false,
            typed: TypedCommands::new(),
            undo: None,
            new_services: watch::Sender::new(Arc::clone(&services)),
            services,
        }
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Msg>) {
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.message(message).await,
                    None => break,
                },
                event = next_event(&mut self.running) => match event {
                    Some(event) => self.event(event).await,
                    None => self.ended().await,
                },
                () = self.recorder.due() => self.flush().await,
                path = self.revoked.recv() => self.end_turn_sent(path.ok().as_deref()),
                // A running turn gets the ends of jobs before its next request.
                () = self.jobs.ended(), if self.running.is_none() => self.tell_job_ends().await,
                event = undo::next_event(&mut self.undo), if self.running.is_none() => {
                    self.undo_event(event).await;
                }
                () = self.typed.ended() => match self.running {
                    Some(_) => self.show_state(),
                    None => self.tell_typed().await,
                },
            }
        }
        self.cancel.cancel();
        self.questions.withdraw_all();
        while self.running.is_some() {
            match next_event(&mut self.running).await {
                Some(event) => self.event(event).await,
                None => self.ended().await,
            }
        }
        self.end_typed().await;
        self.end_jobs().await;
    }

    async fn message(&mut self, message: Msg) {
        match message {
            Msg::Prompt(prompt) => {
                self.cancel_pressed = false;
                self.prompt(prompt.without_secret_files()).await;
            }
            Msg::Cancel => self.cancel_turn(),
            Msg::Command { name, args } => self.command(&name, args.trim()).await,
            Msg::Run { command, options } => self.run_typed(command.trim(), options).await,
            Msg::Answer(answered) => self.answered(answered),
            Msg::Settings(services) => self.take_settings(&services),
        }
    }

    /// Applies the settings that take effect at once, also to the running turn.
    fn take_settings(&mut self, new: &Services) {
        self.services = Arc::new(self.services.changed_at_once(new));
        self.new_services.send_replace(Arc::clone(&self.services));
        self.show_state();
    }

    /// Starts a turn, or queues the prompt if one runs. A closed chat starts nothing.
    async fn prompt(&mut self, prompt: Prompt) {
        if self.cancel.is_cancelled() {
            // It came just before the chat was closed, and waited until the turn ended.
            return;
        }
        if self.running.is_some() {
            self.queue.push_back(prompt);
            return self.show_state();
        }
        if std::mem::take(&mut self.resume_failed) {
            self.services.notice(NoticeLevel::Warn, NOT_RESUMED);
            return self.give_all_back(prompt);
        }
        let range = prompt.range.clone();
        if self.take(prompt).await {
            self.range = range;
            self.start_turn(Purpose::Answer).await;
        }
    }

    /// Records a prompt and shows it. If that fails, gives all prompts back and returns false.
    async fn take(&mut self, prompt: Prompt) -> bool {
        let item = Item::User {
            text: prompt.text.clone(),
            context: self.redact_for_model(&prompt.context).await,
        };
        if !self.recorder.ready(&self.dirs, &prompt.text).await || !self.recorder.record(item).await
        {
            self.give_all_back(prompt);
            return false;
        }
        self.taken_prompts += 1;
        self.answering = false;
        // The client gets the file's id before the text: if the backend dies in between, all that is shown can be
        // resumed.
        self.show_state();
        self.show(ChatEvent::Prompt {
            text: prompt.text,
            context: prompt.context,
        });
        true
    }

    /// Returns the context of a prompt without secrets, for the model.
    async fn redact_for_model(&self, context: &[Context]) -> Vec<Context> {
        let keys = self.provider.as_ref().map(|provider| provider.secrets());
        let (keys, workspace) = (keys.unwrap_or_default(), &self.dirs.workspace);
        let mut told = context.to_vec();
        for piece in &mut told {
            let redact = self
                .services
                .redact_for_model(workspace, &piece.text, &keys);
            piece.text = match redact.await {
                Ok(redacted) => redacted.text,
                Err(withheld) => format!("[{withheld}]\n"),
            };
        }
        told
    }

    async fn start_turn(&mut self, purpose: Purpose) {
        self.record_choice().await;
        self.drop_undo();
        self.turn_usage = Usage::default();
        self.find_instructions().await;
        self.show(ChatEvent::TurnStarted);
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(fault) => return self.end_turn(End::Failed, Some(fault)).await,
        };
        let judge = self.services.judge(&self.dirs.workspace);
        (self.services).prepare_checkpoints(self.id, Arc::clone(&judge));
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let cancel = self.cancel.child_token();
        let turn = Turn {
            chat: self.id,
            transcript_id: self.recorder.id().unwrap_or_default(),
            number: self.turns_ended(),
            services: Arc::clone(&self.services),
            new_services: self.new_services.subscribe(),
            provider,
            judge,
            workspace: self.dirs.workspace.clone(),
            cwd: self.dirs.cwd.clone(),
            instructions: self.instructions.text(),
            purpose,
            permissions: self.permissions.clone(),
            range: self.range.as_ref().map(EditRange::new),
            images: self.unanswered_images(),
            seen_texts: self.seen_texts.clone(),
            events,
            cancel: cancel.clone(),
            limits: turn::LoopLimits::new(self.services.config.max_steps),
            window_limit: None,
            repeats_calls: false,
            told_confinement: false,
            queue: Queue::default(),
            calls_ended: 0,
            unanswered: Vec::new(),
        };
        self.running = Some(RunningTurn {
            events: receiver,
            cancel,
            task: tokio::spawn(turn.run()),
        });
        self.fire("CoTurnStarted", serde_json::json!({ "chat": self.id }));
        self.set_state(ChatState::Thinking, String::new());
    }

    /// Returns the names of the images of the prompts that have no answer yet.
    fn unanswered_images(&self) -> Vec<String> {
        let items = self.recorder.items().iter().rev();
        let unanswered = items.take_while(|it| !matches!(it, Item::Text { .. } | Item::Call(_)));
        let contexts = unanswered.filter_map(|item| match item {
            Item::User { context, .. } => Some(context),
            _ => None,
        });
        let images = contexts.flatten().filter(|piece| piece.image.is_some());
        images.map(|piece| piece.name.clone()).collect()
    }

    /// Returns the number of turns that ended, which is the number of the next one.
    fn turns_ended(&self) -> usize {
        let items = self.recorder.items().iter();
        items
            .filter(|item| matches!(item, Item::End { .. }))
            .count()
    }

    /// Returns the number of the turn that runs, or else of the last one.
    fn last_turn(&self) -> usize {
        let since = self.recorder.items().iter().rev();
        let mut since = since.take_while(|item| !matches!(item, Item::End { .. }));
        let is_open = self.running.is_some() || since.any(|it| matches!(it, Item::User { .. }));
        self.turns_ended() - usize::from(!is_open && self.turns_ended() > 0)
    }

    async fn event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Record(item, done) => {
                self.flush().await;
                self.answering &= !matches!(item, Item::Outcome(_));
                let written = self.recorder.record(item).await;
                // It fails if the turn was cancelled meanwhile.
                done.send(if written { Ok(()) } else { Err(()) }).ok();
            }
            TurnEvent::Snapshot(reply) => {
                self.flush().await;
                self.tell_job_ends().await;
                self.tell_typed().await;
                let snapshot = Snapshot {
                    items: self.recorder.items().to_vec(),
                    failed_confined: self.permissions.failed_confined.clone(),
                };
                reply.send(snapshot).ok();
            }
            TurnEvent::TakeSteering => self.take_steering().await,
            TurnEvent::Text(text) => self.recorder.text(&text),
            TurnEvent::Show(event) => {
                self.flush().await;
                self.show(event);
            }
            TurnEvent::State(state, detail) => self.set_state(state, detail),
            TurnEvent::Question(mut question, reply) => {
                if question.change.is_none() {
                    let judge = self.services.judge(&self.dirs.workspace);
                    question.no_undo = self.services.checkpoints.missing(judge.root());
                }
                self.questions.put(*question, reply);
            }
            TurnEvent::Withdraw(id) => self.questions.withdraw(id),
            TurnEvent::Allow(allowance) => self.allow(allowance).await,
            TurnEvent::Job(act) => self.job(act).await,
            TurnEvent::Usage(usage) => {
                self.usage += usage;
                self.turn_usage += usage;
                self.show_state();
            }
            TurnEvent::WindowUsed(percent) => self.window_used = Some(percent),
        }
    }

    /// Writes and shows the collected text of the model.
    async fn flush(&mut self) {
        if let Some(text) = self.recorder.flush().await {
            if !std::mem::replace(&mut self.answering, true) {
                self.show(ChatEvent::AnswerStarted);
            }
            self.show(ChatEvent::Text(text));
        }
    }

    fn cancel_turn(&mut self) {
        self.typed.cancel();
        if self.cancel_pressed {
            self.taken_prompts += self.queue.len() as u64;
            self.queue.clear();
            self.show_state();
        }
        if let Some(running) = &self.running {
            self.cancel_pressed = true;
            running.cancel.cancel();
        }
        self.questions.withdraw_all();
        self.show_state();
    }

    async fn ended(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        self.flush().await;
        let cancelled = running.cancel.is_cancelled();
        let ended = running.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a turn ended badly");
            TurnEnd {
                end: if cancelled {
                    End::Cancelled
                } else {
                    End::Failed
                },
                fault: None,
                failed_confined: Vec::new(),
                unanswered: Vec::new(),
            }
        });
        self.permissions.learn(ended.failed_confined);
        self.questions.withdraw_all();
        self.answer_calls(&ended.unanswered).await;
        self.tell_job_ends().await;
        self.tell_typed().await;
        let end = match ended.end {
            // Nobody cancelled it.
            End::Cancelled if self.app.is_cancelled() && !self.cancel_pressed => End::Interrupted,
            end => end,
        };
        self.end_turn(end, ended.fault).await;
    }

    /// Records an outcome for each call that has none: providers reject a request with such a call.
    async fn answer_calls(&mut self, unanswered: &[String]) {
        let items = self.recorder.items();
        let decision = |id: &str| {
            items.iter().rev().find_map(|item| match item {
                Item::Decision { call, decision } if call == id => Some(decision),
                _ => None,
            })
        };
        let closed = self.app.is_cancelled();
        let result = |id: &String| match decision(id) {
            Some(decision) if decision.lets_run() => EFFECT_UNKNOWN,
            _ if closed && unanswered.contains(id) => CLOSED,
            _ => CUT_OFF,
        };
        // The chat shows a decision in words of its own.
        let shown = |id: &String| match decision(id) {
            Some(_) => ShownPart::default(),
            None => ShownPart::line(result(id).to_owned()),
        };
        let outcomes: Vec<_> = transcript::unanswered(items)
            .into_iter()
            .map(|call| Outcome {
                call: call.id.clone(),
                text: result(&call.id).to_owned(),
                ok: false,
                spill: None,
                hidden: 0,
                shown: Some(shown(&call.id)),
            })
            .collect();
        for outcome in outcomes {
            self.recorder.record(Item::Outcome(outcome)).await;
        }
    }

    async fn end_turn(&mut self, end: End, fault: Option<Fault>) {
        let usage = self.turn_usage;
        self.recorder.record(Item::End { reason: end, usage }).await;
        self.show(ChatEvent::TurnEnded { end, fault });
        self.set_state(ChatState::Idle, String::new());
        self.fire(
            "CoTurnDone",
            serde_json::json!({ "chat": self.id, "reason": end }),
        );
        if let Some(prompt) = self.next_prompt() {
            Box::pin(self.prompt(prompt)).await;
        }
    }
}

async fn next_event(running: &mut Option<RunningTurn>) -> Option<TurnEvent> {
    match running {
        Some(running) => running.events.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
