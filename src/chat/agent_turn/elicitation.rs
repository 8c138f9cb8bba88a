//! The questions that an agent asks the person: a form to fill in, or an address to open.

use std::collections::BTreeMap;

use crate::protocol::{Asker, ChoiceKind, ChoiceQuestion, Question};
use crate::tool::context::CallContext;
use crate::tool::form::{Form, FormReply, bounded_message, is_yes, offered};
use crate::tool::permissions::Reply;
use co_acp::schema::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
    ElicitationId, ElicitationMode, RequestId,
};
use co_llm::Url;
use co_text::printable;

/// A question of an agent (an ACP elicitation) that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Elicitation {
    pub id: RequestId,
    kind: ElicitationKind,
}

#[derive(Debug, Clone)]
enum ElicitationKind {
    Form(Form),
    Address {
        id: ElicitationId,
        message: String,
        url: String,
        host: String,
    },
}

impl Elicitation {
    /// Reads a request of the agent.
    ///
    /// # Errors
    /// The reason why co cannot ask the question.
    pub(super) fn new(id: RequestId, request: &CreateElicitationRequest) -> Result<Self, String> {
        let message = &request.message;
        let kind = match &request.mode {
            ElicitationMode::Form(form) => {
                let schema = serde_json::to_value(&form.requested_schema);
                let schema = schema.map_err(|error| error.to_string())?;
                ElicitationKind::Form(Form::read(message, &schema)?)
            }
            ElicitationMode::Url(address) => ElicitationKind::Address {
                id: address.elicitation_id.clone(),
                message: bounded_message(message),
                host: host(&address.url).ok_or("its address is not one of the web")?,
                url: address.url.clone(),
            },
            _ => return Err("co does not know this kind of question".to_owned()),
        };
        Ok(Self { id, kind })
    }

    /// Returns the address that the agent asks the person to open.
    pub(super) fn address(&self) -> Option<&str> {
        match &self.kind {
            ElicitationKind::Address { url, .. } => Some(url),
            ElicitationKind::Form(_) => None,
        }
    }

    /// Returns true if the agent's message `completed` is about this question. The message says that the person has finished the
    /// task at the address, such as a login.
    pub(super) fn is_completed(&self, completed: &ElicitationId) -> bool {
        matches!(&self.kind, ElicitationKind::Address { id, .. } if id == completed)
    }

    /// Returns the question for the person. `agent` is the name of the agent.
    pub(super) fn question(&self, context: &CallContext, agent: &str) -> Question {
        let choices = match &self.kind {
            ElicitationKind::Form(form) => form.questions(&format!("{agent} asks:")),
            ElicitationKind::Address {
                message, url, host, ..
            } => vec![ChoiceQuestion {
                question: printable(&format!(
                    "{message}\n\n{agent} asks you to open this address of {host}:\n{url}\n\nco does not open it."
                )),
                choices: offered(&["I have opened it"]),
                several: false,
                kind: ChoiceKind::Plain,
            }],
        };
        Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            command: format!("{agent} asks you"),
            choices,
            ..Question::default()
        }
    }

    /// Returns the response to the agent for a reply of the person. A reply of `None` means that the question was withdrawn.
    ///
    /// # Errors
    /// The agent does not accept one of the answers. The person must be asked again.
    pub(super) fn action(&self, reply: Option<Reply>) -> Result<ElicitationAction, String> {
        let accept = ElicitationAcceptAction::new();
        let reply = match &self.kind {
            ElicitationKind::Form(form) => form.reply(reply)?,
            ElicitationKind::Address { .. } => match reply {
                None => FormReply::Cancel,
                Some(Reply::Chosen(answers)) if is_yes(&answers) => {
                    return Ok(ElicitationAction::Accept(accept));
                }
                Some(_) => FormReply::Decline,
            },
        };
        Ok(match reply {
            FormReply::Accept(content) => {
                let content: BTreeMap<String, ElicitationContentValue> =
                    serde_json::from_value(content.into()).map_err(|error| error.to_string())?;
                ElicitationAction::Accept(accept.content(content))
            }
            FormReply::Decline => ElicitationAction::Decline,
            FormReply::Cancel => ElicitationAction::Cancel,
        })
    }
}

/// Returns the host and the port of an address of the web, as a browser reads it; none if the address has characters that a
/// person does not see.
fn host(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    let is_plain = |it: char| !it.is_whitespace() && !it.is_control();
    let host = url.host_str()?;
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    (is_web && address.chars().all(is_plain)).then_some(host)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::ChosenAnswer;

    fn elicitation(request: Value) -> Result<Elicitation, String> {
        let request = serde_json::from_value(request).unwrap();
        Elicitation::new(RequestId::Number(1), &request)
    }

    fn form() -> Elicitation {
        let request = json!({
            "mode": "form", "message": "Set up", "sessionId": "s",
            "requestedSchema": {
                "type": "object",
                "required": ["base", "count"],
                "properties": {
                    "base": { "type": "string", "oneOf": [{ "const": "pg", "title": "Postgres" }, { "const": "my", "title": "MySQL" }] },
                    "count": { "type": "integer", "minimum": 1 },
                    "name": { "type": "string", "title": "Name" },
                    "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
                    "test": { "type": "boolean" },
                },
            },
        });
        elicitation(request).unwrap()
    }

    fn answer(choices: &[usize], text: Option<&str>) -> ChosenAnswer {
        ChosenAnswer {
            choices: choices.to_vec(),
            text: text.map(str::to_owned),
        }
    }

    #[test]
    fn a_form_becomes_questions_and_the_answers_its_content() {
        let action = |answers: Vec<ChosenAnswer>| {
            let action = form().action(Some(Reply::Chosen(answers)));
            action.map(|it| serde_json::to_value(it).unwrap())
        };
        let answers = |count: &str| {
            vec![
                answer(&[2], None),
                answer(&[], Some(count)),
                answer(&[1], None),
                answer(&[1, 2], None),
                answer(&[2], None),
            ]
        };
        let expected = json!({
            "action": "accept",
            "content": { "base": "my", "count": 3, "tags": ["a", "b"], "test": false },
        });
        assert_eq!(action(answers("3")).unwrap(), expected);
        let why = action(answers("three")).unwrap_err();
        assert_eq!(why, "count must be a whole number");
        let mut named = answers("3");
        named[0] = answer(&[], Some("postgres"));
        assert_eq!(action(named).unwrap()["content"]["base"], "pg");
        let told = |reply| serde_json::to_value(form().action(reply).unwrap()).unwrap();
        assert_eq!(told(None)["action"], "cancel");
        assert_eq!(told(Some(Reply::Deny(None)))["action"], "decline");
        assert_eq!(told(Some(Reply::Once))["action"], "decline");
    }

    #[test]
    fn an_address_is_shown_with_its_host_and_needs_a_yes() {
        let address = |url: &str| {
            elicitation(json!({
                "mode": "url", "message": "Log in", "sessionId": "s", "elicitationId": "e", "url": url,
            }))
        };
        for (url, expected) in [
            ("https://a.test/b?c=http://d.test", Some("a.test")),
            ("https://good.test@evil.test:1/x", Some("evil.test:1")),
            ("https://evil.test\\@good.test/", Some("evil.test")),
            ("https:\\\\evil.test/", Some("evil.test")),
            ("HTTPS://Evil.test:443/", Some("evil.test")),
            ("https://%65vil.test/", Some("evil.test")),
            ("https://еvil.test/", Some("xn--vil-qdd.test")),
            ("http://2130706433/", Some("127.0.0.1")),
            ("http://[::1]:80/x", Some("[::1]")),
            ("file:///etc/passwd", None),
            ("https://a.test/\n x", None),
            ("https://", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
            assert_eq!(address(url).is_ok(), expected.is_some(), "{url}");
        }
        let action = |given| {
            let asked = address("https://a.test/").unwrap();
            serde_json::to_value(asked.action(Some(Reply::Chosen(vec![given]))).unwrap()).unwrap()
        };
        assert_eq!(action(answer(&[1], None)), json!({ "action": "accept" }));
        assert_eq!(action(answer(&[], Some("no")))["action"], "decline");
        let odd = json!({ "mode": "voice", "message": "m", "sessionId": "s" });
        assert!(elicitation(odd).is_err());
    }
}
