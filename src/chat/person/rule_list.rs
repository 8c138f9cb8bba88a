//! The command `/rules`: lists the rules and the trusted files, and removes them.

use std::path::PathBuf;

use crate::blocking::blocking;
use crate::chat::chat_context::ChatContext;
use crate::protocol::Choice;
use crate::tool::permissions::Permissions;
use crate::trust::TrustAnswer;
use crate::workspace::rules;
use co_policy::{HostPattern, Pattern};

/// Carries out `/rules`: lists all rules, or removes the rule that the person chose. Returns a text about the removed permission.
/// The running turn may still have a copy of this permission.
pub(in crate::chat) async fn rules(
    context: &ChatContext,
    permissions: &mut Permissions,
    value: &str,
) -> Option<String> {
    let (kind, rule) = value.split_once(':').unwrap_or_default();
    let removed = match kind {
        "chat" => {
            permissions.rules.retain(|kept| kept.to_string() != rule);
            Ok(Some(format!("no longer allowed: {rule}")))
        }
        "chat_host" => {
            permissions.hosts.retain(|kept| kept.to_string() != rule);
            Ok(Some(format!(
                "commands of this chat ask again about {rule}"
            )))
        }
        "job" => {
            permissions.jobs.retain(|kept| kept.to_string() != rule);
            Ok(Some(format!(
                "co asks again before the model types into job {rule}"
            )))
        }
        "everything" => {
            permissions.everything = false;
            let text = "co asks again before each command that does more than look";
            Ok(Some(text.to_owned()))
        }
        "saved" => remove_saved(context, rule).await,
        "saved_host" => remove_saved_host(context, rule).await,
        "try_first" => ask_before_trials(context).await,
        "file" => {
            forget_file(context, rule).await;
            Ok(None)
        }
        "config" => {
            context.say(format!("{rule} comes from your settings; change it there"));
            Ok(None)
        }
        _ => {
            let choices = choices(context, permissions).await;
            match choices.is_empty() {
                true => context.say(
                    "no rules yet: `a` in a question adds one, allow/ask/deny in the settings too",
                ),
                false => context.offer("rules", "Rules (choose one to remove it)", choices),
            }
            Ok(None)
        }
    };
    removed.unwrap_or_else(|why| {
        context.complain(why);
        None
    })
}

/// Removes a saved rule. Returns a text about the removed rule. Returns `None`, after a notice, if there was no such rule.
async fn remove_saved(context: &ChatContext, rule: &str) -> Result<Option<String>, String> {
    let pattern = (rule.parse::<Pattern>()).map_err(|error| error.to_string())?;
    let (dir, workspace) = saved_rules(context);
    if !blocking(move || rules::remove(&dir, &workspace, &pattern)).await? {
        context.say(format!("{rule} was not saved"));
        return Ok(None);
    }
    context.services.forget_judge(&context.dirs.workspace);
    Ok(Some(format!("no longer saved: {rule}")))
}

/// Removes a saved host. Returns a text about the removed host. Returns `None`, after a notice, if there was no such host.
async fn remove_saved_host(context: &ChatContext, text: &str) -> Result<Option<String>, String> {
    let host = (text.parse::<HostPattern>()).map_err(|error| error.to_string())?;
    let (dir, workspace) = saved_rules(context);
    if !blocking(move || rules::remove_host(&dir, &workspace, &host)).await? {
        context.say(format!("{text} was not saved"));
        return Ok(None);
    }
    context.services.forget_judge(&context.dirs.workspace);
    Ok(Some(format!(
        "commands of this workspace ask again about {text}"
    )))
}

/// Revokes the saved permission to try commands of the workspace before asking. Returns a text about that.
async fn ask_before_trials(context: &ChatContext) -> Result<Option<String>, String> {
    let (dir, workspace) = saved_rules(context);
    blocking(move || rules::set_try_first(&dir, &workspace, false)).await?;
    context.services.forget_judge(&context.dirs.workspace);
    let text = "co asks again before it tries a command of this workspace";
    Ok(Some(text.to_owned()))
}

/// Removes the person's answer about a file, in all chats.
async fn forget_file(context: &ChatContext, file: &str) {
    match context.services.trust_answers.forget(file.into()).await {
        Ok(true) => context.say(format!("the next prompt asks about {file} again")),
        Ok(false) => context.say(format!("no answer about {file} was saved")),
        Err(why) => context.complain(why),
    }
}

/// Returns the directory of the saved rules, and the workspace.
fn saved_rules(context: &ChatContext) -> (PathBuf, PathBuf) {
    (
        context.services.places.rules.clone(),
        context.dirs.workspace.clone(),
    )
}

/// Returns the entries of the list `/rules`: the permissions of the chat, and all rules, hosts and trusted or refused files.
async fn choices(context: &ChatContext, permissions: &Permissions) -> Vec<Choice> {
    let choice = |kind: &str, effect: &str, rule: &str| {
        removable(
            format!("{effect} {rule} ({kind})"),
            format!("{kind}:{rule}"),
        )
    };
    let mut choices = Vec::new();
    if permissions.everything {
        let label = "allow everything (this chat)".to_owned();
        choices.push(removable(label, "everything:".to_owned()));
    }
    choices.extend(permissions.jobs.iter().map(|job| {
        let label = format!("allow what is typed into job {job} (this chat)");
        removable(label, format!("job:{job}"))
    }));
    choices.extend(
        permissions
            .rules
            .iter()
            .map(|rule| choice("chat", "allow", &rule.to_string())),
    );
    choices.extend(permissions.hosts.iter().map(|host| {
        let label = format!("reach {host} (this chat)");
        removable(label, format!("chat_host:{host}"))
    }));
    let (dir, workspace) = saved_rules(context);
    match blocking(move || rules::load(&dir, &workspace)).await {
        Ok(saved) => {
            let rules = saved.allow.iter();
            choices.extend(rules.map(|rule| choice("saved", "allow", &rule.to_string())));
            choices.extend(saved.allow_hosts.iter().map(|host| {
                removable(
                    format!("reach {host} (saved)"),
                    format!("saved_host:{host}"),
                )
            }));
            if saved.try_first {
                let label = "try commands of this workspace before asking (saved)".to_owned();
                choices.push(removable(label, "try_first:".to_owned()));
            }
        }
        Err(why) => context.complain(why),
    }
    choices.extend(file_choices(context).await);
    let policy = &context.services.config.policy;
    for (effect, rules) in [
        ("allow", &policy.allow),
        ("ask", &policy.ask),
        ("deny", &policy.deny),
    ] {
        choices.extend(rules.iter().map(|rule| Choice {
            confirm: None,
            ..choice("config", effect, rule)
        }));
    }
    let hosts = &context.services.config.hosts;
    for (effect, rules) in [("reach", &hosts.allow), ("never reach", &hosts.deny)] {
        choices.extend(rules.iter().map(|rule| Choice {
            confirm: None,
            ..choice("config", effect, &rule.to_string())
        }));
    }
    choices
}

/// Returns the list entries of the files that the person has trusted or refused. The files are in this workspace or in the
/// person's configuration.
async fn file_choices(context: &ChatContext) -> Vec<Choice> {
    let dirs = [
        context.dirs.workspace.as_path(),
        &context.services.places.config,
    ];
    let answers = context.services.trust_answers.answers(&dirs).await;
    let answers = answers.unwrap_or_else(|why| {
        context.complain(why);
        Vec::new()
    });
    let choice = |entry: &TrustAnswer| {
        let file = entry.path.display();
        let answer = if entry.trusted { "trust" } else { "refuse" };
        removable(format!("{answer} {file} (saved)"), format!("file:{file}"))
    };
    answers.iter().map(choice).collect()
}

/// Returns a list entry that removes a rule after a confirmation.
fn removable(label: String, value: String) -> Choice {
    let confirm = Some(format!("Remove `{label}`?"));
    Choice {
        label,
        value,
        confirm,
    }
}
