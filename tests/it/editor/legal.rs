//! What providers demand of a request's messages, and refuse with a 400 otherwise.

use std::collections::HashSet;

use serde_json::Value;

type Legal = Result<(), String>;

fn check(holds: bool, why: impl Into<String>) -> Legal {
    holds.then_some(()).ok_or_else(|| why.into())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn ids<'a>(values: impl Iterator<Item = &'a Value>, field: &str) -> Vec<&'a str> {
    values.filter_map(|value| value[field].as_str()).collect()
}

fn unique<'a>(seen: &mut HashSet<&'a str>, ids: &[&'a str]) -> Legal {
    let twice = ids.iter().find(|id| !seen.insert(id));
    twice.map_or(Ok(()), |id| Err(format!("{id} is called twice")))
}

/// Each assistant message's calls are answered by the tool messages right after it, one each.
pub(super) fn openai(body: &Value) -> Legal {
    let messages = list(&body["messages"]);
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open.iter().position(|it| *it == id);
            open.remove(place.ok_or(format!("{id} answers no call before it"))?);
            continue;
        }
        check(open.is_empty(), format!("{open:?} have no answer"))?;
        let calls = list(&message["tool_calls"]);
        open = ids(calls.iter(), "id");
        check(open.len() == calls.len(), "a call has no id")?;
        unique(&mut seen, &open)?;
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let object = serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object());
            check(object, format!("{arguments:?} are no arguments"))?;
        }
        let silent = message["content"].as_str().unwrap_or_default().is_empty()
            && list(&message["content"]).is_empty();
        check(!calls.is_empty() || !silent, "a message says nothing")?;
    }
    check(open.is_empty(), format!("{open:?} have no answer"))?;
    let last = messages.last().map(|message| &message["role"]);
    check(
        last.is_some_and(|role| role != "assistant"),
        "the model speaks last",
    )
}

/// The person speaks first; calls are answered at the start of what comes next. Messages of one speaker in a
/// row count as one there.
pub(super) fn anthropic(body: &Value) -> Legal {
    let mut turns: Vec<(&Value, Vec<&Value>)> = Vec::new();
    for message in list(&body["messages"]) {
        let blocks = list(&message["content"]);
        let said = message["content"].as_str().unwrap_or_default();
        check(
            !blocks.is_empty() || !said.is_empty(),
            "a message says nothing",
        )?;
        match turns.last_mut() {
            Some((role, all)) if **role == message["role"] => all.extend(blocks),
            _ => turns.push((&message["role"], blocks.iter().collect())),
        }
    }
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (_, blocks) in &turns {
        let is = |kind: &'static str| move |it: &&&Value| it["type"] == kind;
        let results = || blocks.iter().filter(is("tool_result"));
        let first = blocks.iter().take_while(is("tool_result")).count();
        check(first == results().count(), "a result stands behind a text")?;
        let mut answered = ids(results().copied(), "tool_use_id");
        answered.sort_unstable();
        open.sort_unstable();
        check(
            answered == open,
            format!("{open:?} are answered by {answered:?}"),
        )?;
        open = ids(blocks.iter().filter(is("tool_use")).copied(), "id");
        unique(&mut seen, &open)?;
        let empty = |it: &&Value| it["type"] == "text" && it["text"] == "";
        check(!blocks.iter().any(empty), "a text is empty")?;
    }
    check(open.is_empty(), format!("{open:?} have no answer"))?;
    let speaker =
        |turn: Option<&(&Value, Vec<&Value>)>| turn.is_some_and(|(role, _)| *role == "user");
    check(speaker(turns.first()), "the model speaks first")?;
    check(speaker(turns.last()), "the model speaks last")
}
