//! The items of a chat as plain data, and the facts that follow from them.
//!
//! [`view()`] returns the items to send to a model. [`repair()`] completes items that a crash interrupted. This module knows no
//! providers, no Neovim and no files.

mod current_surroundings;
mod item;
mod jobs;
mod planning;
mod repair;
mod summary;
mod surroundings;
#[cfg(test)]
pub(crate) mod test_items;
mod turns;
mod usage;
mod view;

pub use current_surroundings::{first_surroundings, last_surroundings};
pub use item::{
    Call, Context, Decision, End, Image, Item, LongText, Outcome, Shortened, ShownPart,
};
pub use jobs::{last_job, lost_jobs};
pub(crate) use planning::told;
pub use planning::{
    asks_for_plan, carried_out, is_planning, last_answer, last_plan, plan_to_carry_out,
    task_to_explore, task_to_plan, to_explore,
};
pub use repair::{INTERRUPTED, TRIAL_INTERRUPTED, repair, unanswered, unfinished};
pub use surroundings::{InstructionFile, Surroundings};
pub use turns::{used, used_last};
pub use usage::{Cost, Usage};
pub use view::{GO_ON, has_answer, joined, may_go_on, view};

/// Cuts a text before the characters with these indices, and returns each piece as an item.
#[cfg(test)]
pub(crate) fn cut(text: &str, cuts: &[usize]) -> Vec<Item> {
    let mut pieces = vec![String::new()];
    for (at, character) in text.chars().enumerate() {
        if cuts.contains(&at) {
            pieces.push(String::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    let item = |text| Item::Text { text };
    pieces.into_iter().map(item).collect()
}
