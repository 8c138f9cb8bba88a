//! The questions whether the person trusts a file: instructions, a skill, a prompt file, or `.mcp.json`. The module of each kind
//! of file asks its questions here, and gets the answers from `services::trust_answers`.
//!
//! A question belongs to no chat. It stays open until the person answers or the file changes. co reads each file only once, so
//! that it hashes, shows and sends the same text.

use std::path::Path;
use std::sync::Arc;

use crate::blocking::blocking;
use crate::protocol::{Answer, NoticeLevel, QuestionAnswer, ToEditor, TrustQuestion};
use crate::services::Services;
use crate::services::trust_answers::{AnswerState, OpenTrustQuestion};
use crate::trust::{FileText, TrustAnswer};
use co_text::one_line;

/// The note in a question if the person answered about an earlier text of the file.
pub(super) const TEXT_CHANGED: &str = "its text changed since your last answer";

/// The slash command in a question about the file of tool servers (`.mcp.json`). The model does not get this file.
pub(super) const SERVERS: &str = "/mcp";

/// Withdraws the questions for which `gone` returns true, because their text is no longer in the file.
pub(super) fn withdraw(
    services: &Services,
    state: &mut AnswerState,
    gone: impl Fn(&OpenTrustQuestion) -> bool,
) {
    state.questions.retain(|question| {
        let gone = gone(question);
        if gone {
            settle(services, question.id, "withdrawn");
        }
        !gone
    });
}

fn settle(services: &Services, id: u64, decision: &str) {
    services.editor.tell(ToEditor::Settled {
        id,
        decision: decision.to_owned(),
    });
}

/// Asks the person about a text, unless a question about it is open. Returns the id of the question. `slash` is the slash command
/// that sends the text to the model, or the context that attaches a skill.
pub(super) fn ask(
    services: &Services,
    state: &mut AnswerState,
    file: &FileText,
    name: String,
    notes: Vec<String>,
    slash: Option<&str>,
) -> u64 {
    if let Some(open) = state.questions.iter().find(|it| it.is_about(file)) {
        return open.id;
    }
    let question = OpenTrustQuestion {
        id: services.id(),
        name,
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        slash: slash.map(str::to_owned),
    };
    services.editor.tell(ToEditor::Trust(TrustQuestion {
        id: question.id,
        name: question.name.clone(),
        path: one_line(&file.path.display().to_string()),
        size: file.size,
        text: co_text::printable(&file.text.replace("\r\n", "\n")),
        notes,
        slash: question.slash.clone(),
        context: false,
    }));
    let id = question.id;
    state.questions.push(question);
    id
}

/// Handles the answer to a question about a file. Returns false if no such question has this id.
pub fn answer(services: &Arc<Services>, answered: &QuestionAnswer) -> bool {
    let mut state = services.trust_answers.state.lock();
    let Some(at) = state.questions.iter().position(|it| it.id == answered.id) else {
        return false;
    };
    let question = state.questions.swap_remove(at);
    let trusted = answered.decision == Answer::Once;
    let entry = TrustAnswer {
        path: question.path,
        sha256: question.sha256,
        trusted,
    };
    state.unsaved.insert(entry.path.clone(), entry.clone());
    drop(state);
    if !trusted {
        // It fails if there is no chat.
        services.trust_answers.revoked.send(entry.path.clone()).ok();
    }
    settle(
        services,
        question.id,
        if trusted { "approved" } else { "denied" },
    );
    tracing::info!(path = %entry.path.display(), sha256 = entry.sha256, trusted, "a file was judged");
    let services = Arc::clone(services);
    tokio::spawn(async move { save(&services, &question.name, question.slash, entry).await });
    true
}

/// Saves an answer and notifies the person. Does nothing if the person has revoked the answer meanwhile.
async fn save(services: &Services, name: &str, slash: Option<String>, entry: TrustAnswer) {
    let _alone = services.trust_answers.writing.lock().await;
    let is_last = |state: &AnswerState| state.unsaved.get(&entry.path) == Some(&entry);
    if !is_last(&services.trust_answers.state.lock()) {
        return;
    }
    let (trust, kept) = (services.trust_answers.trust.clone(), entry.clone());
    if let Err(why) = blocking(move || trust.save(kept)).await {
        let message =
            format!("the answer about {name} could not be saved, so it ends with Neovim: {why}");
        return services.notice(NoticeLevel::Error, message);
    }
    let mut state = services.trust_answers.state.lock();
    if is_last(&state) {
        state.unsaved.remove(&entry.path);
    }
    drop(state);
    let message = match (entry.trusted, slash.as_deref()) {
        (true, Some(SERVERS)) => {
            format!("{name} is trusted: its tool servers start with the next prompt")
        }
        (false, Some(SERVERS)) => {
            format!("the tool servers of {name} are not started; :Co /rules takes that answer back")
        }
        (true, Some(slash)) => format!("{name} is trusted: {slash} sends it"),
        (true, None) => format!("{name} is sent to the model from the next prompt on"),
        (false, _) => format!("{name} is not sent to the model; :Co /rules takes that answer back"),
    };
    services.notice(NoticeLevel::Info, message);
}

/// Notifies the person of a problem in a workspace only once, although co finds the problem again at each prompt.
pub(super) fn warn_once(
    services: &Services,
    state: &mut AnswerState,
    workspace: &Path,
    problem: &str,
) {
    if state.told.insert((workspace.into(), problem.into())) {
        services.notice(NoticeLevel::Warn, problem);
    }
}
