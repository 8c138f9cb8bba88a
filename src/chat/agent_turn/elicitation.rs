//! The questions of an agent to the person, by a form or by an address to open.

use std::collections::BTreeMap;

use crate::protocol::{Asker, ChoiceQuestion, ChosenAnswer, OfferedChoice, Question};
use crate::text::{one_line, start_of};
use crate::tool::context::CallContext;
use crate::tool::permissions::Reply;
use co_acp::schema::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
    ElicitationMode, ElicitationPropertySchema, ElicitationSchema, EnumOption, MultiSelectItems,
    RequestId,
};
use co_policy::printable;

/// The most bytes of a text of the agent in a question.
const LONGEST_TEXT: usize = 8_000;

/// The most questions of one form, and the most choices of a question. An agent that asks for more is refused.
const MOST_FIELDS: usize = 20;
const MOST_CHOICES: usize = 50;

/// The choice that gives an optional field no value.
const LEFT_OUT: &str = "leave it out";

/// A question of an agent that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Elicitation {
    pub id: RequestId,
    message: String,
    form: ElicitationForm,
}

#[derive(Debug, Clone)]
enum ElicitationForm {
    Fields(Vec<FormField>),
    Address { url: String, host: String },
}

/// A value that the person gives.
#[derive(Debug, Clone)]
struct FormField {
    name: String,
    /// The question in words.
    about: String,
    is_required: bool,
    kind: FieldKind,
}

#[derive(Debug, Clone)]
enum FieldKind {
    Text,
    /// One of these values, with their labels.
    One(Vec<(String, String)>),
    /// Any number of these values, with their labels.
    Several(Vec<(String, String)>),
    Number,
    Integer,
    Boolean,
}

impl Elicitation {
    /// Reads a request.
    ///
    /// # Errors
    /// co cannot ask it, for this reason.
    pub(super) fn new(id: RequestId, request: &CreateElicitationRequest) -> Result<Self, String> {
        let form = match &request.mode {
            ElicitationMode::Form(form) => ElicitationForm::Fields(fields(&form.requested_schema)?),
            ElicitationMode::Url(address) => ElicitationForm::Address {
                host: host(&address.url).ok_or("its address is not one of the web")?,
                url: address.url.clone(),
            },
            _ => return Err("co does not know this kind of question".to_owned()),
        };
        Ok(Self {
            id,
            message: request.message.clone(),
            form,
        })
    }

    /// Returns the address that the person is asked to open.
    pub(super) fn address(&self) -> Option<&str> {
        match &self.form {
            ElicitationForm::Address { url, .. } => Some(url),
            ElicitationForm::Fields(_) => None,
        }
    }

    /// Returns the question. Its texts have no secrets: `redact` removes them.
    pub(super) fn question(&self, context: &CallContext, agent: &str) -> Question {
        let message = start_of(self.message.trim(), LONGEST_TEXT);
        let choices = match &self.form {
            ElicitationForm::Address { url, host } => vec![ChoiceQuestion {
                question: printable(&format!(
                    "{message}\n\n{agent} asks you to open this address of {host}:\n{url}\n\nco does not open it."
                )),
                choices: offered(&["I have opened it"]),
                several: false,
            }],
            ElicitationForm::Fields(fields) if fields.is_empty() => vec![ChoiceQuestion {
                question: printable(message),
                choices: offered(&["yes"]),
                several: false,
            }],
            ElicitationForm::Fields(fields) => {
                let fields = fields.iter().enumerate();
                let question = |(at, field): (usize, &FormField)| ChoiceQuestion {
                    question: printable(&match at {
                        0 => format!("{message}\n\n{}", field.about),
                        _ => field.about.clone(),
                    }),
                    choices: field.choices(),
                    several: matches!(field.kind, FieldKind::Several(_)),
                };
                fields.map(question).collect()
            }
        };
        Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            command: format!("{agent} asks you"),
            choices,
            ..Question::default()
        }
    }

    /// Returns what the agent is told for a reply; none means that the question was withdrawn.
    ///
    /// # Errors
    /// The agent does not take one of the answers. The person must be asked again.
    pub(super) fn action(&self, reply: Option<Reply>) -> Result<ElicitationAction, String> {
        let answers = match reply {
            None => return Ok(ElicitationAction::Cancel),
            Some(Reply::Chosen(answers)) => answers,
            Some(_) => return Ok(ElicitationAction::Decline),
        };
        let fields = match &self.form {
            ElicitationForm::Fields(fields) => fields.as_slice(),
            ElicitationForm::Address { .. } => &[],
        };
        let accept = ElicitationAcceptAction::new();
        if fields.is_empty() {
            // Words of the person are not the yes that was asked for.
            let is_yes = matches!(answers.as_slice(), [answer] if answer.choices == [1]);
            return Ok(match is_yes {
                true => ElicitationAction::Accept(accept),
                false => ElicitationAction::Decline,
            });
        }
        let mut content = BTreeMap::new();
        for (field, answer) in fields.iter().zip(&answers) {
            if let Some(value) = field.value(answer)? {
                content.insert(field.name.clone(), value);
            }
        }
        Ok(ElicitationAction::Accept(accept.content(content)))
    }
}

impl FormField {
    fn choices(&self) -> Vec<OfferedChoice> {
        let labels: Vec<&str> = match &self.kind {
            FieldKind::One(values) | FieldKind::Several(values) => {
                values.iter().map(|(_, label)| label.as_str()).collect()
            }
            FieldKind::Boolean => vec!["yes", "no"],
            FieldKind::Text | FieldKind::Number | FieldKind::Integer => Vec::new(),
        };
        let is_open = !self.is_required && !matches!(self.kind, FieldKind::Several(_));
        let left_out = is_open.then_some(LEFT_OUT);
        offered(&labels.into_iter().chain(left_out).collect::<Vec<_>>())
    }

    /// Returns the value that an answer gives; none if it is left out.
    fn value(&self, answer: &ChosenAnswer) -> Result<Option<ElicitationContentValue>, String> {
        let chosen = |values: &[(String, String)], number: usize| {
            let value = values.get(number.checked_sub(1)?)?;
            Some(value.0.clone())
        };
        let name = one_line(&printable(&self.name));
        let Some(text) = answer.text.as_deref().map(str::trim) else {
            let first = answer.choices.first().copied().unwrap_or_default();
            return Ok(match &self.kind {
                FieldKind::One(values) => {
                    chosen(values, first).map(ElicitationContentValue::String)
                }
                FieldKind::Several(values) => {
                    let values = answer.choices.iter().filter_map(|it| chosen(values, *it));
                    Some(ElicitationContentValue::StringArray(values.collect()))
                }
                FieldKind::Boolean if first <= 2 => {
                    Some(ElicitationContentValue::Boolean(first == 1))
                }
                _ => None,
            });
        };
        let named = |values: &[(String, String)], text: &str| {
            let found = values
                .iter()
                .find(|(value, label)| value == text || label.eq_ignore_ascii_case(text));
            let found = found.map(|(value, _)| value.clone());
            found.ok_or_else(|| format!("{name} has no choice {text}"))
        };
        Ok(Some(match &self.kind {
            FieldKind::Text => ElicitationContentValue::String(text.to_owned()),
            FieldKind::One(values) => ElicitationContentValue::String(named(values, text)?),
            FieldKind::Several(values) => {
                let words = text.split(',').map(|word| named(values, word.trim()));
                ElicitationContentValue::StringArray(words.collect::<Result<_, _>>()?)
            }
            FieldKind::Number => {
                let number = text.parse().ok().filter(|it: &f64| it.is_finite());
                let number = number.ok_or_else(|| format!("{name} must be a number"))?;
                ElicitationContentValue::Number(number)
            }
            FieldKind::Integer => {
                let number = text.parse();
                let number = number.map_err(|_| format!("{name} must be a whole number"))?;
                ElicitationContentValue::Integer(number)
            }
            FieldKind::Boolean => match text {
                "yes" | "true" => ElicitationContentValue::Boolean(true),
                "no" | "false" => ElicitationContentValue::Boolean(false),
                _ => return Err(format!("{name} must be yes or no")),
            },
        }))
    }
}

/// Returns the fields of a form.
fn fields(schema: &ElicitationSchema) -> Result<Vec<FormField>, String> {
    if schema.properties.len() > MOST_FIELDS {
        return Err(format!("its form has more than {MOST_FIELDS} fields"));
    }
    let required = schema.required.as_deref().unwrap_or_default();
    let mut fields = Vec::new();
    for (name, property) in &schema.properties {
        let (title, description, kind, hint) = kind(property)
            .ok_or_else(|| format!("co does not know the kind of its field {name}"))?;
        if let FieldKind::One(values) | FieldKind::Several(values) = &kind
            && values.len() > MOST_CHOICES
        {
            return Err(format!(
                "its field {name} has more than {MOST_CHOICES} choices"
            ));
        }
        let title = title.as_ref().unwrap_or(name);
        let details = [description.clone(), hint];
        let details = details.into_iter().flatten().filter(|it| !it.is_empty());
        let about: Vec<_> = std::iter::once(title.clone()).chain(details).collect();
        fields.push(FormField {
            name: name.clone(),
            about: start_of(&about.join("\n"), LONGEST_TEXT).to_owned(),
            is_required: required.contains(name),
            kind,
        });
    }
    Ok(fields)
}

type FieldParts<'a> = (
    &'a Option<String>,
    &'a Option<String>,
    FieldKind,
    Option<String>,
);

/// Returns the title, the description, the kind and the bounds of a field; none if co does not know its kind.
fn kind(property: &ElicitationPropertySchema) -> Option<FieldParts<'_>> {
    let plain = |values: &[String]| values.iter().map(|it| (it.clone(), it.clone())).collect();
    let titled = |options: &[EnumOption]| {
        let options = options.iter();
        options
            .map(|it| (it.value.clone(), it.title.clone()))
            .collect()
    };
    Some(match property {
        ElicitationPropertySchema::String(text) => {
            let kind = match (&text.one_of, &text.enum_values) {
                (Some(options), _) => FieldKind::One(titled(options)),
                (None, Some(values)) => FieldKind::One(plain(values)),
                (None, None) => FieldKind::Text,
            };
            let default = text.default.as_ref().map(|it| format!("usually: {it}"));
            (&text.title, &text.description, kind, default)
        }
        ElicitationPropertySchema::Number(number) => {
            let hint = bounds(number.minimum, number.maximum);
            (&number.title, &number.description, FieldKind::Number, hint)
        }
        ElicitationPropertySchema::Integer(number) => {
            let hint = bounds(number.minimum, number.maximum);
            (&number.title, &number.description, FieldKind::Integer, hint)
        }
        ElicitationPropertySchema::Boolean(switch) => {
            (&switch.title, &switch.description, FieldKind::Boolean, None)
        }
        ElicitationPropertySchema::Array(several) => {
            let values = match &several.items {
                MultiSelectItems::String(items) => plain(&items.values),
                MultiSelectItems::Titled(items) => titled(&items.options),
                _ => return None,
            };
            let kind = FieldKind::Several(values);
            (&several.title, &several.description, kind, None)
        }
        _ => return None,
    })
}

fn bounds<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("a number from {least} to {most}")),
        (Some(least), None) => Some(format!("a number of at least {least}")),
        (None, Some(most)) => Some(format!("a number of at most {most}")),
        (None, None) => Some("a number".to_owned()),
    }
}

/// Returns the host of an address of the web. What looks like a host before an `@` is a user name.
fn host(url: &str) -> Option<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let is_plain = url
        .chars()
        .all(|it| !it.is_whitespace() && !it.is_control());
    (is_plain && !host.is_empty()).then(|| host.to_owned())
}

fn offered(labels: &[&str]) -> Vec<OfferedChoice> {
    let choice = |label: &&str| OfferedChoice {
        label: one_line(&printable(start_of(label, LONGEST_TEXT))),
        about: None,
        advised: false,
    };
    labels.iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
