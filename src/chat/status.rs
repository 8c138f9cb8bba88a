//! The part of a chat's state that its turns change. The winbar shows this state.

use crate::protocol::{ChatState, PlanProgress};
use crate::tool::plan::WorkPlan;
use co_llm::transcript::{self, Item, Usage};

/// The state of the turns of a chat.
#[derive(Default)]
pub(super) struct Status {
    state: ChatState,
    detail: String,
    /// The numbers of tokens that the whole chat used.
    pub usage: Usage,
    /// The numbers of tokens that the current or last turn used.
    pub turn_usage: Usage,
    /// The percentage of the model's context window that is used.
    pub window_used: Option<u64>,
    /// The progress of the model's plan; none if no step of a plan is open.
    pub plan: Option<PlanProgress>,
    /// The index of the first item of the transcript that can contain the current plan. Earlier items only contain plans that an
    /// agent has removed.
    plan_from: usize,
    waiting: WaitingQuestion,
}

/// A waiting question that the state of the turn does not show.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WaitingQuestion {
    #[default]
    None,
    /// A question waits while no turn runs, such as the question of `/commit`.
    WithoutTurn,
    /// The running call is `ask_person`, and its question waits.
    OfModel,
}

impl Status {
    pub(super) fn set(&mut self, state: ChatState, detail: String) {
        self.state = state;
        self.detail = detail;
    }

    /// Returns the state for the winbar, and a text about the work of the turn.
    pub(super) fn state(&self) -> (ChatState, String) {
        match self.waiting {
            WaitingQuestion::OfModel => (ChatState::Asking, String::new()),
            WaitingQuestion::None | WaitingQuestion::WithoutTurn => {
                (self.state, self.detail.clone())
            }
        }
    }

    /// Returns true if a question waits while no turn runs.
    pub(super) fn asks_without_turn(&self) -> bool {
        self.waiting == WaitingQuestion::WithoutTurn
    }

    /// Sets the question that waits now. Returns false if it is the same as before.
    pub(super) fn set_waiting(&mut self, waiting: WaitingQuestion) -> bool {
        std::mem::replace(&mut self.waiting, waiting) != waiting
    }

    /// Reads the current plan from the transcript.
    pub(super) fn find_plan(&mut self, items: &[Item]) {
        let plan = WorkPlan::last(items.get(self.plan_from..).unwrap_or(items));
        let progress = plan.map(|plan| plan.progress());
        self.plan = progress.filter(|it| it.done < it.steps);
    }

    /// Forgets the current plan, because the agent has removed it. `items` are the items of the transcript so far.
    pub(super) fn drop_plan(&mut self, items: &[Item]) {
        self.plan_from = items.len();
        self.plan = None;
    }

    /// Reads the plan and the usage of the last turn from another transcript.
    pub(super) fn resume(&mut self, items: &[Item]) {
        self.find_plan(items);
        self.plan_from = 0;
        self.turn_usage = transcript::used_last(items);
    }

    /// Returns the usage as a text for the person.
    pub(super) fn usage_words(&self) -> String {
        format!("{}; the last turn {}", self.usage, self.turn_usage)
    }
}
