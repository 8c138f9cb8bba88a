//! Commands that the person typed at the prompt with `!`, and commands of trials that the person runs for real with `/real`. When
//! a typed command ends, the transcript gets a notice for the person only. When a command of a trial ends, the model gets a note.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::cancellable;
use crate::chat::chat_context::ChatContext;
use crate::chat::events::ChatEvent;
use crate::chat::person::command::{CommandQuestioner, PersonCommand, StartedCommand};
use crate::chat::person::wants_terminal;
use crate::chat::record::Recorder;
use crate::error;
use crate::network::OpenAccess;
use crate::protocol::{Asker, RunOptions};
use crate::services::Services;
use crate::services::foreground::ForegroundGuard;
use crate::tool::command::request::CommandRequest;
use crate::tool::context::Questioner;
use crate::tool::event::{CallEnd, CallEvent};
use co_exec::{Caller, Confinement, Screen, Streams};
use co_llm::transcript::{Decision, Item, ShownPart};
use co_policy::Verdict;
use co_text::{code, short_command};

/// The longest time that a closing chat waits for its cancelled commands to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// The typed commands of a chat.
pub(in crate::chat) struct TypedCommands {
    running: usize,
    tell: mpsc::UnboundedSender<TypedEvent>,
    events: mpsc::UnboundedReceiver<TypedEvent>,
    /// Notices and notes that wait until the model's text pauses. Then they are recorded.
    unrecorded: Vec<Item>,
    /// Sends the questions about hosts to the person.
    questioner: Arc<dyn Questioner>,
    /// Cancels the commands that have started since the last cancel.
    cancel: Option<CancellationToken>,
}

/// A request to start a command.
pub(in crate::chat) struct TypedRequest {
    command: String,
    cwd: PathBuf,
    options: RunOptions,
    /// The id of the call that ran the command as a trial; none if the person typed the command.
    tried: Option<String>,
}

impl TypedRequest {
    /// Returns the request for a command that the person typed.
    pub(in crate::chat) fn typed(
        command: &str,
        options: RunOptions,
        context: &ChatContext,
    ) -> Self {
        Self {
            command: command.to_owned(),
            cwd: context.dirs.cwd.clone(),
            options,
            tried: None,
        }
    }

    /// Returns the request that runs the command of the last trial for real.
    ///
    /// # Errors
    /// A sentence with the reason why the command may not run.
    pub(in crate::chat) async fn tried(
        items: &[Item],
        context: &ChatContext,
    ) -> Result<Self, String> {
        let Some((at, call, request)) = last_tried(items) else {
            return Err("no command of this chat ran as a trial".to_owned());
        };
        let has_run = |item: &Item| matches!(item, Item::RanForReal { call: ran } if ran == call);
        if items[at..].iter().any(has_run) {
            return Err("the command of the last trial has already run for real".to_owned());
        }
        if request.mode.terminal {
            return Err("it ran in a terminal: run it with `:Co! ++pty`".to_owned());
        }
        let cwd = request.place(&context.dirs.workspace, &context.dirs.cwd);
        let cwd = cwd.map_err(|error| error::text_of(&error).plain())?;
        let judge = context.judge();
        let (program, place) = (request.program.clone(), cwd.clone());
        let judged = blocking(move || {
            let found = judge.assess(&program, &place, true);
            Ok::<_, String>(judge.verdict(&found, &[]))
        });
        match judged.await {
            Ok(Verdict::Deny { why, .. }) => {
                return Err(format!("not run: a deny rule refuses it: {why}"));
            }
            Ok(_) => {}
            Err(why) => return Err(format!("not run: {why}")),
        }
        let limit = request.limit(context.services.config.max_timeout());
        Ok(Self {
            command: request.text(),
            cwd,
            options: RunOptions {
                timeout: limit.map(|it| it.as_secs()),
                ..RunOptions::default()
            },
            tried: Some(call.to_owned()),
        })
    }
}

/// An event of a typed command.
pub(in crate::chat) enum TypedEvent {
    Started {
        block: u64,
        screen: Arc<Screen>,
        hint: Option<String>,
    },
    Ended {
        end: Box<CallEnd>,
        /// The number of the block with the command's output; none if the command did not start.
        output: Option<u64>,
        /// The items to record; none if the command could not start.
        items: Vec<Item>,
    },
}

impl TypedCommands {
    pub(in crate::chat) fn new(questioner: Arc<dyn Questioner>) -> Self {
        // The channel needs no bound: a person types these.
        let (tell, events) = mpsc::unbounded_channel();
        Self {
            running: 0,
            tell,
            events,
            unrecorded: Vec::new(),
            questioner,
            cancel: None,
        }
    }

    /// Returns true if at least one command runs.
    pub(in crate::chat) fn any_runs(&self) -> bool {
        self.running > 0
    }

    /// Waits for the next event. Pass it to [`Self::take`].
    pub(in crate::chat) async fn next_event(&mut self) -> TypedEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Never: this list itself holds a sender, so the channel stays open.
            None => std::future::pending().await,
        }
    }

    /// Cancels the running commands.
    pub(in crate::chat) fn cancel(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
    }

    /// Shows an event. The notice about the end of a command waits for [`Self::record`].
    pub(in crate::chat) async fn take(
        &mut self,
        event: TypedEvent,
        context: &ChatContext,
        recorder: &mut Recorder,
    ) {
        match event {
            TypedEvent::Started {
                block,
                screen,
                hint,
            } => {
                recorder.flush().await;
                if let Some(text) = hint {
                    let caller = Caller::Person;
                    context.show(ChatEvent::Notice { text, caller });
                }
                context.show(CallEvent::OutputStarted { block, screen }.into());
            }
            TypedEvent::Ended { end, output, items } => {
                if let Some(block) = output {
                    context.show(CallEvent::OutputEnded { block }.into());
                }
                context.show(CallEvent::Ended(*end).into());
                self.unrecorded.extend(items);
                self.running = self.running.saturating_sub(1);
            }
        }
    }

    /// Records the ends of commands. Call it only between two pieces of the model's text.
    pub(in crate::chat) async fn record(&mut self, recorder: &mut Recorder) {
        for item in std::mem::take(&mut self.unrecorded) {
            match item {
                Item::Note { text, .. } => recorder.note(text).await,
                item => {
                    recorder.record(item).await;
                }
            }
        }
    }

    /// Waits for the ends of the commands, and records them. Cancel the commands first.
    pub(in crate::chat) async fn end(&mut self, context: &ChatContext, recorder: &mut Recorder) {
        let all = async {
            while self.any_runs() {
                let event = self.next_event().await;
                self.take(event, context, recorder).await;
            }
        };
        if tokio::time::timeout(CANCEL_TIMEOUT, all).await.is_err() {
            tracing::warn!("the typed commands of a chat that ended are still there");
        }
        self.record(recorder).await;
    }

    /// Starts a command. Its output appears in the chat.
    pub(in crate::chat) async fn start(
        &mut self,
        request: TypedRequest,
        context: &ChatContext,
        recorder: &mut Recorder,
    ) {
        let TypedRequest {
            command,
            cwd,
            options,
            tried,
        } = request;
        recorder.flush().await;
        let block = context.services.id();
        context.show(ChatEvent::TypedCommand {
            block,
            command: co_text::printable(&command),
        });
        // `<C-c>` cancels all typed commands by this token.
        let all = (self.cancel).get_or_insert_with(|| context.cancel.child_token());
        let listed = context.services.foreground.add(context.id, block, &command);
        self.running += 1;
        let typed = TypedCommand {
            services: Arc::clone(&context.services),
            workspace: context.dirs.workspace.clone(),
            cwd,
            block,
            command,
            tried,
            cancel: all.child_token(),
            tell: self.tell.clone(),
            questions: CommandQuestioner {
                asker: Asker::Chat(context.id),
                questioner: Arc::clone(&self.questioner),
            },
        };
        tokio::spawn(typed.run(options, listed));
    }
}

/// A typed command of a chat.
struct TypedCommand {
    services: Arc<Services>,
    workspace: PathBuf,
    cwd: PathBuf,
    /// The number of the block with the command's output.
    block: u64,
    command: String,
    /// The id of the call that ran the command as a trial. If it is set, the model gets a note about the end of the command.
    tried: Option<String>,
    cancel: CancellationToken,
    tell: mpsc::UnboundedSender<TypedEvent>,
    questions: CommandQuestioner,
}

impl TypedCommand {
    /// Runs the command until it ends or is cancelled. `listed` keeps the command in the chat's list of commands.
    async fn run(self, options: RunOptions, listed: ForegroundGuard) {
        let done = self.carry_out(options).await;
        drop(listed);
        let items = match &done {
            Ok((_, end)) => self.items(&end.shown.status),
            Err(_) => Vec::new(),
        };
        let (output, end) = done.unwrap_or_else(|why| {
            let not_run = self.ended(false, format!("not run: {why}"));
            (None, not_run)
        });
        self.tell(TypedEvent::Ended {
            end: Box::new(end),
            output,
            items,
        });
    }

    /// Returns the items that record the end of the command.
    fn items(&self, status: &str) -> Vec<Item> {
        let name = code(&co_text::printable(&short_command(&self.command)));
        let Some(call) = &self.tried else {
            let text = format!("{name} ended: {status}");
            return vec![Item::Notice { text }];
        };
        let text =
            format!("The person ran the command of a trial for real: {name}. It ended: {status}");
        let (call, once) = (call.clone(), false);
        vec![Item::RanForReal { call }, Item::Note { text, once }]
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

    /// Runs the command. Returns its end, and the number of the block with its output. The number is `None` if the command was
    /// cancelled before it started.
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
            streams: Streams::Whole,
            options,
            confinement: Confinement::Plain,
            grants: None,
        };
        let workspace = || self.workspace.clone();
        let questions = self.questions.clone();
        typed
            .start_confined(&self.services, workspace, questions)
            .await
    }

    fn tell(&self, event: TypedEvent) {
        // It fails if the chat has ended.
        let _ = self.tell.send(event);
    }
}

/// Returns the last command that ran as a trial. The first value is the index of the item with the decision to try the command,
/// the second value is the id of its call.
fn last_tried(items: &[Item]) -> Option<(usize, &str, CommandRequest)> {
    let (at, id) = (items.iter().enumerate().rev()).find_map(|(at, item)| match item {
        Item::Decision { call, decision } if *decision == Decision::Tried => Some((at, call)),
        _ => None,
    })?;
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
    let request = match edited {
        Some(command) => request.edited(command),
        None => request,
    };
    Some((at, id, request))
}
