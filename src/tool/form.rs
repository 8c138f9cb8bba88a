//! A form of a program, such as an agent or a tool server, that wants data from the person. Each field becomes a question, and
//! the answers become the values of the form.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::permissions::Reply;
use crate::protocol::{ChoiceKind, ChoiceQuestion, ChosenAnswer, OfferedChoice};
use co_exec::secrets::redact::is_secret_variable;
use co_text::{one_line, printable, shorten, size_text, start_of};

/// The largest number of bytes of the program's message that the person reads.
const LONGEST_MESSAGE: usize = 4_000;
/// The largest number of bytes of the text about a field that the person reads.
const LONGEST_ABOUT: usize = 1_000;
/// The largest number of bytes of the label of a choice.
const LONGEST_LABEL: usize = 200;

/// The largest number of fields of a form. co refuses a form with more fields.
const MOST_FIELDS: usize = 20;
/// The largest number of choices of a field.
const MOST_CHOICES: usize = 50;
/// The largest number of bytes of all texts of a form.
const MOST_BYTES: usize = 64 << 10;

/// Words by which co recognizes a form that asks for a secret. The list is incomplete: a form can ask for a secret in other words.
const SECRET_WORDS: [&str; 5] = ["password", "passphrase", "passcode", "pin", "token"];

const NEGATIONS: [&str; 4] = ["not", "never", "no", "don"];

/// The choice that leaves an optional field without a value.
const LEFT_OUT: &str = "leave it out";

/// A form that a program wants the person to fill in.
#[derive(Debug, Clone)]
pub struct Form {
    message: String,
    fields: Vec<FormField>,
}

/// The person's reply to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormReply {
    /// The values of the fields. A field without a value is left out.
    Accept(Map<String, Value>),
    Decline,
    /// The question about the form was withdrawn.
    Cancel,
}

/// A field of a form.
#[derive(Debug, Clone)]
struct FormField {
    name: String,
    /// The text of the field's question.
    about: String,
    is_required: bool,
    kind: FieldKind,
    /// The value of the field if the person gives none.
    default: Option<Value>,
}

#[derive(Debug, Clone)]
enum FieldKind {
    Text,
    /// The person chooses one of these values. Each has a label.
    One(Vec<(String, String)>),
    /// The person chooses any number of these values. Each has a label.
    Several(Vec<(String, String)>),
    Number,
    Integer,
    Boolean,
}

impl Form {
    /// Parses a form, which consists of a message and the JSON schema of an object. The properties of the object must be plain
    /// values.
    ///
    /// # Errors
    /// The reason why co cannot show the form.
    pub fn read(message: &str, schema: &Value) -> Result<Self, String> {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        if properties.len() > MOST_FIELDS {
            return Err(format!("its form has more than {MOST_FIELDS} fields"));
        }
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
        let mut fields = Vec::new();
        for (name, property) in properties {
            let (kind, hint) = kind(property)
                .ok_or_else(|| format!("co does not know the kind of its field {}", shown(name)))?;
            if let FieldKind::One(values) | FieldKind::Several(values) = &kind {
                check_choices(values).map_err(|why| format!("its field {} {why}", shown(name)))?;
            }
            let title = property["title"].as_str().unwrap_or(name);
            let description = property["description"].as_str();
            let details = [description, hint.as_deref()];
            let details = details.into_iter().flatten().filter(|it| !it.is_empty());
            let about: Vec<_> = std::iter::once(title).chain(details).collect();
            fields.push(FormField {
                name: name.clone(),
                about: bounded(&about.join("\n"), LONGEST_ABOUT),
                is_required: is_required(name),
                kind,
                default: property.get("default").filter(|it| !it.is_null()).cloned(),
            });
        }
        let form = Self {
            message: bounded_message(message),
            fields,
        };
        let texts = form.questions("");
        let choices = texts.iter().flat_map(|it| &it.choices);
        let bytes = texts.iter().map(|it| it.question.len()).sum::<usize>()
            + choices.map(|it| it.label.len()).sum::<usize>();
        match bytes > MOST_BYTES {
            true => Err(format!(
                "its form has more than {} of text",
                size_text(MOST_BYTES as u64)
            )),
            false => Ok(form),
        }
    }

    /// Returns the name of the first field that asks for a secret, such as a password. If the message of the form asks for a
    /// secret, returns the name of the first field of the form. Returns `None` if neither asks for a secret.
    pub fn secret(&self) -> Option<String> {
        if names_secret(&self.message) {
            let first = self.fields.first();
            return first.map(|it| shown(&it.name));
        }
        let asks = |field: &&FormField| {
            if names_secret(&field.about) {
                return true;
            }
            let words = [
                field.name.as_str(),
                field.about.lines().next().unwrap_or(""),
            ];
            let words = words.map(|it| it.trim_end_matches([':', '?']).replace([' ', '-'], "_"));
            words
                .iter()
                .any(|it| is_secret_variable(it, "a-value-of-no-stand-in-1"))
        };
        let field = self.fields.iter().find(asks);
        field.map(|it| shown(&it.name))
    }

    /// Returns the questions to the person, one for each field. Each begins with `asker`, which names the program whose text
    /// follows.
    pub fn questions(&self, asker: &str) -> Vec<ChoiceQuestion> {
        let said = |words: &str| format!("{asker}\n{}", printable(words));
        if self.fields.is_empty() {
            return vec![ChoiceQuestion {
                question: said(&self.message),
                choices: offered(&["yes"]),
                several: false,
                kind: ChoiceKind::Plain,
            }];
        }
        let question = |(at, field): (usize, &FormField)| ChoiceQuestion {
            question: said(&match at {
                0 => format!("{}\n{}", self.message, field.about),
                _ => field.about.clone(),
            }),
            choices: field.choices(),
            several: matches!(field.kind, FieldKind::Several(_)),
            kind: ChoiceKind::Form,
        };
        self.fields.iter().enumerate().map(question).collect()
    }

    /// Converts the person's answers to the values of the form. A reply of `None` means that the question was withdrawn.
    ///
    /// # Errors
    /// The form does not accept an answer. The person must be asked again.
    pub fn reply(&self, reply: Option<Reply>) -> Result<FormReply, String> {
        let answers = match reply {
            None => return Ok(FormReply::Cancel),
            Some(Reply::Chosen(answers)) => answers,
            Some(_) => return Ok(FormReply::Decline),
        };
        if self.fields.is_empty() {
            return Ok(match is_yes(&answers) {
                true => FormReply::Accept(Map::new()),
                false => FormReply::Decline,
            });
        }
        let mut content = Map::new();
        for (field, answer) in self.fields.iter().zip(&answers) {
            if let Some(value) = field.value(answer)? {
                content.insert(field.name.clone(), value);
            }
        }
        Ok(FormReply::Accept(content))
    }
}

/// Returns true if there is only one answer, and it is the first choice. A written text does not count as a yes.
pub fn is_yes(answers: &[ChosenAnswer]) -> bool {
    matches!(answers, [answer] if answer.choices == [1])
}

/// Returns choices with these labels.
pub fn offered(labels: &[&str]) -> Vec<OfferedChoice> {
    let choice = |label: &&str| OfferedChoice {
        label: label_of(label),
        about: None,
        ..OfferedChoice::default()
    };
    labels.iter().map(choice).collect()
}

/// Returns true if a text contains a word for a secret. Ignores clauses that forbid something: "do not give us your pin" does not
/// ask for a secret.
fn names_secret(text: &str) -> bool {
    let mut parts = text.split(['.', ';', '(', ')', '!', '?', '\n']);
    parts.any(|part| {
        let words = part.split(|c: char| !c.is_alphanumeric());
        let words: Vec<_> = words.map(str::to_lowercase).collect();
        let has = |of: &[&str]| words.iter().any(|it| of.contains(&it.as_str()));
        has(&SECRET_WORDS) && !has(&NEGATIONS)
    })
}

/// Returns a program's message, cut to the length that the person reads.
pub fn bounded_message(message: &str) -> String {
    bounded(message.trim(), LONGEST_MESSAGE)
}

/// Returns a text. If it is too long, returns its start, and the number of bytes that are left out.
fn bounded(text: &str, most: usize) -> String {
    let start = start_of(text, most);
    match text.len() - start.len() {
        0 => text.to_owned(),
        left => format!(
            "{start}…\n[co does not show the rest: {}]",
            size_text(left as u64)
        ),
    }
}

fn label_of(label: &str) -> String {
    one_line(&shorten(label, LONGEST_LABEL))
}

/// Returns the name of a field for a person.
fn shown(name: &str) -> String {
    one_line(&shorten(name, LONGEST_LABEL))
}

/// Checks that the person can choose each of these values. The error is a clause with the reason.
fn check_choices(values: &[(String, String)]) -> Result<(), String> {
    if values.len() > MOST_CHOICES {
        return Err(format!("has more than {MOST_CHOICES} choices"));
    }
    let mut labels = HashSet::new();
    let is_new = |(_, label): &(String, String)| labels.insert(label_of(label));
    match values.iter().all(is_new) {
        true => Ok(()),
        false => Err("has two choices that look the same".to_owned()),
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
        let usual = self.default.as_ref().map(|it| match it {
            Value::String(text) => format!("the usual value: {text}"),
            other => format!("the usual value: {other}"),
        });
        let left_out = is_open.then(|| usual.as_deref().unwrap_or(LEFT_OUT));
        offered(&labels.into_iter().chain(left_out).collect::<Vec<_>>())
    }

    /// Returns the value that an answer gives to the field; none if the answer leaves the field out.
    fn value(&self, answer: &ChosenAnswer) -> Result<Option<Value>, String> {
        let chosen = |values: &[(String, String)], number: usize| {
            let value = values.get(number.checked_sub(1)?)?;
            Some(Value::from(value.0.clone()))
        };
        let name = shown(&self.name);
        let Some(text) = answer.text.as_deref().map(str::trim) else {
            let first = answer.choices.first().copied().unwrap_or_default();
            return Ok(match &self.kind {
                FieldKind::One(values) => chosen(values, first).or_else(|| self.default.clone()),
                FieldKind::Several(values) => {
                    let values = answer.choices.iter().filter_map(|it| chosen(values, *it));
                    Some(values.collect())
                }
                FieldKind::Boolean if first <= 2 => Some((first == 1).into()),
                _ => self.default.clone(),
            });
        };
        let named = |values: &[(String, String)], text: &str| {
            let found = values
                .iter()
                .find(|(value, label)| value == text || label.eq_ignore_ascii_case(text));
            let found = found.map(|(value, _)| Value::from(value.clone()));
            found.ok_or_else(|| format!("{name} has no choice {}", shown(text)))
        };
        Ok(Some(match &self.kind {
            FieldKind::Text => text.into(),
            FieldKind::One(values) => named(values, text)?,
            FieldKind::Several(values) => {
                let words = text.split(',').map(|word| named(values, word.trim()));
                words.collect::<Result<_, _>>()?
            }
            FieldKind::Number => {
                let number = text.parse().ok().filter(|it: &f64| it.is_finite());
                number
                    .ok_or_else(|| format!("{name} must be a number"))?
                    .into()
            }
            FieldKind::Integer => {
                let number = text.parse::<i64>();
                let number = number.map_err(|_| format!("{name} must be a whole number"))?;
                number.into()
            }
            FieldKind::Boolean => match text {
                "yes" | "true" => true.into(),
                "no" | "false" => false.into(),
                _ => return Err(format!("{name} must be yes or no")),
            },
        }))
    }
}

/// Returns the kind of a field, and a text about its bounds. Returns `None` if co does not support the kind.
fn kind(property: &Value) -> Option<(FieldKind, Option<String>)> {
    let bounds = || Some(bounds(&property["minimum"], &property["maximum"]));
    Some(match property["type"].as_str()? {
        "string" => {
            let kind = match choices(property, "oneOf")? {
                Some(values) => FieldKind::One(values),
                None => FieldKind::Text,
            };
            let default = property["default"].as_str();
            (kind, default.map(|it| format!("usually: {it}")))
        }
        "number" => (FieldKind::Number, bounds()),
        "integer" => (FieldKind::Integer, bounds()),
        "boolean" => (FieldKind::Boolean, None),
        "array" => {
            let values = choices(&property["items"], "anyOf")??;
            (FieldKind::Several(values), None)
        }
        _ => return None,
    })
}

/// Returns the values that a JSON schema lets the person choose, each with its label. `titled` is the name of the property that
/// lists values with titles. If the schema lacks this property, the values are in `enum`. Returns `Some(None)` if the schema
/// lists no values, and `None` if co cannot parse the list.
fn choices(of: &Value, titled: &str) -> Option<Option<Vec<(String, String)>>> {
    if let Some(options) = of[titled].as_array() {
        let option = |it: &Value| {
            let value = it["const"].as_str()?;
            let label = it["title"].as_str().unwrap_or(value);
            Some((value.to_owned(), label.to_owned()))
        };
        return Some(Some(options.iter().map(option).collect::<Option<_>>()?));
    }
    let Some(values) = of["enum"].as_array() else {
        return Some(None);
    };
    let value = |(at, it): (usize, &Value)| {
        let value = it.as_str()?;
        let label = of["enumNames"][at].as_str().unwrap_or(value);
        Some((value.to_owned(), label.to_owned()))
    };
    let values = values.iter().enumerate().map(value);
    Some(Some(values.collect::<Option<_>>()?))
}

fn bounds(least: &Value, most: &Value) -> String {
    match (least.is_number(), most.is_number()) {
        (true, true) => format!("a number from {least} to {most}"),
        (true, false) => format!("a number of at least {least}"),
        (false, true) => format!("a number of at most {most}"),
        (false, false) => "a number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_the_kinds_of_the_protocol_and_others_are_refused() {
        let form = |property: Value| {
            let schema = json!({ "properties": { "a": property }, "required": ["a"] });
            Form::read("m", &schema)
        };
        let labels = |property: Value| -> Vec<_> {
            let questions = form(property).unwrap().questions("x asks:");
            let choices = questions.into_iter().flat_map(|it| it.choices);
            choices.map(|it| it.label).collect()
        };
        let named = json!({ "type": "string", "enum": ["x", "y"], "enumNames": ["X"] });
        assert_eq!(labels(named), ["X", "y"]);
        let several =
            json!({ "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] } });
        assert_eq!(labels(several), ["X"]);
        assert_eq!(labels(json!({ "type": "boolean" })), ["yes", "no"]);
        assert_eq!(labels(json!({ "type": "string" })), [""; 0]);
        for odd in [
            json!({}),
            json!({ "type": "object" }),
            json!({ "type": "array" }),
            json!({ "type": "string", "enum": [1] }),
            json!({ "type": "string", "enum": vec!["x"; MOST_CHOICES + 1] }),
        ] {
            assert!(form(odd.clone()).is_err(), "{odd}");
        }
        let many: Map<_, _> = (0..=MOST_FIELDS)
            .map(|at| (at.to_string(), json!({ "type": "string" })))
            .collect();
        assert!(Form::read("m", &json!({ "properties": many })).is_err());
        assert_eq!(Form::read("m", &json!({})).unwrap().questions("").len(), 1);
    }

    #[test]
    fn texts_are_bounded_and_each_field_names_its_asker() {
        let long = "é".repeat(10_000);
        let choices: Vec<_> = (0..3).map(|at| format!("{at}{long}")).collect();
        let schema = json!({ "properties": {
            "a": { "type": "string", "title": long },
            "b": { "type": "string", "enum": choices },
        } });
        let questions = Form::read(&long, &schema)
            .unwrap()
            .questions("The tool server s asks:");
        for part in &questions {
            assert!(part.question.starts_with("The tool server s asks:\n"));
            assert!(
                part.choices
                    .iter()
                    .all(|it| it.label.len() < 2 * LONGEST_LABEL)
            );
        }
        let first = &questions[0].question;
        assert!(
            first.len() < LONGEST_MESSAGE + LONGEST_ABOUT + 200,
            "{}",
            first.len()
        );
        assert_eq!(first.matches("[co does not show the rest: ").count(), 2);
        assert!(questions[1].choices[0].label.ends_with('…'));
        let refused = |properties: Value| {
            let schema = json!({ "properties": properties });
            Form::read("m", &schema).unwrap_err()
        };
        let same = [format!("{long}1"), format!("{long}2")];
        let why = refused(json!({ "a": { "type": "string", "enum": same } }));
        assert_eq!(why, "its field a has two choices that look the same");
        let wide: Vec<_> = (0..MOST_CHOICES)
            .map(|at| format!("{at}{}", "x".repeat(150)))
            .collect();
        let wide = json!({ "type": "string", "enum": wide });
        let fields = (0..10).map(|at| (format!("f{at}"), wide.clone()));
        let why = refused(fields.collect::<Map<_, _>>().into());
        assert_eq!(why, "its form has more than 64 KiB of text");
        let why = refused(json!({ long: { "type": "odd" } }));
        assert!(why.len() < 500, "{why}");
    }

    #[test]
    fn what_is_left_out_has_its_usual_value() {
        let schema = json!({ "properties": {
            "name": { "type": "string", "default": "Ann" },
            "age": { "type": "integer", "default": 30 },
            "sure": { "type": "boolean", "default": true },
            "one": { "type": "string", "enum": ["a", "b"], "default": "b" },
            "none": { "type": "string" },
        } });
        let form = Form::read("m", &schema).unwrap();
        let last = form.questions("").into_iter().map(|it| {
            let choices = it.choices.len();
            let answer = ChosenAnswer {
                choices: vec![choices],
                text: None,
            };
            (answer, it.choices[choices - 1].label.clone())
        });
        let (answers, labels): (Vec<_>, Vec<_>) = last.unzip();
        assert_eq!(labels[1], "the usual value: 30");
        assert_eq!(labels[4], LEFT_OUT);
        let reply = form.reply(Some(Reply::Chosen(answers))).unwrap();
        let expected = json!({ "name": "Ann", "age": 30, "sure": true, "one": "b" });
        assert_eq!(
            reply,
            FormReply::Accept(expected.as_object().unwrap().clone())
        );
    }

    #[test]
    fn a_field_for_a_secret_is_noticed() {
        let secret = |name: &str, title: &str| {
            let schema = json!({ "properties": { name: { "type": "string", "title": title } } });
            Form::read("m", &schema).unwrap().secret()
        };
        for (name, title) in [
            ("password", "x"),
            ("a", "Password:"),
            ("a", "API key"),
            ("github_token", "x"),
            ("clientSecret", "x"),
        ] {
            assert_eq!(secret(name, title).as_deref(), Some(name), "{title}");
        }
        for (name, title) in [
            ("name", "Your name"),
            ("count", "How many?"),
            ("branch", "x"),
        ] {
            assert_eq!(secret(name, title), None);
        }
        let schema = json!({ "properties": { "value": { "type": "string" } } });
        let form = |message| Form::read(message, &schema).unwrap();
        let asks = form("Enter your sudo password to go on.");
        assert_eq!(asks.secret().as_deref(), Some("value"));
        assert_eq!(form("Enter the number of lines.").secret(), None);
        let schema = json!({ "properties": {
            "name": { "type": "string" },
            "number": { "type": "integer", "description": "Your number (do not give us your pin)" },
        } });
        assert_eq!(Form::read("m", &schema).unwrap().secret(), None);
        let schema = json!({ "properties": {
            "name": { "type": "string" },
            "value": { "type": "string", "description": "Your sudo password" },
        } });
        let secret = Form::read("m", &schema).unwrap().secret();
        assert_eq!(secret.as_deref(), Some("value"));
    }
}
