//! The slash commands that the backend carries out. Their text is never sent to a model.

use std::io;
use std::path::PathBuf;

use crate::blocking::blocking;
use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::chat::message::WorkDirs;
use crate::chat::turn::Purpose;
use crate::checkpoint::By;
use crate::config::ConfinementSetting;
use crate::network::try_ways;
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use crate::store;
use crate::trial::Layer;
use crate::workspace::judge::workspace_of;
use co_exec::beneath::Dir;
use co_llm::transcript::{self, Item};

impl Chat {
    /// Carries out `/name args`.
    pub(in crate::chat) async fn command(&mut self, name: &str, args: &str) {
        match name {
            "model" => self.switch_model(args),
            "effort" => self.switch_effort(args),
            "agent" => self.switch_agent(args),
            "mode" => self.switch_mode(args),
            "retry" => self.retry().await,
            "continue" => self.go_on().await,
            "compact" => self.compact().await,
            "plan" => self.open_plan(),
            "steer" => self.steer().await,
            "cd" => self.change_directory(args).await,
            "chats" => self.list_chats().await,
            "resume" => self.resume(args).await,
            "rename" => self.rename(args).await,
            "delete" => self.delete(args).await,
            "fork" => self.fork().await,
            "export" => self.export(args).await,
            "rules" => self.rules(args).await,
            "skills" => self.list_skills(args).await,
            "mcp" => self.list_servers(args.trim()).await,
            "sandbox" if args.trim() == "clean" => self.clear_trials().await,
            "sandbox" => self.say(self.sandbox_words().await),
            "real" => self.run_tried().await,
            "undo" => self.undo(By::Undo, None, None),
            "redo" => self.undo(By::Redo, None, None),
            "rewind" => self.rewind(args).await,
            "changes" => self.changes().await,
            "review" => self.review(args).await,
            "usage" => self.say(self.usage_words()),
            other => self.complain(format!(
                "there is no command /{other}; :Co /help lists them"
            )),
        }
    }

    /// Returns the line about the confinement of approved and of unasked commands, with the other choices.
    async fn sandbox_words(&self) -> String {
        let isolation = self.services.probe.isolation().await;
        let inside = isolation.in_container();
        let engine = match inside {
            true => isolation.try_limits().await,
            false => isolation.check_engine().await.map(|()| String::new()),
        };
        let approved = match (isolation.approved_words(), &engine) {
            (Ok(_), Err(fault)) if inside => format!("approved commands are refused: {fault}"),
            (Ok(words), Ok(tried)) if inside => format!("{words}; {tried}"),
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
            Ok(_) => "; /sandbox docker runs them in a container".to_owned(),
            Err(fault) => format!("; no container can run: {fault}"),
        };
        let dir = self.services.places.trials.clone();
        let left = blocking(move || Ok::<_, String>(Layer::bytes_left(&dir)));
        let left = match left.await {
            Ok(0) | Err(_) => String::new(),
            Ok(bytes) => {
                let size = co_text::size_text(bytes);
                format!("; trials left {size} for later ones (/sandbox clean removes it)")
            }
        };
        let (trials, hosts) = match isolation.confines() && !inside {
            true => (self.trial_words().await, self.host_words().await),
            false => Default::default(),
        };
        format!(
            "{approved}{other}; {}{trials}{hosts}{container}{left}",
            isolation.unasked_words()
        )
    }

    /// Returns the reason why trials are refused, as the end of a sentence; empty if they are not.
    async fn trial_words(&self) -> String {
        let judge = self.services.judge(&self.dirs.workspace);
        let checked = blocking(move || judge.check_trial()).await;
        checked.map_or_else(|why| format!("; {why}"), |()| String::new())
    }

    /// Tries how a command reaches hosts. Returns the result as the end of a sentence.
    async fn host_words(&self) -> String {
        let tried = try_ways(&self.services.executor).await;
        let words = tried.map_or_else(|why| why, str::to_owned);
        format!("; {words}")
    }

    /// Removes the files that trials left for later ones.
    async fn clear_trials(&self) {
        let dir = self.services.places.trials.clone();
        let launcher = self.services.executor.launcher();
        let removals = launcher.map(|it| it.removals().clone()).unwrap_or_default();
        match blocking(move || Layer::clear(&dir, &removals)).await {
            Ok(cleared) => self.say(cleared.sentence()),
            Err(why) => self.complain(format!("what trials left cannot be removed: {why}")),
        }
    }

    pub(in crate::chat) fn say(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Info, message);
    }

    pub(in crate::chat) fn complain(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Error, message);
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

    /// Lets the model continue its last answer, or work with the results of its last calls.
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

    /// Returns true if a turn may start without a new prompt. Else tells the person the reason.
    fn may_start_turn(&self) -> bool {
        let prompted = |item: &Item| matches!(item, Item::User { .. });
        if self.is_only_for_models("this command") {
        } else if self.running.is_some() {
            self.complain("a turn is running; <C-c> cancels it");
        } else if !self.recorder.items().iter().any(prompted) {
            self.complain("nothing was said in this chat yet");
        } else {
            return true;
        }
        false
    }

    /// Resolves a path that the person typed. It is relative to the chat's working directory; `~` is the home directory.
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
        let held = self.services.probe.in_container();
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
                self.say(format!("the chat is in {} now", self.dirs.cwd.display()));
            }
            Err(why) => self.complain(format!(
                "cannot go to {}: {why}; choose a directory that exists",
                asked.display()
            )),
        }
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
            let above = target.parent().unwrap_or(&target).canonicalize()?;
            let dir = Dir::open(&above)?;
            let (unfinished, mut file) = dir.make_unfinished(".co-", 0o666)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            unfinished.create(target.file_name().unwrap_or_default())
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
        format!(
            "{}; the last turn {}",
            self.status.usage, self.status.turn_usage
        )
    }
}
