//! One conversation: a task that owns its transcript, its file and its open questions.
//!
//! Knows nothing of RPC or of how a provider speaks. What a turn wants comes in as events; what the person
//! wants as messages; both are handled one at a time, so there are no locks.

mod advice;
mod audit_task;
mod blocking;
mod commands;
mod foreground;
mod handle;
pub mod instructions;
pub mod jobs;
pub mod loop_limits;
pub mod opens;
pub mod person;
pub mod prompt;
mod questions;
mod record;
mod render;
mod rules;
pub mod services;
mod show;
mod turn;
mod typed_commands;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::instructions::Found;
use self::jobs::Jobs;
use self::questions::Asks;
use self::record::Recorder;
use self::services::Services;
use self::turn::{Ended, Event, Purpose, Queue, Snapshot, Standing, Turn};
use self::typed_commands::Typed;
use crate::editor::LiveOutput;
use crate::protocol::{Level, State, ToEditor};
use co_llm::transcript::{self, Context, End, Item, Outcome, Usage};
use co_llm::{Fault, Provider};

pub use self::handle::{Answered, Handle, Msg, Place, Prompt};

/// What a turn may have handed over before the session looks: a burst of a fast model's pieces.
const EVENTS: usize = 256;

/// What the model is told of a call that was not let run, and has no outcome when its turn ends.
const CUT_OFF: &str = "cut off: the turn ended before this call was carried out";

/// The same of a call that was let run: what it came to could not be written, or the turn broke.
const UNKNOWN: &str =
    "cut off: the turn ended before this call did; whether it took effect is not known";

/// Said where a prompt would begin another conversation than the one its chat shows.
const NOT_RESUMED: &str = "not sent, since the conversation could not be resumed: /resume it, or submit again to begin a new one";

struct Session {
    id: u64,
    services: Arc<Services>,
    /// Gives `services` to the turn that runs.
    kits: watch::Sender<Arc<Services>>,
    place: Place,
    /// Neovim is gone, and all ends.
    app: CancellationToken,
    cancel: CancellationToken,
    /// None until the first turn needs one.
    provider: Option<Arc<dyn Provider>>,
    model: Option<String>,
    recorder: Recorder,
    asks: Asks,
    jobs: Jobs,
    queue: VecDeque<Prompt>,
    /// Prompts that wait no more; those given back are not among them.
    begun: u64,
    /// The person cancelled and typed nothing since: cancelling again means the queue too.
    stopping: bool,
    running: Option<Running>,
    standing: Standing,
    /// The workspace's instructions, as the last turn was sent them.
    instructions: Found,
    /// Files that the person trusts no more.
    revoked: broadcast::Receiver<PathBuf>,
    /// Of the whole conversation.
    usage: Usage,
    /// Of the turn that runs, or ran last.
    turn_usage: Usage,
    state: State,
    detail: String,
    /// Whether the model's heading of this turn is on the screen.
    speaking: bool,
    /// The editor knows the start of the answer that `/retry` replaces.
    answering: bool,
    page: render::Page,
    showing: Vec<LiveOutput>,
    /// The conversation that this was to go on with could not be had: nothing begins in its place unsaid.
    unresumed: bool,
    typed: Typed,
    /// Ends the command that the person typed at the prompt.
    shell_cancel: Option<CancellationToken>,
}

struct Running {
    events: mpsc::Receiver<Event>,
    cancel: CancellationToken,
    task: JoinHandle<Ended>,
}

impl Session {
    fn new(id: u64, services: Arc<Services>, place: Place, app: CancellationToken) -> Self {
        Self {
            id,
            place,
            cancel: app.child_token(),
            app,
            provider: None,
            model: None,
            recorder: Recorder::new(Arc::clone(&services)),
            asks: Asks::new(services.editor.clone()),
            jobs: Jobs::new(Arc::clone(&services), id, &[]),
            queue: VecDeque::new(),
            begun: 0,
            stopping: false,
            running: None,
            standing: Standing::default(),
            instructions: Found::None,
            revoked: services.instructions.revoked(),
            usage: Usage::default(),
            turn_usage: Usage::default(),
            state: State::Idle,
            detail: String::new(),
            speaking: false,
            answering: false,
            page: render::Page::new(),
            showing: Vec::new(),
            unresumed: false,
            typed: Typed::new(),
            shell_cancel: None,
            kits: watch::Sender::new(Arc::clone(&services)),
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
                // A turn that runs is told before its next request.
                () = self.jobs.ended(), if self.running.is_none() => self.tell_job_ends().await,
                () = self.typed.ended() => match self.running {
                    Some(_) => self.show_state(),
                    None => self.tell_typed().await,
                },
            }
        }
        self.cancel.cancel();
        self.asks.withdraw_all();
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
                self.stopping = false;
                self.prompt(prompt).await;
            }
            Msg::Cancel => self.cancel_turn(),
            Msg::Command { name, args } => self.command(&name, args.trim()).await,
            Msg::Run { command, options } => self.shell(command.trim(), options).await,
            Msg::Answer(answered) => self.answered(answered),
            Msg::Settings(services) => self.take_settings(&services),
        }
    }

    /// Applies what applies at once, also to the turn that runs.
    fn take_settings(&mut self, new: &Services) {
        self.services = Arc::new(self.services.changed_at_once(new));
        self.kits.send_replace(Arc::clone(&self.services));
        self.show_state();
    }

    /// Starts a turn, or queues the prompt behind the one that runs. A session that is closed begins nothing.
    async fn prompt(&mut self, prompt: Prompt) {
        if self.cancel.is_cancelled() {
            // It came just before the session was closed, and was read after its turn had ended of that.
            return;
        }
        if self.running.is_some() {
            self.queue.push_back(prompt);
            return self.show_state();
        }
        if std::mem::take(&mut self.unresumed) {
            self.services.notice(Level::Warn, NOT_RESUMED);
            return self.give_all_back(prompt);
        }
        let item = Item::User {
            text: prompt.text.clone(),
            context: self.redact_for_model(&prompt.context).await,
        };
        if !self.recorder.ready(&self.place, &prompt.text).await
            || !self.recorder.record(item).await
        {
            return self.give_all_back(prompt);
        }
        self.begun += 1;
        self.answering = false;
        // Where it is kept is told before it is shown: a backend that dies in between loses nothing shown.
        self.show_state();
        self.paragraph(&render::prompt(&prompt.text, &prompt.context));
        self.start_turn(Purpose::Answer).await;
    }

    /// Returns what a model may read of the context of a prompt.
    async fn redact_for_model(&self, context: &[Context]) -> Vec<Context> {
        let keys = self.provider.as_ref().map(|provider| provider.secrets());
        let (keys, workspace) = (keys.unwrap_or_default(), &self.place.workspace);
        let mut told = context.to_vec();
        for piece in &mut told {
            piece.text = self
                .services
                .redact_for_model(workspace, &piece.text, &keys)
                .await;
        }
        told
    }

    async fn start_turn(&mut self, purpose: Purpose) {
        self.turn_usage = Usage::default();
        self.find_instructions().await;
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(fault) => return self.end_turn(End::Failed, Some(fault)).await,
        };
        let (events, receiver) = mpsc::channel(EVENTS);
        let cancel = self.cancel.child_token();
        let turn = Turn {
            session: self.id,
            log_id: self.recorder.id().unwrap_or_default(),
            services: Arc::clone(&self.services),
            kits: self.kits.subscribe(),
            provider,
            judge: self.services.judge(&self.place.workspace),
            workspace: self.place.workspace.clone(),
            cwd: self.place.cwd.clone(),
            instructions: self.instructions.text(),
            purpose,
            standing: self.standing.clone(),
            events,
            cancel: cancel.clone(),
            guard: loop_limits::Guard::new(self.services.config.max_steps),
            circling: false,
            queue: Queue::default(),
        };
        self.running = Some(Running {
            events: receiver,
            cancel,
            task: tokio::spawn(turn.run()),
        });
        self.speaking = false;
        self.fire("CoTurnStarted", serde_json::json!({ "session": self.id }));
        self.set_state(State::Thinking, String::new());
    }

    fn provider(&mut self) -> Result<Arc<dyn Provider>, Fault> {
        if let Some(provider) = &self.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = self.services.provider(self.model.as_deref())?;
        self.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Record(item, done) => {
                self.flush().await;
                self.answering &= !matches!(item, Item::Outcome(_));
                let written = self.recorder.record(item).await;
                // A turn that was cancelled meanwhile no longer listens.
                done.send(if written { Ok(()) } else { Err(()) }).ok();
            }
            Event::Snapshot(reply) => {
                self.flush().await;
                self.tell_job_ends().await;
                self.tell_typed().await;
                let snapshot = Snapshot {
                    items: self.recorder.items().to_vec(),
                    failed_confined: self.standing.failed_confined.clone(),
                };
                reply.send(snapshot).ok();
            }
            Event::Text(text) => self.recorder.text(&text),
            Event::Show(text) => {
                self.flush().await;
                self.speak();
                self.paragraph(&text);
            }
            Event::Block(target, screen) => {
                self.showing.push(self.services.editor.show(target, screen))
            }
            Event::BlockDone(done) => {
                if let Some(showing) = self.showing.pop() {
                    showing.finish(done);
                }
                self.page.block();
            }
            Event::Output(text) => self.output(&text),
            Event::State(state, detail) => self.set_state(state, detail),
            Event::Ask(ask, reply) => {
                self.asks.put(*ask, reply);
            }
            Event::Withdraw(id) => self.asks.withdraw(id),
            Event::Allow(allowance) => self.allow(allowance).await,
            Event::Job(act) => self.job(act).await,
            Event::Usage(usage) => {
                self.usage += usage;
                self.turn_usage += usage;
                self.show_state();
            }
        }
    }

    /// Writes the model's text that waits and shows it.
    async fn flush(&mut self) {
        if let Some(text) = self.recorder.flush().await {
            self.speak();
            if !std::mem::replace(&mut self.answering, true) {
                let session = self.id;
                self.services
                    .editor
                    .tell(ToEditor::AnswerBegins { session });
            }
            let text = self.page.text(&text);
            self.append(text);
        }
    }

    /// Puts the model's heading before the first thing of a turn.
    fn speak(&mut self) {
        if !self.speaking {
            self.speaking = true;
            self.paragraph(render::HEADING);
        }
    }

    fn cancel_turn(&mut self) {
        if let Some(shell) = self.shell_cancel.take() {
            shell.cancel();
        }
        if self.stopping {
            self.begun += self.queue.len() as u64;
            self.queue.clear();
            self.show_state();
        }
        if let Some(running) = &self.running {
            self.stopping = true;
            running.cancel.cancel();
        }
        self.asks.withdraw_all();
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
            Ended {
                end: if cancelled {
                    End::Cancelled
                } else {
                    End::Failed
                },
                fault: None,
                failed_confined: Vec::new(),
            }
        });
        self.standing.learn(ended.failed_confined);
        self.asks.withdraw_all();
        self.answer_calls().await;
        self.tell_job_ends().await;
        self.tell_typed().await;
        self.end_turn(ended.end, ended.fault).await;
    }

    /// Gives the calls that the turn did not come to an outcome: no file and no request is without one.
    async fn answer_calls(&mut self) {
        let items = self.recorder.items();
        let let_run = |id: &str| {
            let decided = |item: &Item| matches!(item, Item::Decision { call, decision } if call == id && decision.lets_run());
            items.iter().any(decided)
        };
        let outcomes: Vec<_> = transcript::unanswered(items)
            .into_iter()
            .map(|call| Outcome {
                call: call.id.clone(),
                text: if let_run(&call.id) { UNKNOWN } else { CUT_OFF }.to_owned(),
                ok: false,
                spill: None,
            })
            .collect();
        for outcome in outcomes {
            self.recorder.record(Item::Outcome(outcome)).await;
        }
    }

    async fn end_turn(&mut self, end: End, fault: Option<Fault>) {
        let usage = self.turn_usage;
        self.recorder.record(Item::End { reason: end, usage }).await;
        if let Some(text) = render::end(end, fault.as_ref()) {
            self.speak();
            self.paragraph(&text);
        }
        self.speaking = false;
        self.set_state(State::Idle, String::new());
        self.fire(
            "CoTurnDone",
            serde_json::json!({ "session": self.id, "reason": end }),
        );
        if let Some(prompt) = self.queue.pop_front() {
            Box::pin(self.prompt(prompt)).await;
        }
    }
}

async fn next_event(running: &mut Option<Running>) -> Option<Event> {
    match running {
        Some(running) => running.events.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
