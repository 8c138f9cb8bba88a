//! Saves the draft of the next prompt with the transcript, and restores the draft and the earlier prompts of a resumed chat.

use std::time::Instant;

use crate::blocking::blocking;
use crate::chat::chat_context::ChatContext;
use crate::chat::record::Recorder;
use crate::protocol::{NoticeLevel, ToEditor};
use co_llm::transcript::Item;

/// The largest number of earlier prompts that a resumed chat gets.
const MOST_PROMPTS: usize = 200;
const MOST_BYTES: usize = 1 << 20;

/// Prepares to save a draft with the transcript. If there is no transcript and `begins` is true, begins one. Returns the draft
/// without secret values. Returns `None`, perhaps after a notice, if the draft cannot be saved.
pub(in crate::chat) async fn prepare(
    context: &ChatContext,
    recorder: &mut Recorder,
    keys: &[String],
    (text, begins): (&str, bool),
) -> Option<String> {
    if recorder.id().is_none() && (!begins || text.trim().is_empty()) {
        return None;
    }
    let workspace = &context.dirs.workspace;
    let redacted = context
        .services
        .redact_for_model(workspace, text, keys, Instant::now());
    let text = match redacted.await {
        Ok(redacted) => redacted.text,
        Err(why) => {
            is_lost(context, &why);
            return None;
        }
    };
    recorder.ready(&context.dirs, &text).await.then_some(text)
}

/// Saves the draft with the transcript.
pub(in crate::chat) async fn save(context: &ChatContext, transcript: String, text: String) {
    let store = context.services.store.clone();
    if let Err(why) = blocking(move || store.save_draft(&transcript, &text)).await {
        is_lost(context, &why);
    }
}

fn is_lost(context: &ChatContext, why: &str) {
    let message = format!("the draft of the prompt could not be kept: {why}");
    context.services.notice(NoticeLevel::Warn, message);
}

/// Sends the earlier prompts and the draft of a resumed chat to Lua.
pub(in crate::chat) async fn show_prompts(context: &ChatContext, recorder: &Recorder) {
    let Some(transcript) = recorder.id() else {
        return;
    };
    let mut room = MOST_BYTES;
    let prompts = recorder.items().iter().rev();
    let prompts = prompts.filter_map(|item| match item {
        Item::User { text, .. } => Some(text),
        _ => None,
    });
    let newest = prompts.take(MOST_PROMPTS).map_while(|text| {
        room = room.checked_sub(text.len())?;
        Some(text.clone())
    });
    let mut prompts: Vec<String> = newest.collect();
    prompts.reverse();
    let (store, id) = (context.services.store.clone(), transcript.clone());
    let draft = blocking(move || Ok::<_, String>(store.draft(&id))).await;
    context.services.editor.tell(ToEditor::Prompts {
        chat: context.id,
        transcript,
        prompts,
        draft: draft.ok().flatten(),
    });
}
