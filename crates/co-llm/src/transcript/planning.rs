//! Plans and scouts: the prompts that ask for a plan, the plan itself, the prompts that start the work with a plan, and the
//! prompts that send a scout.
//!
//! The text of a prompt determines the kind of its turn. So a retry of the turn has the same kind.

use super::item::{Context, Item};
use super::repair::is_of_turn;
use super::view::GO_ON;

/// The start of a prompt that asks for a plan.
const PLAN: &str = "/plan";

/// The start of a prompt that starts the work with a plan.
const GO: &str = "/go";

/// The note for the model at the end of a prompt that asks for a plan.
const PLAN_NOTE: &str = "The person asks for a plan of this task, and not for the work. Until their next message, only calls that \
    look are carried out; every other call is refused, and nobody is asked about it. Read what you need, then answer with the \
    plan: numbered steps, each in a line, with the files that it changes and how its result is checked. The person may change \
    the plan, and starts the work later.";

/// The note for the model at the end of a prompt that starts the work with a plan.
const GO_NOTE: &str = "The person read this plan, and may have changed it. Carry it out. If it has three steps or more, call \
    update_plan first, with its steps. The plan approves no call.";

/// The start of a prompt that sends a scout, the sub-agent that explores the workspace.
const EXPLORE: &str = "/explore";

/// The note for the model at the end of a prompt that sends a scout.
const EXPLORE_NOTE: &str =
    "The person sent a scout with this task. Its report follows as your answer.";

/// Returns the scout's task if the prompt is an `/explore` command. Returns `None` for other prompts.
pub fn task_to_explore(prompt: &str) -> Option<&str> {
    after(prompt, EXPLORE)
}

/// Returns the scout's task and the attached context, if the next turn sends a scout. Returns `None` if the model answers the
/// next turn.
pub fn to_explore(items: &[Item]) -> Option<(&str, &[Context])> {
    items.iter().rev().find_map(|item| match item {
        Item::User { text, context, .. } => {
            Some(task_to_explore(text).map(|task| (task, &**context)))
        }
        // The model goes on.
        Item::Note { text, .. } if text == GO_ON => Some(None),
        _ => None,
    })?
}

/// Returns true if a prompt asks for a plan.
pub fn asks_for_plan(prompt: &str) -> bool {
    task_to_plan(prompt).is_some()
}

/// Returns the task if a prompt asks for a plan, or `None` for other prompts.
pub fn task_to_plan(prompt: &str) -> Option<&str> {
    after(prompt, PLAN)
}

/// Returns the text of a prompt that starts the work with this plan.
pub fn plan_to_carry_out(plan: &str) -> String {
    format!("{GO}\n\n{}", plan.trim())
}

/// Returns the text after `command` if a prompt starts with this command.
fn after<'a>(prompt: &'a str, command: &str) -> Option<&'a str> {
    let rest = prompt.strip_prefix(command)?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// Returns the plan that a prompt tells the model to carry out. Returns `None` for other prompts.
pub fn carried_out(prompt: &str) -> Option<&str> {
    after(prompt, GO)
}

/// Returns the text of a prompt in the form in which the model gets it.
pub(crate) fn told(prompt: String) -> String {
    if let Some(task) = after(&prompt, PLAN) {
        format!("{task}\n\n[{PLAN_NOTE}]")
    } else if let Some(plan) = carried_out(&prompt) {
        format!("{plan}\n\n[{GO_NOTE}]")
    } else if let Some(task) = task_to_explore(&prompt) {
        format!("{task}\n\n[{EXPLORE_NOTE}]")
    } else {
        prompt
    }
}

/// Returns true if the person asked only for a plan in the current or most recent turn. A prompt that steers a turn does not
/// change the kind of the turn.
pub fn is_planning(items: &[Item]) -> bool {
    let (mut plans, mut in_turn) = (false, false);
    for item in items {
        match item {
            Item::User { text, .. } if !in_turn => {
                plans = asks_for_plan(text);
                in_turn = true;
            }
            // A turn that goes on with the last one begins without a prompt.
            _ => in_turn = is_of_turn(item).unwrap_or(in_turn),
        }
    }
    plans
}

/// Returns the text that the model wrote after the last prompt, call or result.
pub fn last_answer(items: &[Item]) -> String {
    let since = items.iter().rev();
    let since =
        since.take_while(|it| !matches!(it, Item::User { .. } | Item::Call(_) | Item::Outcome(_)));
    let texts = since.filter_map(|item| match item {
        Item::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let mut texts: Vec<_> = texts.collect();
    texts.reverse();
    texts.concat()
}

/// Returns the most recent plan: the model's answer, or the plan as the person changed it.
pub fn last_plan(items: &[Item]) -> Option<&str> {
    items.iter().rev().find_map(|item| match item {
        Item::Plan { text } => Some(text.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_items::{call, end, outcome, said, user};
    use super::*;

    #[test]
    fn a_turn_plans_if_its_first_prompt_asks_for_a_plan() {
        let check = |items: &[Item], expected: bool| assert_eq!(is_planning(items), expected);
        let plan = || user("/plan fix it");
        check(&[], false);
        check(&[user("fix it")], false);
        check(&[user("/planet x")], false);
        check(&[user("/plan\tx")], true);
        check(&[user("x"), end(), plan()], true);
        check(&[plan(), user("and that"), said("1. x")], true);
        check(&[plan(), user("and that"), end(), Item::Retried], true);
        check(&[plan(), end(), user(&plan_to_carry_out("1. x"))], false);
        check(&[user("x"), plan()], false);
        let steered = [plan(), end(), Item::Retried, user("and that"), end()];
        check(&steered, true);
    }

    #[test]
    fn a_plan_is_the_text_after_the_last_call() {
        let items = [
            user("/plan x"),
            said("I look"),
            call("1"),
            outcome("1", "a"),
            said("1. "),
            said("x"),
        ];
        assert_eq!(last_answer(&items), "1. x");
        let kept = |text: &str| Item::Plan {
            text: text.to_owned(),
        };
        assert_eq!(last_plan(&items), None);
        assert_eq!(last_plan(&[kept("a"), user("x"), kept("b")]), Some("b"));
    }

    #[test]
    fn the_model_reads_the_task_or_the_plan_and_a_note() {
        assert_eq!(told("/plan".to_owned()), "/plan");
        let asked = told("/plan fix it".to_owned());
        assert!(
            asked.starts_with("fix it\n\n[The person asks for a plan"),
            "{asked}"
        );
        let go = told(plan_to_carry_out("1. x\n2. y\n"));
        assert!(
            go.starts_with("1. x\n2. y\n\n[The person read this plan"),
            "{go}"
        );
    }
}
