//! The tool `update_plan`: the steps of the model's work, each with its state. It changes nothing, so it needs no approval.

use std::collections::HashSet;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::call::{CallResult, LookingCall};
use super::context::{CallContext, CallHalt};
use super::event::ShownCall;
use super::schema::{self, BadCall, BuiltIn, arguments};
use crate::protocol::PlanProgress;
use co_llm::transcript::{self, Call, Item, ShownPart};
use co_text::{one_line, shorten};

/// The name by which the model calls this tool.
pub const NAME: &str = "update_plan";

/// The largest number of steps of a plan.
pub const MOST_STEPS: usize = 30;
/// The largest number of bytes of a step that the chat shows.
const LONGEST_STEP: usize = 200;

/// The model's plan: the steps of its work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkPlan {
    plan: Vec<WorkStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkStep {
    step: String,
    status: StepStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepStatus {
    Pending,
    InProgress,
    Completed,
}

/// Returns the tool `update_plan`.
pub(super) fn tool() -> BuiltIn {
    let description = "Shows the person the steps of your work and how far you are; they see one list, which each call \
        replaces. For work of three steps or more: call it when you begin, and whenever a step is done. At most one step is \
        in_progress. Runs at once and changes nothing.";
    let step = json!({
        "type": "object",
        "properties": {
            "step": { "type": "string", "description": "The step in a few words." },
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
        },
        "required": ["step", "status"],
        "additionalProperties": false,
    });
    let properties = json!({
        "plan": {
            "type": "array",
            "items": step,
            "description": format!("All steps, in order, at most {MOST_STEPS}."),
        },
    });
    BuiltIn {
        spec: schema::spec(NAME, description.to_owned(), properties, &["plan"]),
        parse: |call| Ok(Box::new(WorkPlan::parse(call)?)),
        shown_unread: |_| None,
    }
}

impl WorkPlan {
    fn parse(call: &Call) -> Result<Self, BadCall> {
        if call.name != NAME {
            return Err(BadCall::of_another_tool(call));
        }
        let plan: Self = arguments(call)?;
        match plan.plan.len() {
            1..=MOST_STEPS => Ok(plan),
            count => Err(BadCall(format!(
                "A plan has 1 to {MOST_STEPS} steps, and this one has {count}."
            ))),
        }
    }

    /// Returns the last plan of a transcript; none if the transcript has no plan. After `/go`, the plan has the steps of the
    /// chat's plan until the model changes it.
    pub fn last(items: &[Item]) -> Option<Self> {
        let started = |item: &Item| match item {
            Item::User { text, .. } => transcript::carried_out(text).map(Self::of_text),
            _ => None,
        };
        let found = items.iter().enumerate().rev();
        let mut found = found.filter_map(|(at, item)| started(item).map(|plan| (at, plan)));
        let Some((at, plan)) = found.next() else {
            return Self::last_but(items, &HashSet::new());
        };
        Self::last_but(&items[at..], &HashSet::new()).or(plan)
    }

    /// Returns the steps in a text: its numbered lines, or else the items of its list. Returns `None` if the text has neither.
    fn of_text(text: &str) -> Option<Self> {
        let numbered = |line: &str| {
            let digits = line.trim_start_matches(|it: char| it.is_ascii_digit());
            let is_numbered = digits.len() < line.len();
            let rest = digits.strip_prefix(['.', ')'])?.strip_prefix(' ')?;
            is_numbered.then(|| rest.trim().to_owned())
        };
        let listed = |line: &str| {
            let rest = line
                .strip_prefix("- ")
                .or_else(|| line.strip_prefix("* "))?;
            let rest = rest.trim();
            Some(rest.strip_prefix("[ ] ").unwrap_or(rest).to_owned())
        };
        let mut steps: Vec<_> = text.lines().filter_map(numbered).collect();
        if steps.is_empty() {
            steps = text.lines().filter_map(listed).collect();
        }
        let steps = steps.into_iter().take(MOST_STEPS).map(|step| WorkStep {
            step,
            status: StepStatus::Pending,
        });
        let plan: Vec<_> = steps.collect();
        (!plan.is_empty()).then_some(Self { plan })
    }

    /// Returns the last plan among the items that a summary replaces. `told` are the items that the model gets.
    pub fn summed_up(items: &[Item], told: &[Item]) -> Option<Self> {
        let told = told.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call.id.as_str()),
            _ => None,
        });
        Self::last_but(items, &told.collect())
    }

    fn last_but(items: &[Item], but: &HashSet<&str>) -> Option<Self> {
        items.iter().rev().find_map(|item| match item {
            Item::Call(call) if !but.contains(call.id.as_str()) => Self::parse(call).ok(),
            _ => None,
        })
    }

    /// Returns the number of completed steps, and the number of all steps.
    pub fn progress(&self) -> PlanProgress {
        let is_done = |it: &&WorkStep| it.status == StepStatus::Completed;
        let done = self.plan.iter().filter(is_done).count();
        // There are at most `MOST_STEPS`.
        let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        PlanProgress {
            done: number(done),
            steps: number(self.plan.len()),
        }
    }

    /// Returns the steps, one line for each step.
    pub fn lines(&self) -> Vec<String> {
        let line = |WorkStep { step, status }: &WorkStep| {
            let sign = match status {
                StepStatus::Pending => "[ ]",
                StepStatus::InProgress => "[>]",
                StepStatus::Completed => "[x]",
            };
            format!("{sign} {}", one_line(&shorten(step, LONGEST_STEP)))
        };
        self.plan.iter().map(line).collect()
    }
}

#[async_trait]
impl LookingCall for WorkPlan {
    fn shown(&self) -> ShownCall {
        ShownCall::Plan(self.lines())
    }

    async fn look(self, _context: &CallContext) -> Result<CallResult, CallHalt> {
        let PlanProgress { done, steps } = self.progress();
        Ok(CallResult {
            ok: true,
            shown: ShownPart::line(format!("{done}/{steps}")),
            ..CallResult::answer(format!("The person sees the plan: {done} of {steps} done."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, statuses: &[&str]) -> Call {
        let steps = statuses.iter().enumerate();
        let steps: Vec<_> = steps
            .map(|(at, status)| json!({ "step": format!("do {at}"), "status": status }))
            .collect();
        Call::new(id, NAME, json!({ "plan": steps }))
    }

    #[test]
    fn a_plan_is_shown_line_by_line() {
        let plan = WorkPlan::parse(&call("1", &["completed", "in_progress", "pending"])).unwrap();
        assert_eq!(plan.lines(), ["[x] do 0", "[>] do 1", "[ ] do 2"]);
        assert_eq!(plan.progress(), PlanProgress { done: 1, steps: 3 });
    }

    #[test]
    fn the_work_begins_with_the_steps_of_the_plan() {
        let steps = |plan: &str| {
            let go = Item::user(transcript::plan_to_carry_out(plan));
            let items = [Item::Call(call("1", &["completed"])), go];
            WorkPlan::last(&items).map_or(Vec::new(), |plan| plan.lines())
        };
        let numbered =
            "The fix:\n1. Read `a.rs`.\n   - a detail\n2) Change it.\n2024 was long.\n10. Test.\n";
        assert_eq!(
            steps(numbered),
            ["[ ] Read `a.rs`.", "[ ] Change it.", "[ ] Test."]
        );
        assert_eq!(steps("- [ ] a\n* b\n"), ["[ ] a", "[ ] b"]);
        assert!(steps("Just do it.").is_empty());
        let items = [
            Item::user(transcript::plan_to_carry_out("1. a\n2. b")),
            Item::Call(call("1", &["completed", "pending"])),
            Item::user("thanks"),
        ];
        assert_eq!(
            WorkPlan::last(&items).unwrap().progress(),
            PlanProgress { done: 1, steps: 2 }
        );
    }

    #[test]
    fn a_long_step_is_cut_with_a_mark() {
        let step = |step: String| {
            let steps = json!([{ "step": step, "status": "pending" }]);
            let call = Call::new("1", NAME, json!({ "plan": steps }));
            WorkPlan::parse(&call).unwrap().lines()
        };
        let long = "x".repeat(LONGEST_STEP);
        assert_eq!(step(long.clone()), [format!("[ ] {long}")]);
        assert_eq!(step(format!("{long}x")), [format!("[ ] {long}…")]);
    }

    #[test]
    fn a_plan_has_steps_and_not_too_many() {
        for count in [0, MOST_STEPS + 1] {
            let bad = WorkPlan::parse(&call("1", &vec!["pending"; count])).unwrap_err();
            assert!(bad.0.contains(&count.to_string()), "{bad}");
        }
    }

    #[test]
    fn a_summary_stands_for_the_plan_before_what_the_model_gets() {
        let items = [
            Item::Call(call("1", &["pending"])),
            Item::Call(call("2", &["in_progress"])),
            Item::Call(call("3", &["completed"])),
        ];
        let progress = |told: &[Item]| WorkPlan::summed_up(&items, told).unwrap().lines();
        assert_eq!(progress(&items[2..]), ["[>] do 0"]);
        assert_eq!(progress(&[]), ["[x] do 0"]);
        assert_eq!(WorkPlan::summed_up(&items, &items), None);
        assert_eq!(WorkPlan::last(&items).unwrap().progress().done, 1);
    }
}
