//! Turns an assessment and the person's rules into a verdict.

use crate::assessment::{Assessment, Segment};
use crate::git::HARDENING;
use crate::proved::Proved;
use crate::reason::Reason;
use crate::rules::{self, Pattern};

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow(Grant),
    Ask(ApprovalQuestion),
    Deny {
        why: String,
        /// The rule's name or text, by which a person lifts or removes it.
        rule: String,
    },
}

/// The permission by which a command runs without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// The command is proved to only read. It runs in the read-only confinement.
    Proof(Proved),
    /// co reads a file itself; no process starts.
    InProcess,
    /// A rule of the person allows it. It runs in the confinement of the chat.
    Rule { rule: String },
}

/// A question for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuestion {
    pub reasons: Vec<Reason>,
    pub destructive: bool,
    /// The prefix that the answer `always` may allow, besides this exact command.
    pub prefix: Option<Pattern>,
    /// True if a part could not be read, so that deny rules cannot match it. No permission skips such a question.
    pub unread: bool,
}

impl Verdict {
    /// The verdict in one word: `auto`, `ask` or `deny`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Allow(_) => "auto",
            Self::Ask(_) => "ask",
            Self::Deny { .. } => "deny",
        }
    }
}

impl ApprovalQuestion {
    /// A question with one reason, about the whole command.
    pub fn because(why: impl Into<String>) -> Self {
        Self {
            reasons: vec![Reason::whole(why.into())],
            destructive: false,
            prefix: None,
            unread: false,
        }
    }
}

/// The person's rules, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Programs that may be proved; `None` for all programs in the tables.
    pub safe: Option<Vec<Pattern>>,
    pub allow: Vec<Pattern>,
    pub ask: Vec<Pattern>,
    pub deny: Vec<Pattern>,
    /// Names of built-in deny rules that the person lifted.
    pub lifted: Vec<String>,
    /// Rules that the person saved for the workspace.
    pub saved: Vec<Pattern>,
}

/// Decides about a command: deny rules first, then ask rules, then rules of the chat, saved and configured rules, then the
/// proof.
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
            prefix: None,
            unread: assessment.unread,
        });
    }
    let own = || chat.iter().chain(&rules.saved).chain(&rules.allow);
    if let Some(rule) = own().find(|rule| rule.is_exactly(&assessment.command)) {
        return Verdict::Allow(Grant::Rule {
            rule: rule.to_string(),
        });
    }
    let covering = |segment: &Segment| -> Option<&Pattern> {
        let words = segment.words.as_ref()?;
        own().find(|rule| segment.uncovered.is_empty() && rule.covers(words))
    };
    let mut reasons = assessment.refusals.clone();
    let mut by_rule = Vec::new();
    let mut by_proof = 0;
    for segment in &assessment.segments {
        match covering(segment) {
            Some(rule) => by_rule.push(rule.to_string()),
            None if is_proved(segment, rules) => by_proof += usize::from(!segment.is_cd),
            None => reasons.extend(reasons_against(
                segment,
                rules,
                own().any(|rule| matches_words(rule, segment)),
            )),
        }
    }
    if reasons.is_empty() && !assessment.segments.is_empty() {
        if by_rule.is_empty() && (by_proof > 0 || assessment.segments.iter().all(|s| s.is_cd)) {
            if assessment.in_process {
                return Verdict::Allow(Grant::InProcess);
            }
            let commands = assessment.segments.iter().map(|it| it.rewritten.as_ref());
            if let Some(proved) =
                Proved::new(&assessment.command, commands, required_env(assessment))
            {
                return Verdict::Allow(Grant::Proof(proved));
            }
            return Verdict::Ask(ApprovalQuestion::because(
                "co cannot rewrite this command safely, so it requires approval",
            ));
        }
        by_rule.dedup();
        return Verdict::Allow(Grant::Rule {
            rule: by_rule.join(", "),
        });
    }
    if reasons.is_empty() {
        reasons.push(Reason::whole("there is no program in it"));
    }
    Verdict::Ask(ApprovalQuestion {
        reasons: unique(reasons),
        destructive: assessment.destructive,
        prefix: prefix_for_always(assessment),
        unread: assessment.unread,
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

fn matching_rule<'a>(
    assessment: &Assessment,
    rules: impl Iterator<Item = &'a Pattern>,
) -> Option<&'a Pattern> {
    let segments = || {
        assessment
            .segments
            .iter()
            .filter_map(|segment| segment.words.as_ref())
    };
    let mut rules = rules;
    rules.find(|rule| {
        rule.is_exactly(&assessment.command)
            || assessment
                .all_commands
                .iter()
                .chain(segments())
                .any(|words| {
                    rule.covers(words)
                        || without_directory(words).is_some_and(|words| rule.covers(&words))
                })
    })
}

/// Returns the words without the program's directory: a rule about `rm` also matches `/bin/rm`.
fn without_directory(words: &[String]) -> Option<Vec<String>> {
    let (_, name) = words.first()?.rsplit_once('/')?;
    let mut words = words.to_vec();
    words[0] = name.to_owned();
    Some(words)
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

fn is_proved(segment: &Segment, rules: &Rules) -> bool {
    segment.unproved.is_empty() && is_safe_program(segment, rules)
}

fn is_safe_program(segment: &Segment, rules: &Rules) -> bool {
    match &rules.safe {
        None => true,
        // `cd` starts no program. It is as safe as the commands around it.
        Some(safe) if segment.is_cd => !safe.is_empty(),
        Some(safe) => safe.iter().any(|pattern| pattern.covers(&segment.name)),
    }
}

/// True if a rule matches the command's words, even if something else keeps the rule from covering it.
fn matches_words(rule: &Pattern, segment: &Segment) -> bool {
    segment
        .words
        .as_ref()
        .is_some_and(|words| rule.covers(words))
}

fn reasons_against(segment: &Segment, rules: &Rules, by_rule: bool) -> Vec<Reason> {
    if by_rule {
        return segment.uncovered.clone();
    }
    if segment.unproved.is_empty() && !is_safe_program(segment, rules) {
        let name = segment.name.first().map(String::as_str).unwrap_or_default();
        return vec![Reason::at(
            format!("`{name}` is not in `shell_safe_commands`"),
            segment.span.clone(),
        )];
    }
    segment
        .unproved
        .iter()
        .map(|reason| Reason {
            text: reason.text.clone(),
            span: reason.span.clone().or_else(|| Some(segment.span.clone())),
        })
        .collect()
}

fn unique(reasons: Vec<Reason>) -> Vec<Reason> {
    let mut kept: Vec<Reason> = Vec::new();
    for reason in reasons {
        if !kept.contains(&reason) {
            kept.push(reason);
        }
    }
    kept
}

/// Returns a prefix for `always`, if the command runs with it.
fn prefix_for_always(assessment: &Assessment) -> Option<Pattern> {
    let [segment] = assessment.segments.as_slice() else {
        return None;
    };
    let words = segment.words.as_ref()?;
    if !assessment.refusals.is_empty() || !segment.uncovered.is_empty() || segment.is_cd {
        return None;
    }
    rules::prefix_for_always(words).filter(|pattern| pattern.covers(words))
}

fn required_env(assessment: &Assessment) -> Vec<(String, String)> {
    /// Otherwise go downloads the version that a module requires.
    const GO: [(&str, &str); 1] = [("GOTOOLCHAIN", "local")];
    let mut env = vec![("LC_ALL", assessment.locale)];
    if assessment.segments.iter().any(|segment| segment.git) {
        env.extend(HARDENING);
    }
    if assessment
        .segments
        .iter()
        .any(|s| s.name.first().is_some_and(|name| name == "go"))
    {
        env.extend(GO);
    }
    env.into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
