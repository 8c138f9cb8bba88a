//! The sub-agents of an agent. The chat shows their texts and calls as output of the call that started them.

use std::collections::HashMap;

use super::content::{block_text, steps};
use co_acp::MaybeUndefined;
use co_acp::schema::{
    ContentBlock, MessageId, SessionId, SessionMessage, SessionMessageChunk, SessionUpdate,
    StateUpdate, SubagentUpdate, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
};
use co_text::{one_line, start_of};

/// The largest number of bytes that the chat shows of the output of a sub-agent's call.
const LONGEST_OUTPUT: usize = 4_000;

/// The sub-agents of one turn.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    known: HashMap<SessionId, SubAgent>,
    /// For each message between two agents, the sub-agent that sends or receives it.
    messages: HashMap<MessageId, SessionId>,
}

/// A sub-agent.
#[derive(Debug, Default)]
struct SubAgent {
    title: String,
    description: String,
    calls: HashMap<ToolCallId, String>,
    /// The kind of the sub-agent's last text, if the next piece may continue this text.
    last: Option<SubAgentTextKind>,
}

/// The kind of a text of a sub-agent. Pieces of one kind that follow each other become one paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubAgentTextKind {
    Says,
    Thinks,
    IsAsked,
    Message,
}

/// New text of a sub-agent for the chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SubAgentText {
    pub session: SessionId,
    pub text: String,
    /// True if the sub-agent has stopped working.
    pub is_idle: bool,
}

impl SubAgents {
    /// Returns the title of the call that represents a sub-agent.
    pub(super) fn title(&self, session: &SessionId) -> String {
        let known = self.known.get(session);
        let title = known.map(|it| it.title.as_str()).unwrap_or_default();
        let description = known.map(|it| it.description.as_str()).unwrap_or_default();
        let parts = [title, description];
        let parts: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        match parts.is_empty() {
            true => format!("sub-agent {session}"),
            false => format!("sub-agent {}", parts.join(": ")),
        }
    }

    /// Handles an update of the agent about a sub-agent.
    pub(super) fn announced(&mut self, update: SubagentUpdate) -> SubAgentText {
        let known = self.known.entry(update.session_id.clone()).or_default();
        patch(&mut known.title, update.title);
        patch(&mut known.description, update.description);
        let (is_idle, text) = match update.state {
            MaybeUndefined::Value(StateUpdate::Idle(idle)) => {
                let why = idle
                    .stop_reason
                    .and_then(|it| serde_json::to_value(it).ok());
                let why = why.and_then(|it| it.get("stopReason")?.as_str().map(str::to_owned));
                let why = why.filter(|it| it != "end_turn");
                (true, why.map(|it| format!("[{it}]")))
            }
            MaybeUndefined::Value(StateUpdate::RequiresAction(_)) => {
                (false, Some("[waits for you]".to_owned()))
            }
            MaybeUndefined::Value(StateUpdate::Other(other)) => {
                (false, serde_json::to_string(&other).ok())
            }
            _ => (false, None),
        };
        SubAgentText {
            text: text.map(|it| known.line(&it)).unwrap_or_default(),
            session: update.session_id,
            is_idle,
        }
    }

    /// Handles a message between two agents. Returns `None` if neither agent is a known sub-agent.
    pub(super) fn message(
        &mut self,
        within: &SessionId,
        message: SessionMessage,
    ) -> Option<SubAgentText> {
        let session = |it: MaybeUndefined<SessionId>| match it {
            MaybeUndefined::Value(session) => Some(session),
            _ => None,
        };
        let sender = session(message.sender_session_id);
        let recipient = session(message.recipient_session_id);
        let is_from = sender
            .as_ref()
            .is_some_and(|it| self.known.contains_key(it));
        let named = if is_from { sender } else { recipient };
        let named = named.or_else(|| self.messages.get(&message.message_id).cloned());
        let named = named.or_else(|| Some(within.clone()));
        let child = named.filter(|it| self.known.contains_key(it))?;
        let is_new = self.messages.insert(message.message_id, child.clone()) != Some(child.clone());
        let known = self.known.get_mut(&child)?;
        let content = match message.content {
            MaybeUndefined::Value(content) => content,
            _ => Vec::new(),
        };
        let content: Vec<_> = content.iter().map(block_text).collect();
        let word = if is_from { "sends" } else { "gets" };
        let text = match is_new {
            true => known.line(&format!("({word} a message) ")),
            false => String::new(),
        };
        known.last = Some(SubAgentTextKind::Message);
        Some(SubAgentText {
            session: child,
            text: text + &content.concat(),
            is_idle: false,
        })
    }

    /// Handles a piece of a message between two agents. Returns `None` if the message is not known.
    pub(super) fn message_chunk(
        &mut self,
        within: &SessionId,
        chunk: &SessionMessageChunk,
    ) -> Option<SubAgentText> {
        let child = self.messages.get(&chunk.message_id).or(Some(within));
        let child = child.filter(|it| self.known.contains_key(it))?.clone();
        let known = self.known.get_mut(&child)?;
        let text = known.say(SubAgentTextKind::Message, "(message) ", &chunk.content);
        Some(SubAgentText {
            session: child,
            text,
            is_idle: false,
        })
    }

    /// Handles an update that comes from a sub-agent.
    pub(super) fn said(
        &mut self,
        session: SessionId,
        update: SessionUpdate,
        unread: &[String],
    ) -> SubAgentText {
        let known = self.known.entry(session.clone()).or_default();
        let mut text = match update {
            SessionUpdate::AgentMessageChunk(it) => {
                known.say(SubAgentTextKind::Says, "", &it.content)
            }
            SessionUpdate::AgentThoughtChunk(it) => {
                known.say(SubAgentTextKind::Thinks, "(thinks) ", &it.content)
            }
            SessionUpdate::UserMessageChunk(it) => {
                known.say(SubAgentTextKind::IsAsked, "(is asked) ", &it.content)
            }
            SessionUpdate::ToolCall(call) => {
                let title = one_line(call.title.trim());
                known.calls.insert(call.tool_call_id.clone(), title.clone());
                let begun = known.line(&format!("- {title}\n"));
                let update = ToolCallUpdate::from(call);
                begun + &known.call(update)
            }
            SessionUpdate::ToolCallUpdate(update) => known.call(update),
            SessionUpdate::Plan(plan) => {
                let steps = steps(&plan.entries);
                let lines = steps
                    .iter()
                    .map(|(step, status)| format!("[{status}] {step}\n"));
                let lines: String = lines.collect();
                known.line(&lines)
            }
            other => {
                let text = serde_json::to_string(&other).unwrap_or_default();
                known.line(start_of(&text, LONGEST_OUTPUT))
            }
        };
        for part in unread {
            text.push_str(&known.line(part));
        }
        SubAgentText {
            session,
            text,
            is_idle: false,
        }
    }
}

impl SubAgent {
    /// Returns the text of a piece. If the piece begins a new text, `words` precede it.
    fn say(&mut self, kind: SubAgentTextKind, words: &str, content: &ContentBlock) -> String {
        let content = block_text(content);
        match self.last.replace(kind) == Some(kind) {
            true => content,
            false => format!("\n{words}{content}"),
        }
    }

    /// Returns `text` on a line of its own. Ends the last text of the sub-agent, so that the next piece begins a new text.
    fn line(&mut self, text: &str) -> String {
        self.last = None;
        format!("\n{text}")
    }

    /// Returns a line about the end of a call, with the output of the call; empty while the call runs.
    fn call(&mut self, update: ToolCallUpdate) -> String {
        if let Some(title) = &update.fields.title {
            let title = one_line(title.trim());
            self.calls.insert(update.tool_call_id.clone(), title);
        }
        let status = match update.fields.status {
            Some(ToolCallStatus::Completed) => "done",
            Some(ToolCallStatus::Failed) => "failed",
            _ => return String::new(),
        };
        let id = &update.tool_call_id;
        let title = self
            .calls
            .get(id)
            .cloned()
            .unwrap_or_else(|| id.to_string());
        let content = update.fields.content.unwrap_or_default();
        let content = content.iter().filter_map(|it| match it {
            ToolCallContent::Content(content) => Some(block_text(&content.content)),
            ToolCallContent::Diff(diff) => Some(format!("changes {}", diff.path.display())),
            _ => None,
        });
        let content: Vec<_> = content.collect();
        let content = content.join("\n");
        let output = start_of(&content, LONGEST_OUTPUT).lines();
        let output: String = output.map(|line| format!("  {line}\n")).collect();
        self.line(&format!("- {title}: {status}\n{output}"))
    }
}

fn patch(field: &mut String, value: MaybeUndefined<String>) {
    match value {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => field.clear(),
        MaybeUndefined::Value(value) => *field = one_line(value.trim()),
    }
}

#[cfg(test)]
mod tests {
    use co_acp::schema::{
        ContentChunk, IdleStateUpdate, IdleStopReason, ToolCall, ToolCallUpdateFields,
    };

    use super::*;

    fn child() -> SessionId {
        SessionId::new("child")
    }

    #[test]
    fn what_it_says_and_does_is_one_text() {
        let mut agents = SubAgents::default();
        let news = agents.announced(SubagentUpdate::new("child").title("Finder".to_owned()));
        assert_eq!((news.text.as_str(), news.is_idle), ("", false));
        assert_eq!(agents.title(&child()), "sub-agent Finder");
        let mut text = String::new();
        let chunk = |text: &str| ContentChunk::new(text.into());
        let ended = ToolCallUpdateFields::new()
            .status(ToolCallStatus::Failed)
            .content(vec!["not found\n".into()]);
        for update in [
            SessionUpdate::UserMessageChunk(chunk("find it")),
            SessionUpdate::AgentMessageChunk(chunk("I l")),
            SessionUpdate::AgentMessageChunk(chunk("ook.")),
            SessionUpdate::ToolCall(ToolCall::new("1", "grep x")),
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("1", ended)),
        ] {
            text += &agents.said(child(), update, &[]).text;
        }
        let unknown = SessionUpdate::AgentMessageChunk(chunk("Odd."));
        text += &agents
            .said(child(), unknown, &["{\"new\":1}".to_owned()])
            .text;
        assert_eq!(
            text,
            "\n(is asked) find it\nI look.\n- grep x\n\n- grep x: failed\n  not found\n\nOdd.\n{\"new\":1}"
        );
        let message = SessionMessage::new("m")
            .sender_session_id(SessionId::new("parent"))
            .recipient_session_id(child());
        let parent = SessionId::new("parent");
        let begun = agents.message(&parent, message).unwrap();
        assert_eq!(
            (begun.session, begun.text.as_str()),
            (child(), "\n(gets a message) ")
        );
        let chunk = SessionMessageChunk::new("m", "more".into());
        assert_eq!(agents.message_chunk(&parent, &chunk).unwrap().text, "more");
        let odd = SessionMessageChunk::new("odd", "more".into());
        assert_eq!(agents.message_chunk(&parent, &odd), None);
        let idle = IdleStateUpdate::new().stop_reason(IdleStopReason::EndTurn);
        let idle = SubagentUpdate::new("child").state(StateUpdate::Idle(idle));
        let news = agents.announced(idle);
        assert_eq!((news.text.as_str(), news.is_idle), ("", true));
    }
}
