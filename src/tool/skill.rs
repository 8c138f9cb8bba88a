//! The tool `read_skill`: reads the text of a skill that the person trusts, and the other files of such a skill. A chat has this
//! tool only while it has a skill.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::call::{CallEffect, CallResult, LookingCall, PlannedCall};
use super::context::{CallContext, CallHalt};
use super::event::ShownCall;
use super::schema::{self, BadCall, Tool, arguments};
use crate::workspace::skills::Skill;
use co_exec::secrets::redact::RedactedText;
use co_llm::ToolSpec;
use co_llm::transcript::{Call, ShownPart};

/// The name by which the model calls this tool.
pub const NAME: &str = "read_skill";

/// The skills that the model of a chat may read. Clones share the same list.
#[derive(Debug, Clone, Default)]
pub struct SkillList(Arc<Mutex<Arc<[Skill]>>>);

impl SkillList {
    /// Returns the skills. Each has a unique name.
    pub fn skills(&self) -> Arc<[Skill]> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the skills.
    pub fn set(&self, skills: Vec<Skill>) {
        *self.0.lock() = skills.into();
    }
}

/// The tool `read_skill`, with the skills of its chat.
struct SkillTool {
    spec: ToolSpec,
    skills: SkillList,
}

/// Returns the tool `read_skill` for a list of skills.
pub fn tool(skills: SkillList) -> Arc<dyn Tool> {
    let description = "Returns the text of a skill, which says how to do one kind of work here. The system prompt names \
        the skills under \"Skill\". Read the one that fits before you begin such work. Runs at once.";
    let properties = json!({
        "name": { "type": "string", "description": "The skill." },
        "file": {
            "type": "string",
            "description": "A file that its text names, by the path below the skill's directory. Without it: the text itself.",
        },
    });
    Arc::new(SkillTool {
        spec: schema::spec(NAME, description.to_owned(), properties, &["name"]),
        skills,
    })
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        let asked: SkillArguments = arguments(call)?;
        let skills = self.skills.skills();
        let Some(skill) = skills.iter().find(|it| it.name == asked.name) else {
            let names: Vec<_> = skills.iter().map(|it| it.name.as_str()).collect();
            return Err(BadCall(format!(
                "There is no skill called {}.\nThe skills are: {}.",
                asked.name,
                names.join(", ")
            )));
        };
        Ok(Box::new(ReadSkill {
            skill: skill.clone(),
            file: asked.file.filter(|file| !file.is_empty()),
        }))
    }

    fn shown_unread(&self, _line: &str) -> Option<ShownCall> {
        None
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillArguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
}

/// A call of `read_skill`.
#[derive(Debug, Clone)]
struct ReadSkill {
    skill: Skill,
    file: Option<String>,
}

impl ReadSkill {
    fn line(&self) -> String {
        let Self { skill, file } = self;
        match file {
            Some(file) => format!("read {} {file}", skill.name),
            None => format!("read {}", skill.name),
        }
    }

    /// Returns a result with the text of the skill.
    async fn text(&self, context: &CallContext, started: Instant) -> CallResult {
        let lines = format!("{} lines", self.skill.file.text.lines().count());
        read(context, self.skill.whole_text(), started, false, lines).await
    }

    /// Returns a result with another file of the skill.
    async fn other(&self, context: &CallContext, file: &str, started: Instant) -> CallResult {
        let (skill, path) = (self.skill.clone(), file.to_owned());
        let judge = Arc::clone(&context.judge);
        let read_file = tokio::task::spawn_blocking(move || {
            let (real, text) = skill.read(&path)?;
            match judge.reading_problem(&real).filter(|_| !skill.of_person) {
                Some(why) => Err(format!("Refused: {why}.")),
                None => Ok(text),
            }
        });
        match read_file.await {
            Ok(Ok(text)) => {
                let lines = format!("{} lines", text.lines().count());
                read(context, text, started, true, lines).await
            }
            Ok(Err(why)) => CallResult::not_run(why),
            Err(error) => CallResult::not_run(format!("The file cannot be read: {error}.")),
        }
    }
}

/// Returns the result of a call that has read a text. `material` is true for a text that the person did not explicitly trust.
async fn read(
    context: &CallContext,
    text: String,
    started: Instant,
    material: bool,
    summary: String,
) -> CallResult {
    let told = match context.redact_for_model(&text, started).await {
        Ok(told) => told,
        Err(withheld) => RedactedText::from(format!("[{withheld}]")),
    };
    let end = if material { told.text.len() } else { 0 };
    CallResult {
        ok: true,
        shown: ShownPart {
            output: [0, end],
            ..ShownPart::line(summary.clone())
        },
        effect: Some(CallEffect::of_co(summary)),
        ..told.into()
    }
}

#[async_trait]
impl LookingCall for ReadSkill {
    fn shown(&self) -> ShownCall {
        ShownCall::Query(self.line())
    }

    fn runs(&self) -> Option<String> {
        Some(self.line())
    }

    async fn look(self, context: &CallContext) -> Result<CallResult, CallHalt> {
        let started = Instant::now();
        let reading = async {
            match &self.file {
                None => self.text(context, started).await,
                Some(file) => self.other(context, file, started).await,
            }
        };
        context.unless_cancelled(reading).await
    }
}
