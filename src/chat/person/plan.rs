//! The plan of a chat: `/plan` asks the model for a plan, the person edits it in a buffer, `/go` starts the work with it.

use crate::chat::{Chat, Prompt};
use crate::protocol::{NoticeLevel, ToEditor};
use co_llm::transcript::{self, Item};
use co_text::start_of;

/// The prompt that starts the work with the plan.
const GO: &str = "/go";

/// The most bytes of a plan that is kept.
const LONGEST_PLAN: usize = 64 * 1024;

const NO_PLAN: &str = "this chat has no plan yet: /plan {task} asks the model for one";

/// The notice below the answer to `/plan`.
const PLANNED: &str =
    "this answer is the plan: /plan opens it to be changed, /go starts the work with it";

impl Chat {
    /// Keeps the answer of the turn that ends as the plan, if the turn was asked for one.
    pub(in crate::chat) async fn keep_answer_as_plan(&mut self) {
        let items = self.recorder.items();
        if !transcript::is_planning(items) {
            return;
        }
        let answer = transcript::last_answer(items);
        let text = start_of(answer.trim(), LONGEST_PLAN).to_owned();
        if text.is_empty() || !self.recorder.record(Item::Plan { text }).await {
            return;
        }
        self.show_notice(PLANNED.to_owned()).await;
        self.show_plan(false);
    }

    /// Keeps the plan as the person wrote it.
    pub(in crate::chat) async fn keep_plan(&mut self, text: String) {
        if text.len() > LONGEST_PLAN {
            let message = format!(
                "the plan was not kept: it has over {} KiB; write a shorter one",
                LONGEST_PLAN / 1024
            );
            return self.complain(message);
        }
        self.flush().await;
        if transcript::last_plan(self.recorder.items()) != Some(&text)
            && self.recorder.ready(&self.dirs, &text).await
        {
            self.recorder.record(Item::Plan { text }).await;
        }
    }

    /// Opens the buffer of the plan.
    pub(in crate::chat) fn open_plan(&self) {
        if !self.show_plan(true) {
            self.say(NO_PLAN);
        }
    }

    /// Sends the plan to Lua. Returns false if there is none.
    fn show_plan(&self, open: bool) -> bool {
        let Some(text) = transcript::last_plan(self.recorder.items()) else {
            return false;
        };
        self.services.editor.tell(ToEditor::Plan {
            chat: self.id,
            text: text.to_owned(),
            open,
        });
        true
    }

    /// Gives the plan to a prompt that starts the work with it. Returns false, after a notice, if there is none.
    pub(in crate::chat) fn add_plan(&self, prompt: &mut Prompt) -> bool {
        let text = prompt.sent_text();
        if transcript::asks_for_plan(text) || transcript::task_to_explore(text).is_some() {
            prompt.steer = false;
        }
        if prompt.text != GO {
            return true;
        }
        match transcript::last_plan(self.recorder.items()) {
            Some(plan) if !plan.trim().is_empty() => {
                prompt.plan = Some(transcript::plan_to_carry_out(plan));
                prompt.steer = false;
                return true;
            }
            _ => self.services.notice(NoticeLevel::Error, NO_PLAN),
        }
        false
    }
}
