//! The plan of a chat: `/plan` asks the model for a plan, the person edits it in a buffer, `/go` starts the work with it.

use crate::chat::chat_context::ChatContext;
use crate::chat::message::Prompt;
use crate::chat::record::Recorder;
use crate::protocol::{NoticeLevel, ToEditor};
use co_llm::transcript::{self, Item};
use co_text::start_of;

/// The prompt that starts the work on the plan.
const GO: &str = "/go";

/// The largest number of bytes of a saved plan.
const LONGEST_PLAN: usize = 64 * 1024;

const NO_PLAN: &str = "this chat has no plan yet: /plan {task} asks the model for one";

/// The notice below an answer to `/plan`.
const PLANNED: &str =
    "this answer is the plan: /plan opens it to be changed, /go starts the work with it";

/// When a turn ends, saves its answer as the plan, if the person asked for a plan.
pub(in crate::chat) async fn keep_answer(context: &ChatContext, recorder: &mut Recorder) {
    let items = recorder.items();
    if !transcript::is_planning(items) {
        return;
    }
    let answer = transcript::last_answer(items);
    let text = start_of(answer.trim(), LONGEST_PLAN).to_owned();
    if text.is_empty() || !recorder.record(Item::Plan { text }).await {
        return;
    }
    recorder.notice(PLANNED.to_owned()).await;
    show(context, recorder.items(), false);
}

/// Saves the text of the plan that the person edited.
pub(in crate::chat) async fn keep(context: &ChatContext, recorder: &mut Recorder, text: String) {
    if text.len() > LONGEST_PLAN {
        let message = format!(
            "the plan was not kept: it has over {} KiB; write a shorter one",
            LONGEST_PLAN / 1024
        );
        return context.complain(message);
    }
    recorder.flush().await;
    if transcript::last_plan(recorder.items()) != Some(&text)
        && recorder.ready(&context.dirs, &text).await
    {
        recorder.record(Item::Plan { text }).await;
    }
}

/// Opens the plan in a buffer of Neovim.
pub(in crate::chat) fn open(context: &ChatContext, items: &[Item]) {
    if !show(context, items, true) {
        context.say(NO_PLAN);
    }
}

/// Sends the plan to Lua. Returns false if the chat has no plan.
fn show(context: &ChatContext, items: &[Item], open: bool) -> bool {
    let Some(text) = transcript::last_plan(items) else {
        return false;
    };
    context.services.editor.tell(ToEditor::Plan {
        chat: context.id,
        text: text.to_owned(),
        open,
    });
    true
}

/// Adds the plan to a prompt that starts the work on the plan. Returns false, after a notice, if the chat has no plan.
pub(in crate::chat) fn add(context: &ChatContext, items: &[Item], prompt: &mut Prompt) -> bool {
    let text = prompt.sent_text();
    if transcript::asks_for_plan(text) || transcript::task_to_explore(text).is_some() {
        prompt.steer = false;
    }
    if prompt.text != GO {
        return true;
    }
    match transcript::last_plan(items) {
        Some(plan) if !plan.trim().is_empty() => {
            prompt.plan = Some(transcript::plan_to_carry_out(plan));
            prompt.steer = false;
            return true;
        }
        _ => context.services.notice(NoticeLevel::Error, NO_PLAN),
    }
    false
}
