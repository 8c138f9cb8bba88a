//! The ways to log in that an agent and its preset offer.

use crate::agent::AgentSpec;
use crate::config::AgentConfinement;
use crate::protocol::{ChoiceKind, ChoiceQuestion, ChosenAnswer, OfferedChoice};
use co_acp::schema::{AuthMethod, AuthMethodId, AuthMethodTerminal};
use co_policy::rules::shell_join;
use co_text::{one_line, printable, start_of};

/// The largest number of ways to log in that co offers.
const MOST_WAYS: usize = 9;
const LONGEST_TEXT: usize = 500;

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoginWay {
    /// The agent logs in by itself with this method.
    Agent(AuthMethodId),
    /// The person runs this command line in a terminal.
    Terminal(String),
}

/// The ways to log in to one agent.
pub(super) struct LoginWays {
    ways: Vec<OfferedWay>,
    /// The names of the terminal logins that co does not offer, because the agent is confined and the logins set environment
    /// variables.
    with_variables: Vec<String>,
}

struct OfferedWay {
    way: LoginWay,
    label: String,
    about: String,
}

impl LoginWays {
    /// Returns the methods of the agent, and the login command of its preset. Leaves out a method that waits for a browser on
    /// loopback if the agent is confined, because the browser cannot reach a confined process.
    pub(super) fn new(spec: &AgentSpec, methods: &[AuthMethod]) -> Self {
        let is_confined = spec.confinement == AgentConfinement::Workspace;
        let mut with_variables = Vec::new();
        let preset = spec.preset();
        let in_browser = preset.map_or(&[][..], |it| it.browser_logins);
        let offered = methods.iter().filter_map(|method| {
            let about = method.description().unwrap_or_default();
            let (way, about) = match method {
                AuthMethod::Agent(it) if is_confined && in_browser.contains(&&*it.id.0) => {
                    return None;
                }
                AuthMethod::Agent(it) => (LoginWay::Agent(it.id.clone()), text(about)),
                AuthMethod::Terminal(it) if is_confined && !it.env.is_empty() => {
                    with_variables.push(text(&it.name));
                    return None;
                }
                AuthMethod::Terminal(it) => {
                    let command = terminal_command(spec, it)?;
                    let about = in_terminal(&command);
                    (LoginWay::Terminal(command), about)
                }
                _ => return None,
            };
            Some(OfferedWay {
                way,
                label: text(method.name()),
                about,
            })
        });
        let mut ways: Vec<_> = offered.take(MOST_WAYS - 1).collect();
        if let Some(preset) = preset {
            ways.push(OfferedWay {
                way: LoginWay::Terminal(preset.login.to_owned()),
                label: format!("the login of {}", spec.name),
                about: in_terminal(preset.login),
            });
        }
        with_variables.truncate(MOST_WAYS);
        Self {
            ways,
            with_variables,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Returns the end of a sentence that names the ways that co does not offer, and says what to do instead; none if co offers
    /// all ways.
    pub(super) fn not_offered(&self) -> Option<String> {
        let names = self.with_variables.iter().map(|it| format!("“{it}”"));
        let names: Vec<_> = names.collect();
        (!names.is_empty()).then(|| {
            format!(
                "co does not offer {}, because a confined agent may set no variables for a program outside: run the agent in a terminal yourself for that",
                names.join(", ")
            )
        })
    }

    /// Returns true if the agent still offers this method.
    pub(super) fn offers(&self, method: &AuthMethodId) -> bool {
        let mut ways = self.ways.iter();
        ways.any(|it| matches!(&it.way, LoginWay::Agent(it) if it == method))
    }

    /// Returns the question that lets the person choose a way to log in. `why` is the reason that the agent gives, without secret
    /// values.
    pub(super) fn question(&self, agent: &str, why: &str) -> ChoiceQuestion {
        let choices = self.ways.iter().map(|it| OfferedChoice {
            label: it.label.clone(),
            about: Some(it.about.clone()).filter(|it| !it.is_empty()),
            ..OfferedChoice::default()
        });
        let why = start_of(why, LONGEST_TEXT);
        let not_offered = self.not_offered().map(|it| format!("\n\n{it}"));
        let not_offered = not_offered.unwrap_or_default();
        ChoiceQuestion {
            question: printable(&format!("{agent} needs a login: {why}{not_offered}")),
            choices: choices.collect(),
            several: false,
            kind: ChoiceKind::Plain,
        }
    }

    /// Returns the way to log in that the person chose.
    pub(super) fn chosen(&self, answers: &[ChosenAnswer]) -> Option<LoginWay> {
        let [answer] = answers else {
            return None;
        };
        match (answer.choices.as_slice(), &answer.text) {
            ([number], None) => {
                let chosen = self.ways.get(number.checked_sub(1)?)?;
                Some(chosen.way.clone())
            }
            _ => None,
        }
    }
}

/// Returns the command line of a terminal method: the agent's program, with the arguments and variables of the method. The
/// command will run without confinement, so the person must be able to read the whole line. Returns `None` if the line is too
/// long to read or contains unprintable characters. If the agent is confined, `method` must set no variables: a variable such as
/// `NODE_OPTIONS` would run code that the agent wrote.
fn terminal_command(spec: &AgentSpec, method: &AuthMethodTerminal) -> Option<String> {
    let is_name = |it: &str| {
        let mut chars = it.chars();
        let first = chars
            .next()
            .is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
        first && chars.all(|it| it.is_ascii_alphanumeric() || it == '_')
    };
    let mut words = Vec::new();
    let mut env: Vec<_> = method.env.iter().collect();
    env.sort();
    for (name, value) in env {
        if !is_name(name) {
            return None;
        }
        words.push(format!("{name}={}", shell_join(&[value])));
    }
    let command: Vec<_> = spec.cmd.iter().chain(&method.args).collect();
    words.push(shell_join(&command));
    let command = words.join(" ");
    let is_readable = command.len() <= LONGEST_TEXT && printable(&command) == command;
    is_readable.then_some(command)
}

fn in_terminal(command: &str) -> String {
    format!("in a terminal, not confined: {command}")
}

/// Returns a text of the agent as one line.
fn text(text: &str) -> String {
    one_line(&printable(start_of(text.trim(), LONGEST_TEXT)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{AgentSettings, Config};
    use co_acp::schema::AuthMethodAgent;

    fn spec(name: &str, confinement: AgentConfinement) -> AgentSpec {
        let mut config = Config::default();
        config.agents.push(AgentSettings {
            name: name.to_owned(),
            cmd: Some(vec!["an agent".to_owned(), "--acp".to_owned()]),
            confinement,
            ..AgentSettings::default()
        });
        AgentSpec::find(name, &config, Path::new("/home/ann")).unwrap()
    }

    fn told(ways: &LoginWays) -> Vec<String> {
        let question = ways.question("it", "log in");
        let choices = question.choices.into_iter();
        choices
            .map(|it| format!("{}|{}", it.label, it.about.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn the_methods_of_the_agent_and_its_own_command_are_a_choice() {
        let terminal =
            AuthMethodTerminal::new("t", "Terminal\n login").args(vec!["log in".to_owned()]);
        let with_variable = terminal
            .clone()
            .env([("MODE".to_owned(), "a b".to_owned())].into());
        let methods = [
            AuthMethod::Agent(AuthMethodAgent::new("chat-gpt", "Browser")),
            AuthMethod::Agent(
                AuthMethodAgent::new("key", "API key").description("Uses a key".to_owned()),
            ),
            AuthMethod::Terminal(terminal),
        ];
        let confined = LoginWays::new(&spec("codex", AgentConfinement::Workspace), &methods);
        let command = "'an agent' --acp 'log in'";
        assert_eq!(
            told(&confined),
            [
                "API key|Uses a key".to_owned(),
                format!("Terminal\\n login|in a terminal, not confined: {command}"),
                "the login of codex|in a terminal, not confined: codex login".to_owned(),
            ]
        );
        let chosen = |choices: &[usize], text: Option<&str>| {
            confined.chosen(&[ChosenAnswer {
                choices: choices.to_vec(),
                text: text.map(str::to_owned),
            }])
        };
        let key = AuthMethodId::new("key");
        assert_eq!(chosen(&[1], None), Some(LoginWay::Agent(key.clone())));
        assert_eq!(
            chosen(&[2], None),
            Some(LoginWay::Terminal(command.to_owned()))
        );
        for (choices, text) in [
            (&[0][..], None),
            (&[4], None),
            (&[1], Some("x")),
            (&[], None),
        ] {
            assert_eq!(chosen(choices, text), None);
        }
        assert!(confined.offers(&key) && !confined.offers(&AuthMethodId::new("chat-gpt")));
        // A browser reaches an agent that is not confined.
        let free = LoginWays::new(&spec("codex", AgentConfinement::None), &methods);
        assert!(free.offers(&AuthMethodId::new("chat-gpt")));
        let (confined, free) = (AgentConfinement::Workspace, AgentConfinement::None);
        for (confinement, offered) in [(confined, 0), (free, 1)] {
            let method = [AuthMethod::Terminal(with_variable.clone())];
            let ways = LoginWays::new(&spec("mine", confinement), &method);
            assert_eq!(told(&ways).len(), offered);
            assert_eq!(ways.is_empty(), ways.not_offered().is_some());
            let question = ways.question("it", "log in").question;
            let says = question.contains("co does not offer “Terminal\\n login”");
            assert_eq!(says, offered == 0, "{question}");
        }
        let other = LoginWays::new(&spec("mine", AgentConfinement::Workspace), &methods);
        assert_eq!(told(&other).len(), 3);
    }

    #[test]
    fn a_command_that_a_person_could_not_read_is_not_offered() {
        let spec = spec("mine", AgentConfinement::Workspace);
        let odd = AuthMethodTerminal::new("t", "T");
        for method in [
            odd.clone().args(vec!["x".repeat(LONGEST_TEXT)]),
            odd.clone().args(vec!["\u{202e}x".to_owned()]),
            odd.clone().env([("A;B".to_owned(), String::new())].into()),
        ] {
            assert!(LoginWays::new(&spec, &[AuthMethod::Terminal(method)]).is_empty());
        }
    }
}
