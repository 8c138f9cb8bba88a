//! The view of a call in the chat: one line with the call, its state and unusual facts. The output of the call stands below.

use std::path::PathBuf;

use crate::chat::events::ChatEvent;
use crate::protocol::{CallLine, CallState};
use crate::tool::agent_call::{AgentCallSort, ShownAgentCall};
use crate::tool::event::ExecMode;
use crate::tool::event::{CallEnd, CallEvent, ShownCall};
use crate::tool::query;
use co_llm::transcript::Decision;
use co_text::{one_line, shorten, shorten_chars};

/// The number of last lines of an output that stay visible if the call failed.
const KEPT_FAILED: usize = 4;
const KEPT: usize = 3;

/// The largest number of characters in the call's line. A longer command is shown in full below the line.
const LONGEST: usize = 400;

/// The largest number of lines above an output. The question about the call shows all of these lines.
const LONGEST_LEAD: usize = 200;
const LONGEST_LEAD_LINE: usize = 2_000;

/// The view of a call in the chat.
#[derive(Debug, Default)]
pub(super) struct CallView {
    kind: CallKind,
    state: CallState,
    /// The call as text.
    what: String,
    /// The lines of a command that do not fit into the call's line.
    lead: Vec<String>,
    /// Remarks that the person should read. They stand at the end of the line.
    words: Vec<String>,
    /// Details that the person may skip. They stand at the right edge.
    details: Vec<String>,
    remarks: Vec<String>,
    /// The files that a call of an agent is about.
    places: Vec<String>,
    block: Option<u64>,
    /// The spill file with the whole output.
    spill: Option<PathBuf>,
    /// True if the command of the call last ran as a trial.
    tried: bool,
    ended: bool,
    /// The earlier queries that this view also shows, in the order of the calls. It is empty if the view shows only one call.
    group: Vec<Query>,
    /// The id of the call that sent the scout. It is `None` for views of other calls.
    scout: Option<String>,
}

/// A successful call that reads or searches.
#[derive(Debug, Clone)]
struct Query {
    /// The call as text, such as `read src/main.rs`.
    what: String,
    details: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CallKind {
    #[default]
    Command,
    /// A read-only command.
    Look,
    /// A call that reads or searches files.
    Query,
    Edit,
    Job,
    Plan,
    /// Questions to the person.
    Question,
    /// The work of a scout.
    Scout,
    Thought,
}

impl CallView {
    /// Returns the view of the call that an event begins, or `None` for other events.
    pub(super) fn new(event: &ChatEvent) -> Option<Self> {
        let view = |kind, state, what: &str| Self {
            kind,
            state,
            what: what.to_owned(),
            ..Self::default()
        };
        let scout = |call: &str, task: &str| Self {
            scout: Some(call.to_owned()),
            ..view(CallKind::Scout, CallState::Runs, &format!("explore {task}"))
        };
        Some(match event {
            ChatEvent::Call(CallEvent::Begun(ShownCall::Command { command, mode })) => {
                let mut call = view(CallKind::Command, CallState::Waits, "");
                call.set_command(command, *mode);
                call
            }
            ChatEvent::TypedCommand { block, command } => {
                let mut call = view(CallKind::Command, CallState::Runs, "");
                call.set_command(&format!("!{command}"), ExecMode::default());
                call.block = Some(*block);
                call
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Query(words))) => {
                view(CallKind::Query, CallState::Waits, words)
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Edit(words))) => {
                view(CallKind::Edit, CallState::Waits, words)
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Agent(shown))) => {
                let kind = match shown.sort {
                    // Not a query: several queries are shown as one, without their outputs.
                    AgentCallSort::Looks => CallKind::Look,
                    AgentCallSort::Edits => CallKind::Edit,
                    AgentCallSort::Other => CallKind::Command,
                };
                let mut call = view(kind, CallState::Waits, "");
                call.set_agent_call(shown);
                call
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Plan(steps))) => {
                let mut call = view(CallKind::Plan, CallState::Waits, "plan");
                call.remarks.clone_from(steps);
                call
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Question(words))) => {
                view(CallKind::Question, CallState::Waits, words)
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Job { words, typed })) => {
                let mut call = view(CallKind::Job, CallState::Waits, words);
                call.lead = lead(typed.as_deref().unwrap_or_default().lines());
                call
            }
            ChatEvent::Call(CallEvent::Begun(ShownCall::Scout { call, task })) => scout(call, task),
            ChatEvent::Call(CallEvent::Scouted(progress)) => scout(&progress.call, &progress.task),
            ChatEvent::ThinkingStarted => view(CallKind::Thought, CallState::Runs, "thinks"),
            _ => return None,
        })
    }

    fn set_command(&mut self, command: &str, mode: ExecMode) {
        let command = command.trim_end();
        let first = command.lines().next().unwrap_or_default();
        let whole = first.chars().count() <= LONGEST;
        self.lead = lead(command.lines().skip(usize::from(whole)));
        self.what = match (whole, self.lead.len()) {
            (true, 0) => first.to_owned(),
            (true, _) => format!("{first} …"),
            (false, _) => shorten_chars(first, LONGEST),
        };
        self.words = match (mode.terminal, mode.background) {
            (false, false) => Vec::new(),
            (true, false) => vec!["in a terminal".to_owned()],
            (false, true) => vec!["in the background".to_owned()],
            (true, true) => vec!["in a terminal, in the background".to_owned()],
        };
    }

    fn set_agent_call(&mut self, call: &ShownAgentCall) {
        self.what = shorten_chars(&call.title, LONGEST);
        self.lead = lead(call.input.iter().map(String::as_str));
        self.places = match call.places.as_slice() {
            [place] if self.what.contains(place.as_str()) => Vec::new(),
            places => places.to_vec(),
        };
        if self.places.len() > 1 {
            self.lead.extend(self.places.iter().cloned());
        }
    }

    /// Returns the text for the right edge.
    fn right(&self) -> String {
        let place = match self.places.as_slice() {
            [] => String::new(),
            [place] => place.clone(),
            [first, others @ ..] => format!("{first} and {} more", others.len()),
        };
        joined(&[place, joined(&self.details)])
    }

    /// Returns true if the view shows a plan with the steps of the model's work.
    pub(super) fn is_plan(&self) -> bool {
        self.kind == CallKind::Plan
    }

    /// Returns true if the view shows the scout that the call with this id sent.
    pub(super) fn is_scout_of(&self, call: &str) -> bool {
        self.scout.as_deref() == Some(call)
    }

    /// Adds a query to this view, if this view shows only successful queries. Returns false if it adds nothing.
    pub(super) fn absorb(&mut self, query: &Self) -> bool {
        let fits = self.kind == CallKind::Query && query.kind == CallKind::Query;
        if !fits || self.state != CallState::Looks || !self.remarks.is_empty() {
            return false;
        }
        self.group.push(self.query());
        self.what.clone_from(&query.what);
        (self.state, self.ended) = (query.state, false);
        self.details.clear();
        true
    }

    /// If the last query of a group failed, removes it from the group and returns a view of it. Returns `None` if there is
    /// nothing to remove.
    pub(super) fn split_failed(&mut self) -> Option<Self> {
        if self.state != CallState::Failed {
            return None;
        }
        let last = self.group.pop()?;
        let mut failed = Self {
            kind: self.kind,
            state: CallState::Looks,
            what: last.what,
            details: vec![last.details],
            block: self.block,
            tried: self.tried,
            ended: true,
            ..Self::default()
        };
        std::mem::swap(self, &mut failed);
        self.group = std::mem::take(&mut failed.group);
        Some(failed)
    }

    fn query(&self) -> Query {
        Query {
            what: self.what.clone(),
            details: joined(&self.details),
        }
    }

    /// Updates the view by an event about its call. Returns true if the call's line may have changed.
    pub(super) fn update(&mut self, event: &ChatEvent, full: bool) -> bool {
        if self.ended {
            return false;
        }
        match event {
            ChatEvent::Call(CallEvent::Edited { command, mode }) => {
                self.set_command(command, *mode);
                self.words.push("you: edited".to_owned());
            }
            ChatEvent::Call(CallEvent::Decision(decision)) => self.decide(decision, full),
            ChatEvent::Call(
                CallEvent::OutputStarted { block, .. } | CallEvent::Output { block, .. },
            ) => {
                (self.block, self.state) = (Some(*block), CallState::Runs);
                if !self.tried {
                    self.details.clear();
                }
            }
            ChatEvent::Call(CallEvent::OutputEnded { .. }) if self.tried => {
                self.state = CallState::Waits
            }
            ChatEvent::Call(CallEvent::AgentCallChanged(shown)) => self.set_agent_call(shown),
            // The many later pieces change no line.
            ChatEvent::Thinking { block, .. }
            | ChatEvent::Call(CallEvent::OutputLines { block, .. }) => {
                return self.block.replace(*block).is_none();
            }
            ChatEvent::ThinkingEnded { .. } | ChatEvent::Thought(_) => {
                (self.state, self.ended) = (CallState::Looks, true);
            }
            ChatEvent::Call(CallEvent::Scouted(progress)) => {
                self.words = vec![progress.words.clone()];
                self.details = vec![progress.details.clone()];
            }
            ChatEvent::Call(CallEvent::Ended(end)) => self.end(end, full),
            _ => return false,
        }
        true
    }

    fn decide(&mut self, decision: &Decision, full: bool) {
        let was_tried = std::mem::replace(&mut self.tried, *decision == Decision::Tried);
        self.state = match decision.lets_run() {
            true => CallState::Runs,
            false => CallState::Failed,
        };
        let usual = match decision {
            Decision::Unasked if self.kind == CallKind::Command => {
                self.kind = CallKind::Look;
                "runs unasked: it only reads".to_owned()
            }
            Decision::Unasked => return,
            Decision::Tried => return self.details.push("tried".to_owned()),
            Decision::Rule { rule } => format!("allowed by your rule {rule}"),
            Decision::AutoConfirm => "runs unasked: you allowed everything".to_owned(),
            Decision::Approved => "you: yes".to_owned(),
            Decision::Agent => "the agent carries it out itself".to_owned(),
            Decision::Denied { reason } => {
                self.words.push("you: no".to_owned());
                return self
                    .remarks
                    .extend(reason.iter().map(|it| format!("✎ {it}")));
            }
            Decision::Forbidden { why } => return self.words.push(format!("refused: {why}")),
            Decision::Withdrawn => {
                let ran = match was_tried {
                    true => "it ran as a trial only",
                    false => "nothing was run",
                };
                return self.words.push(format!("not answered; {ran}"));
            }
        };
        if full {
            self.words.push(usual);
        }
    }

    fn end(&mut self, end: &CallEnd, full: bool) {
        self.ended = true;
        self.state = match end.ok && self.state != CallState::Failed {
            true if matches!(
                self.kind,
                CallKind::Look
                    | CallKind::Query
                    | CallKind::Plan
                    | CallKind::Question
                    | CallKind::Scout
            ) =>
            {
                CallState::Looks
            }
            true => CallState::Done,
            false => CallState::Failed,
        };
        let shown = &end.shown;
        if self.kind == CallKind::Scout {
            self.words.clear();
            self.details.clear();
            self.lead = lead(shown.looked.iter().map(String::as_str));
        }
        if let Some(arguments) = &shown.arguments {
            self.set_agent_call(&ShownAgentCall::new(arguments));
        }
        let said = match &shown.exceptions {
            Some(exceptions) if !full => exceptions,
            _ => &shown.status,
        };
        match self.kind {
            CallKind::Query if end.ok && !full => self.details.push(said.clone()),
            _ => self.words.push(said.clone()),
        }
        if shown.exceptions.is_some() {
            self.details.push(shown.took.clone());
        }
        match end.hidden {
            0 => {}
            1 => self
                .remarks
                .push("1 value hidden from the model".to_owned()),
            count => self
                .remarks
                .push(format!("{count} values hidden from the model")),
        }
        self.remarks.extend(shown.notice.clone());
        self.spill.clone_from(&end.spill);
    }

    /// Returns the call in the form for Neovim. If `full` is true, all lines of its output stay visible.
    pub(super) fn line(&self, full: bool) -> CallLine {
        let words = joined(&self.words);
        if !self.group.is_empty() {
            return self.group_line(&words);
        }
        let what = match self.kind == CallKind::Edit && self.state == CallState::Done {
            // The counts say that it was changed.
            true => self.what.strip_prefix("edit ").unwrap_or(&self.what),
            false => &self.what,
        };
        let is_folded = matches!(
            self.kind,
            CallKind::Edit | CallKind::Thought | CallKind::Scout
        );
        let kept = match self.state {
            _ if full => usize::from(u16::MAX),
            _ if is_folded => 0,
            CallState::Failed => KEPT_FAILED,
            _ => KEPT,
        };
        CallLine {
            state: self.state,
            text: match words.as_str() {
                "" => what.to_owned(),
                words => format!("{what}  {words}"),
            },
            details: self.right(),
            lead: self.lead.clone(),
            remarks: self.remarks.iter().map(|it| one_line(it)).collect(),
            block: self.block,
            spill: (self.spill.as_deref()).map(|file| file.to_string_lossy().into_owned()),
            kept: self.ended.then_some(kept),
            // The last lines of a search say no more than others.
            whole: !full
                && (is_folded || self.kind == CallKind::Look && self.state == CallState::Looks),
            diff: self.kind == CallKind::Edit,
        }
    }

    /// Returns a group of queries as one line. The fold below the line has one line for each query.
    fn group_line(&self, words: &str) -> CallLine {
        let mut queries = self.group.clone();
        queries.push(self.query());
        let line = |query: &Query| match query.details.as_str() {
            "" => query.what.clone(),
            details => format!("{}  {details}", query.what),
        };
        let summary = summary(&queries);
        CallLine {
            state: self.state,
            text: match words {
                "" => summary,
                words => format!("{summary}  {words}"),
            },
            lead: queries.iter().map(line).collect(),
            remarks: self.remarks.iter().map(|it| one_line(it)).collect(),
            kept: self.ended.then_some(0),
            whole: true,
            ..CallLine::default()
        }
    }
}

/// Joins the parts that are not empty.
fn joined(parts: &[String]) -> String {
    let parts: Vec<_> = (parts.iter().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" · ")
}

/// Returns a short summary of queries, such as `read 2 files, search "def"`.
fn summary(queries: &[Query]) -> String {
    let subjects = |verb: &str| {
        let mut found: Vec<&str> = Vec::new();
        let all = queries
            .iter()
            .filter_map(|query| query.what.strip_prefix(verb));
        for subject in all {
            if !found.contains(&subject) {
                found.push(subject);
            }
        }
        found
    };
    let parts = query::VERBS.iter().filter_map(|(_, verb)| {
        let verb = format!("{verb} ");
        let found = subjects(&verb);
        let many = found.len() > 1 && verb != "search ";
        Some(match (verb.as_str(), found.len()) {
            (_, 0) => return None,
            ("read ", count) if many => format!("read {count} files"),
            ("list ", count) if many => format!("list {count} directories"),
            (_, count @ 4..) => format!("{verb}{}, and {} more", found[..2].join(", "), count - 2),
            _ => format!("{verb}{}", found.join(", ")),
        })
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the lines to show above an output. Cuts long lines, and replaces surplus lines by their number.
fn lead<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines = lines.map(|line| shorten(line, LONGEST_LEAD_LINE));
    let mut lead: Vec<_> = lines.by_ref().take(LONGEST_LEAD).collect();
    match lines.count() {
        0 => {}
        more => lead.push(format!("… {more} more lines")),
    }
    lead
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_llm::transcript::ShownPart;

    /// Returns the line of a command that only looked and printed much.
    fn looked(full: bool) -> CallLine {
        let shown = ShownCall::Command {
            command: "make\n--dry-run".to_owned(),
            mode: ExecMode::default(),
        };
        let mut call = CallView::new(&CallEvent::Begun(shown).into()).unwrap();
        call.update(&CallEvent::Decision(Decision::Unasked).into(), full);
        let end = CallEnd {
            typed: None,
            ok: true,
            shown: ShownPart {
                exceptions: Some(String::new()),
                took: "0.8 s".to_owned(),
                ..ShownPart::line("exit 0, 900 lines".to_owned())
            },
            hidden: 0,
            spill: Some("/state/output".into()),
        };
        call.update(&CallEvent::Ended(end).into(), full);
        call.line(full)
    }

    #[test]
    fn what_is_usual_is_not_said_unless_calls_are_shown_in_full() {
        let line = looked(false);
        let quiet = ("make …", "0.8 s", Some(KEPT), CallState::Looks);
        assert_eq!(
            (
                line.text.as_str(),
                line.details.as_str(),
                line.kept,
                line.state
            ),
            quiet
        );
        assert_eq!(line.lead, ["--dry-run"]);
        // More than so many lines are folded into its line.
        assert!(line.whole);
        assert_eq!(line.spill.as_deref(), Some("/state/output"));
        let full = looked(true);
        assert_eq!(
            full.text,
            "make …  runs unasked: it only reads · exit 0, 900 lines"
        );
        assert_eq!(
            (full.kept, full.whole),
            (Some(usize::from(u16::MAX)), false)
        );
        assert_eq!(
            (full.details, full.lead, full.state),
            (line.details, line.lead, line.state)
        );
    }
}
