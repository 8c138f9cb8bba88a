//! The saved chats: `/chats` (`lua/co/chat/chat_list.lua` adds the open ones), `/resume`, `/rename`, `/delete`, `/fork` and
//! `/export`.

use std::io::Write as _;
use std::sync::Arc;

use crate::blocking::blocking;
use crate::chat::chat_context::ChatContext;
use crate::chat::events::ChatEvent;
use crate::chat::record::Recorder;
use crate::chat::retell;
use crate::protocol::Choice;
use crate::store::{self, ChatSummary, LoadedChat, TranscriptWriter};
use crate::tool::ToolSet;
use co_exec::beneath::Dir;
use co_text::age;

/// A saved chat that has been opened to be continued.
pub(in crate::chat) struct OpenedChat {
    pub log: TranscriptWriter,
    pub loaded: LoadedChat,
    /// The event that shows the chat.
    pub shown: ChatEvent,
}

/// Opens a saved chat.
///
/// # Errors
/// A sentence for the person: the chat cannot be read, or another process has opened it.
pub(in crate::chat) async fn open(
    context: &ChatContext,
    tools: &ToolSet,
    id: &str,
) -> Result<OpenedChat, String> {
    let services = Arc::clone(&context.services);
    let (id, tools) = (id.to_owned(), tools.clone());
    let open = move || {
        let (log, loaded) = services.store.open(&id)?;
        let shown = retell::resumed(&loaded.items, services.config.show_reasoning, &tools);
        Ok::<_, store::Error>(OpenedChat { log, loaded, shown })
    };
    blocking(open).await
}

/// Lets the person choose a chat of the workspace as the argument of a slash command.
pub(in crate::chat) async fn choose(context: &ChatContext, name: &str, title: &str) {
    match kept(context).await {
        Ok(choices) if choices.is_empty() => context.say("no chat of this workspace is kept yet"),
        Ok(choices) => context.offer(name, title, choices),
        Err(why) => context.complain(why),
    }
}

/// Sends the saved chats of the workspace to Lua. Lua adds its open chats.
pub(in crate::chat) async fn list(context: &ChatContext) {
    match kept(context).await {
        Ok(choices) => context.offer("chats", "Chats", choices),
        Err(why) => context.complain(why),
    }
}

/// Returns the saved chats of the workspace. The chat that changed last comes first.
async fn kept(context: &ChatContext) -> Result<Vec<Choice>, String> {
    let services = Arc::clone(&context.services);
    let workspace = context.dirs.workspace.clone();
    let list = move || Ok::<_, store::Error>(services.store.list(Some(&workspace)));
    let choice = |entry: ChatSummary| Choice {
        label: format!("{} · {}", entry.title, age(entry.modified)),
        value: entry.id,
        confirm: None,
    };
    let found = blocking(list).await?;
    Ok(found.into_iter().map(choice).collect())
}

/// Changes the title of the chat. Returns false, after a notice, if that fails.
pub(in crate::chat) async fn rename(
    context: &ChatContext,
    recorder: &mut Recorder,
    title: &str,
) -> bool {
    let renamed = match title {
        "" => Ok(false),
        title => recorder.rename(title).await,
    };
    match renamed {
        Ok(true) => return true,
        Ok(false) => context.complain("say /rename and a new title, in a chat that has begun"),
        Err(why) => context.complain(why),
    }
    false
}

/// Deletes another chat. Without an `id`, lets the person choose the chat.
pub(in crate::chat) async fn delete(context: &ChatContext, recorder: &Recorder, id: &str) {
    if id.is_empty() {
        return choose(context, "delete", "Delete for good").await;
    }
    if recorder.id().as_deref() == Some(id) {
        return context.complain("that is this chat; delete it from another one");
    }
    let services = Arc::clone(&context.services);
    let id = id.to_owned();
    let delete = move || {
        services.store.delete(&id)?;
        services.checkpoints.remove(&id);
        Ok::<_, store::Error>(())
    };
    match blocking(delete).await {
        Ok(()) => context.say("deleted"),
        Err(why) => context.complain(why),
    }
}

/// Copies the first `upto` items of the transcript, and the recorded changes of files of the turns before turn `end`, to a new
/// chat. Then the recorder continues in the new chat. Returns false, after a notice, if that fails.
pub(in crate::chat) async fn copy(
    context: &ChatContext,
    recorder: &mut Recorder,
    (upto, end): (usize, usize),
) -> bool {
    let Some(id) = recorder.id() else {
        return false;
    };
    let services = Arc::clone(&context.services);
    let fork = move || {
        let log = services.store.fork(&id, upto)?;
        services.checkpoints.copy(&id, log.id(), end);
        Ok::<_, store::Error>(log)
    };
    match blocking(fork).await {
        Err(why) => {
            context.complain(why);
            false
        }
        Ok(log) => {
            let items = recorder.items()[..upto].to_vec();
            recorder.resume(log, items);
            true
        }
    }
}

/// Writes the chat as markdown to a file.
pub(in crate::chat) async fn export(context: &ChatContext, recorder: &Recorder, path: &str) {
    let name = match path {
        "" => format!(
            "co-{}.md",
            recorder.id().unwrap_or_else(|| "chat".to_owned())
        ),
        path => path.to_owned(),
    };
    let file = context.named(&name);
    let text = store::export_markdown(recorder.items());
    let target = file.clone();
    let written = blocking(move || {
        let above = target.parent().unwrap_or(&target).canonicalize()?;
        let dir = Dir::open(&above)?;
        let (unfinished, mut file) = dir.make_unfinished(".co-", 0o666)?;
        file.write_all(text.as_bytes())?;
        unfinished.create(target.file_name().unwrap_or_default())
    })
    .await;
    match written {
        Ok(()) => context.say(format!("exported to {}", file.display())),
        Err(why) => context.complain(format!(
            "cannot export to {}: {why}; name another file with /export",
            file.display()
        )),
    }
}
