//! The slash commands that the backend carries out. co never sends the text of a slash command to a model.
//!
//! [`Chat::command`] is the table of these commands. The commands that start a turn, or continue in another transcript, are
//! methods here. The others belong to the part of the chat that they change.

use std::sync::Arc;

use super::events::ChatEvent;
use super::jobs::Jobs;
use super::person::drafts::show_prompts;
use super::person::kept_chats::{self, OpenedChat};
use super::person::typed_commands::TypedRequest;
use super::person::{plan, rule_list, sandbox};
use super::prompt_queue::Steered;
use super::rewind::{Rewind, RewindPoint};
use super::turn::TurnGoal;
use super::undo::{self, UndoRequest, UndoTask};
use super::{Chat, logins, retell, servers, skills};
use crate::agent::{AgentOption, IdleAgent};
use crate::checkpoint::ChangeCause;
use crate::protocol::{ChatState, NoticeLevel, ToEditor};
use crate::tool::permissions::Permissions;
use co_llm::transcript::{self, Item};

impl Chat {
    /// Carries out `/name args`.
    pub(super) async fn command(&mut self, name: &str, args: &str) {
        match name {
            "model" => self.switch_model(args),
            "effort" => self.switch_effort(args),
            "agent" => self.switch_agent(args),
            "mode" => self.switch_mode(args),
            "session" => self.switch_session(args),
            "retry" => self.retry().await,
            "continue" => self.go_on().await,
            "compact" => self.compact().await,
            "plan" => plan::open(&self.context, self.recorder.items()),
            "steer" => self.steer().await,
            "cd" => self.change_directory(args).await,
            "chats" => kept_chats::list(&self.context).await,
            "resume" => self.resume(args).await,
            "rename" => self.rename(args).await,
            "delete" => kept_chats::delete(&self.context, &self.recorder, args).await,
            "fork" => self.fork().await,
            "export" => kept_chats::export(&self.context, &self.recorder, args).await,
            "rules" => self.rules(args).await,
            "skills" => skills::list(&self.context, args).await,
            "mcp" => self.tool_servers(args.trim()).await,
            "sandbox" => sandbox::sandbox(&self.context, args).await,
            "real" => self.run_tried().await,
            "undo" => self.undo(UndoRequest::last(ChangeCause::Undo)),
            "redo" => self.undo(UndoRequest::last(ChangeCause::Redo)),
            "rewind" => self.rewind(args).await,
            "changes" => self.changes().await,
            "review" => self.review(args).await,
            "usage" => self.context.say(self.status.usage_words()),
            other => self.context.complain(format!(
                "there is no command /{other}; :Co /help lists them"
            )),
        }
    }

    /// Carries out `/mcp`.
    async fn tool_servers(&mut self, args: &str) {
        let (context, servers) = (&self.context, &self.servers);
        match args.split_once(' ') {
            Some(("login", name)) => {
                logins::log_in(context, servers, &self.for_commands, name.trim());
            }
            Some(("logout", name)) => logins::log_out(context, servers, name.trim()).await,
            _ => servers::list_or_fetch(context, servers, args).await,
        }
    }

    fn switch_model(&mut self, args: &str) {
        if self.model.agent().is_some() {
            return self.set_agent_option(AgentOption::Model, args);
        }
        let in_turn = self.running.is_some();
        self.model.switch_model(&self.context, args, in_turn);
        self.show_state();
    }

    fn switch_effort(&mut self, args: &str) {
        if self.model.agent().is_some() {
            return self.set_agent_option(AgentOption::Effort, args);
        }
        self.model.switch_effort(&self.context, args);
        self.show_state();
    }

    /// Carries out `/mode`, which works only in the chat of an agent.
    fn switch_mode(&mut self, args: &str) {
        match self.model.agent() {
            Some(_) => self.set_agent_option(AgentOption::Mode, args),
            None => self
                .context
                .complain("a model has no modes: /mode is about an agent, which /agent chooses"),
        }
    }

    /// Carries out `/session`, which works only in the chat of an agent.
    fn switch_session(&mut self, id: &str) {
        let context = &self.context;
        let spec = match self.model.agent_spec(&context.services) {
            Some(Ok(spec)) => spec,
            Some(Err(why)) => return context.complain(why),
            None => {
                return context.complain(
                    "a model has no sessions: /session is about an agent, which /agent chooses; /resume goes on with a chat",
                );
            }
        };
        if self.running.is_some() || self.recorder.has_prompt() {
            return context.complain(format!(
                "this chat has begun: start another with :Co /new and /agent {}, then choose a session",
                spec.name
            ));
        }
        self.agent.switch_session(context, spec, id);
    }

    fn set_agent_option(&mut self, option: AgentOption, value: &str) {
        let name = self.model.agent().unwrap_or_default();
        self.agent.set_option(&self.context, name, (option, value));
        self.show_state();
    }

    fn switch_agent(&mut self, name: &str) {
        if self.running.is_some() || self.recorder.has_prompt() {
            return self.context.complain(
                "this chat has begun: start another with :Co /new, then choose its agent",
            );
        }
        self.agent.switch(&self.context, &mut self.model, name);
        self.show_state();
    }

    /// Asks the model for another answer to the last prompt. The calls that were carried out, and their results, stay in the
    /// transcript.
    async fn retry(&mut self) {
        if self.may_start_turn() && self.recorder.drop_answer().await {
            self.start_turn(TurnGoal::Answer).await;
        }
    }

    /// Lets the model continue its last answer, or use the results of its last calls.
    async fn go_on(&mut self) {
        if !self.may_start_turn() {
            return;
        }
        let ready = match transcript::may_go_on(self.recorder.items()) {
            true => self.recorder.ask_to_go_on().await,
            false => self.recorder.drop_answer().await,
        };
        if ready {
            self.start_turn(TurnGoal::Answer).await;
        }
    }

    async fn compact(&mut self) {
        if self.may_start_turn() {
            self.start_turn(TurnGoal::Compact).await;
        }
    }

    /// Returns true if a turn may start without a new prompt. Otherwise tells the person the reason and returns false.
    fn may_start_turn(&self) -> bool {
        let context = &self.context;
        if let Some(agent) = self.model.agent() {
            context.complain(format!(
                "{agent} works in this chat, and this command is about a model: write it a prompt instead"
            ));
        } else if self.running.is_some() {
            context.complain("a turn is running; <C-c> cancels it");
        } else if !self.recorder.has_prompt() {
            context.complain("nothing was said in this chat yet: write a prompt first");
        } else {
            return true;
        }
        false
    }

    /// Sends the newest queued prompt with the next request of the running turn. If no turn runs, starts a turn with the oldest
    /// queued prompt.
    async fn steer(&mut self) {
        if self.queue.is_held()
            && let Some(prompt) = self.queue.next()
        {
            return self.prompt(prompt).await;
        }
        match self.queue.steer_newest() {
            Steered::Taken => {
                self.steer_agent();
                self.show_state();
            }
            Steered::NeedsOwnTurn => self.context.complain(
                "the queued prompt needs a turn of its own: it is about lines of a range, or about a plan",
            ),
            Steered::NoPrompt => self
                .context
                .say("no prompt waits; /steer {text} sends one into the turn"),
        }
    }

    async fn change_directory(&mut self, path: &str) {
        if let Some(dirs) = self.context.new_directories(path).await {
            self.context.dirs = dirs;
            if !self.recorder.has_prompt()
                && let Some(Ok(spec)) = self.model.agent_spec(&self.context.services)
            {
                self.agent.start_early(&self.context, spec);
            }
            self.show_state();
            let cwd = self.context.dirs.cwd.display();
            self.context.say(format!("the chat is in {cwd} now"));
        }
    }

    async fn rename(&mut self, title: &str) {
        if kept_chats::rename(&self.context, &mut self.recorder, title).await {
            self.show_state();
            self.context.say("renamed");
        }
    }

    async fn rules(&mut self, value: &str) {
        let removed = rule_list::rules(&self.context, &mut self.permissions, value);
        let Some(words) = removed.await else {
            return;
        };
        if let Some(running) = &self.running {
            running.cancel.cancel();
            self.context.say(
                "the running turn was cancelled, since it had that rule; /retry continues without it",
            );
        }
        self.show_state();
        self.context.say(words);
    }

    /// Runs the command of the chat's last trial for real.
    async fn run_tried(&mut self) {
        if self.running.is_some() {
            return self
                .context
                .complain("a turn is running: /real runs the command of the last trial after it");
        }
        match TypedRequest::tried(self.recorder.items(), &self.context).await {
            Ok(request) => self.start_typed(request).await,
            Err(why) => self.context.complain(why),
        }
    }

    async fn resume(&mut self, id: &str) {
        if self.running.is_some() {
            let text = "a turn is running; <C-c> cancels it, then /resume";
            return self.context.complain(text);
        }
        if self.typed.any_runs() {
            let text = "a command of yours still runs; <C-c> ends it, then /resume";
            return self.context.complain(text);
        }
        if self.queue.is_held() {
            return self.context.complain(
                "prompts of this chat wait; /steer sends the first, /stop drops them, then /resume",
            );
        }
        if id.is_empty() {
            return kept_chats::choose(&self.context, "resume", "Resume").await;
        }
        if self.recorder.id().as_deref() == Some(id) {
            return self.context.say("that is this chat");
        }
        match kept_chats::open(&self.context, &self.tools, id).await {
            Ok(opened) => self.go_on_with(opened).await,
            Err(why) => {
                self.resume_failed = self.recorder.id().is_none();
                self.context.complain(why);
            }
        }
    }

    /// Continues with the opened chat in place of this one.
    async fn go_on_with(&mut self, opened: OpenedChat) {
        let OpenedChat { log, loaded, shown } = opened;
        let services = &self.context.services;
        self.resume_failed = false;
        self.undo.forget(&mut self.questions);
        // They belong to the chat that the person leaves.
        self.jobs
            .end_all(self.app.is_cancelled(), &mut self.recorder)
            .await;
        self.jobs = Jobs::new(Arc::clone(services), self.context.id, &loaded.items);
        // These belong to the other chat.
        self.permissions = Permissions::default();
        self.range = None;
        self.model.resume_choice(services, &loaded.items);
        self.status.usage = transcript::used(&loaded.items);
        self.recorder.resume(log, loaded.items);
        self.show_resumed(shown).await;
        show_prompts(&self.context, &self.recorder).await;
        for notice in loaded.notices {
            self.context.services.notice(NoticeLevel::Warn, notice);
        }
    }

    /// Makes a copy of the transcript and continues in the copy. The original stays as it is.
    async fn fork(&mut self) {
        if self.recorder.id().is_none() || self.running.is_some() {
            let text = "a chat is forked when it has begun and no turn runs";
            return self.context.complain(text);
        }
        if self.jobs.any_runs() {
            return self.context.complain(
                "jobs of this chat still run, and a copy would know nothing of their ends; end them in :Co /jobs, then /fork",
            );
        }
        let all = self.recorder.items().len();
        if self.go_on_in_copy(all, usize::MAX).await {
            self.show_state();
            self.context
                .say("this chat is now a copy; /resume finds the original");
        }
    }

    /// Continues in a copy of the transcript that has the first `upto` items, and the recorded changes of files of the turns
    /// before turn `end`. Returns false, after a notice, if the copy fails.
    async fn go_on_in_copy(&mut self, upto: usize, end: usize) -> bool {
        let copied = kept_chats::copy(&self.context, &mut self.recorder, (upto, end)).await;
        // Its session knows more than the copy, and belongs to the original.
        if copied && let Some(agent) = self.model.agent() {
            let (agent, session) = (agent.to_owned(), None);
            (self.recorder.record(Item::AgentSession { agent, session })).await;
            self.agent.process = IdleAgent::None;
        }
        copied
    }

    /// Carries out `/rewind [number [both|chat|files]]`.
    async fn rewind(&mut self, args: &str) {
        if self.running.is_some() {
            let text = "a turn is running; <C-c> cancels it, then /rewind";
            return self.context.complain(text);
        }
        match Rewind::parse(&self.context, self.recorder.items(), args) {
            None => {}
            Some(Rewind::Chat(point)) => self.rewind_chat(point).await,
            Some(Rewind::Files(point)) => self.undo(UndoRequest {
                by: ChangeCause::Undo,
                from: Some(point.turn),
                then: None,
            }),
            Some(Rewind::Both(point)) if self.may_rewind_chat() => self.undo(UndoRequest {
                by: ChangeCause::Undo,
                from: Some(point.turn),
                then: Some(point),
            }),
            Some(Rewind::Both(_)) => {}
        }
    }

    /// Returns true if no job of the chat runs. Otherwise tells the person to end the jobs first and returns false.
    fn may_rewind_chat(&self) -> bool {
        let runs = self.jobs.any_runs();
        if runs {
            self.context
                .complain("jobs of this chat still run; end them in :Co /jobs, then /rewind");
        }
        !runs
    }

    /// Continues in a copy of the transcript that ends before a prompt. This prompt becomes the draft.
    pub(super) async fn rewind_chat(&mut self, point: RewindPoint) {
        let RewindPoint { item, turn, text } = point;
        if self.recorder.id().is_none()
            || !self.may_rewind_chat()
            || !self.go_on_in_copy(item, turn).await
        {
            return;
        }
        self.undo.forget(&mut self.questions);
        let thoughts = self.context.services.config.show_reasoning;
        let resumed = retell::resumed(self.recorder.items(), thoughts, &self.tools);
        self.show_resumed(resumed).await;
        self.context.services.editor.tell(ToEditor::Unsent {
            chat: self.context.id,
            text,
        });
        self.context
            .say("the chat continues before this prompt; /resume finds the original");
    }

    /// Carries out `/undo` or `/redo`.
    fn undo(&mut self, request: UndoRequest) {
        if !self.takes_undo() || request.then.is_some() && self.running.is_some() {
            return self.context.complain("a turn is running; <C-c> cancels it");
        }
        // A new task would drop the one that asks, unseen. The person may expect that /redo reverses it.
        if let Some(command) = self.undo.unanswered(&self.questions)
            && request.by == ChangeCause::Redo
            && command != "/redo"
        {
            let text = format!("{command} waits for your answer; :Co /approve goes to it");
            return self.context.complain(text);
        }
        match self.undo_task(request) {
            Some(task) => drop(tokio::spawn(task.run())),
            None => self.context.say(undo::NO_CHANGES),
        }
    }

    /// Fills the quickfix list with the files that the chat changed. Opens their review too, unless a turn of a model runs.
    async fn changes(&mut self) {
        if undo::fill_list(&self.context, self.recorder.id()).await
            && self.takes_undo()
            && let Some(task) = self.undo_task(UndoRequest::last(ChangeCause::TakenBack))
        {
            tokio::spawn(task.review_all());
        }
    }

    /// Opens the review of the changes that the person has neither accepted nor rejected yet. With the arguments `base NAME`,
    /// opens the review of the changes since a branch.
    async fn review(&mut self, args: &str) {
        if !self.takes_undo() {
            return self.context.complain("a turn is running; <C-c> cancels it");
        }
        let base = match args.split_once(' ').unwrap_or((args, "")) {
            ("", _) => None,
            ("base", name) => Some(name.trim().to_owned()),
            _ => {
                let text = "/review takes no words but `base` and a branch";
                return self.context.complain(text);
            }
        };
        // The chat keeps the answers, also if it has not begun.
        let title = format!("/review {args}");
        if base.is_some() && !self.recorder.ready(&self.context.dirs, &title).await {
            return;
        }
        let base = base.map(|name| (self.context.dirs.workspace.clone(), name));
        match self.undo_task(UndoRequest::last(ChangeCause::TakenBack)) {
            Some(task) => self.undo.review(task, base),
            None => self.context.say(undo::NO_CHANGES),
        }
    }

    /// Returns a new task that takes changes back. The task replaces an earlier one. Returns `None` if the chat has no changes.
    fn undo_task(&mut self, request: UndoRequest) -> Option<UndoTask> {
        // A chat without a transcript has no earlier task.
        self.undo.cancel(&mut self.questions);
        self.undo
            .begin(request, &self.context, &self.recorder, &self.jobs)
    }

    /// Replaces the transcript on the screen by another one.
    async fn show_resumed(&mut self, resumed: ChatEvent) {
        self.status.resume(self.recorder.items());
        // The agent knows another chat.
        self.agent.reset(&self.context, self.model.agent());
        // Lua gets the file's id before the text.
        self.set_state(ChatState::Idle, String::new());
        if let Err(why) = self.recorder.show_resumed(resumed).await {
            self.context.complain(why);
        }
        self.count_open();
    }
}
