//! Handles the agent's updates about its session. Each update is shown, or changes the state of the session.

use super::calls::AgentPiece;
use super::content::{block_text, steps};
use super::parts::LONGEST_ODD;
use super::subagents::SubAgentText;
use super::{Instant, Progress, RECORD_PERIOD};
use crate::agent::AgentProcess;
use crate::chat::turn::{Halt, TurnEvent};
use co_acp::MaybeUndefined;
use co_acp::schema::{
    CompactionId, CompactionStatus, CompactionUpdate, NoticeSeverity, PlanUpdateContent, SessionId,
    SessionUpdate, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use co_llm::transcript::{Cost, Usage};
use co_text::{one_line, start_of};

/// The largest number of unknown messages in one turn that the chat shows with their text.
const MOST_ODD: usize = 20;

impl Progress {
    /// Handles an update. `unread` are the fields of the update that co's types of the protocol do not contain.
    pub(super) async fn updated(
        &mut self,
        process: &mut AgentProcess,
        update: SessionUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let is_call = matches!(
            update,
            SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_)
        );
        let is_between = matches!(
            update,
            SessionUpdate::ToolCall(_)
                | SessionUpdate::AgentThoughtChunk(_)
                | SessionUpdate::Plan(_)
                | SessionUpdate::PlanUpdate(_)
                | SessionUpdate::Notice(_)
        );
        if is_between {
            self.updates.message = None;
        }
        if !is_call {
            for part in &unread {
                self.tell_odd(part).await?;
            }
        }
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let before = self.updates.message.take();
                let is_other = before.is_some() && before != chunk.message_id;
                self.updates.message = chunk.message_id;
                let text = block_text(&chunk.content);
                let text = match is_other {
                    true => format!("\n\n{text}"),
                    false => text,
                };
                self.output.show(AgentPiece::Text(text)).await
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.output
                    .show(AgentPiece::Thought(block_text(&chunk.content)))
                    .await
            }
            SessionUpdate::ToolCall(call) => {
                let (key, status) = (call.tool_call_id.clone(), call.status);
                let id = self.turn.call_id();
                let piece = self.output.log.begin(call, unread, || id);
                self.called(process, piece, &key, Some(status)).await
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.call_updated(process, update, unread).await
            }
            SessionUpdate::Plan(plan) => {
                self.output
                    .show(AgentPiece::Plan(steps(&plan.entries)))
                    .await
            }
            SessionUpdate::PlanUpdate(update) => self.planned(update.plan).await,
            SessionUpdate::PlanRemoved(_) => {
                self.turn.chat.send(TurnEvent::PlanRemoved).await?;
                self.output.say("dropped its plan").await
            }
            SessionUpdate::UsageUpdate(usage) => self.used(process, &usage).await,
            SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_) => {
                if !process.state.take(&update)
                    && let SessionUpdate::CurrentModeUpdate(update) = update
                {
                    let words = format!("is in the mode {}", update.current_mode_id);
                    self.output.say(&words).await?;
                }
                self.tell_state(process).await
            }
            SessionUpdate::SessionInfoUpdate(info) => match info.title {
                MaybeUndefined::Value(title) => {
                    let title = one_line(&co_text::printable(&self.turn.title(&title).await));
                    Ok(self.turn.chat.send(TurnEvent::Title(title)).await?)
                }
                _ => Ok(()),
            },
            SessionUpdate::Notice(notice) => {
                let severity = match notice.severity {
                    NoticeSeverity::Info => String::new(),
                    NoticeSeverity::Warning => "warns: ".to_owned(),
                    NoticeSeverity::Error => "reports an error: ".to_owned(),
                    other => serde_json::to_string(&other).unwrap_or_default() + ": ",
                };
                let description = notice.description.unwrap_or_default();
                let text = format!("{}\n{description}", notice.title);
                let text = start_of(text.trim_end(), LONGEST_ODD);
                match severity.as_str() {
                    "" => self.output.say(&format!("says: {text}")).await,
                    severity => self.output.say(&format!("{severity}{text}")).await,
                }
            }
            SessionUpdate::CompactionUpdate(update) => self.compacted(process, update).await,
            SessionUpdate::CompactionSummaryChunk(chunk) => {
                let call = compaction_call(&chunk.compaction_id);
                if self.output.log.get(&call).is_none() {
                    let (id, status) = (chunk.compaction_id, CompactionStatus::InProgress);
                    self.compacted(process, CompactionUpdate::new(id, status))
                        .await?;
                }
                self.output
                    .log
                    .stream(&call, Some(&block_text(&chunk.content)));
                self.called(process, None, &call, None).await
            }
            SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => {
                let session = process.session.clone();
                self.child_updated(process, session, update, unread).await
            }
            SessionUpdate::UserMessageChunk(chunk) => {
                let text = block_text(&chunk.content);
                match self.updates.is_prompt(&text) {
                    true => Ok(()),
                    false => self.output.say(&format!("was asked: {text}")).await,
                }
            }
            other => {
                let text = serde_json::to_string(&other).unwrap_or_default();
                self.tell_odd(&text).await
            }
        }
    }

    /// Shows the texts and calls of a sub-agent below the call that started it.
    pub(super) async fn child_updated(
        &mut self,
        process: &mut AgentProcess,
        session: SessionId,
        update: SessionUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let text = match &update {
            SessionUpdate::SessionMessage(_) | SessionUpdate::SessionMessageChunk(_) => {
                serde_json::to_string(&update).unwrap_or_default()
            }
            _ => String::new(),
        };
        let agents = &mut self.updates.agents;
        let more = match update {
            SessionUpdate::SubagentUpdate(update) => Some(agents.announced(update)),
            SessionUpdate::SessionMessage(message) => agents.message(&session, message),
            SessionUpdate::SessionMessageChunk(chunk) => agents.message_chunk(&session, &chunk),
            update => Some(agents.said(session, update, &unread)),
        };
        match more {
            Some(more) => self.sub_agent_text(process, more).await,
            // A message between agents of which the agent never told.
            None => self.tell_odd(&text).await,
        }
    }

    async fn sub_agent_text(
        &mut self,
        process: &mut AgentProcess,
        more: SubAgentText,
    ) -> Result<(), Halt> {
        let title = self.updates.agents.title(&more.session);
        let id = self.turn.call_id();
        let (call, piece) = self.output.log.of_sub_agent(&more, title, || id);
        self.called(process, piece, &call, None).await
    }

    /// Shows a message that co does not know.
    pub(super) async fn tell_odd(&mut self, message: &str) -> Result<(), Halt> {
        self.updates.odd += 1;
        let name = &self.turn.spec.name;
        let text = match self.updates.odd {
            ..=MOST_ODD => format!(
                "{name} says what co does not know: {}",
                start_of(message, LONGEST_ODD)
            ),
            _ => {
                let message = start_of(message, LONGEST_ODD);
                tracing::info!(message, "an agent says what co does not know");
                return Ok(());
            }
        };
        let (text, _) = self.turn.redacted(&text).await;
        self.output.show(AgentPiece::Note(one_line(&text))).await
    }

    async fn call_updated(
        &mut self,
        process: &mut AgentProcess,
        update: ToolCallUpdate,
        unread: Vec<String>,
    ) -> Result<(), Halt> {
        let (key, status) = (update.tool_call_id.clone(), update.fields.status);
        let id = self.turn.call_id();
        let piece = self.output.log.update(update, unread, || id);
        self.called(process, piece, &key, status).await
    }

    /// Shows an update of a call. If the call has ended, withdraws the questions about it.
    async fn called(
        &mut self,
        process: &mut AgentProcess,
        piece: Option<AgentPiece>,
        call: &ToolCallId,
        status: Option<ToolCallStatus>,
    ) -> Result<(), Halt> {
        self.output.call_updated(piece, call).await?;
        let is_over = matches!(
            status,
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed)
        );
        // If the person saves a file next, these changes of it are known to be the agent's.
        if is_over && self.recorded.elapsed() >= RECORD_PERIOD {
            self.turn.context.record_turn().await;
            self.tell_secrets(process).await?;
            self.recorded = Instant::now();
        }
        match is_over {
            true => {
                let connection = &mut process.connection;
                self.questions.call_ended(connection, call).await
            }
            false => Ok(()),
        }
    }

    /// Shows a plan. A plan as markdown is shown only if its text has changed.
    async fn planned(&mut self, plan: PlanUpdateContent) -> Result<(), Halt> {
        match plan {
            PlanUpdateContent::Items(items) => {
                self.output
                    .show(AgentPiece::Plan(steps(&items.entries)))
                    .await
            }
            PlanUpdateContent::Markdown(plan) => {
                let text = format!("\n\n{}\n\n", plan.content);
                let before = self.updates.plan_text.replace(plan.content);
                match before.is_some() && before == self.updates.plan_text {
                    true => Ok(()),
                    false => self.output.show(AgentPiece::Text(text)).await,
                }
            }
            other => self.tell_odd(&format!("{other:?}")).await,
        }
    }

    /// Shows that the agent summarizes its session. The chat shows this as a call whose output is the summary.
    async fn compacted(
        &mut self,
        process: &mut AgentProcess,
        update: CompactionUpdate,
    ) -> Result<(), Halt> {
        let key = compaction_call(&update.compaction_id);
        let mut fields = ToolCallUpdateFields::new()
            .title("sum up the session".to_owned())
            .kind(ToolKind::Think);
        let mut unread = Vec::new();
        fields.status = Some(match &update.status {
            CompactionStatus::InProgress => ToolCallStatus::InProgress,
            CompactionStatus::Completed => ToolCallStatus::Completed,
            CompactionStatus::Failed | CompactionStatus::Cancelled => ToolCallStatus::Failed,
            other => {
                unread.extend(serde_json::to_string(other));
                ToolCallStatus::InProgress
            }
        });
        if let MaybeUndefined::Value(error) = update.error {
            unread.push(error);
        }
        if let MaybeUndefined::Value(summary) = update.summary {
            self.output.log.stream(&key, None);
            fields.content = Some(summary.into_iter().map(ToolCallContent::from).collect());
        }
        let update = ToolCallUpdate::new(key, fields);
        self.call_updated(process, update, unread).await
    }

    async fn used(&mut self, process: &mut AgentProcess, usage: &UsageUpdate) -> Result<(), Halt> {
        let percent = usage.used.saturating_mul(100).checked_div(usage.size);
        if let Some(percent) = percent {
            self.turn.chat.send(TurnEvent::WindowUsed(percent)).await?;
        }
        // The cost is that of the session so far.
        if let Some(cost) = usage.cost.as_ref().filter(|it| it.currency != "USD") {
            self.updates.other_cost = Some(format!("{} {}", cost.amount, cost.currency));
        }
        let cost = usage.cost.as_ref().filter(|it| it.currency == "USD");
        let dollars = cost.map_or(process.cost, |it| it.amount);
        let more = Cost::of_dollars(dollars - process.cost);
        process.cost = dollars;
        let usage = Usage {
            cost: more.filter(|it| *it > Cost::default()),
            ..Usage::default()
        };
        if usage.cost.is_some() {
            self.turn.chat.send(TurnEvent::Usage(usage)).await?;
        }
        Ok(())
    }
}

/// Returns the id of the call that shows a summary of the session.
fn compaction_call(id: &CompactionId) -> ToolCallId {
    ToolCallId::new(format!("compaction {id}"))
}
