//! Rules about the calls of tool servers (MCP), and the verdict on such a call.
//!
//! A rule names a server (`mcp:git`), a tool of it (`mcp:git:log`), a server with the program or the address that it has
//! (`mcp:git#` and a hash), or a tool as this server described it (`mcp:git:log#` and a hash). A rule for an exact call also has
//! the arguments.

use crate::reason::Reason;
use crate::rule_files::WorkspaceRules;
use crate::rules::{Pattern, TOOL_SERVER};
use crate::verdict::{ApprovalQuestion, Grant, Rules, Verdict};

/// The reason to ask again about what an earlier answer allowed.
const CHANGED: &str = "you allowed it before, but not with this description, or not with this program or address of its server";

/// A call of a server's tool, with the names by which rules refer to the call. In an allow rule, `*` matches none of these names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServerCall {
    server: String,
    same_server: String,
    tool: String,
    described: String,
    whole: String,
}

impl ToolServerCall {
    /// Returns a call of a tool of a server, each with its name and a hash. The names are words of ASCII letters, digits, `-` and
    /// `_`. The hash of the server changes with its program or address, and that of the tool also with its description.
    /// `arguments` is the text of the arguments.
    pub fn new(
        (server, server_hash): (&str, &str),
        (tool, tool_hash): (&str, &str),
        arguments: &str,
    ) -> Self {
        let server = format!("{TOOL_SERVER}{server}");
        let tool = format!("{server}:{tool}");
        let described = format!("{tool}#{tool_hash}");
        Self {
            whole: format!("{described} {arguments}"),
            same_server: format!("{server}#{server_hash}"),
            server,
            tool,
            described,
        }
    }

    /// Returns the rule for every tool of the server, while it has its program or address.
    pub fn server_rule(&self) -> Pattern {
        Pattern::prefix([&self.same_server])
    }

    /// Returns the rule that allows the tool, as long as its description does not change.
    pub fn tool_rule(&self) -> Pattern {
        Pattern::prefix([&self.described])
    }

    /// Returns the rule that allows exactly this call.
    pub fn exact_rule(&self) -> Pattern {
        Pattern::exact(&self.whole)
    }

    fn names(&self) -> [&String; 4] {
        [&self.described, &self.tool, &self.same_server, &self.server]
    }

    fn matches(&self, rule: &Pattern) -> bool {
        let covers = |name: &String| rule.covers(std::slice::from_ref(name));
        rule.is_exactly(&self.whole) || self.names().into_iter().any(covers)
    }

    fn is_allowed_by(&self, rule: &Pattern) -> bool {
        rule.is_exactly(&self.whole) || self.names().into_iter().any(|name| rule.is_word(name))
    }

    /// Returns whether an answer of the person allows the call. An answer counts only for the server as it was when the person
    /// answered.
    fn is_answered_by(&self, rule: &Pattern) -> bool {
        let is_named = rule.is_word(&self.described) || rule.is_word(&self.same_server);
        is_named || rule.is_exactly(&self.whole)
    }

    /// Returns true if an answer allows the tool or the server of this name, but as it was at another time.
    fn was_answered_by(&self, rule: &Pattern) -> bool {
        let named = rule.program().unwrap_or_default();
        let name = named.split('#').next().unwrap_or_default();
        let is_meant = name == self.tool || name == self.server;
        is_meant && !self.is_answered_by(rule)
    }
}

/// Decides about a tool call. The first of these that applies decides: deny rules, ask rules, the confinement of the server, the
/// allow rules of the chat, the saved allow rules, and the configured allow rules.
///
/// `acts` describes what the server may do, or is `None` if the confinement makes approval unnecessary. `workspace` is an error
/// if the workspace's rule file cannot be read.
pub fn decide(
    call: &ToolServerCall,
    acts: Option<&str>,
    (rules, chat): (&Rules, &[Pattern]),
    workspace: Result<WorkspaceRules, String>,
) -> Verdict {
    let (workspace, broken) = match workspace {
        Ok(rules) => (rules, None),
        Err(why) => (WorkspaceRules::default(), Some(why)),
    };
    let first = |own: &[Pattern], more: &[Pattern]| {
        let mut all = own.iter().chain(more);
        all.find(|it| call.matches(it)).map(Pattern::to_string)
    };
    if let Some(rule) = first(&rules.deny, &workspace.deny) {
        let why = format!("the rule `{rule}` forbids it");
        return Verdict::Deny { why, rule };
    }
    let broken = broken.map(|why| {
        format!("the workspace's `.co/policy.toml` cannot be read, so everything asks: {why}")
    });
    let asking = first(&rules.ask, &workspace.ask);
    let asking = asking.map(|rule| format!("the rule `{rule}` says to ask"));
    let mut reasons: Vec<String> = broken.into_iter().chain(asking).collect();
    if !reasons.is_empty() {
        return Verdict::Ask(question(reasons, None));
    }
    let is_safe = |safe: &Vec<Pattern>| safe.iter().any(|it| call.is_allowed_by(it));
    let is_listed = rules.safe.as_ref().is_none_or(is_safe);
    if acts.is_none() && is_listed {
        return Verdict::Allow(Grant::ReadOnly);
    }
    let answers = || chat.iter().chain(&rules.saved);
    let answer = answers().find(|it| call.is_answered_by(it));
    let allowing = || rules.allow.iter().find(|it| call.is_allowed_by(it));
    if let Some(rule) = answer.or_else(allowing) {
        let rule = rule.to_string();
        return Verdict::Allow(Grant::Rule { rule });
    }
    if answers().any(|it| call.was_answered_by(it)) {
        reasons.push(CHANGED.to_owned());
    }
    reasons.extend(acts.map(str::to_owned));
    if !is_listed {
        reasons.push(format!("`{}` is not in `shell_safe_commands`", call.server));
    }
    Verdict::Ask(question(reasons, Some(call.tool_rule())))
}

fn question(reasons: Vec<String>, prefix: Option<Pattern>) -> ApprovalQuestion {
    ApprovalQuestion {
        reasons: reasons.into_iter().map(Reason::whole).collect(),
        prefix,
        ..ApprovalQuestion::default()
    }
}

/// Returns the reason why a rule about tool servers can match no call. Returns `None` for a rule that can match one, and for a
/// rule about commands.
pub fn fault(rule: &Pattern) -> Option<&'static str> {
    let name = rule.program()?.strip_prefix(TOOL_SERVER)?;
    let is_word = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !part.is_empty() && part.chars().all(plain)
    };
    let (names, hash) = name.split_once('#').unwrap_or((name, "0"));
    let (server, tool) = names.split_once(':').unwrap_or((names, "tool"));
    let is_name = is_word(server) && is_word(tool) && is_word(hash);
    let is_alone = rule.is_word(&format!("{TOOL_SERVER}{name}"));
    (!is_name || !is_alone).then_some("write mcp:server or mcp:server:tool, without further words")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTS: &str = "its server may change the workspace";

    fn call() -> ToolServerCall {
        ToolServerCall::new(("git", "9f9f"), ("log", "0a1b"), r#"{"n":"1"}"#)
    }

    fn rules(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|it| it.parse().unwrap()).collect()
    }

    /// Checks the verdict, as a word and with its rule or first reason, by rules such as `deny mcp:git`.
    fn check(given: &[&str], acts: Option<&str>, expected: &str) {
        let of = |effect: &str| {
            let own = given.iter().filter_map(|it| it.strip_prefix(effect));
            rules(&own.collect::<Vec<_>>())
        };
        let workspace = match given.contains(&"broken") {
            true => Err("no file of rules".to_owned()),
            false => Ok(WorkspaceRules {
                deny: of("workspace deny "),
                ask: of("workspace ask "),
                deny_hosts: Vec::new(),
            }),
        };
        let safe = of("safe ");
        let own = Rules {
            safe: given
                .iter()
                .any(|it| it.starts_with("safe"))
                .then_some(safe),
            allow: of("allow "),
            ask: of("ask "),
            deny: of("deny "),
            lifted: Vec::new(),
            saved: of("saved "),
        };
        let found = match decide(&call(), acts, (&own, &of("chat ")), workspace) {
            Verdict::Allow(Grant::Rule { rule }) => format!("rule {rule}"),
            Verdict::Allow(_) => "unasked".to_owned(),
            Verdict::Ask(question) => format!("ask {}", question.reasons[0].text),
            Verdict::Deny { rule, .. } => format!("deny {rule}"),
        };
        assert!(found.starts_with(expected), "{given:?}: {found}");
    }

    #[test]
    fn deny_comes_before_ask_and_ask_before_allow() {
        let acts = Some(ACTS);
        check(&[], None, "unasked");
        check(&[], acts, "ask its server may change the workspace");
        for (rule, by) in [
            ("allow mcp:git:log#0a1b", "rule mcp:git:log#0a1b"),
            ("allow mcp:git:log", "rule mcp:git:log"),
            ("allow mcp:git", "rule mcp:git"),
            ("chat mcp:git:log#0a1b", "rule mcp:git:log#0a1b"),
            ("saved mcp:git#9f9f", "rule mcp:git#9f9f"),
            (
                r#"chat = mcp:git:log#0a1b {"n":"1"}"#,
                "rule = mcp:git:log#0a1b",
            ),
        ] {
            check(&[rule], acts, by);
            check(&[rule, "ask mcp:git"], acts, "ask the rule `mcp:git`");
            check(&[rule, "workspace ask mcp:git:log"], acts, "ask the rule");
            check(
                &[rule, "ask mcp:git", "deny mcp:git:log"],
                acts,
                "deny mcp:git:log",
            );
            check(
                &[rule, "broken"],
                acts,
                "ask the workspace's `.co/policy.toml`",
            );
        }
        check(&["workspace deny mcp:git"], None, "deny mcp:git");
        check(&["ask mcp:git"], None, "ask the rule `mcp:git`");
        check(&["deny *"], None, "deny *");
    }

    #[test]
    fn a_rule_covers_what_it_names_and_nothing_else() {
        for rule in [
            "allow mcp:g",
            "allow mcp:git:lo",
            "allow mcp:git:log2",
            "allow git",
            "allow *",
            "allow mcp:*",
            r#"chat = mcp:git:log#0a1b {"n":"2"}"#,
            r#"chat = mcp:git:log {"n":"1"}"#,
        ] {
            check(
                &[rule],
                Some(ACTS),
                "ask its server may change the workspace",
            );
        }
        check(&["deny mcp:g", "deny mcp:git:lo"], None, "unasked");
        for changed in [
            "saved mcp:git:log#ffff",
            "chat mcp:git#0a1b",
            "saved mcp:git",
        ] {
            check(&[changed], Some(ACTS), "ask you allowed it before, but not");
        }
    }

    #[test]
    fn safe_commands_narrow_what_runs_unasked() {
        check(&["safe ls"], None, "ask `mcp:git` is not in");
        check(&["safe mcp:git"], None, "unasked");
        check(&["safe mcp:git:log"], None, "unasked");
        check(&["safe mcp:git"], Some(ACTS), "ask its server");
    }

    #[test]
    fn rules_that_cover_no_call_are_found() {
        let all = rules(&[
            "mcp:git",
            "mcp:git:log",
            "mcp:git:log#0a1b",
            "= mcp:git:log#0a1b {}",
            "cargo test",
        ]);
        assert_eq!(all.iter().filter_map(fault).count(), 0);
        for wrong in [
            "mcp:",
            "mcp:*",
            "mcp:git:*",
            "mcp:git:",
            "mcp:git log",
            "mcp:a:b:c",
            "'mcp:git:a b'",
        ] {
            assert!(fault(&wrong.parse().unwrap()).is_some(), "{wrong}");
        }
        let call = call();
        for rule in [call.server_rule(), call.tool_rule(), call.exact_rule()] {
            assert_eq!(rule.to_string().parse::<Pattern>().unwrap(), rule);
            assert!(rule.is_about_tool_servers() && fault(&rule).is_none());
            assert!(!rule.to_string().contains('\''));
        }
    }
}
