//! The person's trust in the prompt files of a workspace. co sends the text of a file only after the person trusts it.
//!
//! The editor asks the backend before it reads the contexts that the text names. The chat checks the trust again when it gets the
//! prompt.

use std::path::Path;

use super::chat_context::ChatContext;
use super::message::Prompt;
use super::trust_questions;
use crate::protocol::{PromptFileCheck, ToEditor};
use crate::services::trust_answers::AnswerState;
use crate::trust::{FileText, TrustAnswer};
use co_text::one_line;

/// Returns true if the prompt may be sent. Returns false, after a notice, if it comes from a file whose text the person does not
/// trust.
pub(super) async fn may_send(context: &ChatContext, prompt: &Prompt) -> bool {
    let (Some(path), Some(file)) = (prompt.untrusted_file(), &prompt.file) else {
        return true;
    };
    let file = FileText::given(path.to_owned(), file.text.clone());
    let trusted = context.services.trust_answers.with_saved(|state, saved| {
        let answer = state.answer(saved, &file.path);
        answer.is_some_and(|answer| answer.trusted && answer.sha256 == file.sha256)
    });
    let why = match trusted.await {
        Ok(true) => return true,
        Ok(false) => format!("not sent: you do not trust {}", file.path.display()),
        Err(why) => why,
    };
    context.complain(why);
    false
}

/// Returns the name of a file of the workspace, for the person.
pub(super) fn short_name(context: &ChatContext, file: &Path) -> String {
    let name = file.strip_prefix(&context.dirs.workspace);
    one_line(&name.unwrap_or(file).display().to_string())
}

/// Tells the editor whether the person trusts a prompt file. If the person has not answered yet, asks the person first.
pub(super) async fn check(context: &ChatContext, check: PromptFileCheck) {
    let file = FileText::given(check.path, check.text);
    let slash = format!("/{}", check.name);
    let judged = context.services.trust_answers.with_saved(|state, saved| {
        let answer = state.answer(saved, &file.path);
        match answer.filter(|answer| answer.sha256 == file.sha256) {
            Some(TrustAnswer { trusted: true, .. }) => (true, None),
            Some(TrustAnswer { trusted: false, .. }) => {
                context.complain(format!(
                    "{slash} was not sent: you refused {}; /rules takes that answer back",
                    file.path.display()
                ));
                (false, None)
            }
            None => {
                let changed = answer.is_some();
                (false, Some(ask(context, state, &file, &slash, changed)))
            }
        }
    });
    let (trusted, question) = judged.await.unwrap_or_else(|why| {
        context.complain(why);
        (false, None)
    });
    context.services.editor.tell(ToEditor::PromptFileChecked {
        request: check.request,
        trusted,
        question,
    });
}

/// Asks the person about a prompt file. Returns the id of the question.
fn ask(
    context: &ChatContext,
    state: &mut AnswerState,
    file: &FileText,
    slash: &str,
    changed: bool,
) -> u64 {
    let services = &context.services;
    let notes = changed.then(|| trust_questions::TEXT_CHANGED.to_owned());
    trust_questions::withdraw(services, state, |question| {
        question.path == file.path && !question.is_about(file)
    });
    let name = short_name(context, &file.path);
    let notes = notes.into_iter().collect();
    context.say(format!(
        "{slash} is sent when you trust its file: :Co /approve shows the question"
    ));
    trust_questions::ask(services, state, file, name, notes, Some(slash))
}
