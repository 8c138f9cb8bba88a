//! The running turn of a chat. The chat starts the turn, carries out its requests, and ends it.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Chat;
use super::agent_turn::{AgentTurn, MAX_WISHES, PastSession, since_last_turn};
use super::events::ChatEvent;
use super::message::Prompt;
use super::person::agent::log_in_by;
use super::person::plan;
use super::retell;
use super::scout::Scouts;
use super::servers;
use super::turn::{
    self, CallQueue, MAX_WAITING_EVENTS, Snapshot, ToChat, Turn, TurnEnd, TurnEvent, TurnGoal,
};
use crate::agent::AgentSpec;
use crate::protocol::{ChatState, NoticeLevel};
use crate::tool::call::CUT_OFF;
use crate::tool::context::{CallContext, TurnKind};
use crate::tool::event::CallEvent;
use crate::tool::permissions::TurnMemory;
use crate::workspace::edits::EditRange;
use co_llm::transcript::{self, Decision, End, Item, Outcome, ShownPart, Usage};

/// The result of a call whose question was open when the backend had to end: with Neovim, or for `/restart!`.
const CLOSED: &str = "not answered: co was closed";

/// The result of a call that ran, if its outcome could not be written or its turn failed.
const EFFECT_UNKNOWN: &str =
    "cut off: the turn ended before this call did; whether it took effect is not known";

/// The result of a call whose trial ended with the turn, before the person could keep its changes.
const TRIAL_CUT_OFF: &str =
    "cut off: the turn ended during the trial of this call; what it changed is dropped";

const PROMPTS_WAIT: &str = "queued prompts wait: /steer sends the first, /stop drops them";

/// The notice of `/explore` if an agent works in the chat.
const NO_SCOUT_OF_AGENT: &str = "an agent works in this chat, and co has no model here for a scout: send /explore in another chat";

/// A turn that runs in a task of its own, and the events that the chat receives from it.
pub(super) struct RunningTurn {
    events: mpsc::Receiver<TurnEvent>,
    pub(super) cancel: CancellationToken,
    task: JoinHandle<TurnEnd>,
    /// The number of calls in the transcript that the chat has shown, including those of earlier turns. A turn shows its calls in
    /// the order of the transcript.
    calls_shown: usize,
}

impl Chat {
    pub(super) async fn start_turn(&mut self, goal: TurnGoal) {
        self.queue.release();
        let items = self.recorder.items();
        let goal = match transcript::to_explore(items).filter(|_| goal == TurnGoal::Answer) {
            Some((task, attached)) => TurnGoal::Explore {
                task: task.to_owned(),
                attached: attached.to_vec(),
            },
            None => goal,
        };
        let context = &self.context;
        let services = &context.services;
        self.model
            .record_choice(&services.config, &mut self.recorder)
            .await;
        self.undo.cancel(&mut self.questions);
        self.status.turn_usage = Usage::default();
        self.texts
            .renew(context, &self.tools, &mut self.recorder)
            .await;
        if let Some(notice) = servers::find_of_workspace(context, &self.servers).await {
            self.recorder.notice(notice).await;
        }
        context.show(ChatEvent::TurnStarted);
        let provider = match self.model.provider(services) {
            Ok(provider) => provider,
            Err(fault) => return self.end_turn(TurnEnd::failed(Some(fault))).await,
        };
        let judge = context.judge();
        self.tools.deny_by(Arc::clone(&judge)).await;
        services.prepare_checkpoints(context.id, Arc::clone(&judge));
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let cancel = context.cancel.child_token();
        let chat = ToChat {
            events,
            new_services: self.new_services.subscribe(),
        };
        let of_calls = CallContext {
            chat: context.id,
            transcript_id: self.recorder.id().unwrap_or_default(),
            turn: self.recorder.turns_ended(),
            services: Arc::clone(services),
            provider,
            judge,
            workspace: context.dirs.workspace.clone(),
            cwd: context.dirs.cwd.clone(),
            seen_texts: self.seen_texts.clone(),
            kind: match transcript::is_planning(self.recorder.items()) {
                true => TurnKind::Plan,
                false => TurnKind::Work,
            },
            one_checkpoint: self.model.agent().is_some(),
            range: self.range.as_ref().map(EditRange::new),
            to_chat: Arc::new(chat.clone()),
            scouts: Arc::new(Scouts::new(
                chat.clone(),
                self.texts.instructions(),
                services.config.max_scouts,
            )),
            for_jobs: Arc::clone(&self.for_commands),
            cancel: cancel.clone(),
        };
        if let Some(spec) = self.model.agent_spec(services) {
            let started = match goal {
                TurnGoal::Explore { .. } => Err(NO_SCOUT_OF_AGENT.to_owned()),
                TurnGoal::Answer | TurnGoal::Compact => self.agent_turn(spec, of_calls, chat),
            };
            return match started {
                Ok(turn) => self.run_turn(receiver, cancel, turn.run()),
                Err(why) => {
                    self.context.services.notice(NoticeLevel::Error, why);
                    self.end_turn(TurnEnd::failed(None)).await;
                }
            };
        }
        let turn = Turn {
            context: Arc::new(of_calls),
            chat,
            tools: self.tools.clone(),
            servers: Some(self.servers.clone()),
            memory: TurnMemory {
                permissions: self.permissions.clone(),
                ..TurnMemory::default()
            },
            history: Arc::clone(&self.model.history),
            instructions: self.texts.of_system_prompt(),
            goal,
            images: unanswered_images(self.recorder.items()),
            limits: turn::LoopLimits::new(services.config.max_steps),
            window_limit: None,
            repeats_calls: false,
            queue: CallQueue::default(),
            unanswered: Vec::new(),
        };
        self.run_turn(receiver, cancel, turn.run());
    }

    /// Returns a turn in which the chat's agent works.
    ///
    /// # Errors
    /// The reason why the agent cannot work on the prompt.
    fn agent_turn(
        &mut self,
        spec: Result<AgentSpec, String>,
        context: CallContext,
        chat: ToChat,
    ) -> Result<AgentTurn, String> {
        let spec = spec?;
        self.context
            .services
            .config
            .check()
            .map_err(|fault| fault.to_string())?;
        let (wishes, new_wishes) = mpsc::channel(MAX_WISHES);
        self.agent.new_wishes = Some(wishes);
        let items = self.recorder.items();
        Ok(AgentTurn {
            context: Arc::new(context),
            chat,
            tools: self.tools.clone(),
            past: PastSession::find(items, &spec.name, self.agent.session.as_deref()),
            spec,
            process: std::mem::take(&mut self.agent.process),
            wishes: self.agent.wishes.clone(),
            login: self.agent.login.clone(),
            memory: TurnMemory {
                permissions: self.permissions.clone(),
                ..TurnMemory::default()
            },
            new_wishes,
            prompt: since_last_turn(items),
            has_past: items.iter().any(|item| matches!(item, Item::End { .. })),
        })
    }

    /// Starts a task that runs the turn.
    fn run_turn(
        &mut self,
        events: mpsc::Receiver<TurnEvent>,
        cancel: CancellationToken,
        turn: impl Future<Output = TurnEnd> + Send + 'static,
    ) {
        self.running = Some(RunningTurn {
            events,
            cancel,
            task: tokio::spawn(turn),
            calls_shown: retell::count_calls(self.recorder.items()),
        });
        let data = serde_json::json!({ "chat": self.context.id });
        self.context.services.editor.fire("CoTurnStarted", data);
        self.set_state(ChatState::Thinking, String::new());
    }

    pub(super) async fn event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Record(item, done) => {
                let is_call = matches!(item, Item::Call(_));
                let written = self.recorder.record_of_turn(item).await;
                if is_call {
                    self.status.find_plan(self.recorder.items());
                }
                // It fails if the turn was cancelled meanwhile.
                done.send(if written { Ok(()) } else { Err(()) }).ok();
            }
            TurnEvent::Snapshot(reply) => {
                self.recorder.flush().await;
                self.tell_job_ends().await;
                self.typed.record(&mut self.recorder).await;
                let snapshot = Snapshot {
                    items: self.recorder.items().to_vec(),
                    failed_confined: self.permissions.failed_confined.clone(),
                };
                reply.send(snapshot).ok();
            }
            TurnEvent::TakeSteering => self.take_steering().await,
            TurnEvent::Steer(text) => {
                let steer = true;
                self.queue.push(Prompt {
                    text,
                    steer,
                    ..Prompt::default()
                });
                self.steer_agent();
                self.show_state();
            }
            TurnEvent::Text(text) => self.recorder.text(&text),
            TurnEvent::Show(event) => {
                self.recorder.flush().await;
                if let Some(running) = &mut self.running {
                    let begins = matches!(event, ChatEvent::Call(CallEvent::Begun(_)));
                    running.calls_shown += usize::from(begins);
                }
                self.context.show(event);
            }
            TurnEvent::State(state, detail) => self.set_state(state, detail),
            TurnEvent::Question(question, reply) if !question.hosts.is_empty() => {
                self.questions
                    .put_about_hosts(*question, reply, false, &self.permissions);
            }
            TurnEvent::Question(mut question, reply) => {
                let runs_again = question.tried.as_ref().is_some_and(|it| it.runs_again);
                if question.change.is_none() || runs_again {
                    let judge = self.context.judge();
                    question.no_undo = self.context.services.checkpoints.missing(judge.root());
                }
                self.questions.put(*question, reply);
            }
            TurnEvent::Withdraw(id) => self.questions.withdraw(id),
            TurnEvent::Allow(allowance) => self.allow(allowance).await,
            // It fails if the turn was cancelled meanwhile.
            TurnEvent::AllowedHosts(reply) => drop(reply.send(self.permissions.hosts.clone())),
            TurnEvent::Job(request) => self.jobs.carry_out(request, &mut self.recorder).await,
            TurnEvent::Usage(usage) => {
                self.status.usage += usage;
                self.status.turn_usage += usage;
                self.show_state();
            }
            TurnEvent::WindowUsed(percent) => self.status.window_used = Some(percent),
            TurnEvent::AgentState(state) => {
                let name = self.model.agent();
                if self.agent.take_state(&self.context, name, *state) {
                    self.show_state();
                }
            }
            TurnEvent::AgentLogin(method) => self.agent.login = Some(method),
            TurnEvent::LoginCommand(command) => {
                log_in_by(&self.context, &self.recorder, command);
            }
            TurnEvent::Title(title) => {
                match self.agent.take_title(&mut self.recorder, title).await {
                    Ok(false) => {}
                    Ok(true) => self.show_state(),
                    Err(why) => self.context.complain(why),
                }
            }
            TurnEvent::PlanRemoved => {
                self.status.drop_plan(self.recorder.items());
                self.show_state();
            }
        }
    }

    /// Records and shows the prompts that go with the next request. Call it only when each call has its result.
    async fn take_steering(&mut self) {
        self.recorder.flush().await;
        while let Some(prompt) = self.queue.next_steering() {
            if !self.take(prompt).await {
                return;
            }
        }
    }

    /// Cancels the turn of the chat's agent if a prompt should steer it. An agent accepts no prompt while it works, so this
    /// prompt starts the next turn.
    pub(super) fn steer_agent(&self) {
        if let Some(running) = &self.running
            && self.model.agent().is_some()
            && self.queue.steering() > 0
        {
            running.cancel.cancel();
        }
    }

    pub(super) async fn ended(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        self.recorder.flush().await;
        let cancelled = running.cancel.is_cancelled();
        let mut ended = running.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a turn ended badly");
            let mut ended = TurnEnd::failed(None);
            if cancelled {
                ended.end = End::Cancelled;
            }
            ended
        });
        self.agent.process = ended.agent.take().into();
        self.agent.new_wishes = None;
        self.permissions
            .learn(std::mem::take(&mut ended.failed_confined));
        // The turn did not ask about a commit, nor about the changes of an agent that the person takes back meanwhile.
        self.questions
            .withdraw_of_turn(&[self.commit.question, self.undo.question()]);
        self.answer_calls(&ended.unanswered).await;
        for event in retell::calls_after(self.recorder.items(), running.calls_shown, &self.tools) {
            self.context.show(event);
        }
        self.tell_job_ends().await;
        self.typed.record(&mut self.recorder).await;
        // Nobody cancelled it.
        if ended.end == End::Cancelled && self.app.is_cancelled() && !self.cancel_pressed {
            ended.end = End::Interrupted;
        }
        if ended.end == End::Done {
            plan::keep_answer(&self.context, &mut self.recorder).await;
        }
        self.end_turn(ended).await;
        self.context.services.checkpoints.tell_changed();
    }

    /// Records an outcome for each call that has none, because providers reject a request that contains such a call.
    pub(super) async fn answer_calls(&mut self, unanswered: &[String]) {
        let items = self.recorder.items();
        let decision = |id: &str| {
            items.iter().rev().find_map(|item| match item {
                Item::Decision { call, decision } if call == id => Some(decision),
                _ => None,
            })
        };
        let closed = self.app.is_cancelled();
        let result = |id: &String| match decision(id) {
            Some(Decision::Tried) => TRIAL_CUT_OFF,
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
                shown: Some(shown(&call.id)),
                ..Outcome::new(&call.id, result(&call.id), false)
            })
            .collect();
        for outcome in outcomes {
            self.recorder.record(Item::Outcome(outcome)).await;
        }
    }

    pub(super) async fn end_turn(&mut self, ended: TurnEnd) {
        let TurnEnd {
            end,
            fault,
            explained,
            ..
        } = ended;
        let item = Item::End {
            reason: end,
            usage: self.status.turn_usage,
            explained,
        };
        self.recorder.record(item).await;
        let by_agent = self.model.agent().is_some();
        self.context.show(ChatEvent::TurnEnded {
            end,
            fault,
            by_agent,
            explained,
        });
        for text in self.undo.take_notes() {
            self.recorder.note(text).await;
        }
        self.set_state(ChatState::Idle, String::new());
        let data = serde_json::json!({ "chat": self.context.id, "reason": end });
        self.context.services.editor.fire("CoTurnDone", data);
        if self.queue.is_held() {
            self.context
                .services
                .notice(NoticeLevel::Info, PROMPTS_WAIT);
        } else if let Some(prompt) = self.queue.next() {
            Box::pin(self.prompt(prompt)).await;
        }
    }
}

pub(super) async fn next_event(running: &mut Option<RunningTurn>) -> Option<TurnEvent> {
    match running {
        Some(running) => running.events.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns the names of the images in prompts that the model has not answered yet.
fn unanswered_images(items: &[Item]) -> Vec<String> {
    let items = items.iter().rev();
    let unanswered = items.take_while(|it| !matches!(it, Item::Text { .. } | Item::Call(_)));
    let contexts = unanswered.filter_map(|item| match item {
        Item::User { context, .. } => Some(context),
        _ => None,
    });
    let images = contexts.flatten().filter(|piece| piece.image.is_some());
    images.map(|piece| piece.name.clone()).collect()
}
