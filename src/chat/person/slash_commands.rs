//! The slash commands that the backend carries out. Nothing here is ever sent to a model.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use crate::chat::blocking::blocking;
use crate::chat::events::ChatEvent;
use crate::chat::jobs::Jobs;
use crate::chat::message::WorkDirs;
use crate::chat::retell;
use crate::chat::turn::{Permissions, Purpose};
use crate::chat::{Chat, ChatState};
use crate::checkpoint::By;
use crate::config::{ConfinementSetting, ModelChoice};
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use crate::store::{self, ChatSummary};
use crate::tool::judge::workspace_of;
use co_llm::transcript::{self, Item};
use co_llm::{Effort, UnknownEffort};

impl Chat {
    /// Carries out `/name args`.
    pub(in crate::chat) async fn command(&mut self, name: &str, args: &str) {
        match name {
            "model" => self.switch_model(args).await,
            "effort" => self.switch_effort(args),
            "retry" => self.retry().await,
            "continue" => self.go_on().await,
            "compact" => self.compact().await,
            "steer" => self.steer(),
            "cd" => self.change_directory(args).await,
            "chats" => self.list_chats().await,
            "resume" => self.resume(args).await,
            "rename" => self.rename(args).await,
            "delete" => self.delete(args).await,
            "fork" => self.fork().await,
            "export" => self.export(args).await,
            "rules" => self.rules(args).await,
            "sandbox" => self.say(self.sandbox_words().await),
            "undo" => self.undo(By::Undo, None, None),
            "redo" => self.undo(By::Redo, None, None),
            "rewind" => self.rewind(args).await,
            "changes" => self.changes().await,
            "usage" => self.say(self.usage_words()),
            other => self.complain(format!(
                "there is no command /{other}; :Co /help lists them"
            )),
        }
    }

    /// Returns how approved commands and commands that run unasked are confined, and the other choice.
    async fn sandbox_words(&self) -> String {
        let isolation = self.services.probe.isolation().await;
        let engine = isolation.check_engine().await;
        let inside = isolation.name() == ConfinementSetting::Docker.word();
        let approved = match (isolation.approved_words(), &engine) {
            (Ok(_), Err(fault)) if inside => format!("approved commands are refused: {fault}"),
            (Ok(words), _) => words,
            (Err(refused), _) => format!("approved commands are refused: {refused}"),
        };
        let other = match isolation.other() {
            Some(ConfinementSetting::Landlock) => {
                " (/sandbox landlock confines them to the workspace)"
            }
            Some(_) => " (/sandbox subprocess ends this)",
            None => "",
        };
        let container = match engine {
            _ if inside => String::new(),
            Ok(()) => "; /sandbox docker runs them in a container".to_owned(),
            Err(fault) => format!("; no container can run: {fault}"),
        };
        format!(
            "{approved}{other}; {}{container}",
            isolation.unasked_words()
        )
    }

    pub(in crate::chat) fn say(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Info, message);
    }

    pub(in crate::chat) fn complain(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Error, message);
    }

    async fn switch_model(&mut self, model: &str) {
        if model.is_empty() {
            return self.choose_model().await;
        }
        let choice = ModelChoice {
            model: Some(model.to_owned()),
            ..self.choice.clone()
        };
        self.switch(choice, |label| {
            format!("{label} answers from now on, and reads the chat from its start")
        });
    }

    /// Sets how hard the model thinks in this chat.
    fn switch_effort(&mut self, name: &str) {
        if name.is_empty() {
            let choices = Effort::NAMES.map(|name| Choice {
                label: name.to_owned(),
                value: name.to_owned(),
                confirm: None,
            });
            return self.offer("effort", "Effort", choices.to_vec());
        }
        match name.parse() {
            Ok(effort) => {
                let choice = ModelChoice {
                    effort: Some(effort),
                    ..self.choice.clone()
                };
                self.switch(choice, |label| {
                    format!("{label} thinks with effort {effort}")
                });
            }
            Err(UnknownEffort) => self.complain(format!("{UnknownEffort}, not {name}")),
        }
    }

    /// Answers with another choice from the next turn on. `words` makes the notice from the provider's label.
    fn switch(&mut self, choice: ModelChoice, words: impl FnOnce(&str) -> String) {
        match self.services.provider(&choice) {
            Ok(provider) => {
                self.say(words(&provider.label()));
                self.choice = choice;
                self.provider = Some(provider);
                self.show_state();
            }
            Err(fault) => self.show(ChatEvent::ProviderFailed(fault)),
        }
    }

    /// Asks the provider for its models in another task, so that a slow server delays nothing.
    async fn choose_model(&mut self) {
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(fault) => return self.show(ChatEvent::ProviderFailed(fault)),
        };
        let (services, chat) = (Arc::clone(&self.services), self.id);
        let (front_end, used) = (Arc::clone(&self.front_end), self.choice.clone());
        tokio::spawn(async move {
            match provider.models().await {
                Ok(models) => services.editor.tell(ToEditor::Choose {
                    chat,
                    name: "model".to_owned(),
                    title: "Model".to_owned(),
                    choices: models
                        .into_iter()
                        .map(|model| Choice {
                            value: services.config.model_name(&used, &model),
                            label: model,
                            confirm: None,
                        })
                        .collect(),
                }),
                Err(fault) => front_end.show(ChatEvent::ProviderFailed(fault)),
            }
        });
    }

    /// Asks the model for another answer to the last prompt. Calls that were carried out and their results stay.
    async fn retry(&mut self) {
        if self.may_start_turn() && self.drop_answer().await {
            self.start_turn(Purpose::Answer).await;
        }
    }

    /// Hides the last answer, if there is one, from the model. Returns false if the change could not
    /// be recorded.
    async fn drop_answer(&mut self) -> bool {
        let answered = transcript::has_answer(self.recorder.items());
        if !self.recorder.record(Item::Retried).await {
            return false;
        }
        if std::mem::take(&mut self.answering) {
            self.show(ChatEvent::AnswerDropped);
        }
        if answered {
            self.show(ChatEvent::AskedAgain);
        }
        true
    }

    /// Lets the model continue its last answer, or work with the results of its calls.
    async fn go_on(&mut self) {
        if !self.may_start_turn() {
            return;
        }
        let ready = match transcript::may_go_on(self.recorder.items()) {
            true => {
                let text = transcript::GO_ON.to_owned();
                let recorded = self.recorder.record(Item::Note { text, once: true }).await;
                if recorded {
                    self.show(ChatEvent::AskedToContinue);
                }
                recorded
            }
            false => self.drop_answer().await,
        };
        if ready {
            self.start_turn(Purpose::Answer).await;
        }
    }

    async fn compact(&mut self) {
        if self.may_start_turn() {
            self.start_turn(Purpose::Compact).await;
        }
    }

    /// Returns whether a turn may start without a new prompt; if not, says why.
    fn may_start_turn(&self) -> bool {
        let prompted = |item: &Item| matches!(item, Item::User { .. });
        if self.running.is_some() {
            self.complain("a turn is running; <C-c> cancels it");
        } else if !self.recorder.items().iter().any(prompted) {
            self.complain("nothing was said in this chat yet");
        } else {
            return true;
        }
        false
    }

    /// Returns a path of the person: relative to the chat's working directory, or with `~` to the home directory.
    fn named(&self, path: &str) -> PathBuf {
        let home = &self.services.places.home;
        match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None if path == "~" => home.clone(),
            None => self.dirs.cwd.join(path),
        }
    }

    async fn change_directory(&mut self, path: &str) {
        let asked = self.named(if path.is_empty() { "~" } else { path });
        let (there, now) = (asked.clone(), self.dirs.workspace.clone());
        // Its jobs and files are there.
        let held = self.services.probe.name() == ConfinementSetting::Docker.word();
        let found = blocking(move || {
            let cwd = there.canonicalize()?;
            if !cwd.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let inside = cwd.starts_with(&now);
            if held && !inside {
                return Err(io::Error::other(format!(
                    "the container of this chat has {} only",
                    now.display()
                )));
            }
            let workspace = if inside { now } else { workspace_of(&cwd) };
            io::Result::Ok(WorkDirs { workspace, cwd })
        });
        match found.await {
            Ok(dirs) => {
                self.dirs = dirs;
                self.show_state();
            }
            Err(why) => self.complain(format!(
                "cannot go to {}: {why}; choose a directory that exists",
                asked.display()
            )),
        }
    }

    async fn resume(&mut self, id: &str) {
        if self.running.is_some() {
            return self.complain("a turn is running; <C-c> cancels it, then /resume");
        }
        if self.typed.any_runs() {
            return self.complain("a command of yours still runs; <C-c> ends it, then /resume");
        }
        if id.is_empty() {
            return self.choose("resume", "Resume").await;
        }
        let services = Arc::clone(&self.services);
        if self.recorder.id().as_deref() == Some(id) {
            return self.say("that is this chat");
        }
        let id = id.to_owned();
        match blocking(move || services.store.open(&id)).await {
            Err(why) => {
                self.resume_failed = self.recorder.id().is_none();
                self.complain(why);
            }
            Ok((log, loaded)) => {
                self.resume_failed = false;
                self.drop_undo();
                self.undo = None;
                // They belong to the chat that the person leaves.
                self.end_jobs().await;
                self.jobs = Jobs::new(Arc::clone(&self.services), self.id, &loaded.items);
                let resumed = retell::resumed(&loaded.items, self.services.config.show_reasoning);
                self.usage = transcript::used(&loaded.items);
                self.turn_usage = transcript::used_last(&loaded.items);
                // These belong to the other chat.
                self.permissions = Permissions::default();
                self.range = None;
                self.resume_choice(&loaded.items);
                self.recorder.resume(log, loaded.items);
                self.show_resumed(resumed);
                for notice in loaded.notices {
                    self.services.notice(NoticeLevel::Warn, notice);
                }
            }
        }
    }

    /// Goes back to the model that the person chose for a chat. Without its profile, the chat would go to another provider.
    fn resume_choice(&mut self, items: &[Item]) {
        let (choice, profile) = ModelChoice::recorded(items);
        self.choice = choice;
        self.provider = None;
        let lost = profile.filter(|_| self.services.config.profile_name(&self.choice).is_none());
        if let Some(profile) = lost {
            self.choice.model = None;
            let text = format!(
                "this chat was held with the profile {profile}, which is not set; the next prompt sends it to the usual provider"
            );
            self.services.notice(NoticeLevel::Warn, text);
        }
    }

    /// Shows another transcript in place of the one on the screen.
    pub(in crate::chat) fn show_resumed(&mut self, resumed: ChatEvent) {
        // The client gets the file's id before the text.
        self.set_state(ChatState::Idle, String::new());
        self.answering = matches!(resumed, ChatEvent::Resumed { answered: true, .. });
        self.show(resumed);
    }

    /// Lets the person choose a chat of the workspace.
    async fn choose(&self, name: &str, title: &str) {
        match self.kept_chats().await {
            Ok(choices) if choices.is_empty() => self.say("no chat of this workspace is kept yet"),
            Ok(choices) => self.offer(name, title, choices),
            Err(why) => self.complain(why),
        }
    }

    /// Sends the chats of the workspace to the client, which adds those that it shows.
    async fn list_chats(&self) {
        match self.kept_chats().await {
            Ok(choices) => self.offer("chats", "Chats", choices),
            Err(why) => self.complain(why),
        }
    }

    /// Returns the chats of the workspace, those changed last first.
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

    /// Lets the person choose the arguments of a slash command.
    pub(in crate::chat) fn offer(&self, name: &str, title: &str, choices: Vec<Choice>) {
        self.services.editor.tell(ToEditor::Choose {
            chat: self.id,
            name: name.to_owned(),
            title: title.to_owned(),
            choices,
        });
    }

    async fn rename(&mut self, title: &str) {
        let (Some(log), false) = (self.recorder.log(), title.is_empty()) else {
            return self.complain("say /rename and a new title, in a chat that has begun");
        };
        let title = title.to_owned();
        let wanted = title.clone();
        let renamed = blocking(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.rename(&wanted)
        });
        match renamed.await {
            Ok(()) => {
                self.recorder.renamed(title);
                self.show_state();
                self.say("renamed");
            }
            Err(why) => self.complain(why),
        }
    }

    async fn delete(&mut self, id: &str) {
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
    async fn fork(&mut self) {
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

    /// Continues in a copy of the first `upto` items and of the changes of the turns before `end`. If that fails, notifies
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
                true
            }
        }
    }

    async fn export(&mut self, path: &str) {
        let name = match path {
            "" => format!(
                "co-{}.md",
                self.recorder.id().unwrap_or_else(|| "chat".to_owned())
            ),
            path => path.to_owned(),
        };
        let file = self.named(&name);
        let text = store::export_markdown(self.recorder.items());
        let target = file.clone();
        let written = blocking(move || {
            let mut file = std::fs::File::create_new(&target)?;
            std::io::Write::write_all(&mut file, text.as_bytes())
        })
        .await;
        match written {
            Ok(()) => self.say(format!("exported to {}", file.display())),
            Err(why) => self.complain(format!(
                "cannot export to {}: {why}; name another file with /export",
                file.display()
            )),
        }
    }

    fn usage_words(&self) -> String {
        format!("{}; the last turn {}", self.usage, self.turn_usage)
    }
}

/// Returns the time since `then` in words.
fn age(then: SystemTime) -> String {
    let seconds = SystemTime::now()
        .duration_since(then)
        .unwrap_or_default()
        .as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
