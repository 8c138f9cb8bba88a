//! The calls of an agent, in the order in which the chat shows them.
//!
//! An agent may work on several calls at once, and may write text while they run. A chat shows one call at a time. Whatever the
//! agent sends while a call is open waits for the end of this call, but no longer than [`LONGEST_HOLD`].

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::content::block_text;
use super::subagents::SubAgentText;
use crate::agent::tools::SERVER;
use crate::tool::IN_PLACE_OF_OWN;
use crate::tool::agent_call::AgentCall;
use co_acp::schema::{
    Diff, Meta, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};
use co_text::{end_of, start_of};

/// The longest time that messages wait for the end of an open call. After that, the chat shows that the call still runs, and then
/// shows the messages.
pub(super) const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// The largest number of bytes that are kept of a call's output.
const LONGEST_OUTPUT: usize = 256 << 10;

/// The largest number of bytes that are kept of a call's input.
const LONGEST_INPUT: usize = 64 << 10;

/// The largest number of places in files that are kept of one call.
const MOST_PLACES: usize = 20;

/// The largest number of bytes of texts that are compared to show the changes of one call.
const MOST_COMPARED: usize = 256 << 10;

/// A piece of an agent's work that the chat shows.
#[derive(Debug, PartialEq)]
pub(super) enum AgentPiece {
    Text(String),
    Thought(String),
    Call(ToolCallId),
    /// The steps of the agent's plan, each with its state.
    Plan(Vec<(String, &'static str)>),
    Note(String),
}

/// The calls that the agent reported in one turn.
#[derive(Debug, Default)]
pub(super) struct CallLog {
    calls: HashMap<ToolCallId, LoggedCall>,
    /// The id of the open call: the chat shows the call, and the call has not ended.
    open: Option<ToolCallId>,
    /// True while the chat shows a call of one of co's own tools.
    shows_own: bool,
    /// For each of co's own tools, the number of calls that co carried out and the agent has not reported yet.
    untold: HashMap<String, usize>,
    held: VecDeque<AgentPiece>,
    held_since: Option<Instant>,
}

/// A call that the agent reported.
#[derive(Debug)]
pub(super) struct LoggedCall {
    pub call: ToolCall,
    /// The id of the call in the transcript.
    pub id: String,
    /// The fields of the call that co's types of the protocol do not contain.
    unread: Vec<String>,
    /// The output that arrived in pieces.
    streamed: StreamedOutput,
    exit: Option<String>,
    /// True if the chat has shown the end of the call.
    pub closed: bool,
    /// True if the agent said more about the call after its end was shown.
    stale: bool,
    own: OwnTool,
}

/// Says whether an agent's call uses one of co's own tools. The chat shows such calls separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnTool {
    No,
    /// The agent says that the call uses this tool of co, but co has not confirmed it. It is confirmed if co itself carried out a
    /// call of this tool. Until the call has ended, the chat does not show it.
    Perhaps(&'static str),
    /// The call uses a tool of co, and the chat has shown it already.
    Yes,
}

/// The output of a call that arrives in pieces. Of a long output, only the start and the end are kept.
#[derive(Debug, Default)]
struct StreamedOutput {
    head: String,
    tail: String,
    /// The number of bytes between `head` and `tail` that are left out.
    left_out: usize,
}

impl CallLog {
    /// Adds a piece. Returns the piece if it can be shown now; otherwise the piece waits.
    pub(super) fn take(&mut self, piece: AgentPiece) -> Option<AgentPiece> {
        if self.open.is_none() && !self.shows_own {
            return Some(piece);
        }
        self.held_since.get_or_insert_with(Instant::now);
        match (self.held.back_mut(), piece) {
            (Some(AgentPiece::Text(text)), AgentPiece::Text(more))
            | (Some(AgentPiece::Thought(text)), AgentPiece::Thought(more)) => text.push_str(&more),
            (_, piece) => self.held.push_back(piece),
        }
        None
    }

    /// Returns the next piece that waited, unless a call is open.
    pub(super) fn next_held(&mut self) -> Option<AgentPiece> {
        if self.open.is_some() || self.shows_own {
            return None;
        }
        let next = self.held.pop_front();
        self.held_since = self.held_since.filter(|_| !self.held.is_empty());
        next
    }

    /// Holds all pieces back while the chat shows a call of co's own tool `tool`.
    pub(super) fn hold(&mut self, tool: &str) {
        self.shows_own = true;
        *self.untold.entry(tool.to_owned()).or_default() += 1;
    }

    /// Ends what [`Self::hold`] began: from now on, only an open call holds pieces back.
    pub(super) fn go_on(&mut self) {
        self.shows_own = false;
    }

    /// Returns the time until which pieces wait for the open call; none if no piece waits.
    pub(super) fn gives_way_at(&self) -> Option<Instant> {
        let since = self.held_since?;
        self.open.as_ref().map(|_| since + LONGEST_HOLD)
    }

    /// Adds a new call, and returns the piece that shows the call. If the call is known already, updates the call.
    pub(super) fn begin(
        &mut self,
        call: ToolCall,
        unread: Vec<String>,
        id: impl FnOnce() -> String,
    ) -> Option<AgentPiece> {
        let key = call.tool_call_id.clone();
        let meta = call.meta.clone();
        if let Some(known) = self.calls.get_mut(&key).filter(|it| !it.closed) {
            known.call = call;
            known.add(unread, meta.as_ref());
            return self.settle(&key, false);
        }
        let mut logged = LoggedCall::new(call, id());
        logged.add(unread, meta.as_ref());
        let is_own = logged.own != OwnTool::No;
        self.calls.insert(key.clone(), logged);
        match is_own {
            true => self.settle(&key, false),
            false => Some(AgentPiece::Call(key)),
        }
    }

    /// Decides whether a call uses one of co's own tools. Does nothing before the call has ended, unless `must` is true. If the
    /// call uses no tool of co, returns the piece that shows the call.
    fn settle(&mut self, key: &ToolCallId, must: bool) -> Option<AgentPiece> {
        let known = self.calls.get_mut(key)?;
        let OwnTool::Perhaps(tool) = known.own else {
            return None;
        };
        if !known.has_ended() && !must {
            return None;
        }
        if let Some(untold) = self.untold.get_mut(tool).filter(|it| **it > 0) {
            *untold -= 1;
            (known.own, known.closed) = (OwnTool::Yes, true);
            return None;
        }
        known.own = OwnTool::No;
        Some(AgentPiece::Call(key.clone()))
    }

    /// Updates a call. Returns the piece that shows the call, if the call is new or if the chat has already shown the end of the
    /// call.
    pub(super) fn update(
        &mut self,
        update: ToolCallUpdate,
        unread: Vec<String>,
        id: impl FnOnce() -> String,
    ) -> Option<AgentPiece> {
        let key = update.tool_call_id;
        if let Some(known) = self.calls.get_mut(&key) {
            let fields = &update.fields;
            let adds = fields.raw_output.is_some() || update.meta.is_some() || !unread.is_empty();
            let tells =
                fields.status.is_some() || fields.content.is_some() || adds && known.has_ended();
            known.call.update(update.fields);
            known.add(unread, update.meta.as_ref());
            known.stale = known.closed && known.own == OwnTool::No;
            match known.own {
                OwnTool::Perhaps(_) => return self.settle(&key, false),
                OwnTool::Yes => return None,
                OwnTool::No if !known.closed || !tells => return None,
                OwnTool::No => {}
            }
            (known.closed, known.id) = (false, id());
            return Some(AgentPiece::Call(key));
        }
        let mut call = ToolCall::new(key.clone(), key.0.as_ref());
        call.update(update.fields);
        call.meta = update.meta;
        self.begin(call, unread, id)
    }

    /// Adds the text of a sub-agent to the output of the open call that started it. If there is no such call, adds the text to a
    /// call that represents the sub-agent. Returns the id of the call, and the piece that shows the call if it is new.
    pub(super) fn of_sub_agent(
        &mut self,
        more: &SubAgentText,
        title: String,
        id: impl FnOnce() -> String,
    ) -> (ToolCallId, Option<AgentPiece>) {
        let own = ToolCallId::new(format!("sub-agent {}", more.session));
        let refers = |call: &ToolCall| {
            let mut content = call.content.iter();
            content.any(
                |it| matches!(it, ToolCallContent::Session(it) if it.session_id == more.session),
            )
        };
        let mut calls = self.calls.iter();
        let found = calls.find(|(_, it)| refers(&it.call) && !it.has_ended());
        let key = found.map_or(own.clone(), |(key, _)| key.clone());
        let known = self.calls.get_mut(&key).filter(|it| !it.has_ended());
        if let Some(known) = known {
            known.streamed.push(&more.text);
            known.stale = known.closed;
            if key == own {
                known.call.title = title;
                if more.is_idle {
                    known.call.status = ToolCallStatus::Completed;
                }
                if more.is_idle && known.closed {
                    (known.closed, known.id) = (false, id());
                    return (key.clone(), Some(AgentPiece::Call(key)));
                }
            }
            return (key, None);
        }
        if more.text.trim().is_empty() {
            return (key, None);
        }
        let call = ToolCall::new(own.clone(), title)
            .kind(ToolKind::Think)
            .status(match more.is_idle {
                true => ToolCallStatus::Completed,
                false => ToolCallStatus::InProgress,
            });
        let mut logged = LoggedCall::new(call, id());
        logged.streamed.push(more.text.trim_start());
        self.calls.insert(own.clone(), logged);
        (own.clone(), Some(AgentPiece::Call(own)))
    }

    /// Adds text to the output of a known call. If `text` is `None`, removes the output so far.
    pub(super) fn stream(&mut self, key: &ToolCallId, text: Option<&str>) {
        if let Some(known) = self.calls.get_mut(key) {
            match text {
                Some(text) => known.streamed.push(text),
                None => known.streamed = StreamedOutput::default(),
            }
            known.stale = known.closed;
        }
    }

    /// Returns the pieces that show what the agent said about calls after their ends were shown. Call it at the end of the turn.
    pub(super) fn stale(&mut self, mut id: impl FnMut() -> String) -> Vec<AgentPiece> {
        let calls = self.calls.iter();
        let unclear = calls.filter(|(_, it)| matches!(it.own, OwnTool::Perhaps(_)));
        let unclear: Vec<_> = unclear.map(|(key, _)| key.clone()).collect();
        let unclear = unclear.iter().filter_map(|key| self.settle(key, true));
        let unclear: Vec<_> = unclear.collect();
        let stale = self.calls.iter_mut().filter(|(_, it)| it.stale);
        let pieces = stale.map(|(key, known)| {
            (known.closed, known.stale, known.id) = (false, false, id());
            AgentPiece::Call(key.clone())
        });
        pieces.chain(unclear).collect()
    }

    /// Makes this call the open call, and returns it.
    pub(super) fn open(&mut self, key: &ToolCallId) -> Option<&LoggedCall> {
        self.open = Some(key.clone());
        self.calls.get(key)
    }

    /// Closes the open call and returns it, if the call has ended or `must` is true.
    pub(super) fn close(&mut self, must: bool) -> Option<&LoggedCall> {
        let key = self.open.as_ref()?;
        if !must && !self.calls.get(key)?.has_ended() {
            return None;
        }
        let closed = self.calls.get_mut(&self.open.take()?)?;
        (closed.closed, closed.stale) = (true, false);
        Some(closed)
    }

    /// Returns the open call: the call that the chat shows and that has not ended.
    pub(super) fn opened(&self) -> Option<&LoggedCall> {
        self.calls.get(self.open.as_ref()?)
    }

    /// Returns true if this call is the open call.
    pub(super) fn is_open(&self, key: &ToolCallId) -> bool {
        self.open.as_ref() == Some(key)
    }

    /// Returns a call by its id.
    pub(super) fn get(&self, key: &ToolCallId) -> Option<&LoggedCall> {
        self.calls.get(key)
    }
}

impl StreamedOutput {
    fn push(&mut self, text: &str) {
        let room = (LONGEST_OUTPUT / 2).saturating_sub(self.head.len());
        let head = match self.tail.is_empty() {
            true => start_of(text, room),
            false => "",
        };
        self.head.push_str(head);
        self.tail.push_str(&text[head.len()..]);
        // Not at each piece.
        if self.tail.len() > LONGEST_OUTPUT {
            let kept = end_of(&self.tail, LONGEST_OUTPUT / 2).to_owned();
            self.left_out += self.tail.len() - kept.len();
            self.tail = kept;
        }
    }

    fn text(&self) -> String {
        match self.left_out {
            0 => format!("{}{}", self.head, self.tail),
            more => format!("{}\n[{more} bytes left out]\n{}", self.head, self.tail),
        }
    }
}

impl LoggedCall {
    fn new(call: ToolCall, id: String) -> Self {
        Self {
            own: own_tool(&call).map_or(OwnTool::No, OwnTool::Perhaps),
            call,
            id,
            unread: Vec::new(),
            streamed: StreamedOutput::default(),
            exit: None,
            closed: false,
            stale: false,
        }
    }

    fn add(&mut self, unread: Vec<String>, meta: Option<&Meta>) {
        self.unread.extend(unread);
        let value = |name: &str, field: &str| meta?.get(name)?.get(field);
        // Extensions of codex-acp and claude-agent-acp: the output of a terminal that no client made.
        let data = value("terminal_output_delta", "data").or(value("terminal_output", "data"));
        if let Some(data) = data.and_then(|it| it.as_str()) {
            self.streamed.push(data);
        }
        let exit = value("terminal_exit", "exit_code").and_then(serde_json::Value::as_i64);
        if let Some(status) = exit.filter(|it| *it != 0) {
            self.exit = Some(format!("exit {status}"));
        }
        let signal = value("terminal_exit", "signal").and_then(|it| it.as_str());
        self.exit = signal
            .map(|it| format!("ended by {it}"))
            .or(self.exit.take());
    }

    /// Returns true if the agent says that the call uses one of co's own tools.
    pub(super) fn is_own(&self) -> bool {
        self.own != OwnTool::No
    }

    /// Returns true if the agent has reported the end of the call.
    pub(super) fn has_ended(&self) -> bool {
        matches!(
            self.call.status,
            ToolCallStatus::Completed | ToolCallStatus::Failed
        )
    }

    /// Returns true if the call succeeded.
    pub(super) fn is_ok(&self) -> bool {
        self.call.status == ToolCallStatus::Completed
    }

    /// Returns a description of the call's failure; empty if the call succeeded.
    pub(super) fn status(&self) -> String {
        match (self.call.status, &self.exit) {
            (_, Some(exit)) => exit.clone(),
            (ToolCallStatus::Completed, None) => String::new(),
            (ToolCallStatus::Failed, None) => "failed".to_owned(),
            _ => "goes on".to_owned(),
        }
    }

    /// Returns the call as the transcript keeps it. Secret values are not removed yet.
    pub(super) fn record(&self, cwd: &Path) -> AgentCall {
        let kind = serde_json::to_value(self.call.kind).unwrap_or_default();
        AgentCall {
            title: match self.call.title.trim() {
                "" => self.call.name.clone().unwrap_or_else(|| self.id.clone()),
                title => title.to_owned(),
            },
            kind: kind.as_str().unwrap_or("other").to_owned(),
            input: self.call.raw_input.as_ref().map(input_text),
            places: places(&self.call.locations, cwd),
        }
    }

    /// Returns the changes of files that the agent tells for the call.
    pub(super) fn diffs(&self) -> Vec<Diff> {
        let content = self.call.content.iter();
        let diffs = content.filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff.clone()),
            _ => None,
        });
        diffs.collect()
    }

    /// Returns the output of the call; for a call that changes files, the diff. Secret values are not removed yet.
    pub(super) fn output(&self) -> String {
        self.output_of(self.call.content.iter())
    }

    /// Returns the output of the call without its diffs. Secret values are not removed yet.
    pub(super) fn output_beside_diffs(&self) -> String {
        let content = self.call.content.iter();
        self.output_of(content.filter(|it| !matches!(it, ToolCallContent::Diff(_))))
    }

    fn output_of<'a>(&self, contents: impl Iterator<Item = &'a ToolCallContent>) -> String {
        let mut parts = Vec::new();
        let mut compared = 0;
        let streamed = self.streamed.text();
        let streamed = streamed.trim_end();
        parts.extend((!streamed.is_empty()).then(|| streamed.to_owned()));
        for content in contents {
            parts.extend(match content {
                ToolCallContent::Content(content) => Some(block_text(&content.content)),
                ToolCallContent::Diff(diff) => {
                    let path = diff.path.display().to_string();
                    let old = diff.old_text.as_deref().unwrap_or_default();
                    compared += old.len() + diff.new_text.len();
                    if compared > MOST_COMPARED {
                        parts.push(format!("[{path}: too large to show its difference]"));
                        continue;
                    }
                    let hunks = co_edit::hunks(old, &diff.new_text);
                    let names = co_edit::Names {
                        old: diff.old_text.as_ref().map(|_| path.as_str()),
                        new: Some(&path),
                    };
                    Some(co_edit::unified(old, &hunks, names))
                }
                ToolCallContent::Terminal(_) if !streamed.is_empty() => None,
                ToolCallContent::Terminal(terminal) => {
                    Some(format!("[terminal {}]", terminal.terminal_id))
                }
                ToolCallContent::Session(_) if !streamed.is_empty() => None,
                other => serde_json::to_string(other).ok(),
            });
        }
        parts.extend(self.unread.iter().cloned());
        let only_terminals =
            (self.call.content.iter()).all(|it| matches!(it, ToolCallContent::Terminal(_)));
        if streamed.is_empty() && only_terminals {
            parts.extend(self.call.raw_output.as_ref().map(raw_text));
        }
        let parts: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        let text = parts.join("\n");
        // An output that came in pieces may be a little longer.
        let start = start_of(&text, 2 * LONGEST_OUTPUT);
        match text.len() - start.len() {
            0 => text,
            more => format!("{start}\n[{more} more bytes]"),
        }
    }
}

/// Returns the places in files that a call names. Paths below `cwd` become relative to `cwd`.
fn places(locations: &[ToolCallLocation], cwd: &Path) -> Vec<String> {
    let place = |it: &ToolCallLocation| {
        let path = it.path.strip_prefix(cwd).unwrap_or(&it.path).display();
        match it.line {
            Some(line) => format!("{path}:{line}"),
            None => path.to_string(),
        }
    };
    let mut places: Vec<_> = locations.iter().take(MOST_PLACES).map(place).collect();
    places.dedup();
    places
}

/// Returns the input of a call as text, cut after [`LONGEST_INPUT`] bytes.
pub(super) fn input_text(input: &serde_json::Value) -> String {
    start_of(&pretty(input), LONGEST_INPUT).to_owned()
}

/// Returns the text of a call's raw output. Each agent writes raw output in its own form.
fn raw_text(output: &serde_json::Value) -> String {
    let names = ["formatted_output", "aggregated_output", "output", "stdout"];
    let named = names.iter().find_map(|name| output.get(name)?.as_str());
    match named.or(output.as_str()) {
        Some(text) => text.trim_end().to_owned(),
        None => pretty(output),
    }
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the tool of co that a call uses, according to the fields that the agent itself sets. Nothing that a model chooses,
/// such as the text of a command, counts.
fn own_tool(call: &ToolCall) -> Option<&'static str> {
    let input = |name: &str| call.raw_input.as_ref()?.get(name)?.as_str();
    let meta = call.meta.as_ref().and_then(|it| it.get("claudeCode"));
    let meta = meta.and_then(|it| it.get("toolName")?.as_str());
    let title = call.title.as_str();
    IN_PLACE_OF_OWN.into_iter().find(|tool| {
        let of_claude = format!("mcp__{SERVER}__{tool}");
        let names = [call.name.as_deref(), meta];
        let is_of_claude = names.contains(&Some(of_claude.as_str()));
        let is_of_codex = title == format!("mcp.{SERVER}.{tool}")
            && (input("server"), input("tool")) == (Some(SERVER), Some(tool));
        let of_others = [
            // gemini and opencode.
            format!("{tool} ({SERVER} MCP Server)"),
            format!("{SERVER}_{tool}"),
        ];
        let is_of_others = call.kind == ToolKind::Other && of_others.iter().any(|it| it == title);
        is_of_claude || is_of_codex || is_of_others
    })
}

#[cfg(test)]
mod tests;
