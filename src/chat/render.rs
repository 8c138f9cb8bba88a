//! How a transcript reads in the chat buffer: markdown, one heading per speaker.

mod retold;

use crate::error;
use crate::tool::files::FileQuery;
use crate::tool::jobs;
use crate::tool::shell::ExecMode;
use co_llm::Fault;
use co_llm::transcript::{Call, Context, Decision, End};

pub(super) use retold::transcript;

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
    co_policy::printable(text).replace('\n', "\\n")
}

/// Opens a model's answer.
pub(super) const HEADING: &str = "## Co";

/// A call, before it is asked about or run.
pub(super) fn call(command: &str, mode: ExecMode) -> String {
    let how = mode_words(mode);
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

fn mode_words(mode: ExecMode) -> Option<&'static str> {
    match (mode.terminal, mode.background) {
        (false, false) => None,
        (true, false) => Some("in a terminal"),
        (false, true) => Some("in the background"),
        (true, true) => Some("in a terminal, in the background"),
    }
}

/// What a model does with a job.
pub(super) fn job(request: &jobs::JobRequest) -> String {
    let line = code(&request.line());
    match &request.action {
        jobs::JobAction::Write { text, close } => {
            format!(
                "{line}\n\n{FENCE}text\n{}\n{FENCE}",
                jobs::typed(text, *close)
            )
        }
        jobs::JobAction::Output { .. } | jobs::JobAction::Cancel => line,
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
pub(super) fn look(look: &FileQuery) -> String {
    code(&co_policy::printable(&look.line()))
}

/// What a look came to: what it saw is for the model.
pub(super) fn summary(summary: &str) -> String {
    format!("*{}*", co_policy::printable(summary))
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
    let line = line.strip_suffix(':').unwrap_or(line);
    format!("> told the model: {}", co_policy::printable(line))
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
}
