//! Starts an agent in a turn: its process, its login, and its session.

use std::sync::Arc;

use futures::future::FutureExt;

use super::Progress;
use super::content::block_text;
use super::login::{LoginWay, LoginWays};
use super::parts::LONGEST_ODD;
use super::past::Replay;
use crate::agent::{
    AgentProcess, AgentStart, ConnectedAgent, IdleAgent, MOST_MEMORY, OpenedAgent, SessionBegin,
    StartFault, TurnAsker,
};
use crate::chat::turn::{Halt, TurnEvent};
use crate::protocol::{Asker, ChatState, Question};
use crate::tool::context::Questioner;
use crate::tool::permissions::Reply;
use co_acp::Incoming;
use co_acp::schema::{AuthMethodId, SessionId, SessionUpdate};
use co_exec::{AGENT, Confinement};
use co_llm::transcript::Item;
use co_text::{one_line, start_of};

/// The end of a notice. It tells the person what to do after a login in a terminal, or after a start without a login.
const SEND_AGAIN: &str = "then send the prompt again";

impl Progress {
    /// Returns the process that serves the turn. Returns `None`, after a notice to the person, if the process cannot be started.
    pub(super) async fn process(
        &mut self,
        process: IdleAgent,
        has_past: bool,
    ) -> Result<Option<AgentProcess>, Halt> {
        let context = Arc::clone(&self.turn.context);
        let start = AgentStart {
            past: self.past.as_ref().map(|it| SessionId::new(it.id.as_str())),
            ..AgentStart::new(
                self.turn.spec.clone(),
                Arc::clone(&context.services),
                (&context.workspace, &context.cwd),
            )
        };
        if let IdleAgent::Starting(early) = &process {
            self.ask_by(early.asker());
            self.tell_start().await?;
        }
        let process = process.into_process(&context.cancel).await;
        if process.is_none() && context.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        if let Some(mut process) = process.filter(|it| it.serves(&start)) {
            if self.asker.is_none() {
                self.ask_by(&process.asker);
            }
            let unfit = self.open_secret(&process).await;
            let heard = self.hear_waiting(&mut process, unfit.is_none(), has_past);
            let heard = heard.await;
            if let (Ok(true), None) = (&heard, &unfit) {
                return Ok(Some(process));
            }
            process.asker.end();
            let words = process.last_words().await;
            match (heard?, unfit) {
                (true, Some(why)) => {
                    let name = &self.turn.spec.name;
                    let text = format!("{name} is started anew, because {why}");
                    self.turn.chat.note(&text).await?;
                }
                _ => self.tell_death(&words, "it starts anew").await?,
            }
        }
        self.begin(start, has_past).await
    }

    /// Handles the messages that the agent wrote while no turn ran. Begins the session if the process is new and fit to serve the
    /// turn. Returns false if the agent has ended.
    async fn hear_waiting(
        &mut self,
        process: &mut AgentProcess,
        is_fit: bool,
        has_past: bool,
    ) -> Result<bool, Halt> {
        if !process.is_new {
            self.memory_before = process.connection.memory_taken();
            return self.hear_late(process).await;
        }
        if !is_fit {
            return Ok(true);
        }
        // Before the session begins, because the session of a process that has ended is of no use.
        let mut waiting = std::mem::take(&mut process.waiting);
        while let Some(incoming) = process.connection.next().now_or_never() {
            if incoming == Incoming::Ended || self.is_flooded(process).await? {
                return Ok(false);
            }
            waiting.push(incoming);
        }
        self.begin_session(process, has_past).await?;
        for incoming in waiting {
            self.hear(process, incoming).await?;
        }
        self.send_wishes(process).await?;
        Ok(true)
    }

    /// Lets the agent ask the person about hosts in this turn.
    fn ask_by(&mut self, asker: &Arc<TurnAsker>) {
        asker.begin(&self.turn.context);
        self.asker = Some(Arc::clone(asker));
    }

    /// Returns the reason why an agent must not go on: it could read a secret file.
    async fn open_secret(&self, process: &AgentProcess) -> Option<String> {
        match process
            .open_secrets(&self.turn.context.services)
            .await
            .as_deref()
        {
            Ok([]) => None,
            Ok(open) => Some(format!(
                "it could read what is secret now: {}",
                self.turn.names(open)
            )),
            Err(why) => Some(format!("co cannot find out what it could read ({why})")),
        }
    }

    /// Starts the agent. Returns `None`, after a notice to the person, if the start fails.
    async fn begin(
        &mut self,
        mut start: AgentStart,
        has_past: bool,
    ) -> Result<Option<AgentProcess>, Halt> {
        let context = Arc::clone(&self.turn.context);
        self.memory_before = 0;
        let name = self.turn.spec.name.clone();
        self.tell_start().await?;
        if start.lacks_own_network() {
            if !self.ask_for_network().await? {
                return Ok(None);
            }
            start.whole_network = true;
        }
        self.ask_by(&start.asker);
        let opened = match self.start(start).await {
            Ok(agent) => self.open(agent).await?,
            Err(fault) => Err(fault),
        };
        match opened {
            Ok(Some(mut process)) => {
                let mut begun = self.begin_session(&mut process, has_past).await;
                if begun.is_ok() {
                    begun = self.send_wishes(&mut process).await;
                }
                if let Err(halt) = begun {
                    process.last_words().await;
                    return Err(halt);
                }
                Ok(Some(process))
            }
            Ok(None) => Ok(None),
            Err(_) if context.cancel.is_cancelled() => Err(Halt::Cancelled),
            Err(fault) => {
                self.turn
                    .note(&format!("{name} cannot work: {fault}"))
                    .await?;
                Ok(None)
            }
        }
    }

    async fn tell_start(&self) -> Result<(), Halt> {
        let words = format!("starts {}", self.turn.spec.name);
        self.turn.state(ChatState::Thinking, words).await
    }

    /// Records the session of a process that has started, and tells the person what the agent remembers of the chat.
    async fn begin_session(
        &mut self,
        process: &mut AgentProcess,
        has_past: bool,
    ) -> Result<(), Halt> {
        process.is_new = false;
        let name = self.turn.spec.name.clone();
        let mut replay = Replay::default();
        for (update, unread) in std::mem::take(&mut process.early) {
            let is_chosen = self.past.as_ref().is_some_and(|it| it.is_chosen);
            let update = match (&process.begin, update) {
                // The chat does not have it yet.
                (SessionBegin::Loaded, SessionUpdate::UserMessageChunk(chunk)) if is_chosen => {
                    let text = block_text(&chunk.content);
                    self.output
                        .say(&format!("was asked: {}", text.trim()))
                        .await?;
                    None
                }
                (SessionBegin::Loaded, update) if !is_chosen => replay.take(update),
                (_, update) => Some(update),
            };
            if let Some(update) = update {
                self.updated(process, update, unread).await?;
            }
        }
        let forgot = "does not know what this chat said before";
        let text = match &process.begin {
            SessionBegin::New => has_past.then(|| format!("{name} starts anew, and {forgot}")),
            SessionBegin::Lost(why) => Some(format!("{name} starts anew, and {forgot}: {why}")),
            SessionBegin::Resumed => Some(format!("{name} goes on with its session of this chat")),
            SessionBegin::Loaded => {
                let past = self.past.as_ref();
                let past = past.filter(|it| !it.is_chosen);
                Some(match past.and_then(|past| past.difference(&replay)) {
                    Some(difference) => {
                        format!("{name} goes on with its session, which {difference}")
                    }
                    None => format!("{name} goes on with its session of this chat"),
                })
            }
        };
        if let Some(text) = text {
            let text = self.turn.redacted(&text).await.0;
            self.turn.chat.note(&text).await?;
        }
        let is_chosen = self.past.as_ref().is_some_and(|it| it.is_chosen);
        if is_chosen || matches!(process.begin, SessionBegin::New | SessionBegin::Lost(_)) {
            let session = Item::AgentSession {
                agent: name,
                session: Some(process.session.to_string()),
            };
            self.turn.chat.record(session).await?;
        }
        Ok(())
    }

    /// Sends the person's choices to the agent, and tells the chat the state of the session.
    async fn send_wishes(&mut self, process: &mut AgentProcess) -> Result<(), Halt> {
        for wish in self.wishes.clone() {
            self.wish(process, &wish).await?;
        }
        self.tell_state(process).await
    }

    /// Starts the agent's process. If the turn is cancelled meanwhile, waits until the processes of the agent have ended.
    async fn start(&self, start: AgentStart) -> Result<ConnectedAgent, StartFault> {
        let (cancel, asker) = (self.turn.context.cancel.clone(), Arc::clone(&start.asker));
        let mut started = std::pin::pin!(start.start(&cancel));
        tokio::select! {
            started = &mut started => started,
            () = cancel.cancelled() => {
                // The start may wait for an answer about a host.
                asker.end();
                started.await
            }
        }
    }

    /// Opens the session of an agent, after a login if the agent needs one. Returns `None`, after a notice to the person, if no
    /// session can be opened.
    async fn open(
        &mut self,
        mut agent: ConnectedAgent,
    ) -> Result<Result<Option<AgentProcess>, StartFault>, Halt> {
        let cancel = self.turn.context.cancel.clone();
        let mut earlier = self.login.take();
        loop {
            let why = match agent.open(&cancel).await {
                Ok(OpenedAgent::Ready(process)) => return Ok(Ok(Some(*process))),
                Ok(OpenedAgent::NeedsLogin(it, why)) => {
                    agent = *it;
                    why
                }
                Err(fault) => return Ok(Err(fault)),
            };
            let logged_in = self.log_in(&mut agent, earlier.take(), &why).await;
            if !matches!(logged_in, Ok(true)) {
                agent.last_words().await;
                logged_in?;
                return Ok(Ok(None));
            }
        }
    }

    /// Logs in with the method of an earlier login, or with the method that the person chooses. Returns false, after a notice to
    /// the person, if the agent cannot open a session now.
    async fn log_in(
        &mut self,
        agent: &mut ConnectedAgent,
        earlier: Option<AuthMethodId>,
        why: &str,
    ) -> Result<bool, Halt> {
        let name = self.turn.spec.name.clone();
        let why = one_line(&self.turn.redacted(why).await.0);
        let ways = LoginWays::new(&self.turn.spec, agent.login_methods());
        let earlier = earlier.filter(|it| ways.offers(it));
        let way = match earlier {
            Some(method) => Some(LoginWay::Agent(method)),
            None if ways.is_empty() => {
                let text = match ways.not_offered() {
                    Some(words) => format!("{name} needs a login ({why}); {words}, {SEND_AGAIN}"),
                    None => format!(
                        "{name} needs a login ({why}): log in with its own program, {SEND_AGAIN}"
                    ),
                };
                self.turn.chat.note(&text).await?;
                return Ok(false);
            }
            None => self.choose_login(&ways, &why).await?,
        };
        match way {
            Some(LoginWay::Agent(method)) => self.authenticate(agent, method).await,
            Some(LoginWay::Terminal(command)) => {
                let level = self.turn.context.services.probe.level();
                let is_plain = level == Confinement::Plain.name();
                let place = match is_plain {
                    true => "in the terminal",
                    false => {
                        "in a terminal outside Neovim, because commands of :Co! are confined here"
                    }
                };
                let text = format!("log in {place} (`{command}`), {SEND_AGAIN}");
                self.turn.chat.note(&co_text::printable(&text)).await?;
                if is_plain {
                    self.turn
                        .chat
                        .send(TurnEvent::LoginCommand(command))
                        .await?;
                }
                Ok(false)
            }
            None => {
                let text = format!("{name} was not logged in, so it did not get the prompt");
                self.turn.chat.note(&text).await?;
                Ok(false)
            }
        }
    }

    /// Lets the person choose a way to log in.
    async fn choose_login(&self, ways: &LoginWays, why: &str) -> Result<Option<LoginWay>, Halt> {
        let context = &self.turn.context;
        let name = &self.turn.spec.name;
        let question = Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            command: format!("{name} needs a login"),
            choices: vec![ways.question(name, why)],
            ..Question::default()
        };
        self.turn.state(ChatState::Asking, "").await?;
        let reply = Questioner::ask(&self.turn.chat, question).await?;
        let reply = context.unless_cancelled(reply).await?;
        Ok(match reply {
            Ok(Reply::Chosen(answers)) => ways.chosen(&answers),
            _ => None,
        })
    }

    /// Lets the agent log in. The agent may ask the person to open an address. Returns false, after a notice to the person, if
    /// the login fails.
    async fn authenticate(
        &mut self,
        agent: &mut ConnectedAgent,
        method: AuthMethodId,
    ) -> Result<bool, Halt> {
        let name = self.turn.spec.name.clone();
        let state = format!("{name} logs in");
        self.turn.state(ChatState::Running, state.clone()).await?;
        let why = match agent.connection.authenticate(&method) {
            Err(error) => error.to_string(),
            Ok(sent) => loop {
                let cancel = &self.turn.context.cancel;
                tokio::select! {
                    incoming = agent.connection.next() => match incoming {
                        Incoming::Answer { number, answer } if number == sent => {
                            self.questions.withdraw_all().await?;
                            let Err(error) = answer else {
                                self.turn.chat.send(TurnEvent::AgentLogin(method)).await?;
                                return Ok(true);
                            };
                            break error.message;
                        }
                        Incoming::Ended => {
                            self.questions.withdraw_all().await?;
                            break "it ended".to_owned();
                        }
                        incoming => self.hear_login(agent, incoming).await?,
                    },
                    replied = self.questions.next() => {
                        self.questions.replied(&mut agent.connection, replied).await?;
                        self.turn.state(ChatState::Running, state.clone()).await?;
                    }
                    () = cancel.cancelled() => {
                        self.questions.withdraw_all().await?;
                        return Err(Halt::Cancelled);
                    }
                }
                if agent.connection.memory_taken() > MOST_MEMORY {
                    self.questions.withdraw_all().await?;
                    break "it sent more than co keeps".to_owned();
                }
            },
        };
        let why = one_line(&self.turn.redacted(&why).await.0);
        let text = format!("{name} was not logged in: {}", co_text::printable(&why));
        self.turn.chat.note(&text).await?;
        Ok(false)
    }

    /// Handles a message of an agent during its login. There is no session yet, so co asks only the elicitations of the agent. It
    /// cancels requests for permission and logs all other messages.
    async fn hear_login(
        &mut self,
        agent: &mut ConnectedAgent,
        incoming: Incoming,
    ) -> Result<(), Halt> {
        match incoming {
            Incoming::Elicitation { id, request } => {
                let (connection, output) = (&mut agent.connection, &mut self.output);
                let asked = (id, &*request);
                self.questions.elicit(connection, output, asked).await
            }
            Incoming::ElicitationCompleted(id) => {
                let (connection, output) = (&mut agent.connection, &mut self.output);
                self.questions.completed(connection, output, &id).await
            }
            Incoming::Withdrawn(id) => self.questions.withdrawn(&id).await,
            Incoming::Permission { id, .. } => {
                // If it does not read, its answer does not come, and the person cancels the turn.
                let _stuck = agent.connection.answer_permission(&id, None);
                Ok(())
            }
            other => {
                let other = format!("{other:?}");
                let message = start_of(&other, LONGEST_ODD);
                tracing::info!(message, "an agent spoke before its session");
                Ok(())
            }
        }
    }

    /// Asks the person whether the agent may use the whole network.
    async fn ask_for_network(&self) -> Result<bool, Halt> {
        let context = &self.turn.context;
        let name = &self.turn.spec.name;
        let question = Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            command: name.clone(),
            cwd: one_line(&context.cwd.display().to_string()),
            confinement: AGENT.to_owned(),
            reasons: vec![format!(
                "Here, {name} cannot have a network of its own. A yes gives it every host, and what listens on this machine."
            )],
            only_once: true,
            alone: Some("what is sent cannot be taken back".to_owned()),
            ..Question::default()
        };
        let reply = Questioner::ask(&self.turn.chat, question).await?;
        let reply = context.unless_cancelled(reply).await?;
        match reply {
            Ok(Reply::Once | Reply::Always(_)) => Ok(true),
            _ => {
                self.turn
                    .chat
                    .note(&format!("{name} was not started"))
                    .await?;
                Ok(false)
            }
        }
    }
}
