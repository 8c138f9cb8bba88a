//! Agents in terminals of Neovim: programs of the person, such as `claude`, that call co's tools by `co-nvim mcp`. They belong to
//! no chat, so this module does the work of a chat for them. co asks the person once whether an agent may use the tools in a
//! workspace.
//!
//! Such a program can control Neovim through the same socket anyway. The question informs the person, and stops only well-behaved
//! programs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::message::WorkDirs;
use super::questions::OpenQuestions;
use super::scout::Scouts;
use super::turn::{MAX_WAITING_EVENTS, Snapshot, ToChat, Turn, TurnEvent};
use crate::agent::tools::refused_before;
use crate::blocking::blocking;
use crate::config::ModelChoice;
use crate::editor::Editor;
use crate::protocol::{AgentCall, Asker, Question, QuestionAnswer, ToEditor};
use crate::services::Services;
use crate::tool::call::{CANCELLED, EFFECT_UNKNOWN};
use crate::tool::context::{CallContext, TurnKind};
use crate::tool::job_list::JobListRequest;
use crate::tool::permissions::{Reply, TurnMemory};
use crate::tool::{OF_TERMINALS, ToolSet};
use crate::workspace::edits::SeenTexts;
use crate::workspace::judge::workspace_of;
use co_llm::transcript::{Call, Item};
use co_mcp::ToolReply;
use co_text::one_line;

/// The id that the audit file and the records of changes use for these agents in place of a transcript's id.
const TRANSCRIPT: &str = "agents-in-terminals";

/// The largest number of calls that are open at the same time.
const MOST_CALLS: usize = 64;

const UNNAMED: &str = "an agent";
const NO_JOBS: &str = "Not run: there are no jobs here.";
const TOO_MANY: &str = "Not run: too many calls are open. Call again when one has its result.";
const REFUSED: &str = "Not run: the person does not let you use the tools of co here. Go on without them, and do not call them again.";
const UNANSWERED: &str =
    "Not run: the person was asked whether you may use the tools of co, and did not answer.";

/// All agents in terminals, and their open calls.
pub struct TerminalAgents {
    known: KnownAgents,
    questions: SharedQuestions,
    calls: HashMap<u64, CancellationToken>,
    cancel: CancellationToken,
}

/// The person's answer about each agent that has made a call, by the name of the agent and its workspace.
type KnownAgents = Arc<Mutex<HashMap<(String, PathBuf), Arc<tokio::sync::Mutex<PersonAnswer>>>>>;

type SharedQuestions = Arc<Mutex<OpenQuestions>>;

/// The answer to the question whether an agent may use the tools in a workspace. A call holds the lock of this answer, so the
/// calls of one agent run one by one.
#[derive(Default)]
enum PersonAnswer {
    #[default]
    None,
    Yes,
    /// The person refused the connection with this id. For the next connection, co asks again.
    No(u64),
}

impl TerminalAgents {
    /// Returns an empty list of agents. Cancelling `cancel` ends all their calls.
    pub fn new(editor: Editor, cancel: CancellationToken) -> Self {
        Self {
            known: Arc::default(),
            questions: Arc::new(Mutex::new(OpenQuestions::new(editor))),
            calls: HashMap::new(),
            cancel,
        }
    }

    /// Carries out a call in a separate task.
    pub fn call(&mut self, services: Arc<Services>, asked: AgentCall) {
        self.calls.retain(|_, it| !it.is_cancelled());
        let (editor, request) = (services.editor.clone(), asked.request);
        let answer = move |reply: ToolReply| {
            editor.tell(ToEditor::AgentCallDone {
                request,
                text: reply.text,
                failed: reply.is_error,
            });
        };
        if self.calls.len() >= MOST_CALLS {
            return answer(ToolReply::failed(TOO_MANY));
        }
        let cancel = self.cancel.child_token();
        self.calls.insert(request, cancel.clone());
        let work = OneCall {
            questions: Arc::clone(&self.questions),
            services,
            agent: match one_line(asked.agent.trim()) {
                name if name.is_empty() => UNNAMED.to_owned(),
                name => name,
            },
            asked,
            cancel: cancel.clone(),
        };
        let known = Arc::clone(&self.known);
        tokio::spawn(async move {
            answer(work.run(known).await);
            cancel.cancel();
        });
    }

    /// Cancels a call.
    pub fn cancel_call(&mut self, request: u64) {
        if let Some(call) = self.calls.remove(&request) {
            call.cancel();
        }
    }

    /// Handles the person's answer. Does nothing if the answer belongs to a question of another module.
    pub fn answer(&self, answered: QuestionAnswer) {
        self.questions.lock().answer(answered.id, answered.into());
    }

    /// Sends the next part of a text under review, if the question about it belongs to a call of these agents.
    pub fn show_part(&self, id: u64, file: usize, from: usize) {
        self.questions.lock().show_part(id, file, from);
    }
}

/// A running call of an agent in a terminal.
struct OneCall {
    questions: SharedQuestions,
    services: Arc<Services>,
    /// The name of the agent, made printable.
    agent: String,
    asked: AgentCall,
    cancel: CancellationToken,
}

impl OneCall {
    async fn run(self, known: KnownAgents) -> ToolReply {
        let Ok(Value::Object(arguments)) = serde_json::from_str(&self.asked.arguments) else {
            return ToolReply::failed("Not run: the arguments are no object.");
        };
        let is_known = OF_TERMINALS.contains(&self.asked.tool.as_str());
        if let Some(why) = refused_before(is_known, &arguments) {
            return ToolReply::failed(why);
        }
        let cwd = PathBuf::from(OsString::from_vec(self.asked.cwd.clone()));
        let found = blocking(move || work_dirs(&cwd)).await;
        let dirs = match found {
            Ok(dirs) => dirs,
            Err(why) => return ToolReply::failed(why),
        };
        let agent = {
            let key = (self.agent.clone(), dirs.workspace.clone());
            Arc::clone(known.lock().entry(key).or_default())
        };
        let allowed = async {
            let mut answer = agent.lock().await;
            let allowed = self.ask(&mut answer, &dirs.workspace).await;
            allowed.map(|()| answer)
        };
        let _one_by_one = match self.cancel.run_until_cancelled(allowed).await {
            Some(Ok(answer)) => answer,
            Some(Err(why)) => return ToolReply::failed(why),
            None => return ToolReply::failed(CANCELLED),
        };
        let id = format!("agent-{}", self.services.id());
        let call = Call::new(id, self.asked.tool.clone(), Value::Object(arguments));
        self.carry_out(call, dirs).await
    }

    /// Asks the person whether the agent may use the tools, unless the person has already answered.
    async fn ask(&self, answer: &mut PersonAnswer, workspace: &Path) -> Result<(), String> {
        match answer {
            PersonAnswer::Yes => return Ok(()),
            PersonAnswer::No(client) if *client == self.asked.client => {
                return Err(REFUSED.to_owned());
            }
            PersonAnswer::No(_) | PersonAnswer::None => {}
        }
        let question = Question {
            id: self.services.id(),
            asker: Asker::Agent(self.agent.clone()),
            command: format!("{} uses the tools of co", self.agent),
            cwd: one_line(&workspace.display().to_string()),
            ..Question::default()
        };
        let open = AskedQuestions::new(&self.questions);
        match open.put(question).await {
            Ok(Reply::Once | Reply::Always(_)) => {
                *answer = PersonAnswer::Yes;
                Ok(())
            }
            Ok(Reply::Deny(reason)) => {
                *answer = PersonAnswer::No(self.asked.client);
                let reason = reason.map(|it| format!(" They say: {it}"));
                Err(format!("{REFUSED}{}", reason.unwrap_or_default()))
            }
            _ => Err(UNANSWERED.to_owned()),
        }
    }

    /// Carries out the call in the same way as a call of a model.
    async fn carry_out(&self, call: Call, dirs: WorkDirs) -> ToolReply {
        let (events, mut inbox) = mpsc::channel(MAX_WAITING_EVENTS);
        let (_settings, new_services) = watch::channel(Arc::clone(&self.services));
        let chat = ToChat {
            events,
            new_services,
        };
        let services = Arc::clone(&self.services);
        let no_model = ModelChoice {
            agent: Some(self.agent.clone()),
            ..ModelChoice::default()
        };
        let provider = match services.provider(&no_model) {
            Ok(provider) => provider,
            Err(fault) => return ToolReply::failed(fault.to_string()),
        };
        let context = CallContext {
            chat: 0,
            transcript_id: TRANSCRIPT.to_owned(),
            turn: 0,
            provider,
            judge: services.judge(&dirs.workspace),
            services,
            workspace: dirs.workspace,
            cwd: dirs.cwd,
            seen_texts: SeenTexts::default(),
            kind: TurnKind::Work,
            one_checkpoint: true,
            range: None,
            to_chat: Arc::new(chat.clone()),
            scouts: Arc::new(Scouts::new(chat.clone(), Vec::new(), 0)),
            for_jobs: Arc::new(chat.clone()),
            cancel: self.cancel.child_token(),
        };
        let tools = ToolSet::of_agents(&OF_TERMINALS);
        tools.deny_by(Arc::clone(&context.judge)).await;
        let mut turn = Turn::of_call(context, chat, tools, TurnMemory::default());
        tokio::spawn(async move { turn.carry_out(call).await });
        let open = AskedQuestions::new(&self.questions);
        let mut result = None;
        while let Some(event) = inbox.recv().await {
            self.event(event, &open, &mut result).await;
        }
        result.unwrap_or_else(|| ToolReply::failed(EFFECT_UNKNOWN))
    }

    /// Handles an event of the turn that carries out the call. It stands in for a chat: it keeps the outcome in `result` and puts
    /// questions to the person. It has no transcript, no jobs and no saved permissions.
    async fn event(
        &self,
        event: TurnEvent,
        open: &AskedQuestions<'_>,
        result: &mut Option<ToolReply>,
    ) {
        match event {
            TurnEvent::Record(item, done) => {
                if let Item::Outcome(outcome) = item {
                    *result = Some(ToolReply {
                        text: outcome.text,
                        is_error: !outcome.ok,
                    });
                }
                // It fails if the call was cancelled meanwhile.
                done.send(Ok(())).ok();
            }
            TurnEvent::Question(question, reply) => {
                let asked = Question {
                    asker: Asker::Agent(self.agent.clone()),
                    // Nothing proves the name of the agent, so a yes holds for no later call.
                    only_once: true,
                    ..*question
                };
                open.put_to(asked, reply);
            }
            TurnEvent::Withdraw(id) => self.questions.lock().withdraw(id),
            TurnEvent::Snapshot(reply) => {
                let snapshot = Snapshot {
                    items: Vec::new(),
                    failed_confined: Vec::new(),
                };
                reply.send(snapshot).ok();
            }
            TurnEvent::Job(JobListRequest::NewNumber(reply)) => {
                reply.send(Err(NO_JOBS.to_owned())).ok();
            }
            TurnEvent::AllowedHosts(reply) => drop(reply.send(Vec::new())),
            // No permission holds for a later call.
            TurnEvent::Allow(_) => {}
            // The agent shows its calls itself.
            TurnEvent::Text(_) | TurnEvent::Show(_) | TurnEvent::State(..) => {}
            // No turn of a model or an agent runs here, and no job: nothing else is sent by one call.
            TurnEvent::Job(_)
            | TurnEvent::TakeSteering
            | TurnEvent::Steer(_)
            | TurnEvent::Usage(_)
            | TurnEvent::WindowUsed(_)
            | TurnEvent::AgentState(_)
            | TurnEvent::AgentLogin(_)
            | TurnEvent::LoginCommand(_)
            | TurnEvent::Title(_)
            | TurnEvent::PlanRemoved => {}
        }
    }
}

/// The questions of a call. They are withdrawn when this value is dropped.
struct AskedQuestions<'a> {
    all: &'a SharedQuestions,
    ids: Mutex<Vec<u64>>,
}

impl<'a> AskedQuestions<'a> {
    fn new(all: &'a SharedQuestions) -> Self {
        Self {
            all,
            ids: Mutex::default(),
        }
    }

    /// Asks the person a question, and waits for the answer. Fails if the question is withdrawn.
    async fn put(&self, question: Question) -> Result<Reply, oneshot::error::RecvError> {
        let (reply, answer) = oneshot::channel();
        self.put_to(question, reply);
        answer.await
    }

    fn put_to(&self, question: Question, reply: oneshot::Sender<Reply>) {
        self.ids.lock().push(question.id);
        self.all.lock().put(question, reply);
    }
}

impl Drop for AskedQuestions<'_> {
    fn drop(&mut self) {
        for id in self.ids.lock().drain(..) {
            self.all.lock().withdraw(id);
        }
    }
}

/// Returns the directories of an agent.
///
/// # Errors
/// A sentence that says that the directory does not exist.
fn work_dirs(cwd: &Path) -> Result<WorkDirs, String> {
    let cwd = cwd.canonicalize().map_err(|error| {
        let cwd = cwd.display();
        format!("Not run: your directory {cwd} cannot be entered ({error}).")
    })?;
    Ok(WorkDirs {
        workspace: workspace_of(&cwd),
        cwd,
    })
}
