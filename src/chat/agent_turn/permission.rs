//! The permissions that an agent asks for. co shows each request as a question, with every option as the agent named it.

use std::path::Path;
use std::sync::Arc;

use super::parts::TurnParts;
use crate::protocol::{
    Asker, Change, ChoiceKind, ChoiceQuestion, ChosenAnswer, OfferedChoice, Question,
};
use crate::tool::agent_call::AgentCall;
use crate::tool::context::CallContext;
use crate::tool::permissions::Reply;
use crate::workspace::judge::Judge;
use co_acp::schema::{
    Diff, PermissionOption, PermissionOptionId, PermissionOptionKind, RequestId, ToolCallId,
    ToolKind,
};
use co_exec::Program;
use co_policy::{Grant, Verdict};
use co_text::{one_line, printable, start_of};

/// The largest number of bytes of the text of a question.
const LONGEST_QUESTION: usize = 20_000;
/// The largest number of bytes of the name of an option.
const LONGEST_NAME: usize = 500;

/// The largest number of options in a question. The key of each option is one digit.
const MOST_OPTIONS: usize = 9;

/// The shells whose `-c` text co reads as a command.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/sh",
    "/usr/bin/bash",
];

/// The names of the fields of a call's input that hold a command.
const COMMAND_FIELDS: [&str; 2] = ["command", "cmd"];

/// A request of the agent for permission that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct PermissionRequest {
    pub id: RequestId,
    /// The id of the call that the request is about.
    pub call: ToolCallId,
    pub title: String,
    pub options: Vec<PermissionOption>,
}

/// The call that a request for permission is about, as the agent describes it.
pub(super) struct AskedCall<'a> {
    pub input: Option<&'a serde_json::Value>,
    pub kind: Option<ToolKind>,
    /// True if the agent's process is confined.
    pub is_confined: bool,
}

/// The texts of a call that the question about it shows. Except for `change`, they are without secret values.
pub(super) struct ShownCall {
    pub call: AgentCall,
    pub command: Option<String>,
    /// The rest of the input, without what `command` and `change` say.
    pub input: Option<String>,
    pub output: String,
    /// The files that it would change.
    pub change: Option<Change>,
    /// Sentences about files that co cannot compare with what the agent tells.
    pub notes: String,
}

/// An answer to a request for permission.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PermissionAnswer {
    /// The chosen option. `None` tells the agent that the request was cancelled.
    pub option: Option<PermissionOptionId>,
    /// The answer as text for the chat.
    pub words: String,
    pub is_yes: bool,
}

impl PermissionRequest {
    /// Returns the question: the agent's request with all its details, and its options. If the text is too long to be shown
    /// whole, or there are too many options, only the options that refuse remain.
    pub(super) fn question(&mut self, turn: &TurnParts, shown: &ShownCall) -> Question {
        let (context, agent) = (&turn.context, &turn.spec.name);
        let call = &shown.call;
        let (text, is_cut) = shown.text(agent);
        self.bound_options(is_cut);
        let choices = self.options.iter().map(|option| OfferedChoice {
            label: one_line(&printable(start_of(option.name.trim(), LONGEST_NAME))),
            about: Some(words(option.kind).to_owned()),
            is_yes: turn.is_confined() && self.is_only_yes_for_once(option),
            ..OfferedChoice::default()
        });
        Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            cwd: one_line(&context.cwd.display().to_string()),
            command: format!(
                "{agent} asks: {}",
                one_line(&printable(start_of(&call.title, LONGEST_NAME)))
            ),
            choices: vec![ChoiceQuestion {
                question: printable(&text),
                choices: choices.collect(),
                several: false,
                kind: ChoiceKind::Permission,
            }],
            change: shown.change.clone(),
            ..Question::default()
        }
    }

    fn is_only_yes_for_once(&self, option: &PermissionOption) -> bool {
        let is_once = |it: &&PermissionOption| it.kind == PermissionOptionKind::AllowOnce;
        is_once(&option) && self.options.iter().filter(is_once).count() == 1
    }

    /// Removes the options that allow the call, if `is_cut` is true or if there are too many options. `is_cut` says that a part
    /// of the text is not shown.
    fn bound_options(&mut self, is_cut: bool) {
        if is_cut || self.options.len() > MOST_OPTIONS {
            self.options.retain(|it| refuses(it.kind));
            self.options.truncate(MOST_OPTIONS);
        }
    }

    /// Returns the answer for a reply of the person. A reply of `None` means that the question was withdrawn.
    pub(super) fn answer(&self, reply: Option<Reply>) -> PermissionAnswer {
        let chosen = match reply {
            Some(Reply::Chosen(answers)) => self.chosen(&answers),
            Some(_) => None,
            None => {
                return PermissionAnswer {
                    option: None,
                    words: "not answered".to_owned(),
                    is_yes: false,
                };
            }
        };
        match chosen {
            Some(option) => PermissionAnswer {
                option: Some(option.option_id.clone()),
                words: format!("you: {}", one_line(&printable(option.name.trim()))),
                is_yes: is_yes(option.kind),
            },
            None => self.refusal("you: no".to_owned()),
        }
    }

    fn chosen(&self, answers: &[ChosenAnswer]) -> Option<&PermissionOption> {
        let [answer] = answers else {
            return None;
        };
        match (answer.choices.as_slice(), &answer.text) {
            ([number], None) => self.options.get(number.checked_sub(1)?),
            _ => None,
        }
    }

    /// Returns the answer that refuses this one call.
    fn refusal(&self, words: String) -> PermissionAnswer {
        PermissionAnswer {
            option: self.find(PermissionOptionKind::RejectOnce),
            words,
            is_yes: false,
        }
    }

    fn find(&self, kind: PermissionOptionKind) -> Option<PermissionOptionId> {
        let mut options = self.options.iter();
        let found = options.find(|it| it.kind == kind);
        found.map(|it| it.option_id.clone())
    }

    /// Returns the answer that co gives without the person: a deny rule refuses the command, the command is read-only, or a rule
    /// allows the command. Returns `None` if the person must decide, or if co finds no command in the request.
    ///
    /// co says yes only to a confined agent, because the kernel limits what such an agent does after the yes.
    pub(super) async fn decided(
        &self,
        asked: &AskedCall<'_>,
        context: &CallContext,
    ) -> Option<PermissionAnswer> {
        let program = command(asked.input?)?;
        let may_allow = asked.may_be_allowed(&context.cwd);
        let (judge, cwd) = (Arc::clone(&context.judge), context.cwd.clone());
        let verdict = tokio::task::spawn_blocking(move || verdict(&judge, &program, &cwd));
        match verdict.await.ok()? {
            Verdict::Allow(_) if !may_allow => None,
            Verdict::Deny { why, .. } => {
                Some(self.refusal(format!("a deny rule refuses it: {why}")))
            }
            Verdict::Allow(Grant::ReadOnly) => self.allowed("it only looks".to_owned()),
            Verdict::Allow(Grant::Rule { rule }) => {
                self.allowed(format!("your rule {rule} allows it"))
            }
            Verdict::Allow(_) | Verdict::Ask(_) => None,
        }
    }

    /// Returns the option that allows only this call; none if the agent offers no such option.
    pub(super) fn once(&self) -> Option<PermissionOptionId> {
        self.find(PermissionOptionKind::AllowOnce)
    }

    fn allowed(&self, words: String) -> Option<PermissionAnswer> {
        Some(PermissionAnswer {
            option: Some(self.find(PermissionOptionKind::AllowOnce)?),
            words,
            is_yes: true,
        })
    }
}

fn verdict(judge: &Judge, program: &Program, cwd: &Path) -> Verdict {
    judge.verdict(&judge.assess(program, cwd, true), &[])
}

impl ShownCall {
    /// Returns the text of the question about the call, and true if a part was left out. The command comes first, because the
    /// agent chooses the order of the rest. A title that only repeats the command is left out.
    fn text(&self, agent: &str) -> (String, bool) {
        let title = self.call.title.trim();
        let about = format!("{agent} asks for permission: {title}");
        let command = self.command.as_ref();
        let repeats = command.is_some_and(|it| it.trim() == title.trim_matches('`').trim());
        let command = command.map(|it| format!("{agent} asks to run this command: {it}"));
        let parts = [
            command.as_deref(),
            Some(about.as_str()).filter(|_| !repeats),
            self.input.as_deref(),
            Some(self.output.as_str()),
            Some(self.notes.as_str()),
        ];
        let parts = parts.into_iter().flatten().map(str::trim_end);
        let parts: Vec<_> = parts.filter(|it| !it.is_empty()).collect();
        let text = parts.join("\n\n");
        let start = start_of(&text, LONGEST_QUESTION);
        match text.len() - start.len() {
            0 => (text, false),
            more => (
                format!("{start}\n\n[{more} more bytes are not shown, so you can only refuse it]"),
                true,
            ),
        }
    }
}

impl AskedCall<'_> {
    /// Returns true if co may allow the call for the person: the agent is confined, and the call does nothing but run a command
    /// in the directory `cwd`.
    fn may_be_allowed(&self, cwd: &Path) -> bool {
        let only_command = self
            .input
            .is_some_and(|it| input_beside_command(it, cwd).is_none());
        self.is_confined && self.kind == Some(ToolKind::Execute) && only_command
    }
}

/// Returns the fields of an input other than the command and the directory `cwd`; none if no field remains. If [`command_text`]
/// does not represent the whole command, returns the whole input.
pub(super) fn input_beside_command(
    input: &serde_json::Value,
    cwd: &Path,
) -> Option<serde_json::Value> {
    let Some(fields) = input.as_object() else {
        return Some(input.clone());
    };
    let named = COMMAND_FIELDS.iter().filter_map(|name| fields.get(*name));
    let named: Vec<_> = named.collect();
    let is_told = match named.as_slice() {
        [serde_json::Value::String(_)] => true,
        [serde_json::Value::Array(words)] => {
            let texts: Vec<_> = words.iter().filter_map(serde_json::Value::as_str).collect();
            // Any other program of this name is not the shell that co reads the text for.
            let is_other =
                matches!(texts.as_slice(), [shell, "-c" | "-lc", ..] if !SHELLS.contains(shell));
            !texts.is_empty() && texts.len() == words.len() && !is_other
        }
        _ => false,
    };
    if !is_told {
        return Some(input.clone());
    }
    let is_known = |(name, value): &(&String, &serde_json::Value)| match name.as_str() {
        "cwd" | "workdir" => value.as_str().is_some_and(|it| Path::new(it) == cwd),
        name => COMMAND_FIELDS.contains(&name),
    };
    let rest = fields.iter().filter(|field| !is_known(field));
    let rest: serde_json::Map<_, _> = rest.map(|(name, it)| (name.clone(), it.clone())).collect();
    (!rest.is_empty()).then_some(serde_json::Value::Object(rest))
}

/// Returns the input of a call without its files and their texts, which the changes tell; none if nothing is left.
pub(super) fn input_beside_diffs(
    input: serde_json::Value,
    diffs: &[Diff],
) -> Option<serde_json::Value> {
    let is_path = |text: &str| diffs.iter().any(|it| it.path == Path::new(text));
    let is_text = |text: &str| {
        let mut diffs = diffs.iter();
        diffs.any(|it| it.new_text == text || it.old_text.as_deref() == Some(text))
    };
    let is_told = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => is_path(text) || is_text(text),
        // Of codex: the changes by their files.
        serde_json::Value::Object(files) => {
            let is_told = |(path, change): (&String, _)| is_path(path) && is_plain_change(change);
            !files.is_empty() && files.iter().all(is_told)
        }
        _ => false,
    };
    match input {
        serde_json::Value::Object(mut fields) => {
            fields.retain(|_, value| !is_told(value));
            (!fields.is_empty()).then_some(serde_json::Value::Object(fields))
        }
        input => Some(input),
    }
}

/// Returns true if a change of codex changes or adds a file, and says nothing that its difference does not show, such as a move.
fn is_plain_change(change: &serde_json::Value) -> bool {
    let Some(fields) = change.as_object() else {
        return false;
    };
    fields.iter().all(|(name, value)| match name.as_str() {
        "unified_diff" | "content" => true,
        "type" => matches!(value.as_str(), Some("add" | "update")),
        _ => value.is_null(),
    })
}

/// Returns the text of the command in the input of a call; none if the input has no command.
pub(super) fn command_text(input: &serde_json::Value) -> Option<String> {
    command(input).map(|it| match it {
        Program::Shell(text) => text,
        Program::Argv(words) => format!("{words:?}"),
    })
}

/// Returns the command in the input of a call; none if the input has no command.
fn command(input: &serde_json::Value) -> Option<Program> {
    let value = COMMAND_FIELDS.iter().find_map(|name| input.get(name))?;
    if let Some(text) = value.as_str() {
        return Some(Program::Shell(text.to_owned()));
    }
    let words: Option<Vec<_>> = value.as_array()?.iter().map(|it| it.as_str()).collect();
    let words = words?;
    match words.as_slice() {
        [shell, "-c" | "-lc", text] if shell.ends_with("bash") || shell.ends_with("/sh") => {
            Some(Program::Shell((*text).to_owned()))
        }
        [] => None,
        words => Some(Program::Argv(
            words.iter().map(|it| (*it).to_owned()).collect(),
        )),
    }
}

fn is_yes(kind: PermissionOptionKind) -> bool {
    matches!(
        kind,
        PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways
    )
}

fn refuses(kind: PermissionOptionKind) -> bool {
    matches!(
        kind,
        PermissionOptionKind::RejectOnce | PermissionOptionKind::RejectAlways
    )
}

/// Returns the description of a kind of option.
fn words(kind: PermissionOptionKind) -> &'static str {
    match kind {
        PermissionOptionKind::AllowOnce => "allows it once",
        PermissionOptionKind::AllowAlways => "allows it, and what the agent takes for the same",
        PermissionOptionKind::RejectOnce => "refuses it",
        PermissionOptionKind::RejectAlways => "refuses it, and what the agent takes for the same",
        _ => "the agent says no more about it",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> PermissionRequest {
        let option =
            |id: &str, kind| PermissionOption::new(id.to_owned(), format!("Do {id}"), kind);
        PermissionRequest {
            id: RequestId::Number(1),
            call: ToolCallId::from("c".to_owned()),
            title: "t".to_owned(),
            options: vec![
                option("once", PermissionOptionKind::AllowOnce),
                option("cancel", PermissionOptionKind::RejectOnce),
                option("cancel-too", PermissionOptionKind::RejectOnce),
            ],
        }
    }

    fn answered(reply: Option<Reply>) -> (Option<String>, bool) {
        let answer = request().answer(reply);
        (answer.option.map(|it| it.to_string()), answer.is_yes)
    }

    #[test]
    fn an_answer_is_the_option_that_the_person_chose() {
        let chosen = |choices: &[usize], text: Option<&str>| {
            Some(Reply::Chosen(vec![ChosenAnswer {
                choices: choices.to_vec(),
                text: text.map(str::to_owned),
            }]))
        };
        let yes = |id: &str, yes| (Some(id.to_owned()), yes);
        assert_eq!(answered(chosen(&[1], None)), yes("once", true));
        assert_eq!(answered(chosen(&[3], None)), yes("cancel-too", false));
        // All else refuses.
        for reply in [
            chosen(&[9], None),
            chosen(&[1, 2], None),
            chosen(&[1], Some("no")),
        ] {
            assert_eq!(answered(reply), yes("cancel", false));
        }
        assert_eq!(answered(Some(Reply::Once)), yes("cancel", false));
        assert_eq!(answered(Some(Reply::Deny(None))), yes("cancel", false));
        assert_eq!(answered(None), (None, false));
    }

    #[test]
    fn only_a_plain_command_of_a_confined_agent_is_allowed_unasked() {
        let allowed = |input: &serde_json::Value, kind, is_confined| {
            let asked = AskedCall {
                input: Some(input),
                kind: Some(kind),
                is_confined,
            };
            asked.may_be_allowed(Path::new("/w"))
        };
        for input in [
            json!({ "command": "ls" }),
            json!({ "cmd": ["ls", "-l"], "workdir": "/w" }),
            json!({ "command": ["/bin/bash", "-lc", "ls"], "cwd": "/w" }),
        ] {
            assert!(allowed(&input, ToolKind::Execute, true), "{input}");
            assert!(!allowed(&input, ToolKind::Execute, false), "{input}");
            assert!(!allowed(&input, ToolKind::Other, true), "{input}");
        }
        for input in [
            json!({ "command": "ls", "cwd": "/other" }),
            json!({ "command": "ls", "env": { "PATH": "/w" } }),
            json!({ "command": "ls", "cmd": "rm x" }),
            json!({ "command": ["/w/evilbash", "-c", "ls"] }),
            json!({ "command": ["./sh", "-lc", "ls"] }),
            json!({ "cwd": "/w" }),
            json!("ls"),
        ] {
            assert!(!allowed(&input, ToolKind::Execute, true), "{input}");
        }
    }

    #[test]
    fn a_question_begins_with_the_command_and_tells_that_it_is_cut() {
        let input = json!({ "reason": "x".repeat(LONGEST_QUESTION), "command": "rm -rf src" });
        let titled = |title: &str, input: &serde_json::Value| ShownCall {
            call: AgentCall {
                title: title.to_owned(),
                kind: String::new(),
                input: None,
                places: Vec::new(),
            },
            command: command_text(input),
            input: input_beside_command(input, Path::new("/w")).map(|it| it.to_string()),
            output: String::new(),
            change: None,
            notes: String::new(),
        };
        let shown = |input: &serde_json::Value| titled("Look", input);
        let (text, is_cut) = shown(&input).text("codex");
        assert!(is_cut && text.starts_with("codex asks to run this command: rm -rf src\n"));
        assert!(
            text.ends_with("more bytes are not shown, so you can only refuse it]"),
            "{text}"
        );
        let (text, is_cut) = shown(&json!({ "path": "a" })).text("codex");
        assert_eq!(
            (text.as_str(), is_cut),
            ("codex asks for permission: Look\n\n{\"path\":\"a\"}", false)
        );
        // The command is there once, and all that it does not say.
        let lead = "codex asks to run this command: rm x";
        for (title, input, rest) in [
            ("`rm x`", json!({ "command": "rm x", "cwd": "/w" }), ""),
            ("rm x", json!({ "cmd": ["/bin/sh", "-c", "rm x"] }), ""),
            (
                "rm x",
                json!({ "command": "rm x", "cwd": "/v", "why": "so" }),
                "\n\n{\"cwd\":\"/v\",\"why\":\"so\"}",
            ),
            (
                "rm x",
                json!({ "command": ["/w/evilbash", "-c", "rm x"] }),
                "\n\n{\"command\":[\"/w/evilbash\",\"-c\",\"rm x\"]}",
            ),
            (
                "rm x",
                json!({ "command": "rm x", "cmd": "rm y" }),
                "\n\n{\"command\":\"rm x\",\"cmd\":\"rm y\"}",
            ),
        ] {
            let (text, _) = titled(title, &input).text("codex");
            assert_eq!(text, format!("{lead}{rest}"));
        }
        let mut cut = request();
        cut.bound_options(true);
        assert_eq!(cut.options.len(), 2);
        let mut many = request();
        let all = many.options.len() * MOST_OPTIONS;
        many.options = many.options.into_iter().cycle().take(all).collect();
        many.bound_options(false);
        assert_eq!(many.options.len(), MOST_OPTIONS);
        assert!(many.options.iter().all(|it| refuses(it.kind)));
        let mut few = request();
        few.bound_options(false);
        assert_eq!(few.options, request().options);
    }

    #[test]
    fn what_a_change_tells_is_not_told_again() {
        let diffs = [Diff::new("/w/a", "new").old_text("old".to_owned())];
        let beside = |input: serde_json::Value| input_beside_diffs(input, &diffs);
        let of_claude = json!({ "file_path": "/w/a", "old_string": "old", "new_string": "new" });
        assert_eq!(beside(of_claude), None);
        let of_codex = json!({ "changes": { "/w/a": { "unified_diff": "@@" } }, "reason": "so" });
        assert_eq!(beside(of_codex), Some(json!({ "reason": "so" })));
        let other = json!({ "changes": { "/w/a": {}, "/w/b": {} }, "new": "newer", "none": {} });
        assert_eq!(beside(other.clone()), Some(other));
    }

    #[test]
    fn a_command_is_found_in_the_forms_of_agents() {
        let shell = |text: &str| Some(Program::Shell(text.to_owned()));
        assert_eq!(command(&json!({ "command": "rm x" })), shell("rm x"));
        let words = json!({ "command": ["/bin/bash", "-lc", "rm x"] });
        assert_eq!(command(&words), shell("rm x"));
        let words = json!({ "cmd": ["rm", "x"] });
        assert!(matches!(command(&words), Some(Program::Argv(argv)) if argv.len() == 2));
        for odd in [
            json!({}),
            json!({ "command": [1] }),
            json!({ "command": [] }),
            json!("rm"),
        ] {
            assert_eq!(command(&odd), None, "{odd}");
        }
    }
}
