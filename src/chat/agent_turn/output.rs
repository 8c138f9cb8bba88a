//! The output of an agent in a turn: its texts, thoughts, calls and plans. The chat shows and records them in order.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::calls::{AgentPiece, CallLog};
use super::live::LiveCall;
use super::parts::TurnParts;
use crate::chat::turn::{Halt, LiveThought, TurnEvent};
use crate::protocol::ChatState;
use crate::tool::agent_call::ShownAgentCall;
use crate::tool::event::{CallEnd, CallEvent};
use co_acp::schema::ToolCallId;
use co_llm::transcript::{Call, Decision, Item, Outcome, ShownPart};
use co_text::one_line;

/// The output of an agent in a turn.
pub(super) struct AgentOutput {
    turn: Arc<TurnParts>,
    pub log: CallLog,
    /// The open call, with its output on the screen.
    live: Option<LiveCall>,
    /// The id and the text of the thought that the agent has not finished.
    thought: Option<(String, LiveThought)>,
    /// True if the last piece was a text.
    is_speaking: bool,
}

/// The last state of a call that the chat shows. The call has ended, or `status` says that the call still runs.
struct EndedCall<'a> {
    id: String,
    ok: bool,
    /// The text about the end of the call.
    status: &'a str,
    output: &'a str,
    /// The arguments of the call, if they have changed since the call began.
    arguments: Option<Box<serde_json::Value>>,
    /// The block that showed the output of the call so far.
    block: Option<u64>,
}

impl AgentOutput {
    pub(super) fn new(turn: Arc<TurnParts>) -> Self {
        Self {
            turn,
            log: CallLog::default(),
            live: None,
            thought: None,
            is_speaking: false,
        }
    }

    /// Shows a piece now, or after the end of the open call.
    pub(super) async fn show(&mut self, piece: AgentPiece) -> Result<(), Halt> {
        if let Some(piece) = self.log.take(piece) {
            self.perform(piece).await?;
        }
        self.drain().await
    }

    /// Shows a sentence whose subject is the agent.
    pub(super) async fn say(&mut self, words: &str) -> Result<(), Halt> {
        let text = format!("{} {words}", self.turn.spec.name);
        let (text, _) = self.turn.redacted(&text).await;
        self.show(AgentPiece::Note(co_text::printable(&text))).await
    }

    /// Shows an update of a call. If the call is not on the screen yet, `piece` shows it.
    pub(super) async fn call_updated(
        &mut self,
        piece: Option<AgentPiece>,
        call: &ToolCallId,
    ) -> Result<(), Halt> {
        match piece {
            Some(piece) => self.show(piece).await?,
            None if self.log.is_open(call) => {
                if let Some(live) = &mut self.live {
                    live.mark();
                }
            }
            None => {}
        }
        self.drain().await
    }

    /// Shows all pieces so far. Then holds back all later pieces until the call of co's own tool `tool` has ended.
    pub(super) async fn hold(&mut self, tool: &str) -> Result<(), Halt> {
        self.show_all().await?;
        self.end_thought().await?;
        self.is_speaking = false;
        self.log.hold(tool);
        Ok(())
    }

    /// Shows the pieces that were held back during a call of co's own tool.
    pub(super) async fn go_on(&mut self) -> Result<(), Halt> {
        self.log.go_on();
        self.turn.state(ChatState::Thinking, "").await?;
        self.drain().await
    }

    /// Records and shows the end of a call of co's own tool that was stopped without an outcome.
    pub(super) async fn cut_off(
        &self,
        call: &Call,
        is_shown: bool,
        why: &'static str,
    ) -> Result<(), Halt> {
        let chat = &self.turn.chat;
        if !is_shown {
            let shown = self.turn.tools.shown(call);
            chat.show(CallEvent::Begun(shown)).await?;
        }
        let shown = ShownPart::line(why.to_owned());
        let outcome = Outcome {
            shown: Some(shown.clone()),
            ..Outcome::new(&call.id, why, false)
        };
        let ended = CallEnd::of(&outcome, shown);
        chat.record(Item::Outcome(outcome)).await?;
        Ok(chat.show(CallEvent::Ended(ended)).await?)
    }

    /// Returns the time at which `show_live` must be called; none if nothing has changed.
    pub(super) fn shows_at(&self) -> Option<tokio::time::Instant> {
        self.live.as_ref().and_then(LiveCall::due)
    }

    /// Shows what the agent has said about the open call since the last update of the screen.
    pub(super) async fn show_live(&mut self) -> Result<(), Halt> {
        let (Some(logged), Some(live)) = (self.log.opened(), &mut self.live) else {
            return Ok(());
        };
        let began = Instant::now();
        let record = self.turn.record(logged);
        let output = logged.output();
        let (output, _) = self.turn.redacted(&output).await;
        let output = co_text::printable(&output);
        let call = self.turn.redacted_call(record).await;
        let changed = live.take(&output, began.elapsed());
        if live.shown != call {
            let shown = ShownAgentCall::new(&call.arguments());
            live.shown = call;
            (self.turn.chat)
                .show(CallEvent::AgentCallChanged(shown))
                .await?;
        }
        if let Some((from, lines)) = changed {
            let block = live.block;
            let lines = CallEvent::OutputLines { block, from, lines };
            self.turn.chat.show(lines).await?;
        }
        Ok(())
    }

    /// Returns the time at which `give_way` must be called; none if no piece waits for the open call.
    pub(super) fn gives_way_at(&self) -> Option<tokio::time::Instant> {
        self.log.gives_way_at()
    }

    /// Shows that the open call still runs, and then the pieces that waited for its end.
    pub(super) async fn give_way(&mut self) -> Result<(), Halt> {
        self.close_call(true).await?;
        self.drain().await
    }

    /// Shows the end of each message and of each call that is still open. Call it at the end of the turn.
    pub(super) async fn close_all(&mut self) -> Result<(), Halt> {
        self.log.go_on();
        self.show_all().await?;
        for piece in self.log.stale(|| self.turn.call_id()) {
            self.perform(piece).await?;
            self.close_call(true).await?;
        }
        self.end_thought().await
    }

    /// Shows the pieces that wait, until a piece opens a call.
    async fn drain(&mut self) -> Result<(), Halt> {
        loop {
            self.close_call(false).await?;
            match self.log.next_held() {
                Some(piece) => self.perform(piece).await?,
                None => return Ok(()),
            }
        }
    }

    /// Shows all pieces that wait, and the end of the open call.
    async fn show_all(&mut self) -> Result<(), Halt> {
        loop {
            self.close_call(true).await?;
            match self.log.next_held() {
                Some(piece) => self.perform(piece).await?,
                None => return Ok(()),
            }
        }
    }

    async fn perform(&mut self, piece: AgentPiece) -> Result<(), Halt> {
        if !matches!(piece, AgentPiece::Thought(_)) {
            self.end_thought().await?;
        }
        match piece {
            AgentPiece::Text(text) => {
                if !std::mem::replace(&mut self.is_speaking, true) {
                    self.turn.state(ChatState::Streaming, "").await?;
                }
                Ok(self.turn.chat.send(TurnEvent::Text(text)).await?)
            }
            AgentPiece::Thought(text) => self.think(&text).await,
            AgentPiece::Call(key) => self.begin_call(&key).await,
            AgentPiece::Plan(steps) => self.plan(steps).await,
            AgentPiece::Note(text) => Ok(self.turn.chat.note(&text).await?),
        }
    }

    async fn think(&mut self, text: &str) -> Result<(), Halt> {
        let services = &self.turn.context.services;
        let new = || (String::new(), LiveThought::new(services.id()));
        let (whole, live) = self.thought.get_or_insert_with(new);
        whole.push_str(text);
        let events = match services.config.show_reasoning {
            true => live.push(text),
            false => Vec::new(),
        };
        for event in events {
            self.turn.chat.show(event).await?;
        }
        Ok(())
    }

    async fn end_thought(&mut self) -> Result<(), Halt> {
        let Some((text, live)) = self.thought.take() else {
            return Ok(());
        };
        if self.turn.context.services.config.show_reasoning {
            for event in live.end() {
                self.turn.chat.show(event).await?;
            }
        }
        let thought = Item::Reasoning {
            text,
            signature: None,
        };
        Ok(self.turn.chat.record(thought).await?)
    }

    async fn begin_call(&mut self, key: &ToolCallId) -> Result<(), Halt> {
        self.is_speaking = false;
        let Some(logged) = self.log.open(key) else {
            return Ok(());
        };
        let (id, record) = (logged.id.clone(), self.turn.record(logged));
        let record = self.turn.redacted_call(record).await;
        let mut live = LiveCall::new(record.clone(), self.turn.context.services.id());
        live.mark();
        self.live = Some(live);
        let turn = &self.turn;
        let title = one_line(&record.title);
        let call = record.item(id.clone());
        let shown = turn.tools.shown(&call);
        turn.chat.record(Item::Call(call)).await?;
        let decision = Decision::Agent;
        turn.chat
            .record(Item::Decision { call: id, decision })
            .await?;
        turn.chat.show(CallEvent::Begun(shown)).await?;
        turn.chat.show(CallEvent::Decision(Decision::Agent)).await?;
        turn.state(ChatState::Running, title).await
    }

    /// Shows the end of the open call if the call has ended or `force` is true.
    async fn close_call(&mut self, force: bool) -> Result<(), Halt> {
        let Some(logged) = self.log.close(force) else {
            return Ok(());
        };
        let (id, ok, status) = (logged.id.clone(), logged.is_ok(), logged.status());
        let (output, record) = (logged.output(), self.turn.record(logged));
        let call = self.turn.redacted_call(record).await;
        let live = self.live.take();
        let changed = live.as_ref().is_some_and(|live| live.began != call);
        let ended = EndedCall {
            id,
            ok,
            status: &status,
            output: &output,
            arguments: changed.then(|| Box::new(call.arguments())),
            block: live.map(|live| live.block),
        };
        self.end_call(ended).await?;
        self.turn.state(ChatState::Thinking, "").await
    }

    async fn end_call(&self, call: EndedCall<'_>) -> Result<(), Halt> {
        let (text, hidden) = self.turn.redacted(call.output).await;
        let text = co_text::printable(&text);
        let shown = ShownPart {
            output: [0, text.len()],
            arguments: call.arguments,
            ..ShownPart::line(call.status)
        };
        let outcome = Outcome {
            hidden,
            shown: Some(shown.clone()),
            ..Outcome::new(call.id, text.clone(), call.ok)
        };
        let ended = CallEnd::of(&outcome, shown);
        let chat = &self.turn.chat;
        chat.record(Item::Outcome(outcome)).await?;
        if !text.is_empty() {
            let block = call.block;
            let block = block.unwrap_or_else(|| self.turn.context.services.id());
            chat.show(CallEvent::Output { block, text }).await?;
        }
        Ok(chat.show(CallEvent::Ended(ended)).await?)
    }

    /// Shows the steps of the agent's plan in the same way as the tool `update_plan`.
    async fn plan(&mut self, steps: Vec<(String, &'static str)>) -> Result<(), Halt> {
        let step = |(step, status): &(String, &str)| json!({ "step": step, "status": status });
        let most = crate::tool::plan::MOST_STEPS;
        let plan: Vec<_> = steps.iter().take(most).map(step).collect();
        if plan.is_empty() {
            return Ok(());
        }
        let id = self.turn.call_id();
        let call = Call::new(id.clone(), crate::tool::plan::NAME, json!({ "plan": plan }));
        let shown = self.turn.tools.shown(&call);
        self.turn.chat.record(Item::Call(call)).await?;
        self.turn.chat.show(CallEvent::Begun(shown)).await?;
        let ended = EndedCall {
            id,
            ok: true,
            status: "",
            output: "",
            arguments: None,
            block: None,
        };
        self.end_call(ended).await?;
        match steps.len().saturating_sub(most) {
            0 => Ok(()),
            more => {
                let name = &self.turn.spec.name;
                let text = format!("the plan of {name} has {more} more steps, which are not shown");
                Ok(self.turn.chat.note(&text).await?)
            }
        }
    }
}
