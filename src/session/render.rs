//! How a transcript reads in the chat buffer: markdown, one heading per speaker.

use std::collections::{HashMap, HashSet};

use crate::error;
use crate::llm::Fault;
use crate::policy;
use crate::tool::files::{self, Look};
use crate::tool::shell::Manner;
use crate::tool::{ToolCall, jobs};
use crate::transcript::{Call, Context, Decision, End, Item, Outcome};

/// The fence around raw output; longer than what a command is likely to print.
pub(super) const FENCE: &str = "~~~~~~";

/// Characters of a command that name its job.
const SHORT: usize = 60;

/// Where the transcript ends on the screen, so that paragraphs stand one blank line apart.
#[derive(Debug)]
pub(super) struct Page {
    /// Line breaks at its end, two at most.
    breaks: usize,
}

impl Page {
    pub(super) fn new() -> Self {
        Self { breaks: 2 }
    }

    /// Text that goes on where the last one ended.
    pub(super) fn text(&mut self, text: &str) -> String {
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

    /// Text that stands by itself.
    pub(super) fn paragraph(&mut self, text: &str) -> String {
        let gap = self.gap();
        format!("{gap}{}\n\n", text.trim_matches('\n'))
    }

    /// Returns the line breaks after which a paragraph may begin.
    pub(super) fn gap(&mut self) -> String {
        "\n".repeat(2 - std::mem::replace(&mut self.breaks, 2))
    }

    /// A block of output was put there; it ends with its own line.
    pub(super) fn block(&mut self) {
        self.breaks = 1;
    }
}

/// A prompt, as sent.
pub(super) fn prompt(text: &str, context: &[Context]) -> String {
    let mut out = format!("## You\n\n{}", text.trim_end());
    for piece in context {
        let name = one_line(&piece.name);
        let lines = match piece.text.lines().count() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        };
        out.push_str(&format!("\n\n*with {name}, {lines}*"));
    }
    out
}

/// Returns `text` as one printable line, with line breaks and hidden characters escaped.
pub(super) fn one_line(text: &str) -> String {
    policy::printable(text).replace('\n', "\\n")
}

/// Opens a model's answer.
pub(super) const HEADING: &str = "## Co";

/// A call, before it is asked about or run.
pub(super) fn call(command: &str, manner: Manner) -> String {
    let how = manner_words(manner);
    match command.contains('\n') {
        false => format!(
            "$ {}{}",
            code(command),
            how.map_or_else(String::new, |how| format!(" *{how}*"))
        ),
        true => {
            let how = how.map_or_else(String::new, |how| format!("\n*{how}*"));
            format!("{FENCE}sh\n{}\n{FENCE}{how}", command.trim_end())
        }
    }
}

fn manner_words(manner: Manner) -> Option<&'static str> {
    match (manner.terminal, manner.background) {
        (false, false) => None,
        (true, false) => Some("in a terminal"),
        (false, true) => Some("in the background"),
        (true, true) => Some("in a terminal, in the background"),
    }
}

/// What a model does with a job.
pub(super) fn job(request: &jobs::Request) -> String {
    let line = code(&request.line());
    match &request.act {
        jobs::Act::Write { text, close } => {
            format!(
                "{line}\n\n{FENCE}text\n{}\n{FENCE}",
                jobs::typed(text, *close)
            )
        }
        jobs::Act::Output { .. } | jobs::Act::Cancel => line,
    }
}

/// The first line of a command, as far as it names it.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHORT).collect();
    if short.len() < command.trim().len() {
        short.push('…');
    }
    short
}

/// A look, which is no command.
pub(super) fn look(look: &Look) -> String {
    code(&policy::printable(&look.line()))
}

/// What a look came to: what it saw is for the model.
pub(super) fn summary(summary: &str) -> String {
    format!("*{}*", policy::printable(summary))
}

/// Who let it run, or did not.
pub(super) fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Proved => "*runs unasked: it only reads*".to_owned(),
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

/// Says that outputs are told to the model in part from here on.
pub(super) const SHORTENED: &str = "> the conversation nears the model's window: from here on the model is told older output in part";

/// Says that the model does not see the last answer any more.
pub(super) const RETRIED: &str = "> asked again: the model no longer sees the answer above";

/// A note from co to the model.
pub(super) fn note(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    format!("> told the model: {}", policy::printable(line))
}

/// How a turn ended, where that needs saying.
pub(super) fn end(end: End, fault: Option<&Fault>) -> Option<String> {
    let text = match (end, fault) {
        (End::Done, _) => return None,
        (End::Failed, Some(fault)) => error::text_of(fault).markdown(),
        (End::Failed, None) => {
            "the turn failed; `:Co /log` says more, `:Co /retry` asks again".to_owned()
        }
        (End::Cancelled, _) => "cancelled".to_owned(),
        (End::Guarded, _) => "stopped by a guard; `:Co /continue` goes on".to_owned(),
        (End::Interrupted, _) => {
            "interrupted; `:Co /continue` goes on, `:Co /retry` asks again".to_owned()
        }
    };
    Some(format!("> {text}"))
}

/// A whole conversation as text, for `/resume`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Retelling {
    pub text: String,
    /// Rows with answers that the model no longer sees, first and last.
    pub folds: Vec<[usize; 2]>,
    /// The row at which the last answer begins.
    pub answer: Option<usize>,
}

/// Returns a whole conversation as it was seen. The page is where it ends.
pub(super) fn transcript(items: &[Item], page: &mut Page) -> Retelling {
    *page = Page::new();
    let mut retold = Retold {
        page,
        out: Retelling::default(),
        rows: 0,
        speaking: false,
        calls: HashMap::new(),
        open: HashSet::new(),
        proved: HashSet::new(),
        notices: Vec::new(),
    };
    for item in items {
        retold.item(item);
    }
    retold.out
}

/// Tells a conversation as it was seen: each call with what it came to, also where several were made at once.
struct Retold<'a> {
    page: &'a mut Page,
    out: Retelling,
    /// Line breaks in the text so far.
    rows: usize,
    /// Whether the model's heading is there.
    speaking: bool,
    calls: HashMap<&'a str, &'a Call>,
    /// The calls that are not told yet.
    open: HashSet<&'a str>,
    proved: HashSet<&'a str>,
    /// What was said of the next call before that is told.
    notices: Vec<&'a str>,
}

impl<'a> Retold<'a> {
    fn item(&mut self, item: &'a Item) {
        match item {
            Item::User { text, context } => {
                self.speaking = false;
                self.out.answer = None;
                self.put(&prompt(text, context));
            }
            Item::Text { text } => {
                self.speak();
                self.out.answer.get_or_insert(self.rows);
                let text = self.page.text(text);
                self.push(&text);
            }
            Item::Call(call) => {
                self.speak();
                self.calls.insert(&call.id, call);
                self.open.insert(&call.id);
            }
            // It is told with the outcome.
            Item::Decision {
                call,
                decision: Decision::Proved,
            } => {
                self.proved.insert(call);
            }
            Item::Decision {
                call,
                decision: made,
            } => {
                self.call(call);
                self.put(&decision(made));
            }
            Item::Outcome(outcome) => self.outcome(outcome),
            Item::End { reason, .. } => {
                if let Some(text) = end(*reason, None) {
                    self.put(&text);
                }
            }
            Item::Summary { .. } => self.put("> earlier turns were summarised for the model"),
            Item::Notice { text } if self.open.is_empty() => self.put(&format!("> {text}")),
            Item::Notice { text } => self.notices.push(text),
            Item::JobEnded {
                text, told: false, ..
            } => self.put(&format!("*{text}*")),
            Item::JobStarted { .. } | Item::JobEnded { .. } => {}
            Item::Note { text, .. } => self.put(&note(text)),
            Item::Retried => {
                // Without an answer the same request went out once more.
                if let Some(first) = self.out.answer.take() {
                    // With the blank line below it: Neovim closes no fold of one line.
                    let last = (self.rows + 1).saturating_sub(self.page.breaks);
                    self.out.folds.push([first, last]);
                    self.put(RETRIED);
                }
            }
            Item::Shortened { .. } => self.put(SHORTENED),
            Item::Reasoning { .. } | Item::Surroundings(_) | Item::Unknown => {}
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        self.out.answer = None;
        let look = self
            .calls
            .get(outcome.call.as_str())
            .is_some_and(|call| files::NAMES.contains(&call.name.as_str()));
        self.call(&outcome.call);
        if !look && self.proved.contains(outcome.call.as_str()) {
            self.put(&decision(&Decision::Proved));
        }
        match look {
            true => self.put(&summary(last_line(&outcome.text))),
            false => self.put(&format!(
                "{FENCE}text\n{}\n{FENCE}",
                outcome.text.trim_end()
            )),
        }
    }

    /// Tells a call that was not told yet.
    fn call(&mut self, id: &str) {
        if !self.open.remove(id) {
            return;
        }
        let Some(asked) = self.calls.get(id) else {
            return;
        };
        let text = match ToolCall::parse(asked) {
            Ok(ToolCall::Look(asked)) => look(&asked),
            Ok(ToolCall::Job(asked)) => job(&asked),
            Ok(ToolCall::Shell(request)) => {
                call(&policy::printable(&command_of(asked)), request.manner)
            }
            Err(_) => call(&policy::printable(&command_of(asked)), Manner::default()),
        };
        self.put(&text);
        for notice in std::mem::take(&mut self.notices) {
            self.put(&format!("> {notice}"));
        }
    }

    fn speak(&mut self) {
        if !self.speaking {
            self.speaking = true;
            self.put(HEADING);
        }
    }

    fn put(&mut self, text: &str) {
        let text = self.page.paragraph(text);
        self.push(&text);
    }

    fn push(&mut self, text: &str) {
        self.rows += text.matches('\n').count();
        self.out.text.push_str(text);
    }
}

/// The end of what the model was told of a look says how much it saw.
fn last_line(text: &str) -> &str {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    line.trim_start_matches('[').trim_end_matches(']')
}

/// What a call would do, in a line: the command where it is one.
pub(super) fn command_of(call: &Call) -> String {
    let field = |name: &str| call.arguments.get(name);
    if let Some(cmd) = field("cmd").and_then(|cmd| cmd.as_str()) {
        return cmd.to_owned();
    }
    if let Some(argv) = field("argv").and_then(|argv| argv.as_array()) {
        let words: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
        return words.join(" ");
    }
    format!("{} {}", call.name, call.arguments)
}

/// Inline code whose fence is longer than any run of backquotes in it.
pub(super) fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_survives_backquotes() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
    }

    #[test]
    fn a_prompt_names_what_went_along() {
        let with = |name: &str, text: &str| {
            let piece = Context {
                name: name.to_owned(),
                text: text.to_owned(),
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
    fn a_conversation_has_one_heading_a_speaker() {
        let text = |text: &str| Item::Text {
            text: text.to_owned(),
        };
        let user = |text: &str| Item::User {
            text: text.to_owned(),
            context: Vec::new(),
        };
        let done = Item::End {
            reason: End::Done,
            usage: crate::transcript::Usage::default(),
        };
        let items = [
            user("hi"),
            text("Hel"),
            text("lo."),
            done,
            user("again"),
            text("Yes."),
        ];
        assert_eq!(
            transcript(&items, &mut Page::new()).text,
            "## You\n\nhi\n\n## Co\n\nHello.\n\n## You\n\nagain\n\n## Co\n\nYes."
        );
    }

    #[test]
    fn an_answer_that_was_asked_for_again_is_folded() {
        let text = |text: &str| Item::Text {
            text: text.to_owned(),
        };
        let items = [
            Item::User {
                text: "hi".to_owned(),
                context: Vec::new(),
            },
            text("One\n"),
            text("line."),
            Item::Retried,
            text("Two."),
        ];
        let told = transcript(&items, &mut Page::new());
        let lines: Vec<_> = told.text.lines().collect();
        let [[first, last]] = told.folds[..] else {
            panic!("{told:?}");
        };
        assert_eq!(lines[first..=last].join("|"), "One|line.|");
        assert!(lines[last + 1].starts_with("> asked again"), "{lines:?}");
        assert_eq!(lines[told.answer.unwrap()], "Two.");
    }
}
