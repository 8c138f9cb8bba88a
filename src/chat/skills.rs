//! The skills of a chat. The text of a skill in the workspace goes to the model only after the person trusts it. The person's own
//! skills need no answer.

use std::path::Path;

use super::chat_context::ChatContext;
use super::trust_questions;
use crate::blocking::blocking;
use crate::protocol::Choice;
use crate::services::Services;
use crate::tool::ToolSet;
use crate::tool::skill::{self, SkillList};
use crate::trust::{FileTrust, TrustAnswer};
use crate::workspace::skills::{FoundSkills, Skill};
use co_llm::transcript::InstructionFile;
use co_text::{one_line, start_of};

/// The largest number of bytes of one skill's description in the system prompt.
const LONGEST_DESCRIPTION: usize = 500;
/// The largest number of bytes of all skills' descriptions in the system prompt.
const LONGEST_TOGETHER: usize = 8 << 10;

/// The skills that the last turn offered.
#[derive(Debug, Default)]
pub(super) struct Skills {
    list: SkillList,
    /// The hashes of the texts that wait for the person's answer.
    waiting: Vec<String>,
}

/// The person's trust in a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillTrust {
    OfPerson,
    OfWorkspace(FileTrust),
}

impl SkillTrust {
    fn of(skill: &Skill, answer: Option<&TrustAnswer>) -> Self {
        match skill.of_person {
            true => Self::OfPerson,
            false => Self::OfWorkspace(FileTrust::of(&skill.file, answer)),
        }
    }

    fn is_for_model(self) -> bool {
        matches!(self, Self::OfPerson | Self::OfWorkspace(FileTrust::Trusted))
    }

    fn words(self) -> &'static str {
        match self {
            Self::OfPerson => "yours",
            Self::OfWorkspace(trust) => trust.words(),
        }
    }
}

impl Skills {
    /// Reads the skills for a new turn, and offers the model the tool that reads them. Returns a notice if more skills now wait
    /// for the person's answer.
    pub(super) async fn renew(&mut self, context: &ChatContext, tools: &ToolSet) -> Option<String> {
        let services = &context.services;
        let workspace = &context.dirs.workspace;
        let (skills, problem) = match find(services, workspace).await {
            Ok(found) => found,
            Err(why) => (Vec::new(), Some(why)),
        };
        if let Some(problem) = problem {
            let mut state = services.trust_answers.state.lock();
            trust_questions::warn_once(services, &mut state, workspace, &problem);
        }
        let usable = usable(&skills);
        match usable.is_empty() {
            true => tools.remove(skill::NAME),
            false if self.list.skills().is_empty() => tools.add(skill::tool(self.list.clone())),
            false => {}
        }
        self.list.set(usable);
        let waits = |it: &&(Skill, SkillTrust)| {
            let waits = [FileTrust::Unanswered, FileTrust::Changed];
            waits.map(SkillTrust::OfWorkspace).contains(&it.1)
        };
        let waiting = skills.iter().filter(waits).map(|(skill, _)| skill);
        let waiting: Vec<_> = waiting.map(|it| it.file.sha256.clone()).collect();
        let before = std::mem::replace(&mut self.waiting, waiting);
        let mut new = self.waiting.iter().filter(|hash| !before.contains(hash));
        new.next()?;
        Some(match self.waiting.len() {
            1 => "one skill of this workspace is not sent to the model until you trust it: /skills shows it".to_owned(),
            count => format!(
                "{count} skills of this workspace are not sent to the model until you trust them: /skills shows them"
            ),
        })
    }

    /// Returns the parts of the system prompt that name the skills.
    pub(super) fn sections(&self) -> Vec<InstructionFile> {
        let mut room = LONGEST_TOGETHER;
        let skills = self.list.skills();
        let section = |skill: &Skill| {
            let about = start_of(&skill.description, LONGEST_DESCRIPTION);
            let about = if about.len() <= room { about } else { "" };
            room -= about.len();
            InstructionFile {
                name: format!("Skill {}", skill.name),
                text: about.to_owned(),
            }
        };
        skills.iter().map(section).collect()
    }

    /// Returns the name of the skill in the file `path`, if the last turn got this skill. If `path` is `None`, returns the name
    /// of any skill of the workspace that the turn got.
    pub(super) fn sent(&self, path: Option<&Path>) -> Option<String> {
        let skills = self.list.skills();
        let mut of_workspace = skills.iter().filter(|it| !it.of_person);
        let sent = of_workspace.find(|it| path.is_none_or(|path| path == it.file.path));
        sent.map(|it| format!("the skill {}", it.name))
    }
}

/// Returns all skills for a workspace, each with the person's trust in it, and the first problem with the skills that cannot be
/// used.
async fn find(
    services: &Services,
    workspace: &Path,
) -> Result<(Vec<(Skill, SkillTrust)>, Option<String>), String> {
    if !services.config.skills {
        return Ok((Vec::new(), None));
    }
    let places = &services.places;
    let of_person = [
        places.config.join("skills"),
        places.home.join(".claude/skills"),
    ];
    let workspace = workspace.to_owned();
    let found =
        blocking(move || Ok::<_, String>(FoundSkills::read(&workspace, &of_person))).await?;
    if found.skills.is_empty() {
        return Ok((Vec::new(), found.problem));
    }
    let judged = services.trust_answers.with_saved(|state, saved| {
        let judge = |skill: Skill| {
            let trust = SkillTrust::of(&skill, state.answer(saved, &skill.file.path));
            (skill, trust)
        };
        found.skills.into_iter().map(judge).collect()
    });
    Ok((judged.await?, found.problem))
}

/// Returns the skills that the model may read in a workspace. Each has a unique name.
pub(super) async fn for_model(services: &Services, workspace: &Path) -> Result<Vec<Skill>, String> {
    let (skills, _) = find(services, workspace).await?;
    Ok(usable(&skills))
}

fn usable(skills: &[(Skill, SkillTrust)]) -> Vec<Skill> {
    let mut usable: Vec<Skill> = Vec::new();
    for (skill, trust) in skills {
        if trust.is_for_model() && !usable.iter().any(|it| it.name == skill.name) {
            usable.push(skill.clone());
        }
    }
    usable
}

/// Carries out `/skills`: lists the skills, or asks about the skill in the file `path`.
pub(super) async fn list(context: &ChatContext, path: &str) {
    let services = &context.services;
    let skills = match find(services, &context.dirs.workspace).await {
        Ok((skills, _)) => skills,
        Err(why) => return context.complain(why),
    };
    if !path.is_empty() {
        return show_skill(context, &skills, Path::new(path));
    }
    if skills.is_empty() {
        return context.say(match services.config.skills {
            true => "no skills here: a skill is a directory with a SKILL.md in .claude/skills, see :help co-skill",
            false => "the setting `skills` is false",
        });
    }
    let choice = |(skill, trust): &(Skill, SkillTrust)| Choice {
        label: format!(
            "{} ({}) {}",
            skill.name,
            trust.words(),
            start_of(&skill.description, LONGEST_DESCRIPTION)
        ),
        value: skill.file.path.display().to_string(),
        confirm: None,
    };
    context.offer("skills", "Skills", skills.iter().map(choice).collect());
}

/// Tells the person where a skill is. If the person does not trust the text of the skill, asks about the text.
fn show_skill(context: &ChatContext, skills: &[(Skill, SkillTrust)], path: &Path) {
    let Some((skill, trust)) = skills.iter().find(|it| it.0.file.path == path) else {
        return context.complain(format!("there is no skill in {}", path.display()));
    };
    if trust.is_for_model() {
        return context.say(format!(
            "@skill:{} attaches {}",
            skill.name,
            skill.file.path.display()
        ));
    }
    let changed = *trust == SkillTrust::OfWorkspace(FileTrust::Changed);
    let notes = changed.then(|| trust_questions::TEXT_CHANGED.to_owned());
    let name = path.strip_prefix(&context.dirs.workspace).unwrap_or(path);
    let name = one_line(&name.display().to_string());
    let services = &context.services;
    let word = format!("@skill:{}", skill.name);
    trust_questions::ask(
        services,
        &mut services.trust_answers.state.lock(),
        &skill.file,
        name,
        notes.into_iter().collect(),
        Some(&word),
    );
}
