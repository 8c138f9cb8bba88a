//! The task that writes to Neovim. It makes one call at a time. Each call takes all messages that were queued since the previous
//! call.

use std::time::Duration;

use nvim_rs::Neovim;
use rmpv::Value;
use tokio::time::Instant;

use super::bounded::UnfinishedMessage;
use super::stdio::Pipe;
use crate::editor::Outbox;
use crate::protocol::{BufferLine, BufferReplacement, ToEditor};
use co_exec::ScreenPatch;

/// The shortest time between two calls. It allows sixty calls a second, as many as a terminal can show.
const MIN_INTERVAL: Duration = Duration::from_millis(16);
/// The longest time between two calls, even if Neovim draws slowly.
const MAX_INTERVAL: Duration = Duration::from_millis(250);

const RECEIVE: &str = "return require('co.handlers').receive(...)";

const WARN: &str = "vim.notify(..., vim.log.levels.ERROR, { title = 'co' })";

/// The notice about failed calls. It is sent only once.
const REFUSED: &str =
    "co: Neovim refuses messages of the backend: restart Neovim if co was updated or removed";

/// Sends messages until Neovim has ended.
pub(super) async fn run(neovim: Neovim<Pipe>, outbox: Outbox, unfinished: UnfinishedMessage) {
    let mut next = Instant::now();
    let mut calls = NeovimCaller {
        neovim,
        unfinished,
        failed: false,
    };
    loop {
        outbox.filled().await;
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = outbox.urgent() => {}
        }
        let frame = outbox.take_frame();
        if frame.is_empty() {
            continue;
        }
        let started = Instant::now();
        if calls.send(frame).await.is_err() {
            return;
        }
        next = started + pause(started.elapsed());
    }
}

/// Returns the pause after a call. It is twice as long as the call, so that Neovim has time to draw.
fn pause(latency: Duration) -> Duration {
    (latency * 2).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Calls Lua functions in Neovim, one at a time.
struct NeovimCaller {
    neovim: Neovim<Pipe>,
    unfinished: UnfinishedMessage,
    /// True if a call has failed and the notice was sent.
    failed: bool,
}

/// The error that says that Neovim has ended.
struct Disconnected;

impl NeovimCaller {
    async fn send(&mut self, frame: Vec<ToEditor>) -> Result<(), Disconnected> {
        let messages = match encode(frame) {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%error, "a message could not be encoded");
                return Ok(());
            }
        };
        let received = self.lua(RECEIVE, messages).await?;
        if let Err(error) = received
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!(%error, "Neovim refuses messages; this is logged once");
            // If Neovim refuses this call too, the log still has the error.
            let _ = self.lua(WARN, REFUSED.into()).await?;
        }
        Ok(())
    }

    /// Calls Lua. The inner result is Lua's error if the call failed.
    async fn lua(&self, code: &str, argument: Value) -> Result<Result<(), Value>, Disconnected> {
        let args = vec![code.into(), Value::Array(vec![argument])];
        // Dropping a pending call breaks the connection, so this task must not be dropped.
        let called = self.neovim.call("nvim_exec_lua", args).await;
        self.unfinished.reset();
        match called {
            Ok(response) => Ok(response.map(drop)),
            Err(error) => {
                tracing::info!(%error, "neovim is gone");
                Err(Disconnected)
            }
        }
    }
}

/// Encodes messages as maps. The serializer of rmpv would encode structs as arrays without field names.
fn encode(frame: Vec<ToEditor>) -> serde_json::Result<Value> {
    let messages = frame.into_iter().map(message);
    messages
        .collect::<serde_json::Result<_>>()
        .map(Value::Array)
}

/// Encodes a message. Output and lines of buffers are moved without a conversion, because output may be large and lines may have
/// any bytes. Other messages are converted through JSON.
fn message(message: ToEditor) -> serde_json::Result<Value> {
    Ok(match message {
        ToEditor::RunOutput { run, patch } => map([
            ("type", "run_output".into()),
            ("run", run.into()),
            ("patch", output(patch)),
        ]),
        ToEditor::Block {
            chat,
            block,
            patch: Some(patch),
            done,
        } => map([
            ("type", "block".into()),
            ("chat", chat.into()),
            ("block", block.into()),
            ("patch", output(patch)),
            ("done", done.into()),
        ]),
        ToEditor::ChangeBuffer {
            request,
            chat,
            mut change,
        } => {
            let lines = replacements(std::mem::take(&mut change.replacements));
            let rest = ToEditor::ChangeBuffer {
                request,
                chat,
                change,
            };
            let mut message = value(serde_json::to_value(rest)?);
            if let Value::Map(fields) = &mut message {
                fields.retain(|(name, _)| name.as_str() != Some("replacements"));
                fields.push(("replacements".into(), lines));
            }
            message
        }
        other => value(serde_json::to_value(other)?),
    })
}

fn output(patch: ScreenPatch) -> Value {
    let styles = patch.styles.into_iter().map(|style| {
        map([
            ("line", style.line.into()),
            ("start", style.start.into()),
            ("end", style.end.into()),
            ("sgr", style.sgr.into()),
        ])
    });
    map([
        ("skipped", patch.skipped.into()),
        ("from", patch.from.into()),
        (
            "lines",
            Value::Array(patch.lines.into_iter().map(Value::from).collect()),
        ),
        ("styles", Value::Array(styles.collect())),
    ])
}

fn replacements(all: Vec<BufferReplacement>) -> Value {
    let line = |BufferLine(bytes): BufferLine| match String::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(other) => Value::Binary(other.into_bytes()),
    };
    let all = all.into_iter().map(|it| {
        map([
            ("start", it.start.into()),
            ("end", it.end.into()),
            (
                "lines",
                Value::Array(it.lines.into_iter().map(line).collect()),
            ),
        ])
    });
    Value::Array(all.collect())
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(fields.map(|(name, value)| (name.into(), value)).into())
}

/// Encodes JSON. Absent fields are left out: Lua would get `vim.NIL` for them.
fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(bool) => Value::Boolean(bool),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, field)| !field.is_null());
            let fields = fields.map(|(name, field)| (Value::from(name), value(field)));
            Value::Map(fields.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::BufferChange;
    use co_exec::Style;

    #[test]
    fn a_slow_editor_gets_fewer_frames() {
        assert_eq!(pause(Duration::from_millis(1)), MIN_INTERVAL);
        assert_eq!(pause(Duration::from_millis(40)), Duration::from_millis(80));
        assert_eq!(pause(Duration::from_secs(9)), MAX_INTERVAL);
    }

    #[test]
    fn a_message_is_a_map_with_its_type() {
        let frame = [ToEditor::Append {
            chat: 1,
            text: "hi".to_owned(),
        }];
        let value = encode(frame.into()).unwrap();
        let map = value[0].as_map().unwrap();
        let get = |key: &str| {
            map.iter()
                .find(|(k, _)| k.as_str() == Some(key))
                .map(|(_, v)| v.clone())
        };
        assert_eq!(get("type"), Some(Value::from("append")));
        assert_eq!(get("chat"), Some(Value::from(1)));
        assert_eq!(get("text"), Some(Value::from("hi")));
    }

    fn change(line: &[u8]) -> ToEditor {
        ToEditor::ChangeBuffer {
            request: 1,
            chat: None,
            change: BufferChange {
                file: "/a".to_owned(),
                tick: 2,
                replacements: vec![BufferReplacement {
                    start: 3,
                    end: 4,
                    lines: vec![BufferLine(line.to_owned())],
                }],
                final_newline: true,
            },
        }
    }

    #[test]
    fn a_line_of_a_buffer_keeps_its_bytes() {
        let value = encode(vec![change(b"a\xff")]).unwrap();
        let replacements = value[0]["replacements"].clone();
        let lines = replacements[0]["lines"].clone();
        assert_eq!(lines, Value::Array(vec![Value::Binary(b"a\xff".to_vec())]));
    }

    #[test]
    fn output_is_encoded_as_its_types_say() {
        let patch = ScreenPatch {
            skipped: 3,
            from: 2,
            lines: vec!["one".to_owned(), String::new()],
            styles: vec![Style {
                line: 0,
                start: 1,
                end: 2,
                sgr: "1;31".to_owned(),
            }],
        };
        let frame = vec![
            ToEditor::RunOutput {
                run: 7,
                patch: patch.clone(),
            },
            ToEditor::Block {
                chat: 1,
                block: 2,
                patch: Some(patch),
                done: true,
            },
            change(b"three"),
        ];
        let by_way_of_json = value(serde_json::to_value(&frame).unwrap());
        let sorted = |value: &Value| {
            let mut fields = value.as_map().unwrap().clone();
            fields.sort_by_key(|(name, _)| name.to_string());
            fields
        };
        let sorted = |messages: &Value| -> Vec<_> {
            messages.as_array().unwrap().iter().map(sorted).collect()
        };
        assert_eq!(sorted(&encode(frame).unwrap()), sorted(&by_way_of_json));
    }
}
