//! A chat with everything real but the model and the editor.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::buffers::BufferReply;
use crate::chat::events::FrontEnd;
use crate::chat::{ChatHandle, Msg, Prompt, WorkDirs};
use crate::config::{Config, GivenSettings};
use crate::editor::{Editor, Outbox};
use crate::protocol::{
    Answer, BufferText, ChatState, Choice, EditorAnswer, HunkAnswer, NoticeLevel, Question,
    QuestionAnswer, RunOptions, Scope, ToEditor,
};
use crate::services::{ServiceParts, ServicePaths, Services};
use crate::store::Store;
use crate::tool::ToolSet;
use crate::workspace::confinement::Isolation;
use crate::workspace::sandbox_probe::SandboxProbe;
use co_exec::Executor;
use co_exec::sandbox::{Launcher, SandboxSupport};
use co_exec::secrets::redact::Redactor;
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::Item;
use co_llm::{Fault, Provider};

pub(super) use super::checks::{assert_order, eventually, lives, told, valid};
pub(super) use super::parts::{asks_for, call, calls, done, says, text, tool, unread};

/// The longest time that a test waits for anything.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(super) struct Chat {
    pub(super) model: Arc<Scripted>,
    pub(super) services: Arc<Services>,
    /// The workspace.
    pub(super) work: PathBuf,
    pub(super) seen: Vec<ToEditor>,
    /// The editor's answer to a query.
    pub(super) editor_answer: EditorAnswer,
    /// The open buffers; none if the editor does not answer, as it waits for the end of a command of the person.
    pub(super) open: Option<Vec<BufferText>>,
    handle: Option<ChatHandle>,
    outbox: Outbox,
    /// The number of messages in `seen` that a test has waited for.
    read: usize,
    pub(super) root: TempDir,
    pub(super) app: CancellationToken,
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.app.cancel();
    }
}

impl Chat {
    /// A chat whose model gives these answers.
    pub(super) fn new(answers: impl IntoIterator<Item = Vec<Part>>) -> Self {
        Self::with(Scripted::new(answers), |_| {})
    }

    /// A chat where nothing is asked about.
    pub(super) fn trusting(answers: impl IntoIterator<Item = Vec<Part>>) -> Self {
        Self::with(Scripted::new(answers), |config| config.auto_confirm = true)
    }

    pub(super) fn with(model: Arc<Scripted>, set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        set(&mut config);
        let root = TempDir::with_prefix("co-chat-").unwrap();
        let real = root.path().canonicalize().unwrap();
        let dir = |name: &str| {
            let path = real.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (work, home, data, state, spill) = (
            dir("work"),
            dir("home"),
            dir("data"),
            dir("state"),
            dir("spill"),
        );
        std::fs::create_dir(work.join(".git")).unwrap();
        let (editor, outbox) = Editor::new();
        let own = vec![data.clone(), state.clone()];
        let none = SandboxSupport::none("these tests have no launcher");
        let launcher = Launcher::with_support("/nowhere".into(), home.clone(), own.clone(), none);
        let env = [("PATH", PATH.into()), ("HOME", home.clone().into())];
        let executor = Executor::new(co_exec::ExecutorSetup {
            env: env.map(|(name, value)| (name.into(), value)).to_vec(),
            ..co_exec::ExecutorSetup::new(config.exec_settings(spill))
        });
        let provider: Arc<dyn Provider> = model.clone();
        let services = Arc::new(Services::new(ServiceParts {
            editor,
            probe: SandboxProbe::ended(&config, Isolation::new(&config, launcher.report())),
            config,
            given: GivenSettings::default(),
            executor: executor.unwrap(),
            store: Store::new(data),
            redactor: Redactor::new(&[]),
            audit: Some(Audit::open(&state).unwrap()),
            places: ServicePaths {
                home,
                path: PATH.into(),
                own,
                config: real.join("config"),
                rules: real.join("rules"),
                trust: real.join("trust"),
                checkpoints: real.join("state/checkpoints"),
                trials: real.join("state/trials"),
                agents: real.join("data/agents"),
                servers: real.join("state/servers"),
                logins: real.join("state/logins"),
                editors: real.join("state/editors"),
                program: PathBuf::new(),
            },
            make_provider: Arc::new(move |_, choice| match choice.model.as_deref() {
                Some("unheard-of") => Err(Fault::NoProvider),
                _ => Ok(Arc::clone(&provider)),
            }),
        }));
        let mut chat = Self {
            model,
            services,
            work,
            seen: Vec::new(),
            editor_answer: EditorAnswer::default(),
            open: Some(Vec::new()),
            handle: None,
            outbox,
            read: 0,
            root,
            app: CancellationToken::new(),
        };
        chat.handle = Some(chat.spawn(1));
        chat
    }

    /// Returns the front end of a chat.
    pub(super) fn front_end(&self, id: u64) -> Arc<dyn FrontEnd> {
        let Services { editor, config, .. } = &*self.services;
        crate::front_end::make(editor.clone(), id, config.full_calls)
    }

    pub(super) fn spawn(&self, id: u64) -> ChatHandle {
        let services = Arc::clone(&self.services);
        ChatHandle::spawn(id, self.front_end(id), services, self.place(), &self.app)
    }

    /// Goes to another chat of the same person, and returns this one.
    pub(super) fn go_to(&mut self, other: ChatHandle) -> Option<ChatHandle> {
        self.handle.replace(other)
    }

    pub(super) fn place(&self) -> WorkDirs {
        WorkDirs {
            workspace: self.work.clone(),
            cwd: self.work.clone(),
        }
    }

    /// Ends the chat and begins another with the same files.
    pub(super) async fn again(&mut self) {
        self.close().await;
        self.handle = Some(self.spawn(2));
    }

    /// Resumes the chat in another one and returns its text.
    pub(super) async fn resumed(&mut self) -> String {
        let id = self.id();
        self.again().await;
        self.resume(&id).await
    }

    /// Resumes a chat and returns its text.
    pub(super) async fn resume(&mut self, id: &str) -> String {
        self.command("resume", id);
        self.until(|message| matches!(message, ToEditor::Replace { .. }).then_some(()))
            .await;
        self.screen()
    }

    /// Returns the tools of the chat.
    pub(super) fn tools(&self) -> &ToolSet {
        self.handle.as_ref().unwrap().tools()
    }

    pub(super) async fn close(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.close().await;
        }
    }

    /// Drops the chat without ending it, as a panic does.
    pub(super) fn leave(&mut self) {
        self.handle = None;
    }

    pub(super) fn send(&self, message: Msg) {
        assert!(self.handle.as_ref().unwrap().send(message));
    }

    pub(super) fn say(&self, text: &str) {
        self.send(Msg::Prompt(Prompt {
            text: text.to_owned(),
            ..Prompt::default()
        }));
    }

    /// Sends a `!` line.
    pub(super) fn run(&self, command: &str) {
        self.send(Msg::Run {
            command: command.to_owned(),
            options: RunOptions::default(),
        });
    }

    pub(super) fn command(&self, name: &str, args: &str) {
        self.send(Msg::Command {
            name: name.to_owned(),
            args: args.to_owned(),
        });
    }

    /// Says something and waits for the end of the turn; returns how it ended.
    pub(super) async fn turn(&mut self, text: &str) -> String {
        self.say(text);
        self.ended().await
    }

    /// Says something to which the model gives this answer; returns how the turn ended.
    pub(super) async fn turn_with(&mut self, text: &str, answer: Vec<Part>) -> String {
        self.model.push(answer);
        self.turn(text).await
    }

    /// Says something and waits for the first question about it.
    pub(super) async fn question(&mut self, text: &str) -> Question {
        self.say(text);
        self.asked().await
    }

    /// Carries out a slash command and returns the notice of its effect.
    pub(super) async fn command_says(&mut self, name: &str, args: &str) -> (NoticeLevel, String) {
        self.command(name, args);
        self.noticed().await
    }

    /// Carries out a slash command whose notice has this part.
    pub(super) async fn command_works(&mut self, name: &str, args: &str, part: &str) {
        let (level, said) = self.command_says(name, args).await;
        assert!(
            level == NoticeLevel::Info && said.contains(part),
            "/{name} {args}: {level:?} {said}"
        );
    }

    /// Carries out a slash command that fails with this part in its notice.
    pub(super) async fn command_fails(&mut self, name: &str, args: &str, part: &str) {
        let (level, said) = self.command_says(name, args).await;
        assert!(
            level == NoticeLevel::Error && said.contains(part),
            "/{name} {args}: {level:?} {said}"
        );
    }

    /// Carries out a slash command that starts a turn; returns how the turn ended.
    pub(super) async fn command_ends(&mut self, name: &str) -> String {
        self.command(name, "");
        self.ended().await
    }

    /// Carries out a slash command and returns the choices that it offers.
    pub(super) async fn command_offers(&mut self, name: &str) -> Vec<Choice> {
        self.command(name, "");
        self.until(pick!(ToEditor::Choose { choices, .. } => choices.clone()))
            .await
    }

    pub(super) fn answer(&self, id: u64, decision: Answer) {
        self.send(Msg::Answer(answered(id, decision)));
    }

    pub(super) fn always(&self, id: u64, scope: Scope) {
        self.send(Msg::Answer(QuestionAnswer {
            scope: Some(scope),
            ..answered(id, Answer::Always)
        }));
    }

    pub(super) fn deny(&self, id: u64, reason: &str) {
        self.send(Msg::Answer(QuestionAnswer {
            reason: Some(reason.to_owned()),
            ..answered(id, Answer::Deny)
        }));
    }

    pub(super) fn review(&self, id: u64, hunks: Vec<HunkAnswer>) {
        self.send(Msg::Answer(QuestionAnswer {
            hunks,
            ..answered(id, Answer::Reviewed)
        }));
    }

    pub(super) fn edit(&self, id: u64, command: impl AsRef<[u8]>) {
        self.send(Msg::Answer(QuestionAnswer {
            command: Some(command.as_ref().to_owned()),
            ..answered(id, Answer::Edited)
        }));
    }

    /// Takes one more frame of what the editor is told.
    pub(super) async fn frame(&mut self) {
        let seen = tokio::time::timeout(DEADLINE, async {
            loop {
                self.outbox.filled().await;
                let frame = self.outbox.take_frame();
                if !frame.is_empty() {
                    return frame;
                }
            }
        });
        let frame = seen.await;
        let frame = frame.unwrap_or_else(|_| panic!("nothing came after {:#?}", self.seen.last()));
        for message in &frame {
            let buffers = &self.services.buffers;
            match message {
                ToEditor::ReadBuffers { request, .. } => {
                    if let Some(open) = &self.open {
                        buffers.reply(*request, BufferReply::Read(open.clone()));
                    }
                }
                ToEditor::BeforeCommand { request, command } => {
                    let decided = matches!(self.disk().last(), Some(Item::Decision { .. }));
                    assert!(decided, "hooks run before the decision is on disk");
                    let refusal = (command.command.contains("refused")).then(|| "no rm".to_owned());
                    buffers.reply(*request, BufferReply::Hooked(refusal));
                }
                ToEditor::EditorQuery { request, .. } => {
                    buffers.reply(*request, BufferReply::Editor(self.editor_answer.clone()));
                }
                _ => {}
            }
        }
        self.seen.extend(frame);
    }

    /// Waits for the next message that `find` finds something in.
    pub(super) async fn until<T>(&mut self, mut find: impl FnMut(&ToEditor) -> Option<T>) -> T {
        loop {
            while let Some(message) = self.seen.get(self.read) {
                self.read += 1;
                if let Some(found) = find(message) {
                    return found;
                }
            }
            self.frame().await;
        }
    }

    pub(super) async fn ended(&mut self) -> String {
        let done = self.until(
            pick!(ToEditor::Event { name, data } if name == "CoTurnDone" => data["reason"].clone()),
        );
        done.await.as_str().unwrap().to_owned()
    }

    pub(super) async fn asked(&mut self) -> Question {
        self.until(pick!(ToEditor::Question(ask) => (**ask).clone()))
            .await
    }

    /// Answers the next question with a yes, and returns it.
    pub(super) async fn approve(&mut self) -> Question {
        let question = self.asked().await;
        self.answer(question.id, Answer::Once);
        question
    }

    /// Answers the next question with an always.
    pub(super) async fn allow_next(&mut self, scope: Scope) {
        let question = self.asked().await;
        self.always(question.id, scope);
    }

    /// Waits until a question is withdrawn.
    pub(super) async fn withdrawn(&mut self, question: u64) {
        let decision = self.until(
            pick!(ToEditor::Settled { id, decision } if *id == question => decision.clone()),
        );
        assert_eq!(decision.await, "withdrawn");
    }

    /// Returns true if the editor was told that a question is withdrawn.
    pub(super) fn was_withdrawn(&self, question: u64) -> bool {
        let settled = self.seen.iter();
        let mut of_it = settled
            .filter_map(pick!(ToEditor::Settled { id, decision } if *id == question => decision));
        of_it.any(|decision| decision == "withdrawn")
    }

    /// Waits for a prompt that comes back, and returns its text.
    pub(super) async fn unsent(&mut self) -> String {
        self.until(pick!(ToEditor::Unsent { text, .. } => text.clone()))
            .await
    }

    /// Waits until a text with this part is added to the chat.
    pub(super) async fn shown(&mut self, part: &str) {
        let has = |message: &ToEditor| match message {
            ToEditor::Append { text, .. } => text.contains(part),
            ToEditor::Call { line, .. } => line.text.contains(part),
            _ => false,
        };
        self.until(|message| has(message).then_some(())).await;
    }

    pub(super) async fn state(&mut self, wanted: ChatState) -> String {
        self.until(
            pick!(ToEditor::State { state, detail, .. } if *state == wanted => detail.clone()),
        )
        .await
    }

    pub(super) async fn noticed(&mut self) -> (NoticeLevel, String) {
        self.until(pick!(ToEditor::Notice { level, message, .. } => (*level, message.clone())))
            .await
    }

    /// Waits for a notice with this part, and returns its level.
    pub(super) async fn notice(&mut self, part: &str) -> NoticeLevel {
        self.until(
            pick!(ToEditor::Notice { level, message, .. } if message.contains(part) => *level),
        )
        .await
    }
}

pub(super) fn answered(id: u64, decision: Answer) -> QuestionAnswer {
    QuestionAnswer {
        id,
        decision,
        reason: None,
        scope: None,
        command: None,
        hunks: Vec::new(),
        chosen: Vec::new(),
    }
}
