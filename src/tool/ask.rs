//! The tool `ask_person`: up to four questions with choices. It changes nothing, and no answer to it approves a call.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::call::{CallResult, LookingCall, PlannedCall};
use super::context::{CallContext, CallHalt};
use super::event::ShownCall;
use super::permissions::Reply;
use super::schema::{self, BadCall, BuiltIn, arguments};
use crate::protocol::{Asker, ChoiceKind, ChoiceQuestion, ChosenAnswer, OfferedChoice, Question};
use co_llm::transcript::{Call, ShownPart};
use co_text::{one_line, printable, start_of};

const NAME: &str = "ask_person";

/// The largest number of questions in a call.
const MOST_QUESTIONS: usize = 4;
/// The smallest and the largest number of choices of a question.
const CHOICES: std::ops::RangeInclusive<usize> = 2..=6;

/// The largest number of bytes of a text that the person sees.
const LONGEST_TEXT: usize = 500;

/// A call of `ask_person`, with its questions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskPerson {
    questions: Vec<AskedQuestion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedQuestion {
    question: String,
    choices: Vec<AskedChoice>,
    #[serde(default)]
    several: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedChoice {
    label: String,
    #[serde(default)]
    about: Option<String>,
    #[serde(default)]
    advised: bool,
}

/// Returns the tool `ask_person`.
pub(super) fn tool() -> BuiltIn {
    let description = "Asks the person what only they can decide, such as which of two designs they want. They choose, or answer \
        in their own words. Look first, and do not ask what you can find out. It is not for permission: no answer approves a call.";
    let choice = json!({
        "type": "object",
        "properties": {
            "label": { "type": "string", "description": "A few words." },
            "about": { "type": "string", "description": "What it means, in a sentence." },
            "advised": { "type": "boolean", "description": "You advise it; one at most." },
        },
        "required": ["label"],
        "additionalProperties": false,
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": { "type": "string" },
            "choices": {
                "type": "array",
                "items": choice,
                "minItems": CHOICES.start(),
                "description": format!("{} to {}.", CHOICES.start(), CHOICES.end()),
            },
            "several": { "type": "boolean", "description": "They may choose several. Default: false." },
        },
        "required": ["question", "choices"],
        "additionalProperties": false,
    });
    let properties = json!({
        "questions": {
            "type": "array",
            "items": question,
            "description": format!("1 to {MOST_QUESTIONS}."),
        },
    });
    BuiltIn {
        spec: schema::spec(NAME, description.to_owned(), properties, &["questions"]),
        parse: |call| AskPerson::parse(call).map(|it| -> Box<dyn PlannedCall> { Box::new(it) }),
        shown_unread: |_| None,
    }
}

impl AskPerson {
    fn parse(call: &Call) -> Result<Self, BadCall> {
        let asked: Self = arguments(call)?;
        let bad = |why: String| Err(BadCall(why));
        if !(1..=MOST_QUESTIONS).contains(&asked.questions.len()) {
            return bad(format!("{NAME} takes 1 to {MOST_QUESTIONS} questions."));
        }
        for AskedQuestion {
            question, choices, ..
        } in &asked.questions
        {
            let empty = choices.iter().any(|it| it.label.trim().is_empty());
            if question.trim().is_empty() || empty {
                return bad("A question or a label has no text.".to_owned());
            } else if !CHOICES.contains(&choices.len()) {
                let (least, most) = (CHOICES.start(), CHOICES.end());
                return bad(format!("A question has {least} to {most} choices."));
            }
        }
        Ok(asked)
    }

    /// Returns the message with these questions for Lua.
    fn question(&self, context: &CallContext) -> Question {
        let shown = |text: &str| printable(start_of(text.trim(), LONGEST_TEXT));
        let question = |it: &AskedQuestion| {
            let first = it.choices.iter().position(|choice| choice.advised);
            let choices = it.choices.iter().enumerate();
            let choices = choices.map(|(at, choice)| OfferedChoice {
                label: one_line(&shown(&choice.label)),
                about: choice.about.as_deref().map(|about| one_line(&shown(about))),
                advised: first == Some(at),
                is_yes: false,
            });
            ChoiceQuestion {
                question: shown(&it.question),
                choices: choices.collect(),
                several: it.several,
                kind: ChoiceKind::Model,
            }
        };
        Question {
            id: context.services.id(),
            asker: Asker::Chat(context.chat),
            command: self.words(),
            choices: self.questions.iter().map(question).collect(),
            ..Question::default()
        }
    }

    /// Returns the call as one line.
    fn words(&self) -> String {
        let first = self.questions.first().map(|it| it.question.trim());
        let first = one_line(start_of(first.unwrap_or_default(), LONGEST_TEXT));
        match self.questions.len() {
            0 | 1 => format!("asks: {first}"),
            count => format!("asks {count} questions: {first}"),
        }
    }

    /// Returns the text for the model, and the answers as one line. Returns `None` if the answers do not match the questions.
    fn answered(&self, answers: &[ChosenAnswer]) -> Option<(String, String)> {
        if answers.len() != self.questions.len() {
            return None;
        }
        let (mut told, mut shown) = (Vec::new(), Vec::new());
        for (asked, answer) in self.questions.iter().zip(answers) {
            let (given, several) = (answer.choices.len(), asked.several);
            let text = answer.text.as_deref().map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            if text.is_none() && given == 0 && !several || given > 1 && !several {
                return None;
            }
            told.push(asked.question.trim().to_owned());
            let mut words = Vec::new();
            for number in &answer.choices {
                let choice = asked.choices.get(number.checked_sub(1)?)?;
                told.push(format!("- {}", choice.label.trim()));
                words.push(choice.label.trim());
            }
            if let Some(text) = text {
                told.push(format!("- in their own words: {text}"));
                words.push(text);
            } else if given == 0 {
                told.push("- none of the choices".to_owned());
                words.push("none");
            }
            shown.push(words.join(", "));
        }
        Some((told.join("\n"), shown.join("; ")))
    }
}

#[async_trait]
impl LookingCall for AskPerson {
    fn shown(&self) -> ShownCall {
        ShownCall::Question(printable(&self.words()))
    }

    /// Asks the person, and returns the answers as the result of the call.
    async fn look(self, context: &CallContext) -> Result<CallResult, CallHalt> {
        let reply = context.to_chat.ask(self.question(context)).await?;
        let reply = context.unless_cancelled(reply).await;
        let (told, shown) = match reply {
            Ok(Ok(Reply::Chosen(answers))) => match self.answered(&answers) {
                Some((told, shown)) => {
                    let shown = one_line(start_of(&shown, LONGEST_TEXT));
                    return Ok(CallResult {
                        ok: true,
                        shown: ShownPart::line(shown),
                        ..CallResult::answer(told)
                    });
                }
                None => (
                    "The answers do not fit the questions.".to_owned(),
                    "no answer",
                ),
            },
            Ok(Ok(Reply::Deny(Some(why)))) => {
                (format!("The person does not answer: {why}"), "no answer")
            }
            Ok(Ok(_)) => (
                "The person does not answer. Go on with what you know, or end the turn.".to_owned(),
                "no answer",
            ),
            Ok(Err(_)) | Err(_) => (
                "Not answered: the question was withdrawn.".to_owned(),
                "not answered",
            ),
        };
        Ok(CallResult {
            shown: ShownPart::line(shown.to_owned()),
            ..CallResult::answer(told)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(questions: serde_json::Value) -> Result<AskPerson, BadCall> {
        AskPerson::parse(&Call::new("1", NAME, json!({ "questions": questions })))
    }

    fn asked(choices: &[&str], several: bool) -> serde_json::Value {
        let choices: Vec<_> = choices.iter().map(|it| json!({ "label": it })).collect();
        json!({ "question": "Which?", "choices": choices, "several": several })
    }

    #[test]
    fn a_call_has_few_questions_with_choices() {
        let check = |questions: serde_json::Value, part: &str| {
            let bad = parse(questions).unwrap_err();
            assert!(bad.0.contains(part), "{bad}");
        };
        assert!(parse(json!([asked(&["a", "b"], false)])).is_ok());
        check(json!([]), "1 to 4");
        check(json!(vec![asked(&["a", "b"], false); 5]), "1 to 4");
        check(json!([asked(&["a"], false)]), "2 to 6");
        check(json!([asked(&["a", " "], false)]), "no text");
    }

    #[test]
    fn answers_are_told_as_they_fit() {
        let two = parse(json!([asked(&["a", "b"], false), asked(&["c", "d"], true)])).unwrap();
        let chosen = |choices: &[usize], text: Option<&str>| ChosenAnswer {
            choices: choices.to_vec(),
            text: text.map(str::to_owned),
        };
        let told = two.answered(&[chosen(&[2], None), chosen(&[1, 2], None)]);
        let expected = ("Which?\n- b\nWhich?\n- c\n- d", "b; c, d");
        let (told, shown) = told.unwrap();
        assert_eq!((&*told, &*shown), expected);
        let (told, _) = two
            .answered(&[chosen(&[], Some("x")), chosen(&[], None)])
            .unwrap();
        assert!(told.contains("in their own words: x") && told.ends_with("none of the choices"));
        for wrong in [
            vec![chosen(&[1], None)],
            vec![chosen(&[1, 2], None), chosen(&[], None)],
            vec![chosen(&[3], None), chosen(&[], None)],
            vec![chosen(&[0], None), chosen(&[], None)],
            vec![chosen(&[], Some(" ")), chosen(&[], None)],
        ] {
            assert_eq!(two.answered(&wrong), None, "{wrong:?}");
        }
    }
}
