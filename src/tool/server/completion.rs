//! Completes the arguments of a server's prompts, and the addresses of its resources. co asks only a running server, and waits
//! only for a short time.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::timeout;

use super::ChatServers;
use crate::mcp::{ReadyServer, ServerState};
use co_mcp::{ArgumentOf, OpenArgument, ServerPrompt};
use co_text::one_line;

/// The longest time to wait for a server's answer. The editor waits for less time, and uses a late answer for the next key.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The characters of an address that are not escaped, apart from letters and digits.
const PLAIN: &str = "-._~";

/// The word that the person has started to type.
#[derive(Debug, Clone, Copy)]
pub enum StartedWord<'a> {
    Argument {
        prompt: &'a str,
        /// The words before the started word.
        given: &'a [String],
        /// The started word: `NAME=value`, or a plain value.
        word: &'a str,
    },
    Address(&'a str),
}

impl ChatServers {
    /// Returns the words that complete the started word. The list is empty if the server does not run, or does not answer in
    /// time.
    pub async fn complete(&self, server: &str, started: StartedWord<'_>) -> Vec<String> {
        let ready = {
            let list = self.list.lock();
            let mut known = list.servers.iter().map(|it| &it.server);
            let known = known.find(|it| it.settings.name == server);
            known.map_or(ServerState::Idle, |it| it.state())
        };
        let ServerState::Ready(ready) = ready else {
            return Vec::new();
        };
        if !ready.offers.completes {
            return Vec::new();
        }
        match started {
            StartedWord::Argument {
                prompt,
                given,
                word,
            } => {
                let known = ready.offers.prompts.iter().find(|it| it.name == prompt);
                let Some((before, argument)) = known.and_then(|it| argument(it, given, word))
                else {
                    return Vec::new();
                };
                let values = values(&ready, argument).await.into_iter();
                values.map(|it| format!("{before}{it}")).collect()
            }
            StartedWord::Address(typed) => {
                let templates = ready.offers.templates.iter();
                let mut open = templates.filter_map(|it| open_part(&it.uri, typed));
                let Some(open) = open.next() else {
                    return Vec::new();
                };
                let values = values(&ready, open.argument).await.into_iter();
                let words = values.map(|value| {
                    let value = match open.reserved {
                        true => value,
                        false => escaped(&value),
                    };
                    format!("{}{value}{}", open.before, open.after)
                });
                words.collect()
            }
        }
    }
}

/// Asks a server for completions. Leaves out a completion that is not one printable line, or that contains a secret.
async fn values(ready: &ReadyServer, argument: OpenArgument) -> Vec<String> {
    let asked = timeout(ANSWER_TIMEOUT, ready.complete(argument)).await;
    let mut values = asked.ok().and_then(Result::ok).unwrap_or_default();
    values.retain(|it| one_line(it) == *it && ready.secrets.hide(it).hidden == 0);
    values
}

/// Returns the argument whose value the started word contains, and the text of the word before this value.
fn argument(prompt: &ServerPrompt, given: &[String], word: &str) -> Option<(String, OpenArgument)> {
    let mut others = HashMap::new();
    for (name, value) in super::arguments_of(prompt, given).ok()? {
        others.insert(name, value.as_str().unwrap_or_default().to_owned());
    }
    let (name, value) = super::argument_of(prompt, |it| others.contains_key(it), word)?;
    let before = &word[..word.len() - value.len()];
    let argument = OpenArgument {
        of: ArgumentOf::Prompt(prompt.name.clone()),
        name: name.to_owned(),
        value: value.to_owned(),
        others,
    };
    Some((before.to_owned(), argument))
}

/// A variable of a URI template whose value the person is typing.
#[derive(Debug)]
struct OpenPart {
    argument: OpenArgument,
    /// The part of the typed address before the value.
    before: String,
    /// The text of the template between this variable and the next one.
    after: String,
    /// True if the value may contain characters that have a meaning in addresses, such as `/`.
    reserved: bool,
}

/// Returns the variable of a URI template whose value is at the end of the typed address. Returns `None` if the address does not
/// match the template, or if the template has expressions other than `{name}` and `{+name}`.
fn open_part(template: &str, typed: &str) -> Option<OpenPart> {
    let (mut rest, mut left) = (template, typed);
    let mut others = HashMap::new();
    loop {
        let (text, more) = rest.split_once('{')?;
        let value = left.strip_prefix(text)?;
        let (expression, after) = more.split_once('}')?;
        let name = expression.strip_prefix('+').unwrap_or(expression);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-';
        if name.is_empty() || !name.chars().all(is_word) {
            return None;
        }
        let next = after.split('{').next().unwrap_or_default();
        match value.split_once(next).filter(|_| !next.is_empty()) {
            Some((value, _)) => {
                others.insert(name.to_owned(), value.to_owned());
                left = &left[text.len() + value.len()..];
                rest = after;
            }
            None => {
                return Some(OpenPart {
                    before: typed[..typed.len() - value.len()].to_owned(),
                    after: next.to_owned(),
                    reserved: name != expression,
                    argument: OpenArgument {
                        of: ArgumentOf::Template(template.to_owned()),
                        name: name.to_owned(),
                        value: value.to_owned(),
                        others,
                    },
                });
            }
        }
    }
}

/// Escapes all characters of a value that have a meaning in addresses.
fn escaped(value: &str) -> String {
    let one = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || PLAIN.contains(byte as char) => {
            (byte as char).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_belongs_to_the_argument_that_it_names_or_to_the_next_one() {
        let prompt = ServerPrompt {
            name: "review".to_owned(),
            about: String::new(),
            arguments: ["file", "depth"].map(str::to_owned).into(),
            required: Vec::new(),
        };
        let check = |given: &[&str], word: &str, expected: Option<(&str, &str, &str)>| {
            let given: Vec<_> = given.iter().map(|it| (*it).to_owned()).collect();
            let found = argument(&prompt, &given, word);
            let found = found.map(|(before, it)| (before, it.name, it.value));
            let expected = expected.map(|(before, name, value)| {
                (before.to_owned(), name.to_owned(), value.to_owned())
            });
            assert_eq!(found, expected, "{given:?} {word}");
        };
        check(&[], "file=src/a", Some(("file=", "file", "src/a")));
        check(&[], "src/a", Some(("", "file", "src/a")));
        check(&["depth=1"], "", Some(("", "file", "")));
        check(&["a.rs"], "x=1", Some(("", "depth", "x=1")));
        check(&["a.rs", "1"], "x", None);
        check(&["a.rs", "1", "2"], "x", None);
        let (_, found) = argument(&prompt, &["depth=1".to_owned()], "a").unwrap();
        assert_eq!(found.others["depth"], "1");
    }

    #[test]
    fn an_address_ends_in_a_variable_of_its_template() {
        let check = |template: &str, typed: &str, expected: Option<(&str, &str, &str, &str)>| {
            let found = open_part(template, typed);
            let found = found.map(|it| (it.before, it.argument.name, it.argument.value, it.after));
            let expected = expected.map(|(before, name, value, after)| {
                [before, name, value, after].map(str::to_owned).into()
            });
            assert_eq!(found, expected, "{template} {typed}");
        };
        let notes = "notes://{year}/{name}.md";
        check(notes, "notes://", Some(("notes://", "year", "", "/")));
        check(notes, "notes://20", Some(("notes://", "year", "20", "/")));
        check(
            notes,
            "notes://2026/a",
            Some(("notes://2026/", "name", "a", ".md")),
        );
        check("x:{+path}", "x:a/b", Some(("x:", "path", "a/b", "")));
        for (template, typed) in [
            (notes, "note"),
            (notes, "other://"),
            (notes, "notes://2026/a.md"),
            ("x:{?a,b}", "x:"),
            ("x:{a", "x:"),
            ("x:", "x:"),
        ] {
            check(template, typed, None);
        }
        let found = open_part(notes, "notes://2026/a").unwrap();
        assert_eq!(found.argument.others["year"], "2026");
        assert_eq!(escaped("a b/é-1"), "a%20b%2F%C3%A9-1");
    }
}
