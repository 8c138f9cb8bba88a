//! The calls of co's own tools that an agent makes. co carries out each call like a call of a model, in a turn below the agent's
//! turn. The messages of this turn to the chat pass through here, so that they stay in order with the agent's messages.

use std::future::pending;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::events::ChatEvent;
use super::super::turn::{MAX_WAITING_EVENTS, ToChat, Turn, TurnEvent};
use crate::agent::AgentSpec;
use crate::agent::tools::{AgentTools, AskedOwnCall};
use crate::config::AgentConfinement;
use crate::tool::ToolSet;
use crate::tool::call::{CANCELLED, EFFECT_UNKNOWN};
use crate::tool::context::{CallContext, TurnKind};
use crate::tool::event::CallEvent;
use crate::tool::permissions::TurnMemory;
use co_llm::transcript::{Call, Item};
use co_mcp::ToolReply;

/// The calls of co's own tools that the agent makes in one turn.
pub(super) struct OwnCalls {
    tools: ToolSet,
    memory: TurnMemory,
    /// Receives the agent's calls; none while the agent works on no prompt.
    asked: Option<mpsc::Receiver<AskedOwnCall>>,
    running: Option<RunningOwnCall>,
    /// True if the agent is confined. Its calls run outside of its confinement.
    is_confined: bool,
}

/// The call of co's own tool that runs.
struct RunningOwnCall {
    call: Call,
    events: mpsc::Receiver<TurnEvent>,
    task: JoinHandle<TurnMemory>,
    cancel: CancellationToken,
    /// Cancels the call when this value is dropped.
    _ends: DropGuard,
    reply: oneshot::Sender<ToolReply>,
    /// The ids of the questions of the call, whether they are answered or not.
    questions: Vec<u64>,
    shown: bool,
    /// True if the decision about the call lets it run.
    runs: bool,
    result: Option<ToolReply>,
}

/// An event of the agent's calls of co's own tools.
pub(super) enum OwnCallEvent {
    Asked(AskedOwnCall),
    /// The call sent a message for the chat.
    Sent(TurnEvent),
    /// The call that ran has ended.
    Ended,
}

/// A call of co's own tool that has ended.
pub(super) struct EndedOwnCall {
    pub call: Call,
    pub questions: Vec<u64>,
    pub shown: bool,
    /// The outcome of the call. The error means that the call was stopped without an outcome.
    pub result: Result<ToolReply, &'static str>,
    reply: oneshot::Sender<ToolReply>,
}

impl OwnCalls {
    pub(super) fn new(memory: TurnMemory, spec: &AgentSpec) -> Self {
        Self {
            tools: ToolSet::of_agents(spec.co_tools()),
            memory,
            asked: None,
            running: None,
            is_confined: spec.confinement == AgentConfinement::Workspace,
        }
    }

    /// Begins to receive the calls of an agent.
    pub(super) fn begin_prompt(&mut self, tools: Option<&AgentTools>) {
        self.asked = tools.map(AgentTools::begin);
    }

    /// Refuses further calls, and cancels the running one. Returns true if a call runs.
    pub(super) fn end_prompt(&mut self) -> bool {
        self.asked = None;
        match &self.running {
            Some(running) => {
                running.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Waits for the next event. If the returned future is dropped, no event is lost.
    pub(super) async fn next(&mut self) -> OwnCallEvent {
        if let Some(running) = &mut self.running {
            return match running.events.recv().await {
                Some(event) => {
                    running.heed(&event);
                    OwnCallEvent::Sent(event)
                }
                None => OwnCallEvent::Ended,
            };
        }
        if let Some(asked) = &mut self.asked
            && let Some(asked) = asked.recv().await
        {
            return OwnCallEvent::Asked(asked);
        }
        pending().await
    }

    /// Starts a call in the context of the agent's turn.
    pub(super) fn begin(
        &mut self,
        call: Call,
        asked: AskedOwnCall,
        (context, chat): (&CallContext, &ToChat),
    ) {
        let (events, inbox) = mpsc::channel(MAX_WAITING_EVENTS);
        let chat = ToChat {
            events,
            new_services: chat.new_services.clone(),
        };
        let cancel = context.cancel.child_token();
        let kind = match &context.kind {
            TurnKind::Work if self.is_confined => TurnKind::OfConfinedAgent,
            kind => kind.clone(),
        };
        let context = CallContext {
            to_chat: Arc::new(chat.clone()),
            cancel: cancel.clone(),
            kind,
            ..context.clone()
        };
        let memory = std::mem::take(&mut self.memory);
        let turn = Turn::of_call(context, chat, self.tools.clone(), memory);
        self.running = Some(RunningOwnCall {
            call: call.clone(),
            events: inbox,
            task: tokio::spawn(carry_out(turn, call, asked.cancel)),
            _ends: cancel.clone().drop_guard(),
            cancel,
            reply: asked.reply,
            questions: Vec::new(),
            shown: false,
            runs: false,
            result: None,
        });
    }

    /// Removes the call that has ended, and returns it.
    pub(super) async fn take_ended(&mut self) -> Option<EndedOwnCall> {
        let running = self.running.take()?;
        // After a panic, which is logged, the person is asked again.
        self.memory = running.task.await.unwrap_or_default();
        self.memory.calls_ended += 1;
        let cut_off = match running.runs {
            true => EFFECT_UNKNOWN,
            false => CANCELLED,
        };
        Some(EndedOwnCall {
            call: running.call,
            questions: running.questions,
            shown: running.shown,
            result: running.result.ok_or(cut_off),
            reply: running.reply,
        })
    }

    /// Returns the commands that failed in the read-only confinement.
    pub(super) fn failed_confined(self) -> Vec<String> {
        self.memory.permissions.failed_confined
    }
}

impl RunningOwnCall {
    /// Notes what a message for the chat says about the call: its questions, its decision and its outcome.
    fn heed(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Question(question, _) => self.questions.push(question.id),
            TurnEvent::Show(ChatEvent::Call(CallEvent::Begun(_))) => self.shown = true,
            TurnEvent::Record(Item::Decision { call, decision }, _) if *call == self.call.id => {
                self.runs = decision.lets_run();
            }
            TurnEvent::Record(Item::Outcome(outcome), _) if outcome.call == self.call.id => {
                self.result = Some(ToolReply {
                    text: outcome.text.clone(),
                    is_error: !outcome.ok,
                });
            }
            _ => {}
        }
    }
}

impl EndedOwnCall {
    /// Sends the result to the agent, if the agent still waits for it.
    pub(super) fn answer(self) {
        let reply = self.result.unwrap_or_else(ToolReply::failed);
        let _given_up = self.reply.send(reply);
    }
}

/// Carries out a call. Cancels the call if the agent gives it up.
async fn carry_out(mut turn: Turn, call: Call, given_up: CancellationToken) -> TurnMemory {
    turn.tools.deny_by(Arc::clone(&turn.context.judge)).await;
    let cancel = turn.context.cancel.clone();
    let gives_up = async {
        given_up.cancelled().await;
        cancel.cancel();
        pending::<()>().await;
    };
    tokio::select! {
        // A call that is cancelled before its end has no outcome: `take_ended` reports that.
        _halted = turn.carry_out(call) => {}
        () = gives_up => {}
    }
    turn.memory
}

/// Returns a call of the agent as an item of the transcript.
pub(super) fn call_of(id: String, asked: &mut AskedOwnCall) -> Call {
    let arguments = std::mem::take(&mut asked.call.arguments);
    Call::new(id, asked.call.tool.clone(), Value::Object(arguments))
}
