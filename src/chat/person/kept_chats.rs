//! The chats that are kept: `/chats` (`lua/co/chat/chat_list.lua` adds the open ones), `/resume`, `/rename`, `/delete` and `/fork`.

use std::sync::Arc;

use crate::blocking::blocking;
use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::chat::jobs::Jobs;
use crate::chat::person::agent::ChatAgent;
use crate::chat::retell;
use crate::protocol::{ChatState, Choice, NoticeLevel};
use crate::store::{self, ChatSummary};
use crate::tool::permissions::Permissions;
use co_llm::transcript::{self, Item};
use co_text::age;

impl Chat {
    pub(in crate::chat) async fn resume(&mut self, id: &str) {
        if self.running.is_some() {
            return self.complain("a turn is running; <C-c> cancels it, then /resume");
        }
        if self.typed.any_runs() {
            return self.complain("a command of yours still runs; <C-c> ends it, then /resume");
        }
        if self.queue.is_held() {
            return self.complain(
                "prompts of this chat wait; /steer sends the first, /stop drops them, then /resume",
            );
        }
        if id.is_empty() {
            return self.choose("resume", "Resume").await;
        }
        let services = Arc::clone(&self.services);
        if self.recorder.id().as_deref() == Some(id) {
            return self.say("that is this chat");
        }
        let id = id.to_owned();
        let tools = self.tools.clone();
        let open = move || {
            let (log, loaded) = services.store.open(&id)?;
            let resumed = retell::resumed(&loaded.items, services.config.show_reasoning, &tools);
            Ok::<_, store::Error>((log, loaded, resumed))
        };
        match blocking(open).await {
            Err(why) => {
                self.resume_failed = self.recorder.id().is_none();
                self.complain(why);
            }
            Ok((log, loaded, resumed)) => {
                self.resume_failed = false;
                self.drop_undo();
                self.undo = None;
                // They belong to the chat that the person leaves.
                self.end_jobs().await;
                self.jobs = Jobs::new(Arc::clone(&self.services), self.id, &loaded.items);
                self.status.usage = transcript::used(&loaded.items);
                self.status.turn_usage = transcript::used_last(&loaded.items);
                // These belong to the other chat.
                self.permissions = Permissions::default();
                self.range = None;
                self.resume_choice(&loaded.items);
                self.recorder.resume(log, loaded.items);
                self.show_resumed(resumed).await;
                self.show_prompts().await;
                for notice in loaded.notices {
                    self.services.notice(NoticeLevel::Warn, notice);
                }
            }
        }
    }

    /// Shows another transcript in place of the one on the screen.
    pub(in crate::chat) async fn show_resumed(&mut self, resumed: ChatEvent) {
        self.find_plan();
        // The agent knows another chat.
        self.agent = ChatAgent::default();
        self.status.plan_from = 0;
        self.tell_agent_state();
        // Lua gets the file's id before the text.
        self.set_state(ChatState::Idle, String::new());
        self.answering = matches!(resumed, ChatEvent::Resumed { answered: true, .. });
        let front_end = Arc::clone(&self.front_end);
        // To make a long text takes a while.
        let show = move || {
            front_end.show(resumed);
            Ok::<_, String>(())
        };
        if let Err(why) = blocking(show).await {
            self.complain(why);
        }
        self.count_open();
    }

    /// Lets the person choose a chat of the workspace.
    async fn choose(&self, name: &str, title: &str) {
        match self.kept_chats().await {
            Ok(choices) if choices.is_empty() => self.say("no chat of this workspace is kept yet"),
            Ok(choices) => self.offer(name, title, choices),
            Err(why) => self.complain(why),
        }
    }

    /// Sends the saved chats of the workspace to Lua, which adds the chats that it has open.
    pub(in crate::chat) async fn list_chats(&self) {
        match self.kept_chats().await {
            Ok(choices) => self.offer("chats", "Chats", choices),
            Err(why) => self.complain(why),
        }
    }

    /// Returns the saved chats of the workspace, the last changed one first.
    async fn kept_chats(&self) -> Result<Vec<Choice>, String> {
        let services = Arc::clone(&self.services);
        let workspace = self.dirs.workspace.clone();
        let list = move || Ok::<_, store::Error>(services.store.list(Some(&workspace)));
        let choice = |entry: ChatSummary| Choice {
            label: format!("{} · {}", entry.title, age(entry.modified)),
            value: entry.id,
            confirm: None,
        };
        let found = blocking(list).await?;
        Ok(found.into_iter().map(choice).collect())
    }

    pub(in crate::chat) async fn rename(&mut self, title: &str) {
        let renamed = match title {
            "" => Ok(false),
            title => self.recorder.rename(title).await,
        };
        match renamed {
            Ok(false) => self.complain("say /rename and a new title, in a chat that has begun"),
            Ok(true) => {
                self.show_state();
                self.say("renamed");
            }
            Err(why) => self.complain(why),
        }
    }

    pub(in crate::chat) async fn delete(&mut self, id: &str) {
        if id.is_empty() {
            return self.choose("delete", "Delete for good").await;
        }
        let services = Arc::clone(&self.services);
        if self.recorder.id().as_deref() == Some(id) {
            return self.complain("that is this chat; delete it from another one");
        }
        let id = id.to_owned();
        let delete = move || {
            services.store.delete(&id)?;
            services.checkpoints.remove(&id);
            Ok::<_, store::Error>(())
        };
        match blocking(delete).await {
            Ok(()) => self.say("deleted"),
            Err(why) => self.complain(why),
        }
    }

    /// Continues in a copy of the transcript. The original stays as it is.
    pub(in crate::chat) async fn fork(&mut self) {
        let (Some(id), None) = (self.recorder.id(), &self.running) else {
            return self.complain("a chat is forked when it has begun and no turn runs");
        };
        if self.jobs.any_runs() {
            return self.complain(
                "jobs of this chat still run, and a copy would know nothing of their ends; end them in :Co /jobs, then /fork",
            );
        }
        let all = self.recorder.items().len();
        if self.go_on_in_copy(id, all, usize::MAX).await {
            self.show_state();
            self.say("this chat is now a copy; /resume finds the original");
        }
    }

    /// Continues in a copy. It has the first `upto` items, and the changes of the turns before `end`. If that fails, notifies
    /// the person and returns false.
    pub(in crate::chat) async fn go_on_in_copy(
        &mut self,
        id: String,
        upto: usize,
        end: usize,
    ) -> bool {
        let services = Arc::clone(&self.services);
        let fork = move || {
            let log = services.store.fork(&id, upto)?;
            services.checkpoints.copy(&id, log.id(), end);
            Ok::<_, store::Error>(log)
        };
        match blocking(fork).await {
            Err(why) => {
                self.complain(why);
                false
            }
            Ok(log) => {
                let items = self.recorder.items()[..upto].to_vec();
                self.recorder.resume(log, items);
                // Its session knows more than the copy, and belongs to the original.
                if let Some(agent) = self.model.agent().map(str::to_owned) {
                    let session = None;
                    (self.recorder.record(Item::AgentSession { agent, session })).await;
                    self.agent.process = None;
                }
                true
            }
        }
    }
}
