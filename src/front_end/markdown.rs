//! The text of a chat in its buffer. It is markdown with a heading for each speaker, and has calls between the paragraphs.

use super::call::CallView;
use super::fence::OpenFence;
use crate::chat::events::ChatEvent;
use crate::error;
use crate::protocol::{CallLine, CallRows, MessageRow};
use crate::tool::event::{CallEvent, ShownCall};
use co_exec::Caller;
use co_llm::Fault;
use co_llm::transcript::{Context, End};
use co_text::{first_line, one_line, start_of};

/// The largest size of an output in the text of a transcript, in bytes. A call is sent as a whole, so a larger output would delay
/// keys.
const LONGEST_OUTPUT: usize = 40 << 10;

/// The largest length of an output line, in bytes. Lua has the same limit for all lines of a chat.
const LONGEST_LINE: usize = 4_000;

/// The heading that begins the model's part of a turn.
const HEADING: &str = "## Co";

/// The state at the end of a chat's text, and the views of calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The kind of the last text.
    last: Last,
    /// The number of line breaks at the end of the text.
    breaks: usize,
    /// The number of line breaks of the answer that are held back until more text of the answer arrives.
    held: usize,
    in_turn: bool,
    /// True if the text has the model's heading for this turn.
    headed: bool,
    /// True if a call stood at the end of the text when the answer began. Then a blank line separates the call and the answer.
    answers_call: bool,
    /// The code block that the answer leaves open.
    code: OpenFence,
    /// True if calls are shown with all their lines.
    full: bool,
    /// The number of calls that were shown so far.
    calls: u64,
    /// The last call of the model: its number and its view.
    call: Option<(u64, CallView)>,
    /// The number of the call that shows the plan of the model's work in this turn.
    plan: Option<u64>,
    /// The views of scouts that already work, before their calls are shown. Each has the number of its call.
    scouts: Vec<(u64, CallView)>,
    /// The running commands that the person typed. Each has the number of its call and the number of its output block.
    typed: Vec<(u64, u64, CallView)>,
}

/// The kind of the text at the end of a chat.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Heading,
    Prose,
    Call,
    /// A paragraph of co itself, such as a notice.
    Remark,
}

/// A text to append to the buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    pub message: Option<MessageStart>,
}

/// The start of a speaker's message within a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageStart {
    /// The byte offset of the message in the text of the piece.
    pub byte: usize,
    /// The time of the prompt in seconds since 1970. It is `None` for messages of the model, and for prompts in files of earlier
    /// versions.
    pub at: Option<u64>,
}

/// A change of the chat's buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Append(Piece),
    /// A new call at the end, or the new state of an earlier call. The number identifies the call.
    Call(u64, CallLine),
    /// Puts a blank line above the last answer.
    SeparateAnswer,
}

/// The text of a whole transcript.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranscriptText {
    pub text: String,
    /// The ranges of rows to fold: answers that the model no longer gets. Each range has the first and the last row.
    pub folds: Vec<[usize; 2]>,
    /// The row in which the last answer begins.
    pub answer: Option<usize>,
    /// The byte offset at which the last answer begins.
    pub answer_byte: usize,
    pub messages: Vec<MessageRow>,
    pub calls: Vec<CallRows>,
    /// The number of line breaks in the text.
    pub rows: usize,
}

impl Page {
    /// Makes the page of an empty text. If `full` is true, calls are shown with all their lines.
    pub(super) fn new(full: bool) -> Self {
        Self {
            breaks: 2,
            full,
            ..Self::default()
        }
    }

    /// Returns the changes that show an event.
    pub(super) fn add(&mut self, event: &ChatEvent) -> Vec<Edit> {
        let mut separated = None;
        match event {
            ChatEvent::TurnStarted => {
                (self.in_turn, self.headed, self.plan) = (true, false, None);
            }
            ChatEvent::Text(text) => {
                self.call = None;
                let mut piece = self.heading();
                piece.text.push_str(&self.text(text));
                return vec![Edit::Append(piece)];
            }
            ChatEvent::Prompt { text, context, at } => {
                self.headed = false;
                return vec![Edit::Append(self.message(&prompt(text, context), *at))];
            }
            ChatEvent::AnswerStarted => self.answers_call = self.last == Last::Call,
            ChatEvent::TurnEnded { end, .. } => {
                self.scouts.clear();
                self.call = None;
                let separate = self.answers_call && self.last == Last::Prose && *end == End::Done;
                separated = separate.then_some(Edit::SeparateAnswer);
            }
            _ => {}
        }
        if let Some(edits) = self.scouted(event) {
            return edits;
        }
        if let Some(call) = CallView::new(event) {
            return self.begin(call, event);
        }
        let edits = self.update(event);
        if !edits.is_empty() {
            return edits;
        }
        let remark = remark(event);
        let is_models = speaker(event) == Caller::Agent;
        let mut piece = match remark.is_some() && is_models && self.in_turn {
            true => self.heading(),
            false => Piece::default(),
        };
        let ends = matches!(event, ChatEvent::TurnEnded { .. });
        // A command of the person may come in the middle of an answer.
        if ends || remark.is_some() && is_models {
            piece.text.push_str(&self.close_code());
        }
        self.in_turn &= !ends;
        if let Some(text) = remark {
            piece.text.push_str(&self.gap(match self.last {
                Last::Call | Last::Heading => 1,
                _ => 2,
            }));
            piece.text.push_str(&format!("{text}\n"));
            (self.last, self.breaks, self.held) = (Last::Remark, 1, 0);
        }
        separated.into_iter().chain(appended(piece)).collect()
    }

    /// Returns the changes that show a new call.
    fn begin(&mut self, call: CallView, event: &ChatEvent) -> Vec<Edit> {
        let typed = match event {
            ChatEvent::TypedCommand { block, .. } => Some(*block),
            _ => None,
        };
        let mut piece = match self.in_turn && typed.is_none() {
            true => self.heading(),
            false => Piece::default(),
        };
        // A command of the person may come in the middle of an answer.
        if typed.is_none() {
            piece.text.push_str(&self.close_code());
        }
        if let Some(number) = self.plan.filter(|_| call.is_plan()) {
            // The text after it begins a line of its own.
            (self.last, self.held) = (Last::Call, 0);
            let line = call.line(self.full);
            self.call = Some((number, call));
            return vec![Edit::Call(number, line)];
        }
        if let Some((number, before)) = &mut self.call
            && self.last == Last::Call
            && *number == self.calls
            && piece.text.is_empty()
            && !self.full
            && before.absorb(&call)
        {
            return vec![Edit::Call(*number, before.line(self.full))];
        }
        piece.text.push_str(&self.line_gap());
        (self.last, self.breaks, self.held) = (Last::Call, 1, 0);
        self.calls += 1;
        let line = call.line(self.full);
        if call.is_plan() {
            self.plan = Some(self.calls);
        }
        match (typed, event) {
            (Some(block), _) => self.typed.push((self.calls, block, call)),
            (None, ChatEvent::Call(CallEvent::Scouted(_))) => self.scouts.push((self.calls, call)),
            (None, _) => self.call = Some((self.calls, call)),
        }
        let mut edits = appended(piece);
        edits.push(Edit::Call(self.calls, line));
        edits
    }

    /// Returns the changes for an event of a scout that is already shown. Returns `None` for a scout that is not shown, and for
    /// other events.
    fn scouted(&mut self, event: &ChatEvent) -> Option<Vec<Edit>> {
        match event {
            ChatEvent::Call(CallEvent::Begun(ShownCall::Scout { call, .. })) => {
                let at = self
                    .scouts
                    .iter()
                    .position(|(_, it)| it.is_scout_of(call))?;
                self.call = Some(self.scouts.remove(at));
                Some(Vec::new())
            }
            ChatEvent::Call(CallEvent::Scouted(progress)) => {
                let mut shown = self.scouts.iter_mut().chain(self.call.as_mut());
                let (number, call) = shown.find(|(_, it)| it.is_scout_of(&progress.call))?;
                call.update(event, self.full);
                Some(vec![Edit::Call(*number, call.line(self.full))])
            }
            _ => None,
        }
    }

    /// Returns the changes for an event about a call that is already shown. They are empty for other events.
    fn update(&mut self, event: &ChatEvent) -> Vec<Edit> {
        if let ChatEvent::Call(CallEvent::Ended(end)) = event
            && let Some(block) = end.typed
        {
            let Some(at) = self.typed.iter().position(|it| it.1 == block) else {
                return Vec::new();
            };
            let (number, _, mut call) = self.typed.swap_remove(at);
            call.update(event, self.full);
            return vec![Edit::Call(number, call.line(self.full))];
        }
        if let ChatEvent::Call(CallEvent::OutputStarted { block, .. }) = event
            && self.typed.iter().any(|(_, known, _)| known == block)
        {
            return Vec::new();
        }
        let Some((number, call)) = &mut self.call else {
            return Vec::new();
        };
        if !call.update(event, self.full) {
            return Vec::new();
        }
        let failed = call.split_failed();
        let mut edits = vec![Edit::Call(*number, call.line(self.full))];
        if let Some(failed) = failed {
            self.calls += 1;
            edits.push(Edit::Call(self.calls, failed.line(self.full)));
            self.call = Some((self.calls, failed));
        }
        edits
    }

    /// Returns the model's heading. Returns an empty piece if this turn already has it.
    pub(super) fn heading(&mut self) -> Piece {
        match std::mem::replace(&mut self.headed, true) {
            true => Piece::default(),
            false => {
                let piece = self.message(HEADING, None);
                self.last = Last::Heading;
                piece
            }
        }
    }

    /// Returns the piece that begins a message of the person or the model with this text.
    fn message(&mut self, text: &str, at: Option<u64>) -> Piece {
        let gap = self.close_code() + &self.gap(2);
        let message = Some(MessageStart {
            byte: gap.len(),
            at,
        });
        (self.last, self.breaks, self.held) = (Last::Prose, 1, 0);
        Piece {
            text: format!("{gap}{}\n", text.trim_matches('\n')),
            message,
        }
    }

    /// Returns the closing fence of a code block that the model left open, for example because the answer broke off.
    fn close_code(&mut self) -> String {
        let Some(fence) = self.code.take() else {
            return String::new();
        };
        let gap = self.gap(1);
        (self.breaks, self.held) = (1, 0);
        format!("{gap}{fence}\n")
    }

    /// Returns a piece of an answer. Holds back the line breaks at its end.
    fn text(&mut self, text: &str) -> String {
        let begins = self.last != Last::Prose;
        // A model often begins with blank lines after a call.
        let text = match begins {
            true => text.trim_start_matches('\n'),
            false => text,
        };
        let kept = text.trim_end_matches('\n');
        let held = text.len() - kept.len();
        if kept.is_empty() {
            self.held += held;
            return String::new();
        }
        let gap = match begins {
            true => self.line_gap(),
            false => "\n".repeat(self.held),
        };
        self.code.push(&gap);
        self.code.push(kept);
        (self.last, self.breaks, self.held) = (Last::Prose, 0, held);
        gap + kept
    }

    /// Returns the line breaks to add so that the text ends with `wanted` line breaks.
    pub(super) fn gap(&mut self, wanted: usize) -> String {
        let missing = wanted.saturating_sub(self.breaks);
        self.breaks += missing;
        "\n".repeat(missing)
    }

    /// Returns the line breaks before a call or the text of an answer. After a remark, they form a blank line.
    fn line_gap(&mut self) -> String {
        self.gap(1 + usize::from(self.last == Last::Remark))
    }

    /// Returns a line break if the text so far does not end with one. So the answer begins in a new line, and the reasoning above
    /// it can be folded.
    pub(super) fn end_line(&mut self) -> String {
        self.gap(1)
    }
}

/// Returns the change that appends a piece. Returns nothing if the piece is empty.
fn appended(piece: Piece) -> Vec<Edit> {
    match piece.text.is_empty() {
        true => Vec::new(),
        false => vec![Edit::Append(piece)],
    }
}

/// Returns the text of a whole transcript. Afterwards, `page` has the state at the end of this text.
pub(super) fn transcript(events: &[ChatEvent], page: &mut Page) -> TranscriptText {
    let mut all = TranscriptText::default();
    let (mut output, mut numbers) = ((0, ""), Vec::new());
    for event in events {
        match event {
            ChatEvent::AnswerStarted => {
                let piece = page.heading();
                all.end_call(&mut output);
                all.push(piece);
                all.push_text(&page.end_line());
                (all.answer, all.answer_byte) = (Some(all.rows), all.text.len());
            }
            ChatEvent::AnswerDropped => {
                all.push_text(&page.end_line());
                if let Some(first) = all.answer.take() {
                    all.folds.push([first, all.rows.saturating_sub(1)]);
                }
            }
            _ => {}
        }
        let text = match event {
            ChatEvent::Call(CallEvent::Output { text, .. }) | ChatEvent::Thought(text) => text,
            _ => "",
        };
        for edit in page.add(event) {
            match edit {
                Edit::Append(piece) => {
                    all.end_call(&mut output);
                    all.push(piece);
                }
                Edit::SeparateAnswer => all.separate_answer(),
                Edit::Call(number, line) => match numbers.iter().position(|it| *it == number) {
                    Some(at) => all.calls[at].line = line,
                    None => {
                        all.end_call(&mut output);
                        output = (number, "");
                        numbers.push(number);
                        all.begin_call(line);
                    }
                },
            }
        }
        if !text.is_empty() {
            output.1 = text;
        }
    }
    all.end_call(&mut output);
    all
}

impl TranscriptText {
    fn push(&mut self, piece: Piece) {
        if let Some(MessageStart { byte, at }) = piece.message {
            let above = piece.text[..byte].matches('\n').count();
            self.messages.push(MessageRow {
                row: self.rows + above,
                at,
            });
        }
        self.push_text(&piece.text);
    }

    fn push_text(&mut self, text: &str) {
        self.rows += text.matches('\n').count();
        self.text.push_str(text);
    }

    fn separate_answer(&mut self) {
        if let Some(row) = &mut self.answer {
            self.text.insert(self.answer_byte, '\n');
            (*row, self.rows) = (*row + 1, self.rows + 1);
        }
    }

    fn begin_call(&mut self, line: CallLine) {
        let row = self.rows;
        self.calls.push(CallRows {
            row,
            output: 0,
            skipped: 0,
            line,
        });
        self.push_text("\n");
    }

    /// Ends the last call of the text: adds the last lines of its output. Does nothing if the number of the call is 0.
    fn end_call(&mut self, (number, text): &mut (u64, &str)) {
        if std::mem::take(number) == 0 {
            return;
        }
        let (skipped, lines) = last_lines(std::mem::take(text));
        for line in &lines {
            self.push_text(line);
            self.push_text("\n");
        }
        if let Some(call) = self.calls.last_mut() {
            (call.output, call.skipped) = (lines.len(), skipped);
            call.line.block = None;
            // The call of a turn that was cut off has no end.
            call.line.kept.get_or_insert(0);
        }
    }
}

/// Returns the last lines of an output that Neovim can take at once, and the number of lines before them. A long line is split
/// into several.
fn last_lines(text: &str) -> (usize, Vec<&str>) {
    let mut lines = Vec::new();
    for mut line in text.lines() {
        while line.len() > LONGEST_LINE {
            let (piece, rest) = line.split_at(start_of(line, LONGEST_LINE).len());
            lines.push(piece);
            line = rest;
        }
        lines.push(line);
    }
    let mut room = LONGEST_OUTPUT;
    let fits = lines.iter().rev().take_while(|line| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    });
    let skipped = lines.len() - fits.count();
    lines.drain(..skipped);
    (skipped, lines)
}

/// Returns the speaker of an event. A paragraph about an event of `Caller::Agent` stands below the model's heading.
fn speaker(event: &ChatEvent) -> Caller {
    match event {
        ChatEvent::Notice { caller, .. } => *caller,
        ChatEvent::JobEnded(_) | ChatEvent::AskedAgain | ChatEvent::AskedToContinue => {
            Caller::Person
        }
        _ => Caller::Agent,
    }
}

/// Returns the paragraph that co writes about an event, or `None` if it writes none.
fn remark(event: &ChatEvent) -> Option<String> {
    Some(match event {
        ChatEvent::JobEnded(text) | ChatEvent::Notice { text, .. } => format!("> {text}"),
        ChatEvent::ToldModel(text) => note(text),
        ChatEvent::Summarised => {
            "> earlier turns were summed up for the model; they stay here and in the file".to_owned()
        }
        ChatEvent::TextsShortened => {
            "> the chat nearly fills the model's context window: from here on the model gets only parts of older outputs and contexts".to_owned()
        }
        ChatEvent::AskedAgain => {
            "> asked again: the model no longer sees the answer above".to_owned()
        }
        ChatEvent::AskedToContinue => "> asked the model to continue".to_owned(),
        ChatEvent::TurnEnded {
            end,
            fault,
            by_agent,
            explained,
        } => return self::end(*end, fault.as_ref(), *by_agent).filter(|_| !explained),
        _ => return None,
    })
}

/// Returns a prompt with its heading and the names of its contexts.
fn prompt(text: &str, context: &[Context]) -> String {
    let mut out = format!("## You\n{}", text.trim_end());
    let mut code = OpenFence::default();
    code.push(text.trim_end());
    if let Some(fence) = code.take() {
        out.push_str(&format!("\n{fence}"));
    }
    for (index, piece) in context.iter().enumerate() {
        let gap = if index == 0 { "\n\n" } else { "\n" };
        let name = one_line(&piece.name);
        let size = match (&piece.image, piece.text.lines().count()) {
            (Some(_), _) => "an image".to_owned(),
            (None, 1) => "1 line".to_owned(),
            (None, count) => format!("{count} lines"),
        };
        out.push_str(&format!("{gap}*with {name}, {size}*"));
    }
    out
}

/// Returns the paragraph about a note from co to the model: the first line of the note.
fn note(text: &str) -> String {
    let line = first_line(text);
    let line = line.strip_suffix(':').unwrap_or(line);
    format!("> co told the model: {}", co_text::printable(line))
}

/// Returns the paragraph about the end of a turn, or `None` if the turn ended well.
fn end(end: End, fault: Option<&Fault>, by_agent: bool) -> Option<String> {
    let text = match (end, fault) {
        (End::Done, _) => return None,
        (End::Failed, None) if by_agent => "the turn failed; a new prompt asks again".to_owned(),
        (End::Guarded, _) if by_agent => "stopped at a limit; a new prompt continues it".to_owned(),
        (End::Interrupted, _) if by_agent => "interrupted; a new prompt continues it".to_owned(),
        (End::Failed, Some(fault)) => error::text_of(fault).markdown(),
        (End::Failed, None) => {
            "the turn failed; `:Co /log` says more, `:Co /retry` asks again".to_owned()
        }
        (End::Cancelled, _) => "cancelled".to_owned(),
        (End::Guarded, _) => "stopped at a limit; `:Co /continue` continues it".to_owned(),
        (End::Interrupted, _) => {
            "interrupted; `:Co /continue` continues it, `:Co /retry` asks again".to_owned()
        }
    };
    Some(format!("> {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::event::CallEnd;
    use co_llm::transcript::ShownPart;

    #[test]
    fn a_prompt_names_what_went_along() {
        let with = |name: &str, text: &str| {
            let piece = Context {
                name: name.to_owned(),
                text: text.to_owned(),
                ..Context::default()
            };
            let shown = prompt("look", &[piece]);
            shown.strip_prefix("## You\nlook\n\n").unwrap().to_owned()
        };
        assert_eq!(
            with("@buffer src/app.py", "a\nb\n\n"),
            "*with @buffer src/app.py, 3 lines*"
        );
        assert_eq!(with("@file:f.txt", "one"), "*with @file:f.txt, 1 line*");
        assert_eq!(with("@file:f.txt", ""), "*with @file:f.txt, 0 lines*");
        assert_eq!(
            with("@buffer a\nb\u{202e}", "one\n"),
            "*with @buffer a\\nb\\u{202e}, 1 line*"
        );
    }

    #[test]
    fn a_long_output_is_shown_from_its_end_in_short_lines() {
        assert_eq!(last_lines("a\n\nb\n"), (0, vec!["a", "", "b"]));
        assert_eq!(last_lines(""), (0, Vec::new()));
        let wide = "é".repeat(LONGEST_LINE);
        let (_, pieces) = last_lines(&wide);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces.concat(), wide);
        let many = "a line\n".repeat(100_000);
        let (skipped, shown) = last_lines(&many);
        assert!(shown.concat().len() <= LONGEST_OUTPUT, "{}", shown.len());
        assert_eq!(skipped + shown.len(), 100_000);
    }

    fn event_text(text: &str) -> ChatEvent {
        ChatEvent::Text(text.to_owned())
    }

    fn sent(text: &str) -> ChatEvent {
        ChatEvent::Prompt {
            text: text.to_owned(),
            context: Vec::new(),
            at: Some(60),
        }
    }

    #[test]
    fn a_conversation_has_one_heading_a_speaker() {
        let done = || ChatEvent::TurnEnded {
            end: End::Done,
            fault: None,
            by_agent: false,
            explained: false,
        };
        let turn = |prompt: &str, pieces: &[&str]| {
            let start = [sent(prompt), ChatEvent::TurnStarted];
            let pieces: Vec<_> = pieces.iter().map(|piece| event_text(piece)).collect();
            start.into_iter().chain(pieces).chain([done()])
        };
        let events: Vec<_> = turn("hi", &["Hel", "lo."])
            .chain(turn("again", &["Yes."]))
            .collect();
        let told = transcript(&events, &mut Page::new(false));
        assert_eq!(
            told.text,
            "## You\nhi\n\n## Co\nHello.\n\n## You\nagain\n\n## Co\nYes."
        );
        let prompt = |row| MessageRow { row, at: Some(60) };
        let answer = |row| MessageRow { row, at: None };
        assert_eq!(told.messages, [prompt(0), answer(3), prompt(6), answer(9)]);
    }

    #[test]
    fn the_failed_turn_of_an_agent_is_explained_once() {
        let text = |notice: Option<&str>, explained| {
            let notice = notice.map(|text| ChatEvent::Notice {
                text: text.to_owned(),
                caller: Caller::Agent,
            });
            let failed = ChatEvent::TurnEnded {
                end: End::Failed,
                fault: None,
                by_agent: true,
                explained,
            };
            let start = [sent("hi"), ChatEvent::TurnStarted];
            let events: Vec<_> = start.into_iter().chain(notice).chain([failed]).collect();
            transcript(&events, &mut Page::new(false)).text
        };
        let told = text(Some("it has ended; the next prompt starts it anew"), true);
        assert!(told.trim_end().ends_with("anew"), "{told}");
        for notice in [None, Some("a notice about something else")] {
            let told = text(notice, false);
            assert!(
                told.contains("the turn failed; a new prompt asks again"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_blank_line_is_above_an_answer_that_ends_a_turn_after_calls() {
        let call = || {
            [
                CallEvent::Begun(ShownCall::Query("read a".to_owned())).into(),
                ended_well(),
                ChatEvent::AnswerStarted,
            ]
        };
        let done = ChatEvent::TurnEnded {
            end: End::Done,
            fault: None,
            by_agent: false,
            explained: false,
        };
        let start = [
            sent("hi"),
            ChatEvent::TurnStarted,
            ChatEvent::AnswerStarted,
            event_text("I look."),
        ];
        let events: Vec<_> = (start.into_iter().chain(call()))
            .chain([event_text("\n\nOnce more.")])
            .chain(call())
            .chain([event_text("So."), done])
            .collect();
        let told = transcript(&events, &mut Page::new(false));
        // The lines of calls are empty here.
        let text = "## You\nhi\n\n## Co\nI look.\n\nOnce more.\n\n\nSo.";
        assert_eq!(told.text, text);
        let calls: Vec<_> = told.calls.iter().map(|call| call.row).collect();
        assert_eq!((calls, told.answer), (vec![5, 7], Some(9)));
        assert_eq!(told.rows, text.matches('\n').count());
    }

    #[test]
    fn a_plan_is_one_block_of_its_turn() {
        let plan = |step: &str| {
            let shown = ShownCall::Plan(vec![step.to_owned()]);
            [CallEvent::Begun(shown).into(), ended_well()]
        };
        let turn = |first: &str, last: &str| {
            [ChatEvent::TurnStarted, ChatEvent::AnswerStarted]
                .into_iter()
                .chain(plan(first))
                .chain([event_text("I do it.")])
                .chain(plan(last))
                .chain([event_text("Done.")])
        };
        let events: Vec<_> = turn("[ ] a", "[x] a")
            .chain(turn("[ ] b", "[x] b"))
            .collect();
        let told = transcript(&events, &mut Page::new(false));
        let steps: Vec<_> = told
            .calls
            .iter()
            .map(|call| &call.line.remarks[0])
            .collect();
        assert_eq!(steps, ["[x] a", "[x] b"]);
        assert!(told.text.contains("I do it.\nDone."), "{}", told.text);
    }

    fn ended_well() -> ChatEvent {
        ChatEvent::Call(CallEvent::Ended(CallEnd {
            typed: None,
            ok: true,
            shown: ShownPart {
                exceptions: Some("1-2".to_owned()),
                ..ShownPart::line("all 2 lines".to_owned())
            },
            hidden: 0,
            spill: None,
        }))
    }

    #[test]
    fn a_block_of_code_ends_with_its_message() {
        let cut = ChatEvent::TurnEnded {
            end: End::Cancelled,
            fault: None,
            by_agent: false,
            explained: false,
        };
        let events = [
            sent("why?\n```\nx"),
            ChatEvent::TurnStarted,
            event_text("Try:\n``"),
            event_text("`lua\nprint("),
            cut,
            sent("go on"),
        ];
        let told = transcript(&events, &mut Page::new(false));
        assert_eq!(
            told.text,
            "## You\nwhy?\n```\nx\n```\n\n## Co\nTry:\n```lua\nprint(\n```\n\n> cancelled\n\n## You\ngo on\n"
        );
    }

    #[test]
    fn an_answer_that_was_asked_for_again_is_folded() {
        let events = [
            sent("hi"),
            ChatEvent::TurnStarted,
            ChatEvent::AnswerStarted,
            event_text("One\n"),
            event_text("line."),
            ChatEvent::AnswerDropped,
            ChatEvent::AskedAgain,
            ChatEvent::TurnStarted,
            ChatEvent::AnswerStarted,
            event_text("Two."),
        ];
        let told = transcript(&events, &mut Page::new(false));
        let lines: Vec<_> = told.text.lines().collect();
        let [[first, last]] = told.folds[..] else {
            panic!("{told:?}");
        };
        assert_eq!(lines[first..=last].join("|"), "One|line.");
        assert!(lines[last + 2].starts_with("> asked again"), "{lines:?}");
        assert_eq!(lines[told.answer.unwrap()], "Two.");
    }
}
