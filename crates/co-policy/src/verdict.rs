//! Turns an assessment and the person's rules into a verdict.

use crate::assess::{Assessment, CommandAssessment, PossibleTrial, RuleCommand};
use crate::prefix;
use crate::programs::Sort;
use crate::reason::Reason;
use crate::rules::Pattern;

/// The largest number of reasons in a question.
const MAX_REASONS: usize = 6;

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow(Grant),
    Ask(ApprovalQuestion),
    Deny {
        why: String,
        /// The name or the text of the deny rule. The person needs it to lift or remove the rule.
        rule: String,
    },
}

/// The reason why a command may run without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// The command is read-only. It must run at the read-only level, which the kernel enforces.
    ReadOnly,
    /// The literal words of the command show that it is read-only. It may run even if the kernel cannot confine it.
    Unconfined,
    /// co carries out the command itself by reading a file, and no process starts.
    InProcess,
    /// A rule of the person allows the command. It runs in the confinement of the chat.
    Rule { rule: String },
}

/// A question for the person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalQuestion {
    pub reasons: Vec<Reason>,
    pub destructive: bool,
    /// The prefix that the person may allow with the answer `always`, as an alternative to this exact command.
    pub prefix: Option<Pattern>,
    /// True in two cases: a part of the command could not be parsed, so deny rules cannot match it; or the command changes a file
    /// that other programs execute. Such a question is always asked, whatever permissions exist.
    pub unread: bool,
    /// The trial (in a layer over the workspace) that can show what the command does. It is `None` in three cases: the command
    /// uses the network for more than packages, a part of it could not be parsed, or a rule says to ask.
    pub trial: Option<PossibleTrial>,
}

impl Verdict {
    /// Returns the verdict in one word: `auto`, `ask` or `deny`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Allow(_) => "auto",
            Self::Ask(_) => "ask",
            Self::Deny { .. } => "deny",
        }
    }
}

impl ApprovalQuestion {
    /// Makes a question with one reason, which refers to the whole command.
    pub fn because(why: impl Into<String>) -> Self {
        Self {
            reasons: vec![Reason::whole(why.into())],
            ..Self::default()
        }
    }
}

/// The person's rules in parsed form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The only programs that may run without approval. It is `None` if all read-only programs may.
    pub safe: Option<Vec<Pattern>>,
    pub allow: Vec<Pattern>,
    pub ask: Vec<Pattern>,
    pub deny: Vec<Pattern>,
    /// The names of the built-in deny rules that the person lifted.
    pub lifted: Vec<String>,
    /// Rules that the person saved for the workspace.
    pub saved: Vec<Pattern>,
}

/// Decides about a command. The first of these that applies decides: deny rules, ask rules, the sort if it is read-only, the
/// allow rules of the chat, the saved allow rules, and the configured allow rules.
///
/// A read-only command runs at the read-only level, even if a rule allows it.
pub fn decide(assessment: &Assessment, rules: &Rules, chat: &[Pattern]) -> Verdict {
    if assessment.command.trim().is_empty() {
        return Verdict::Deny {
            why: "the command is empty".to_owned(),
            rule: "empty".to_owned(),
        };
    }
    if let Some(denied) = deny_verdict(assessment, rules) {
        return denied;
    }
    let asked = ask_reasons(assessment, rules);
    if !asked.is_empty() {
        return Verdict::Ask(ApprovalQuestion {
            reasons: asked,
            destructive: assessment.destructive,
            unread: assessment.unread,
            ..ApprovalQuestion::default()
        });
    }
    let reasons = reasons_to_ask(assessment, rules);
    if reasons.is_empty() && assessment.in_process {
        return Verdict::Allow(Grant::InProcess);
    }
    if reasons.is_empty() && assessment.not_confined.is_none() {
        return Verdict::Allow(Grant::ReadOnly);
    }
    let own: Vec<&Pattern> = chat
        .iter()
        .chain(&rules.saved)
        .chain(&rules.allow)
        .filter(|rule| !rule.is_about_tool_servers())
        .collect();
    if let Some(rule) = allowing_rule(assessment, &own) {
        return Verdict::Allow(Grant::Rule { rule });
    }
    if reasons.is_empty() && assessment.may_run_unconfined {
        return Verdict::Allow(Grant::Unconfined);
    }
    Verdict::Ask(ApprovalQuestion {
        reasons: with_rule_reason(reasons, assessment, &own),
        destructive: assessment.destructive,
        prefix: prefix_for_always(assessment),
        unread: assessment.unread,
        trial: assessment.trial(),
    })
}

fn deny_verdict(assessment: &Assessment, rules: &Rules) -> Option<Verdict> {
    let built_in = assessment
        .denied
        .iter()
        .find(|denied| !rules.lifted.iter().any(|name| name == denied.rule));
    if let Some(denied) = built_in {
        return Some(Verdict::Deny {
            why: denied.why.clone(),
            rule: denied.rule.to_owned(),
        });
    }
    let mut own = rules.deny.iter().chain(&assessment.workspace_deny);
    if assessment.unread {
        let rule = own.next()?;
        return Some(Verdict::Deny {
            why: format!(
                "it is too long, or nested too deeply, for the rule `{rule}` to be tried on all of it: send simpler commands"
            ),
            rule: rule.to_string(),
        });
    }
    let rule = matching_rule(assessment, own)?;
    Some(Verdict::Deny {
        why: format!("the rule `{rule}` forbids it"),
        rule: rule.to_string(),
    })
}

/// Returns the first rule that matches the whole command or one of its simple commands.
fn matching_rule<'a>(
    assessment: &Assessment,
    mut rules: impl Iterator<Item = &'a Pattern>,
) -> Option<&'a Pattern> {
    rules.find(|rule| {
        let matches = |it: &CommandAssessment| rule.matches(&it.words, &it.readings);
        let mut commands = assessment.commands.iter().chain(&assessment.possible);
        rule.is_exactly(&assessment.command) || commands.any(matches)
    })
}

fn ask_reasons(assessment: &Assessment, rules: &Rules) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some(broken) = &assessment.workspace_error {
        reasons.push(Reason::whole(format!(
            "the workspace's `.co/policy.toml` cannot be read, so everything asks: {broken}"
        )));
    }
    if let Some(rule) = matching_rule(
        assessment,
        rules.ask.iter().chain(&assessment.workspace_ask),
    ) {
        reasons.push(Reason::whole(format!("the rule `{rule}` says to ask")));
    }
    reasons
}

/// Returns the reasons why a command requires approval. The list is empty if the command is read-only.
fn reasons_to_ask(assessment: &Assessment, rules: &Rules) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for command in &assessment.commands {
        let why = match &rules.safe {
            _ if command.sort != Sort::Looks => command.does.clone(),
            Some(safe) if !is_listed(command, safe) => format!(
                "`{}` is not in `shell_safe_commands`",
                command.name.first().map_or("", String::as_str)
            ),
            _ => continue,
        };
        let reason = Reason::at(why, command.span.clone());
        if !reasons
            .iter()
            .any(|known: &Reason| known.text == reason.text)
        {
            reasons.push(reason);
        }
    }
    reasons.extend(assessment.problems.iter().cloned());
    if reasons.is_empty() && assessment.commands.is_empty() {
        reasons.push(Reason::whole("there is no command in it"));
    }
    reasons.truncate(MAX_REASONS);
    reasons
}

/// Returns true if the setting `shell_safe_commands` includes the command. Shell syntax is as safe as the commands around it.
fn is_listed(command: &CommandAssessment, safe: &[Pattern]) -> bool {
    match command.syntax {
        true => !safe.is_empty(),
        false => safe.iter().any(|pattern| pattern.covers(&command.name)),
    }
}

/// Returns the texts of the person's rules that together allow a command.
fn allowing_rule(assessment: &Assessment, own: &[&Pattern]) -> Option<String> {
    if let Some(rule) = own.iter().find(|it| it.is_exactly(&assessment.command)) {
        return Some(rule.to_string());
    }
    if assessment.unread {
        return None;
    }
    let mut by = Vec::new();
    for command in assessment.literal.as_ref()? {
        match own.iter().find(|rule| covers(rule, command)) {
            Some(rule) => by.push(rule.to_string()),
            None if enters_workspace(command) => {}
            None => return None,
        }
    }
    by.dedup();
    (!by.is_empty()).then(|| by.join(", "))
}

fn covers(rule: &Pattern, command: &RuleCommand) -> bool {
    command.uncovered.is_none() && rule.covers(&command.words) && rule.names(&command.code)
}

/// Returns true if the command is a `cd` to a literal path in the workspace.
fn enters_workspace(command: &RuleCommand) -> bool {
    let is_cd = matches!(command.words.as_slice(), [cd, to] if cd == "cd" && !to.starts_with('-'));
    is_cd && command.uncovered.is_none()
}

/// Adds the reason why a rule of the person does not allow the command, if the rule matches the words of one of its simple
/// commands. If there are no other reasons, also adds the reason why the kernel cannot confine the command.
fn with_rule_reason(
    mut reasons: Vec<Reason>,
    assessment: &Assessment,
    own: &[&Pattern],
) -> Vec<Reason> {
    if let (true, Some(why)) = (reasons.is_empty(), &assessment.not_confined) {
        reasons.push(Reason::whole(format!("it only looks, but {why}")));
    }
    let names = |rule: &&&Pattern| assessment.commands.iter().any(|it| rule.covers(&it.words));
    let Some(rule) = own.iter().find(names) else {
        return reasons;
    };
    let commands = || assessment.literal.iter().flatten();
    let code = commands().filter(|it| rule.covers(&it.words) && !rule.names(&it.code));
    let code = code.filter_map(|it| it.words.get(*it.code.last()?)).next();
    let why = match commands().filter_map(|it| it.uncovered.as_ref()).next() {
        Some(reason) => reason.text.clone(),
        None if code.is_some() => format!(
            "`{}` names a program or code, which the rule does not",
            code.map_or("", String::as_str)
        ),
        None if assessment.literal.is_none() => {
            "the command has more than literal words".to_owned()
        }
        None => "it does not cover every command in it".to_owned(),
    };
    let text = format!("your rule `{rule}` does not allow it: {why}");
    reasons.push(Reason::whole(text));
    reasons
}

/// Returns the prefix that the answer `always` offers, if a rule with this prefix would allow the command.
fn prefix_for_always(assessment: &Assessment) -> Option<Pattern> {
    let [command] = assessment.literal.as_deref()? else {
        return None;
    };
    let fits = command.uncovered.is_none() && !assessment.unread;
    prefix::for_always(&command.words).filter(|_| fits)
}
