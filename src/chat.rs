//! One chat: a task that owns the transcript, its file, the open questions and the jobs.
//!
//! This module must not know RPC, a provider's protocol or markdown. The task gets messages from the person ([`Msg`]) and from
//! its turn (`turn::TurnEvent`). It handles them one at a time, and sends [`ChatEvent`]s to its front end.

mod agent_turn;
mod chat_context;
mod contexts;
pub mod events;
mod handle;
mod instructions;
pub mod jobs;
mod logins;
mod message;
pub mod person;
pub mod prompt;
mod prompt_file_trust;
mod prompt_queue;
pub mod questions;
mod record;
mod retell;
mod rewind;
mod running_turn;
mod scout;
mod servers;
mod skills;
mod slash_commands;
mod status;
pub mod terminal_agents;
pub mod trust_questions;
mod trusted_texts;
mod turn;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::chat_context::ChatContext;
use self::contexts::ContextReads;
use self::events::{ChatEvent, FrontEnd};
use self::jobs::Jobs;
use self::person::agent::ChatAgent;
use self::person::commit::ask_to_commit;
use self::person::commit_message::{CommitEvent, CommitRequest, CommitWriter, write_commit};
use self::person::model::ChatModel;
use self::person::typed_commands::{TypedCommands, TypedEvent, TypedRequest};
use self::person::{drafts, plan};
use self::prompt_queue::PromptQueue;
use self::questions::OpenQuestions;
use self::record::Recorder;
use self::running_turn::RunningTurn;
use self::status::{Status, WaitingQuestion};
use self::trusted_texts::TrustedTexts;
use self::turn::{MAX_WAITING_EVENTS, ToChat, TurnEvent, TurnGoal};
use self::undo::{ChatUndo, Count, OpenChanges, UndoEvent};
use crate::mcp::WORKSPACE_FILE;
use crate::protocol::{ChatState, LineRange, NoticeLevel, RunOptions, ToEditor};
use crate::services::Services;
use crate::tool::ToolSet;
use crate::tool::context::Questioner;
use crate::tool::permissions::{Allowance, Permissions};
use crate::tool::server::ChatServers;
use crate::workspace::edits::{EditRequest, SeenTexts};
use crate::workspace::judge::workspace_of;
use co_llm::transcript::{self, Context, Item};

pub use self::handle::ChatHandle;
pub use self::message::{Msg, Prompt, WorkDirs};

/// The notice for a prompt that would start a new transcript, although the screen still shows another one.
const NOT_RESUMED: &str = "not sent, because the chat could not be resumed: /resume it, or send the prompt again to start a new chat";

/// The task of one chat. It handles the messages of the person, and the events of its turn and of its commands, one by one.
struct Chat {
    context: ChatContext,
    /// Sends changed services to the running turn.
    new_services: watch::Sender<Arc<Services>>,
    /// Cancelled when the backend ends.
    app: CancellationToken,
    model: ChatModel,
    recorder: Recorder,
    questions: OpenQuestions,
    /// The events of commands that outlive a turn: jobs, and commands that the person typed. Such a command may send a question
    /// about a host.
    commands: mpsc::Receiver<TurnEvent>,
    /// The questioner of the commands that outlive a turn. It sends their questions to the channel of `commands`.
    for_commands: Arc<dyn Questioner>,
    jobs: Jobs,
    queue: PromptQueue,
    /// True if the person cancelled and has typed nothing since. A second cancel drops the queue.
    cancel_pressed: bool,
    running: Option<RunningTurn>,
    agent: ChatAgent,
    permissions: Permissions,
    tools: ToolSet,
    servers: ChatServers,
    /// The lines that the person selected for the last prompt. The turn may change only these lines.
    range: Option<LineRange>,
    /// The texts of files that the model has read.
    seen_texts: SeenTexts,
    texts: TrustedTexts,
    status: Status,
    /// True if a transcript could not be resumed. The next prompt is then refused with a notice, instead of starting a new
    /// transcript.
    resume_failed: bool,
    typed: TypedCommands,
    commit: CommitRequest,
    contexts: ContextReads,
    undo: ChatUndo,
    /// Counts the changes that the person has neither accepted nor rejected yet.
    count: Count,
    /// Changes when any chat has changed files, or when the person accepts or rejects changes.
    files_changed: watch::Receiver<()>,
}

impl Chat {
    fn new(
        id: u64,
        front_end: Arc<dyn FrontEnd>,
        services: Arc<Services>,
        dirs: WorkDirs,
        app: CancellationToken,
    ) -> Self {
        let new_services = watch::Sender::new(Arc::clone(&services));
        let (events, commands) = mpsc::channel(MAX_WAITING_EVENTS);
        let for_commands: Arc<dyn Questioner> = Arc::new(ToChat {
            events,
            new_services: new_services.subscribe(),
        });
        Self {
            model: ChatModel::default(),
            recorder: Recorder::new(Arc::clone(&services), Arc::clone(&front_end)),
            questions: OpenQuestions::new(services.editor.clone()),
            jobs: Jobs::new(Arc::clone(&services), id, &[]),
            queue: PromptQueue::default(),
            cancel_pressed: false,
            running: None,
            agent: ChatAgent::default(),
            permissions: Permissions::default(),
            tools: ToolSet::built_in(services.config.max_scouts > 0),
            servers: ChatServers::default(),
            range: None,
            seen_texts: SeenTexts::default(),
            texts: TrustedTexts::new(&services),
            status: Status::default(),
            resume_failed: false,
            typed: TypedCommands::new(Arc::clone(&for_commands)),
            commands,
            for_commands,
            commit: CommitRequest::new(),
            contexts: ContextReads::new(),
            undo: ChatUndo::default(),
            count: Count::default(),
            files_changed: services.checkpoints.changed(),
            new_services,
            context: ChatContext {
                id,
                services,
                dirs,
                front_end,
                cancel: app.child_token(),
            },
            app,
        }
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Msg>) {
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.message(message).await,
                    None => break,
                },
                event = running_turn::next_event(&mut self.running) => match event {
                    Some(event) => self.event(event).await,
                    None => self.ended().await,
                },
                () = self.recorder.due() => self.recorder.flush().await,
                path = self.texts.revoked() => self.trust_revoked(path.as_deref()),
                // A running turn gets the ends of jobs before its next request.
                () = self.jobs.ended(), if self.running.is_none() => self.tell_job_ends().await,
                event = self.undo.next_event(), if self.takes_undo() => {
                    self.undo_event(event).await;
                }
                Ok(()) = self.files_changed.changed(), if self.takes_undo() => self.count_open(),
                open = self.count.ended() => self.counted(&open),
                question = self.contexts.question() => self.contexts.ask(question, &mut self.questions),
                event = self.commit.next_event() => self.commit_event(event).await,
                event = self.agent.process.next_event() => {
                    let name = self.model.agent().unwrap_or_default();
                    if self.agent.take_idle_event(&self.context, name, event) {
                        self.show_state();
                    }
                }
                found = self.model.looked_up() => self.found_model(found).await,
                event = self.typed.next_event() => self.typed_event(event).await,
                Some(event) = self.commands.recv() => self.command_event(event).await,
            }
            self.show_if_it_asks();
        }
        self.context.cancel.cancel();
        self.questions.withdraw_all();
        while self.running.is_some() {
            match running_turn::next_event(&mut self.running).await {
                Some(event) => self.event(event).await,
                None => self.ended().await,
            }
        }
        self.typed.end(&self.context, &mut self.recorder).await;
        self.jobs
            .end_all(self.app.is_cancelled(), &mut self.recorder)
            .await;
    }

    async fn message(&mut self, message: Msg) {
        let context = &self.context;
        match message {
            Msg::Prompt(prompt) => self.typed_prompt(prompt).await,
            Msg::CheckPromptFile(check) => prompt_file_trust::check(context, check).await,
            Msg::ReadContext(request) => self.contexts.start(context, &self.servers, request),
            Msg::Cancel => self.cancel_turn(),
            Msg::EarlierText { above } => context.show(ChatEvent::EarlierTextWanted { above }),
            Msg::Draft { text, begins } => self.keep_draft(&text, begins).await,
            Msg::KeepPlan { text } => plan::keep(context, &mut self.recorder, text).await,
            Msg::Command { name, args } => self.command(&name, args.trim()).await,
            Msg::ListModels { head } => self.model.list_models(context, head),
            Msg::WriteCommit(commit) => {
                // It may be in another repository than the chat.
                let writer = self.commit_writer(WorkDirs {
                    workspace: workspace_of(Path::new(&commit.directory)),
                    cwd: PathBuf::from(&commit.directory),
                });
                write_commit(self.context.id, writer, commit);
            }
            Msg::Commit(options) => {
                let writer = self.commit_writer(self.context.dirs.clone());
                ask_to_commit(&self.context, writer, options);
            }
            Msg::Run { command, options } => self.run_typed(command.trim(), options).await,
            Msg::Answer(answered) => self.questions.answer(answered.id, answered.into()),
            Msg::ReadReview { id, file, from } => self.questions.show_part(id, file, from),
            Msg::KeepAnswers { id, file, answers } => self.undo.keep_answers(id, file, answers),
            Msg::Settings(services) => self.take_settings(&services),
        }
    }

    /// Applies the new settings that take effect at once, also to the running turn.
    fn take_settings(&mut self, new: &Services) {
        let services = Arc::new(self.context.services.changed_at_once(new));
        self.new_services.send_replace(Arc::clone(&services));
        self.context.services = services;
        self.show_state();
    }

    /// Handles a prompt that the person typed.
    async fn typed_prompt(&mut self, mut prompt: Prompt) {
        let context = &self.context;
        self.cancel_pressed = false;
        if plan::add(context, self.recorder.items(), &mut prompt)
            && prompt_file_trust::may_send(context, &prompt).await
        {
            self.prompt(prompt).await;
        } else {
            self.give_back(prompt);
        }
    }

    /// Starts a turn with the prompt, or queues the prompt if a turn runs. Does nothing if the chat is closed.
    async fn prompt(&mut self, prompt: Prompt) {
        if self.context.cancel.is_cancelled() {
            // The prompt came just before the chat was closed.
            return;
        }
        if self.running.is_some() || self.model.is_looking_up() {
            self.queue.push(prompt);
            self.steer_agent();
            return self.show_state();
        }
        if std::mem::take(&mut self.resume_failed) {
            self.context.services.notice(NoticeLevel::Warn, NOT_RESUMED);
            return self.give_all_back(prompt);
        }
        let range = prompt.range.clone();
        self.texts.forget_prompt_files();
        if self.take(prompt).await {
            self.range = range;
            self.status.find_plan(self.recorder.items());
            self.start_turn(TurnGoal::Answer).await;
        }
    }

    /// Records a prompt and shows it. If recording fails, gives all prompts back to the person and returns false.
    async fn take(&mut self, prompt: Prompt) -> bool {
        let at = Some(crate::store::seconds_now());
        let item = Item::User {
            text: prompt.sent_text().to_owned(),
            context: self.redact_for_model(&prompt.context).await,
            at,
        };
        let dirs = &self.context.dirs;
        if !self.recorder.record_prompt(dirs, &prompt.text, item).await {
            self.give_all_back(prompt);
            return false;
        }
        self.texts.add_prompt_file(&prompt);
        self.queue.count_taken();
        // Lua gets the file's id before the text. If the backend dies between the two, the person can resume all that is
        // shown.
        self.show_state();
        self.context.show(ChatEvent::Prompt {
            text: prompt.sent_text().to_owned(),
            context: prompt.context,
            at,
        });
        true
    }

    /// Returns the contexts of a prompt without secret values, as the model gets them.
    async fn redact_for_model(&self, context: &[Context]) -> Vec<Context> {
        let ChatContext { services, dirs, .. } = &self.context;
        let keys = self.model.keys();
        let mut told = context.to_vec();
        for piece in &mut told {
            let (text, now) = (&piece.text, Instant::now());
            let redact = services.redact_for_model(&dirs.workspace, text, &keys, now);
            piece.text = match redact.await {
                Ok(redacted) => redacted.text,
                Err(withheld) => format!("[{withheld}]\n"),
            };
        }
        told
    }

    fn cancel_turn(&mut self) {
        self.typed.cancel();
        self.commit.cancel();
        self.contexts.cancel(&mut self.questions);
        let runs = self.running.is_some() || self.typed.any_runs();
        if self.cancel_pressed || !runs && self.queue.is_held() {
            self.queue.drop_all();
            self.show_state();
        }
        if let Some(running) = &self.running {
            self.cancel_pressed = true;
            self.queue.hold();
            running.cancel.cancel();
        }
        self.questions.withdraw_of_turn(&[]);
        self.show_state();
    }

    /// Gives an unsent prompt, and all queued prompts, back to the person.
    fn give_all_back(&mut self, prompt: Prompt) {
        let waiting = self.queue.take_all();
        // From the last to the first, because Lua puts each in front of the draft.
        for prompt in std::iter::once(prompt).chain(waiting).rev() {
            self.give_back(prompt);
        }
        self.show_state();
    }

    /// Gives an unsent prompt back to the person.
    fn give_back(&self, prompt: Prompt) {
        self.context.services.editor.tell(ToEditor::Unsent {
            chat: self.context.id,
            text: prompt.text,
        });
    }

    /// Cancels the running turn if the model got a file that the person no longer trusts. Also gives the queued prompts that come
    /// from this file back to the person. If `path` is `None`, the person may have revoked the trust in any file.
    fn trust_revoked(&mut self, path: Option<&Path>) {
        let waiting = self.queue.take_from_file(path);
        if !waiting.is_empty() {
            waiting
                .into_iter()
                .rev()
                .for_each(|prompt| self.give_back(prompt));
            self.show_state();
        }
        if path.is_none_or(|path| path == self.context.dirs.workspace.join(WORKSPACE_FILE)) {
            self.servers.end_of_workspace(&self.tools);
        }
        let Some(running) = self.running.as_ref().filter(|it| !it.cancel.is_cancelled()) else {
            return;
        };
        let Some(sent) = self.texts.sent(&self.context, path) else {
            return;
        };
        running.cancel.cancel();
        let chat = self.context.id;
        self.context.say(format!(
            "the turn of chat {chat} is cancelled: it was sent {sent}"
        ));
    }

    /// Saves the draft with the transcript. If there is no transcript and `begins` is true, begins one.
    async fn keep_draft(&mut self, text: &str, begins: bool) {
        let keys = self.model.keys();
        let draft = drafts::prepare(&self.context, &mut self.recorder, &keys, (text, begins));
        if let Some(draft) = draft.await {
            self.show_state();
            if let Some(id) = self.recorder.id() {
                drafts::save(&self.context, id, draft).await;
            }
        }
        let chat = self.context.id;
        self.context
            .services
            .editor
            .tell(ToEditor::DraftKept { chat });
    }

    /// Handles the result of a model lookup: switches to the model, or asks which provider is meant. Then the prompts that waited
    /// for the lookup start.
    async fn found_model(&mut self, found: (String, bool)) {
        let in_turn = self.running.is_some();
        self.model.found_model(&self.context, found, in_turn);
        self.show_state();
        if !in_turn
            && !self.queue.is_held()
            && let Some(prompt) = self.queue.next()
        {
            Box::pin(self.prompt(prompt)).await;
        }
    }

    /// Handles an event of a command that outlives the turn.
    async fn command_event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Question(question, reply) => {
                self.questions
                    .put_about_hosts(*question, reply, true, &self.permissions);
            }
            event => self.event(event).await,
        }
    }

    /// Adds a permission that the person gave.
    async fn allow(&mut self, allowance: Allowance) {
        self.permissions
            .take(allowance, &self.context.services)
            .await;
        self.show_state();
    }

    /// Runs a command that the person typed.
    async fn run_typed(&mut self, command: &str, options: RunOptions) {
        if command.is_empty() {
            return self.context.complain("type a command after the !");
        }
        self.start_typed(TypedRequest::typed(command, options, &self.context))
            .await;
    }

    async fn start_typed(&mut self, request: TypedRequest) {
        self.typed
            .start(request, &self.context, &mut self.recorder)
            .await;
        self.show_state();
    }

    /// Shows an event of a typed command. If a turn runs, the end of the command is recorded after the turn.
    async fn typed_event(&mut self, event: TypedEvent) {
        self.typed
            .take(event, &self.context, &mut self.recorder)
            .await;
        self.show_state();
        if self.running.is_none() {
            self.typed.record(&mut self.recorder).await;
        }
    }

    /// Records and shows the ends of jobs. Call it only between two steps or turns.
    async fn tell_job_ends(&mut self) {
        let in_turn = self.running.is_some();
        let ended = self
            .jobs
            .tell_ends(&self.context, &mut self.recorder, in_turn);
        self.permissions.learn(ended.await);
    }

    /// Cancels an earlier request for a commit message, and returns a writer for the message of a commit in `dirs`.
    fn commit_writer(&mut self, dirs: WorkDirs) -> CommitWriter {
        if let Some(question) = self.commit.question.take() {
            self.questions.withdraw(question);
        }
        let items = self.recorder.items();
        self.commit
            .writer(&self.context, dirs, &mut self.model, items)
    }

    async fn commit_event(&mut self, event: CommitEvent) {
        match event {
            CommitEvent::Used(usage) => {
                self.status.usage += usage;
                self.show_state();
            }
            CommitEvent::Ask { cancel, .. } | CommitEvent::Run { cancel, .. }
                if cancel.is_cancelled() => {}
            CommitEvent::Ask {
                question, reply, ..
            } => {
                self.commit.question = Some(question.id);
                self.questions.put(*question, reply);
            }
            CommitEvent::Run {
                command, options, ..
            } => self.run_typed(&command, options).await,
        }
    }

    /// Returns true if the person can review changes and take them back now: no turn runs, or an agent does the running turn.
    fn takes_undo(&self) -> bool {
        self.running.is_none() || self.model.agent().is_some()
    }

    async fn undo_event(&mut self, event: Option<UndoEvent>) {
        match event {
            None => {
                self.undo.ended();
                self.context.services.checkpoints.tell_changed();
            }
            Some(UndoEvent::Ask(question, reply)) if self.undo.may_ask(question.id) => {
                self.questions.put(*question, reply);
            }
            Some(UndoEvent::Review(review, reply)) if self.undo.may_ask(review.id) => {
                self.questions.put_review(review, reply);
            }
            Some(UndoEvent::Ask(..) | UndoEvent::Review(..)) => {}
            Some(UndoEvent::Done(note)) => {
                match note {
                    Some(text) if self.running.is_some() => self.undo.add_note(text),
                    Some(text) => self.recorder.note(text).await,
                    None => {}
                }
                if let Some(point) = self.undo.take_rewind() {
                    self.rewind_chat(point).await;
                }
            }
        }
    }

    /// Starts to count the changes that the person has neither accepted nor rejected yet.
    fn count_open(&mut self) {
        self.count.start(&self.context.services, self.recorder.id());
    }

    fn counted(&mut self, open: &OpenChanges) {
        if let Some(files) = self.count.take(open) {
            self.show_state();
            let chat = self.context.id;
            self.context
                .services
                .editor
                .tell(ToEditor::OpenChanges { chat, files });
        }
    }

    fn set_state(&mut self, state: ChatState, detail: String) {
        self.status.set(state, detail);
        self.show_state();
    }

    /// Sends the state to Lua if the chat now waits for the person and did not before, or the other way round. The chat waits for
    /// the person while a question of the model is open, or while any question is open and no turn runs.
    fn show_if_it_asks(&mut self) {
        let waiting = match self.running {
            None if self.questions.any() => WaitingQuestion::WithoutTurn,
            Some(_) if self.questions.any_choice() => WaitingQuestion::OfModel,
            None | Some(_) => WaitingQuestion::None,
        };
        if self.status.set_waiting(waiting) {
            self.show_state();
        }
    }

    /// Sends the state of the chat to Lua.
    fn show_state(&self) {
        let ChatContext {
            id, services, dirs, ..
        } = &self.context;
        let (state, detail) = self.status.state();
        services.editor.tell(ToEditor::State {
            chat: *id,
            state,
            detail,
            model: self.model.label(&services.config),
            cwd: dirs.cwd.display().to_string(),
            confinement: services.probe.name().to_owned(),
            used: self.status.usage.into(),
            turn: Box::new(self.status.turn_usage.into()),
            window_used: self.status.window_used,
            commands: services.foreground.of(*id),
            queued: self.queue.queued(),
            steering: self.queue.steering(),
            taken_prompts: self.queue.taken(),
            transcript: self.recorder.id(),
            title: self.recorder.title(),
            chosen: self.model.is_chosen(),
            unusual: self.unusual(),
            open: self.count.summary(),
            plan: self.status.plan,
            mode: self.agent.state().mode(),
        });
    }

    /// Returns short notes for the winbar: that a question waits while no turn runs, and the unusual modes and permissions of
    /// this chat, such as `edits allowed`.
    fn unusual(&self) -> Vec<String> {
        let ChatContext { services, dirs, .. } = &self.context;
        let edits = EditRequest::every_edit();
        let may_edit = edits.iter().all(|it| self.permissions.rules.contains(it));
        let plans = self.running.is_some() && transcript::is_planning(self.recorder.items());
        let words = [
            (self.status.asks_without_turn(), "a question waits"),
            // co asks only about a few commands, such as those that it cannot read.
            (self.permissions.confirms(services), "ASKS NOTHING"),
            (
                self.model.agent_is_unconfined(services),
                "AGENT NOT CONFINED",
            ),
            (plans, "PLANS"),
            (may_edit, "edits allowed"),
            (services.tries_first(&dirs.workspace), "tries first"),
        ];
        let words = words.into_iter().filter(|(is_so, _)| *is_so);
        words.map(|(_, words)| words.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
