//! The part of a chat's state that its turns change, as the winbar shows it.

use crate::protocol::{ChatState, PlanProgress};
use crate::tool::plan::WorkPlan;
use co_llm::transcript::{self, Item, Usage};

/// The state of the turns of a chat.
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
    plan_from: usize,
    waiting: WaitingQuestion,
}

/// A question that waits although the state of the turn does not say so.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WaitingQuestion {
    #[default]
    None,
    /// Without a turn, such as the question of `/commit`.
    WithoutTurn,
    /// The running call is a question of the model.
    OfModel,
}

impl Status {
    pub(super) fn set(&mut self, state: ChatState, detail: String) {
        self.state = state;
        self.detail = detail;
    }

    /// Returns the state for the winbar, and what the turn does.
    pub(super) fn state(&self) -> (ChatState, String) {
        match self.waiting {
            WaitingQuestion::OfModel => (ChatState::Asking, String::new()),
            WaitingQuestion::None | WaitingQuestion::WithoutTurn => {
                (self.state, self.detail.clone())
            }
        }
    }

    /// Returns whether a question waits that no turn asked.
    pub(super) fn asks_without_turn(&self) -> bool {
        self.waiting == WaitingQuestion::WithoutTurn
    }

    /// Takes the question that waits now. Returns false if it is the same as before.
    pub(super) fn set_waiting(&mut self, waiting: WaitingQuestion) -> bool {
        std::mem::replace(&mut self.waiting, waiting) != waiting
    }

    /// Reads the plan of the transcript.
    pub(super) fn find_plan(&mut self, items: &[Item]) {
        let plan = WorkPlan::last(items.get(self.plan_from..).unwrap_or(items));
        let progress = plan.map(|plan| plan.progress());
        self.plan = progress.filter(|it| it.done < it.steps);
    }

    /// Forgets the plans of these items.
    pub(super) fn drop_plan(&mut self, items: &[Item]) {
        self.plan_from = items.len();
        self.plan = None;
    }

    /// Reads the plan and the usage of the last turn in another transcript.
    pub(super) fn resume(&mut self, items: &[Item]) {
        self.find_plan(items);
        self.plan_from = 0;
        self.turn_usage = transcript::used_last(items);
    }

    /// Returns the usage in words.
    pub(super) fn usage_words(&self) -> String {
        format!("{}; the last turn {}", self.usage, self.turn_usage)
    }
}
