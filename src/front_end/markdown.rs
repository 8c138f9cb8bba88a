//! The text of a chat in its buffer: markdown, with one heading per speaker.

use super::fence::OpenFence;
use crate::chat::events::ChatEvent;
use crate::chat::text::{code, one_line};
use crate::error;
use crate::tool::jobs;
use crate::tool::shell::ExecMode;
use co_exec::Caller;
use co_llm::Fault;
use co_llm::transcript::{Context, Decision, End};

/// The least fence around the text of a command.
const FENCE: usize = 6;

/// The least fence around the output of a command, as Lua draws it.
const OUTPUT_FENCE: usize = 4;

/// The most lines of an output that is not folded, as in Lua.
const UNFOLDED: usize = 20;

/// Opens the model's part of a turn.
const HEADING: &str = "## Co";

/// The end of the text in the buffer, so that one blank line separates paragraphs.
#[derive(Debug)]
pub(super) struct Page {
    /// Line breaks at its end, two at most.
    breaks: usize,
    in_turn: bool,
    /// The model's heading of this turn is there.
    headed: bool,
    /// The code block of the answer that is open.
    code: OpenFence,
}

/// A text for the end of the buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    /// The byte of `text` at which a message of a speaker begins.
    pub message: Option<usize>,
}

/// The text of a whole transcript.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranscriptText {
    pub text: String,
    /// Rows to fold, first and last: long outputs, and answers that the model no longer sees.
    pub folds: Vec<[usize; 2]>,
    /// The row at which the last answer begins.
    pub answer: Option<usize>,
    /// The rows at which the messages begin.
    pub messages: Vec<usize>,
    /// Line breaks in the text.
    pub rows: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            breaks: 2,
            in_turn: false,
            headed: false,
            code: OpenFence::default(),
        }
    }
}

impl Page {
    /// Returns the text of an event, which goes to the end of the buffer.
    pub(super) fn add(&mut self, event: &ChatEvent) -> Piece {
        match event {
            ChatEvent::TurnStarted => (self.in_turn, self.headed) = (true, false),
            ChatEvent::Text(text) => {
                let mut piece = self.heading();
                piece.text.push_str(&self.text(text));
                return piece;
            }
            ChatEvent::Prompt { text, context } => {
                self.headed = false;
                return self.message(&prompt(text, context));
            }
            _ => {}
        }
        let text = paragraph(event);
        let is_models = speaker(event) == Caller::Agent;
        let mut piece = match text.is_some() && is_models && self.in_turn {
            true => self.heading(),
            false => Piece::default(),
        };
        let ends = matches!(event, ChatEvent::TurnEnded { .. });
        // What the person does may come in the middle of an answer.
        if ends || text.is_some() && is_models {
            piece.text.push_str(&self.close_code());
        }
        self.in_turn &= !ends;
        if let Some(text) = text {
            piece.text.push_str(&self.paragraph(&text));
        }
        piece
    }

    /// Returns the model's heading, unless it is there.
    pub(super) fn heading(&mut self) -> Piece {
        match std::mem::replace(&mut self.headed, true) {
            true => Piece::default(),
            false => self.message(HEADING),
        }
    }

    /// Returns a paragraph with which a message begins.
    fn message(&mut self, text: &str) -> Piece {
        let gap = self.close_code() + &self.gap();
        let message = Some(gap.len());
        let text = gap + &self.paragraph(text);
        Piece { text, message }
    }

    /// Returns the end of a code block that the model left open, as in an answer that broke off.
    fn close_code(&mut self) -> String {
        let Some(fence) = self.code.take() else {
            return String::new();
        };
        let line_break = if self.breaks == 0 { "\n" } else { "" };
        self.breaks = 1;
        format!("{line_break}{fence}\n")
    }

    fn text(&mut self, text: &str) -> String {
        self.code.push(text);
        let kept = text.trim_end_matches('\n');
        let breaks = text.len() - kept.len();
        self.breaks = if kept.is_empty() {
            self.breaks + breaks
        } else {
            breaks
        }
        .min(2);
        text.to_owned()
    }

    fn paragraph(&mut self, text: &str) -> String {
        let gap = self.gap();
        format!("{gap}{}\n\n", text.trim_matches('\n'))
    }

    /// Returns the line breaks after which a paragraph may begin.
    pub(super) fn gap(&mut self) -> String {
        "\n".repeat(2 - std::mem::replace(&mut self.breaks, 2))
    }

    /// Notes that a block of output follows; it ends with its own line.
    pub(super) fn block(&mut self) {
        self.breaks = 1;
    }
}

/// Returns the text of a whole transcript. The page becomes its end.
pub(super) fn transcript(events: &[ChatEvent], page: &mut Page) -> TranscriptText {
    let mut all = TranscriptText::default();
    for event in events {
        match event {
            ChatEvent::AnswerStarted => {
                all.push(page.heading());
                all.answer = Some(all.rows);
            }
            ChatEvent::AnswerDropped => {
                if let Some(first) = all.answer.take() {
                    // With the blank line below it: Neovim closes no fold of one line.
                    all.folds
                        .push([first, (all.rows + 1).saturating_sub(page.breaks)]);
                }
            }
            ChatEvent::Output { text, .. } => all.output(page, text, UNFOLDED),
            ChatEvent::Thought(text) => {
                all.output(page, text, 0);
                all.push_text(&page.gap());
            }
            event => all.push(page.add(event)),
        }
    }
    all
}

impl TranscriptText {
    fn push(&mut self, piece: Piece) {
        if let Some(at) = piece.message {
            let above = piece.text[..at].matches('\n').count();
            self.messages.push(self.rows + above);
        }
        self.push_text(&piece.text);
    }

    fn push_text(&mut self, text: &str) {
        self.rows += text.matches('\n').count();
        self.text.push_str(text);
    }

    /// Adds a block of output. It is folded if it has more lines than `unfolded`.
    fn output(&mut self, page: &mut Page, text: &str, unfolded: usize) {
        let inside = text.lines().map(|line| {
            let line = line.trim_start();
            line.len() - line.trim_start_matches('`').len()
        });
        let fence = "`".repeat(inside.max().map_or(0, |run| run + 1).max(OUTPUT_FENCE));
        self.push_text(&page.gap());
        let lines = text.lines().count();
        if lines > unfolded {
            self.folds.push([self.rows + 1, self.rows + lines]);
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.push_text(&format!("{fence}\n{text}{end}{fence}\n"));
        page.block();
    }
}

/// Returns who an event belongs to: the model's part of a turn has a heading.
fn speaker(event: &ChatEvent) -> Caller {
    match event {
        ChatEvent::Command { caller, .. }
        | ChatEvent::NotRun { caller, .. }
        | ChatEvent::Notice { caller, .. } => *caller,
        ChatEvent::JobEnded(_) | ChatEvent::AskedAgain | ChatEvent::AskedToContinue => {
            Caller::Person
        }
        _ => Caller::Agent,
    }
}

/// Returns the paragraph of an event, if it has one.
fn paragraph(event: &ChatEvent) -> Option<String> {
    Some(match event {
        ChatEvent::ThinkingStarted => "*thinks*".to_owned(),
        ChatEvent::Command {
            command, mode, ..
        } => self::command(command, *mode),
        ChatEvent::CommandEdited { command, mode } => {
            let gap = if command.contains('\n') { "\n\n" } else { " " };
            format!("*edited:*{gap}{}", self::command(command, *mode))
        }
        ChatEvent::FileCall(line) => code(line),
        ChatEvent::JobCall(request) => job(request),
        ChatEvent::Decision(decision) => self::decision(decision),
        ChatEvent::NotRun { why, .. } => format!("*not run: {why}*"),
        ChatEvent::Hidden(1) => "*1 value hidden from the model*".to_owned(),
        ChatEvent::Hidden(count) => format!("*{count} values hidden from the model*"),
        ChatEvent::Outcome(line) | ChatEvent::JobEnded(line) => format!("*{line}*"),
        ChatEvent::Notice { text, .. } => format!("> {text}"),
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
        ChatEvent::TurnEnded { end, fault } => return self::end(*end, fault.as_ref()),
        _ => return None,
    })
}

/// Returns a text as a block of code.
fn fenced(language: &str, text: &str) -> String {
    let text = text.trim_end();
    let inside = text.lines().map(|line| {
        let line = line.trim_start();
        line.len() - line.trim_start_matches('~').len()
    });
    let longer = inside.max().map_or(0, |run| run + 1);
    let fence = "~".repeat(longer.max(FENCE));
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns a prompt as it was sent.
fn prompt(text: &str, context: &[Context]) -> String {
    let mut out = format!("## You\n\n{}", text.trim_end());
    let mut code = OpenFence::default();
    code.push(text.trim_end());
    if let Some(fence) = code.take() {
        out.push_str(&format!("\n{fence}"));
    }
    for piece in context {
        let name = one_line(&piece.name);
        let size = match (&piece.image, piece.text.lines().count()) {
            (Some(_), _) => "an image".to_owned(),
            (None, 1) => "1 line".to_owned(),
            (None, count) => format!("{count} lines"),
        };
        out.push_str(&format!("\n\n*with {name}, {size}*"));
    }
    out
}

/// Returns a command as one line of code, or fenced if it has several lines.
fn command(command: &str, mode: ExecMode) -> String {
    let how = mode_words(mode);
    match command.contains('\n') {
        false => format!(
            "$ {}{}",
            code(command),
            how.map_or_else(String::new, |how| format!(" *{how}*"))
        ),
        true => {
            let how = how.map_or_else(String::new, |how| format!("\n*{how}*"));
            fenced("sh", command) + &how
        }
    }
}

fn mode_words(mode: ExecMode) -> Option<&'static str> {
    match (mode.terminal, mode.background) {
        (false, false) => None,
        (true, false) => Some("in a terminal"),
        (false, true) => Some("in the background"),
        (true, true) => Some("in a terminal, in the background"),
    }
}

fn job(request: &jobs::JobRequest) -> String {
    let line = code(&request.line());
    match &request.action {
        jobs::JobAction::Write { text, close } => {
            let typed = jobs::typed(text, *close);
            format!("{line}\n\n{}", fenced("text", &typed))
        }
        jobs::JobAction::Output { .. } | jobs::JobAction::Cancel => line,
    }
}

/// Returns the reason why a call ran, or did not.
fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Unasked => "*runs unasked: it only reads*".to_owned(),
        Decision::Tried => {
            "*runs as a trial: nothing it changes is kept without your yes*".to_owned()
        }
        Decision::Rule { rule } => format!("*allowed by your rule {}*", code(rule)),
        Decision::AutoConfirm => "*runs unasked: you allowed everything*".to_owned(),
        Decision::Approved => "*approved*".to_owned(),
        Decision::Denied { reason: None } => "*denied*".to_owned(),
        Decision::Denied {
            reason: Some(reason),
        } => format!("*denied: {reason}*"),
        Decision::Forbidden { why } => format!("*refused: {why}*"),
        Decision::Withdrawn => "*not answered; nothing was run*".to_owned(),
    }
}

/// Returns the first line of a note from co to the model.
fn note(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = line.strip_suffix(':').unwrap_or(line);
    format!("> co told the model: {}", co_policy::printable(line))
}

/// Returns how a turn ended, unless it ended well.
fn end(end: End, fault: Option<&Fault>) -> Option<String> {
    let text = match (end, fault) {
        (End::Done, _) => return None,
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

    #[test]
    fn a_prompt_names_what_went_along() {
        let with = |name: &str, text: &str| {
            let piece = Context {
                name: name.to_owned(),
                text: text.to_owned(),
                ..Context::default()
            };
            let shown = prompt("look", &[piece]);
            shown.strip_prefix("## You\n\nlook\n\n").unwrap().to_owned()
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
    fn an_edited_command_of_several_lines_is_a_block() {
        let edited = |command: &str| ChatEvent::CommandEdited {
            command: command.to_owned(),
            mode: ExecMode::default(),
        };
        assert_eq!(paragraph(&edited("ls")).unwrap(), "*edited:* $ `ls`");
        assert_eq!(
            paragraph(&edited("ls\npwd")).unwrap(),
            "*edited:*\n\n~~~~~~sh\nls\npwd\n~~~~~~"
        );
    }

    fn event_text(text: &str) -> ChatEvent {
        ChatEvent::Text(text.to_owned())
    }

    fn sent(text: &str) -> ChatEvent {
        ChatEvent::Prompt {
            text: text.to_owned(),
            context: Vec::new(),
        }
    }

    #[test]
    fn a_conversation_has_one_heading_a_speaker() {
        let done = || ChatEvent::TurnEnded {
            end: End::Done,
            fault: None,
        };
        let turn = |prompt: &str, pieces: &[&str]| {
            let start = [sent(prompt), ChatEvent::TurnStarted];
            let pieces: Vec<_> = pieces.iter().map(|piece| event_text(piece)).collect();
            start.into_iter().chain(pieces).chain([done()])
        };
        let events: Vec<_> = turn("hi", &["Hel", "lo."])
            .chain(turn("again", &["Yes."]))
            .collect();
        let told = transcript(&events, &mut Page::default());
        assert_eq!(
            told.text,
            "## You\n\nhi\n\n## Co\n\nHello.\n\n## You\n\nagain\n\n## Co\n\nYes."
        );
        assert_eq!(told.messages, [0, 4, 8, 12]);
    }

    #[test]
    fn a_block_of_code_ends_with_its_message() {
        let cut = ChatEvent::TurnEnded {
            end: End::Cancelled,
            fault: None,
        };
        let events = [
            sent("why?\n```\nx"),
            ChatEvent::TurnStarted,
            event_text("Try:\n``"),
            event_text("`lua\nprint("),
            cut,
            sent("go on"),
        ];
        let told = transcript(&events, &mut Page::default());
        assert_eq!(
            told.text,
            "## You\n\nwhy?\n```\nx\n```\n\n## Co\n\nTry:\n```lua\nprint(\n```\n\n> cancelled\n\n## You\n\ngo on\n\n"
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
        let told = transcript(&events, &mut Page::default());
        let lines: Vec<_> = told.text.lines().collect();
        let [[first, last]] = told.folds[..] else {
            panic!("{told:?}");
        };
        assert_eq!(lines[first..=last].join("|"), "One|line.|");
        assert!(lines[last + 1].starts_with("> asked again"), "{lines:?}");
        assert_eq!(lines[told.answer.unwrap()], "Two.");
    }
}
