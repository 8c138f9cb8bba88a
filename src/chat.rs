//! One chat: a task that owns the transcript, its file, the open questions and the jobs.
//!
//! It must not know RPC, a provider's protocol or markdown. It gets messages from the person ([`Msg`]) and from its turn
//! (`turn::TurnEvent`), handles them one at a time, and sends [`ChatEvent`]s to its front end.

mod agent_turn;
mod command_questions;
mod contexts;
pub mod events;
mod handle;
pub mod instructions;
pub mod jobs;
mod message;
pub mod person;
pub mod prompt;
mod prompt_file_trust;
mod prompt_queue;
mod record;
mod retell;
mod rewind;
mod running_turn;
mod scout;
mod servers;
mod skills;
mod status;
mod turn;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::command_questions::CommandQuestions;
use self::contexts::ContextReads;
use self::events::{ChatEvent, FrontEnd};
use self::instructions::Instructions;
use self::jobs::Jobs;
use self::person::agent::ChatAgent;
use self::person::commit_message::CommitRequest;
use self::person::model::ChatModel;
use self::person::questions::OpenQuestions;
use self::person::typed_commands::TypedCommands;
use self::prompt_queue::PromptQueue;
use self::record::Recorder;
use self::running_turn::RunningTurn;
use self::skills::Skills;
use self::status::Status;
use self::turn::Purpose;
use crate::protocol::{LineRange, NoticeLevel};
use crate::services::Services;
use crate::tool::ToolSet;
use crate::tool::permissions::Permissions;
use crate::tool::server::ChatServers;
use crate::workspace::edits::SeenTexts;
use co_exec::Caller;
use co_llm::transcript::{Context, Item};

pub use self::handle::ChatHandle;
pub use self::message::{Msg, Prompt, WorkDirs};

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
    model: ChatModel,
    recorder: Recorder,
    questions: OpenQuestions,
    commands: CommandQuestions,
    jobs: Jobs,
    queue: PromptQueue,
    /// The person cancelled and has typed nothing since. Another cancel drops the queue.
    cancel_pressed: bool,
    running: Option<RunningTurn>,
    agent: ChatAgent,
    permissions: Permissions,
    tools: ToolSet,
    servers: ChatServers,
    /// The lines that the last prompt asked to change.
    range: Option<LineRange>,
    /// The texts of files that the model has read.
    seen_texts: SeenTexts,
    /// The instructions that the last turn got.
    instructions: Instructions,
    /// The skills that the last turn got.
    skills: Skills,
    /// The prompt files of the workspace whose texts the last turn got.
    prompt_files: Vec<PathBuf>,
    /// Receives the files that the person no longer trusts.
    revoked: broadcast::Receiver<PathBuf>,
    status: Status,
    /// The front end got `AnswerStarted` for the last answer, which `/retry` replaces.
    answering: bool,
    front_end: Arc<dyn FrontEnd>,
    /// The transcript could not be resumed. The next prompt must not start another one without notice.
    resume_failed: bool,
    typed: TypedCommands,
    commit: CommitRequest,
    contexts: ContextReads,
    /// The last `/undo` or `/redo`, if it is not complete.
    undo: Option<undo::OpenUndo>,
    /// Notes of `/undo` and `/review` during the turn of an agent. The next prompt tells them.
    undo_notes: Vec<String>,
    /// Counts the changes that the person has not answered yet.
    count: undo::Count,
    /// Tells that any chat has changed files, or that the person answered its changes.
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
        Self {
            id,
            dirs,
            cancel: app.child_token(),
            app,
            model: ChatModel::default(),
            recorder: Recorder::new(Arc::clone(&services)),
            questions: OpenQuestions::new(services.editor.clone()),
            commands: CommandQuestions::new(),
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
            instructions: Instructions::default(),
            skills: Skills::default(),
            prompt_files: Vec::new(),
            revoked: services.instructions.revoked(),
            status: Status::default(),
            answering: false,
            front_end,
            resume_failed: false,
            typed: TypedCommands::new(),
            commit: CommitRequest::new(),
            contexts: ContextReads::new(),
            undo: None,
            undo_notes: Vec::new(),
            count: undo::Count::default(),
            files_changed: services.checkpoints.changed(),
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
                event = running_turn::next_event(&mut self.running) => match event {
                    Some(event) => self.event(event).await,
                    None => self.ended().await,
                },
                () = self.recorder.due() => self.flush().await,
                path = self.revoked.recv() => self.trust_revoked(path.ok().as_deref()),
                // A running turn gets the ends of jobs before its next request.
                () = self.jobs.ended(), if self.running.is_none() => self.tell_job_ends().await,
                event = undo::next_event(&mut self.undo), if self.takes_undo() => {
                    self.undo_event(event).await;
                }
                Ok(()) = self.files_changed.changed(), if self.takes_undo() => self.count_open(),
                open = self.count.ended() => self.counted(&open),
                question = self.contexts.question() => self.ask_about_context(question),
                event = self.commit.next_event() => self.commit_event(event).await,
                found = self.model.looked_up() => self.found_model(found).await,
                event = self.typed.next_event() => self.typed_event(event).await,
                event = self.commands.next_event() => self.command_event(event).await,
            }
            self.show_if_it_asks();
        }
        self.cancel.cancel();
        self.questions.withdraw_all();
        while self.running.is_some() {
            match running_turn::next_event(&mut self.running).await {
                Some(event) => self.event(event).await,
                None => self.ended().await,
            }
        }
        self.end_typed().await;
        self.end_jobs().await;
    }

    async fn message(&mut self, message: Msg) {
        match message {
            Msg::Prompt(prompt) => self.typed_prompt(prompt).await,
            Msg::CheckPromptFile(check) => self.check_prompt_file(check).await,
            Msg::ReadContext(request) => self.read_context(request),
            Msg::Cancel => self.cancel_turn(),
            Msg::EarlierText { above } => self.show(ChatEvent::EarlierTextWanted { above }),
            Msg::Draft { text, begins } => self.keep_draft(&text, begins).await,
            Msg::KeepPlan { text } => self.keep_plan(text).await,
            Msg::Command { name, args } => self.command(&name, args.trim()).await,
            Msg::ListModels { head } => self.list_models(head),
            Msg::WriteCommit(commit) => self.write_commit(commit),
            Msg::Commit(options) => self.ask_to_commit(options),
            Msg::Run { command, options } => self.run_typed(command.trim(), options).await,
            Msg::Answer(answered) => self.answered(answered),
            Msg::ReadReview { id, file, from } => self.questions.show_part(id, file, from),
            Msg::KeepAnswers { id, file, answers } => self.keep_answers(id, file, answers),
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
            // The prompt came just before the chat was closed.
            return;
        }
        if self.running.is_some() || self.model.is_looking_up() {
            self.queue.push(prompt);
            return self.show_state();
        }
        if std::mem::take(&mut self.resume_failed) {
            self.services.notice(NoticeLevel::Warn, NOT_RESUMED);
            return self.give_all_back(prompt);
        }
        let range = prompt.range.clone();
        self.prompt_files.clear();
        if self.take(prompt).await {
            self.range = range;
            self.find_plan();
            self.start_turn(Purpose::Answer).await;
        }
    }

    /// Records a prompt and shows it. If that fails, gives all prompts back to the person and returns false.
    async fn take(&mut self, prompt: Prompt) -> bool {
        let at = Some(crate::store::seconds_now());
        let item = Item::User {
            text: prompt.sent_text().to_owned(),
            context: self.redact_for_model(&prompt.context).await,
            at,
        };
        if !self.recorder.ready(&self.dirs, &prompt.text).await || !self.recorder.record(item).await
        {
            self.give_all_back(prompt);
            return false;
        }
        self.prompt_files
            .extend(prompt.untrusted_file().map(Path::to_owned));
        self.queue.count_taken();
        self.answering = false;
        // Lua gets the file's id before the text. If the backend dies between the two, the person can resume all that is
        // shown.
        self.show_state();
        self.show(ChatEvent::Prompt {
            text: prompt.sent_text().to_owned(),
            context: prompt.context,
            at,
        });
        true
    }

    /// Returns the context of a prompt without secrets, for the model.
    async fn redact_for_model(&self, context: &[Context]) -> Vec<Context> {
        let keys = self.model.known().map(|provider| provider.secrets());
        let (keys, workspace) = (keys.unwrap_or_default(), &self.dirs.workspace);
        let mut told = context.to_vec();
        for piece in &mut told {
            let redact =
                self.services
                    .redact_for_model(workspace, &piece.text, &keys, Instant::now());
            piece.text = match redact.await {
                Ok(redacted) => redacted.text,
                Err(withheld) => format!("[{withheld}]\n"),
            };
        }
        told
    }

    /// Records a notice in the chat, and shows it. It goes to no model.
    async fn show_notice(&mut self, text: String) {
        let item = Item::Notice { text: text.clone() };
        if self.recorder.record(item).await {
            let caller = Caller::Agent;
            self.show(ChatEvent::Notice { text, caller });
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
        self.commit.cancel();
        self.cancel_contexts();
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
}

#[cfg(test)]
mod tests;
