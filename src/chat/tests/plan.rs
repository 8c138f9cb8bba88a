//! The plan of the model, which it shows by `update_plan`.

use serde_json::json;

use super::chat::{Chat, asks_for, says};
use crate::protocol::{PlanProgress, ToEditor};
use co_llm::scripted::Part;

fn plan(id: &str, statuses: &[&str]) -> Vec<Part> {
    let steps = statuses.iter().enumerate();
    let steps: Vec<_> = steps
        .map(|(at, status)| json!({ "step": format!("step {at}"), "status": status }))
        .collect();
    asks_for(id, "update_plan", json!({ "plan": steps }))
}

/// Returns the progress that the winbar shows.
fn plan_of(chat: &Chat) -> Option<PlanProgress> {
    let mut states = chat.seen.iter().rev();
    states.find_map(pick!(ToEditor::State { plan, .. } => *plan))?
}

#[tokio::test]
async fn nobody_is_asked_about_a_plan_and_its_progress_is_told() {
    let mut chat = Chat::new([
        plan("1", &["in_progress", "pending"]),
        plan("2", &["completed", "in_progress"]),
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.asks(), 0);
    chat.assert_told("2", "1 of 2 done");
    assert_eq!(plan_of(&chat), Some(PlanProgress { done: 1, steps: 2 }));
    // No step is open.
    chat.model.push(plan("3", &["completed", "completed"]));
    assert_eq!(chat.turn_with("go on", says("ok")).await, "done");
    assert_eq!(plan_of(&chat), None);
}

#[tokio::test]
async fn a_summary_keeps_the_plan() {
    let mut chat = Chat::new([
        plan("1", &["completed", "in_progress"]),
        says("ok"),
        says("we began"),
        says("on"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.command_ends("compact").await, "done");
    assert_eq!(chat.turn("go on").await, "done");
    let request = format!("{:?}", chat.last_request().items);
    assert!(request.contains("[x] step 0"), "{request}");
    assert!(request.contains("[>] step 1"), "{request}");
}
