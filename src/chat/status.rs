//! The messages of a chat to Lua, apart from its text: its state, and prompts that go back to the person.

use super::events::ChatEvent;
use super::{Chat, Prompt};
use crate::protocol::{ChatState, OpenSummary, PlanProgress, ToEditor};
use crate::tool::plan::WorkPlan;
use crate::workspace::edits::EditRequest;
use co_llm::transcript::{self, Usage};

/// The part of a chat's state that its turns change, as the winbar shows it.
#[derive(Default)]
pub(super) struct Status {
    state: ChatState,
    detail: String,
    /// The usage of the whole chat.
    pub usage: Usage,
    /// The usage of the current or last turn.
    pub turn_usage: Usage,
    /// The used part of the model's window in percent.
    pub window_used: Option<u64>,
    /// None if no step of the model's plan is open.
    pub plan: Option<PlanProgress>,
    /// The items of the transcript before the plan that counts. An agent may drop its plan.
    pub plan_from: usize,
    asks: Asks,
    /// The changes that the person has not answered yet.
    pub open: Option<OpenSummary>,
}

/// A question that waits although the state of the turn does not say so.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    /// Without a turn, such as the question of `/commit`.
    WithoutTurn,
    /// The running call is a question of the model.
    Model,
}

impl Chat {
    pub(super) fn set_state(&mut self, state: ChatState, detail: String) {
        self.status.state = state;
        self.status.detail = detail;
        self.show_state();
    }

    pub(super) fn show_state(&self) {
        let (state, detail) = match self.status.asks {
            Asks::Model => (ChatState::Asking, String::new()),
            Asks::Nothing | Asks::WithoutTurn => (self.status.state, self.status.detail.clone()),
        };
        self.services.editor.tell(ToEditor::State {
            chat: self.id,
            state,
            detail,
            model: self.model.label(&self.services.config),
            cwd: self.dirs.cwd.display().to_string(),
            confinement: self.services.probe.name().to_owned(),
            used: self.status.usage.into(),
            turn: Box::new(self.status.turn_usage.into()),
            window_used: self.status.window_used,
            commands: self.services.foreground.of(self.id),
            queued: self.queue.queued(),
            steering: self.queue.steering(),
            taken_prompts: self.queue.taken(),
            transcript: self.recorder.id(),
            title: self.recorder.title(),
            chosen: self.model.is_chosen(),
            unusual: self.unusual(),
            open: self.status.open.clone(),
            plan: self.status.plan,
            mode: self.agent.state().mode(),
        });
    }

    /// Reads the plan of the transcript.
    pub(super) fn find_plan(&mut self) {
        let items = self.recorder.items();
        let plan = WorkPlan::last(items.get(self.status.plan_from..).unwrap_or(items));
        let progress = plan.map(|plan| plan.progress());
        self.status.plan = progress.filter(|it| it.done < it.steps);
    }

    /// Shows the state again if a question of the model, or a question without a turn, came or went.
    pub(super) fn show_if_it_asks(&mut self) {
        let asks = match self.running {
            None if self.questions.any() => Asks::WithoutTurn,
            Some(_) if self.questions.any_choice() => Asks::Model,
            None | Some(_) => Asks::Nothing,
        };
        if asks != self.status.asks {
            self.status.asks = asks;
            self.show_state();
        }
    }

    /// Returns whether the turn that runs only plans.
    fn plans(&self) -> bool {
        self.running.is_some() && transcript::is_planning(self.recorder.items())
    }

    /// Returns what waits in this chat, and what is unusual because the person allowed or chose it, in a few words each.
    fn unusual(&self) -> Vec<String> {
        let edits = EditRequest::every_edit();
        let may_edit = edits.iter().all(|it| self.permissions.rules.contains(it));
        let words = [
            (self.status.asks == Asks::WithoutTurn, "a question waits"),
            // co asks only about a few commands, such as those that it cannot read.
            (self.permissions.confirms(&self.services), "ASKS NOTHING"),
            (self.agent_is_unconfined(), "AGENT NOT CONFINED"),
            (self.plans(), "PLANS"),
            (may_edit, "edits allowed"),
            (
                self.services.tries_first(&self.dirs.workspace),
                "tries first",
            ),
        ];
        let words = words.into_iter().filter(|(is_so, _)| *is_so);
        words.map(|(_, words)| words.to_owned()).collect()
    }

    pub(super) fn show(&self, event: ChatEvent) {
        self.front_end.show(event);
    }

    /// Gives back a prompt that was not taken, and all queued prompts.
    pub(super) fn give_all_back(&mut self, prompt: Prompt) {
        let waiting = self.queue.take_all();
        // From the last to the first, because Lua puts each in front of the draft.
        for prompt in std::iter::once(prompt).chain(waiting).rev() {
            self.give_back(prompt);
        }
        self.show_state();
    }

    /// Gives back a prompt that was not taken.
    pub(super) fn give_back(&self, prompt: Prompt) {
        self.services.editor.tell(ToEditor::Unsent {
            chat: self.id,
            text: prompt.text,
        });
    }
}
