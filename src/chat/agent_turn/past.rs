//! The earlier session that an agent continues, and the differences between this session and the transcript.

use super::content::block_text;
use co_acp::schema::SessionUpdate;
use co_llm::transcript::{self, Item};

/// The prefix that marks a command of the agent in a prompt. The agent gets `/` in its place.
const AGENT_COMMAND: &str = "/agent:";

/// A session of an earlier process of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) struct PastSession {
    pub id: String,
    /// True if the person chose this session in the agent's list of sessions. The transcript then contains nothing of this
    /// session.
    pub is_chosen: bool,
    /// The prompts of the session, in the form in which the agent got them.
    prompts: Vec<String>,
}

/// The prompts of an earlier session. The agent sends them again when it continues this session.
#[derive(Debug, Default)]
pub(super) struct Replay {
    prompts: Vec<String>,
    is_in_prompt: bool,
}

impl PastSession {
    /// Returns the last session of an agent in a transcript, or else the session `chosen` that the person chose from the agent's
    /// list. Returns `None` if the agent cannot continue the session.
    pub(in crate::chat) fn find(items: &[Item], agent: &str, chosen: Option<&str>) -> Option<Self> {
        let last = items
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, item)| match item {
                Item::AgentSession { agent, session } => Some((at, (agent, session))),
                _ => None,
            });
        let Some((at, id)) = last else {
            return chosen.map(|id| Self {
                id: id.to_owned(),
                is_chosen: true,
                prompts: Vec::new(),
            });
        };
        let id = id.1.clone().filter(|_| id.0 == agent)?;
        let is_end = |item: &Item| matches!(item, Item::End { .. });
        // The session begins after the prompt of its first turn was recorded.
        let first = items[..at]
            .iter()
            .rposition(is_end)
            .map_or(0, |end| end + 1);
        let last = items.iter().rposition(is_end).unwrap_or_default();
        let prompts = items.get(first..last).unwrap_or_default().iter();
        let prompts = prompts.filter_map(|item| match item {
            Item::User { text, .. } => Some(sent_text(text)),
            _ => None,
        });
        Some(Self {
            id,
            is_chosen: false,
            prompts: prompts.collect(),
        })
    }

    /// Returns the difference between the session and the transcript, as the end of a sentence; none if they have the same
    /// prompts.
    pub(super) fn difference(&self, replay: &Replay) -> Option<String> {
        let mut told = replay.prompts.iter();
        let mut is_known = |prompt: &&String| told.any(|it| it.contains(prompt.trim()));
        let known = self.prompts.iter().take_while(&mut is_known).count();
        let (all, more) = (self.prompts.len(), replay.prompts.len());
        match known < all {
            true => Some(format!("knows {known} of the {all} prompts of this chat")),
            false if more > all => Some(format!("knows {more} prompts, and this chat has {all}")),
            false => None,
        }
    }
}

impl Replay {
    /// Handles an update that the agent repeats while it loads the earlier session. Returns the update if it is about the state
    /// of the session, not about its messages and calls.
    pub(super) fn take(&mut self, update: SessionUpdate) -> Option<SessionUpdate> {
        if let SessionUpdate::UserMessageChunk(chunk) = &update {
            let text = block_text(&chunk.content);
            match self.prompts.last_mut().filter(|_| self.is_in_prompt) {
                Some(prompt) => prompt.push_str(&text),
                None => self.prompts.push(text),
            }
            self.is_in_prompt = true;
            return None;
        }
        self.is_in_prompt = false;
        let is_state = matches!(
            update,
            SessionUpdate::AvailableCommandsUpdate(_)
                | SessionUpdate::CurrentModeUpdate(_)
                | SessionUpdate::ConfigOptionUpdate(_)
                | SessionUpdate::SessionInfoUpdate(_)
                | SessionUpdate::UsageUpdate(_)
        );
        is_state.then_some(update)
    }
}

/// Returns the text of a prompt as the agent gets it. A command of the agent begins with a slash. Of a prompt with `/plan`, the
/// agent gets only the task.
pub(super) fn sent_text(text: &str) -> String {
    match (
        text.strip_prefix(AGENT_COMMAND),
        transcript::task_to_plan(text),
    ) {
        (Some(command), _) => format!("/{command}"),
        (None, Some(task)) => task.to_owned(),
        (None, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use co_acp::schema::{ContentChunk, UsageUpdate};
    use co_llm::transcript::{End, Usage};

    use super::*;

    fn end() -> Item {
        Item::End {
            reason: End::Done,
            usage: Usage::default(),
            explained: false,
        }
    }

    fn session(agent: &str, session: Option<&str>) -> Item {
        Item::AgentSession {
            agent: agent.to_owned(),
            session: session.map(str::to_owned),
        }
    }

    fn replay(prompts: &[&[&str]]) -> Replay {
        let mut replay = Replay::default();
        for prompt in prompts {
            for piece in *prompt {
                let chunk = ContentChunk::new((*piece).into());
                assert_eq!(replay.take(SessionUpdate::UserMessageChunk(chunk)), None);
            }
            let said = ContentChunk::new("said".into());
            assert_eq!(replay.take(SessionUpdate::AgentMessageChunk(said)), None);
        }
        replay
    }

    #[test]
    fn the_last_session_is_compared_with_the_transcript() {
        let items = [
            Item::user("failed to start"),
            end(),
            Item::user("/agent:review a"),
            session("codex", Some("s1")),
            end(),
            Item::user("/plan it"),
            end(),
            Item::user("this turn"),
        ];
        let past = PastSession::find(&items, "codex", None).unwrap();
        assert_eq!((past.id.as_str(), past.prompts.len()), ("s1", 2));
        let difference = |prompts: &[&[&str]]| past.difference(&replay(prompts));
        assert_eq!(
            difference(&[&["/rev", "iew a"], &["<context>", "it"]]),
            None
        );
        let less = difference(&[&["/review a"]]);
        assert_eq!(less.unwrap(), "knows 1 of the 2 prompts of this chat");
        let more = difference(&[&["/review a"], &["it"], &["more"]]);
        assert_eq!(more.unwrap(), "knows 3 prompts, and this chat has 2");
        // Another agent, or a copy of the chat.
        assert_eq!(PastSession::find(&items, "other", Some("s0")), None);
        let copied = [items.to_vec(), vec![session("codex", None)]].concat();
        assert_eq!(PastSession::find(&copied, "codex", Some("s0")), None);
        assert_eq!(PastSession::find(&[], "codex", None), None);
        let chosen = PastSession::find(&[Item::user("first")], "codex", Some("s0")).unwrap();
        assert!(chosen.is_chosen && chosen.id == "s0");
    }

    #[test]
    fn the_state_of_a_replay_is_kept() {
        let usage = SessionUpdate::UsageUpdate(UsageUpdate::new(1, 2));
        assert!(Replay::default().take(usage).is_some());
    }
}
