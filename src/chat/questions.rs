//! The open questions of one chat, or of all runs (`:Co!`) of the person. A question is withdrawn when it is dropped: its call
//! does not run.

use tokio::sync::oneshot;

use crate::editor::Editor;
use crate::protocol::{
    Answer, ChangesReview, FileChange, Question, QuestionAnswer, ReviewText, Scope, ToEditor,
    TrustQuestion,
};
use crate::tool::permissions::{Permissions, Reply};

/// The open questions of one chat, or of all runs (`:Co!`) of the person.
pub struct OpenQuestions {
    editor: Editor,
    open: Vec<OpenQuestion>,
}

struct OpenQuestion {
    id: u64,
    reply: oneshot::Sender<Reply>,
    /// The texts of the files that the person reviews.
    texts: Vec<ReviewText>,
    /// True if the model asks this question with the tool `ask_person`.
    has_choices: bool,
    /// True if the question is about a job or a command of the person. Such a question stays open when a turn ends.
    outlives_turn: bool,
}

impl OpenQuestions {
    pub fn new(editor: Editor) -> Self {
        Self {
            editor,
            open: Vec::new(),
        }
    }

    /// Asks the person a question. The question is withdrawn when its turn ends.
    pub fn put(&mut self, question: Question, reply: oneshot::Sender<Reply>) {
        self.put_until(question, reply, false);
    }

    /// Asks the person a question. If `outlives_turn` is true, the question stays open when a turn ends.
    pub fn put_until(
        &mut self,
        question: Question,
        reply: oneshot::Sender<Reply>,
        outlives_turn: bool,
    ) {
        self.open.push(OpenQuestion {
            id: question.id,
            reply,
            texts: texts(question.change.iter().flat_map(|it| &it.files)),
            has_choices: !question.choices.is_empty(),
            outlives_turn,
        });
        self.editor.tell(ToEditor::Question(Box::new(question)));
    }

    /// Asks the person about hosts, unless the person has allowed all of these hosts for the command or for this chat.
    pub fn put_about_hosts(
        &mut self,
        question: Question,
        reply: oneshot::Sender<Reply>,
        outlives_turn: bool,
        permissions: &Permissions,
    ) {
        if permissions.reach(&question) {
            // It fails if the command has ended.
            reply.send(Reply::Once).ok();
        } else {
            self.put_until(question, reply, outlives_turn);
        }
    }

    /// Lets the person review the changes of the chat.
    pub fn put_review(&mut self, review: ChangesReview, reply: oneshot::Sender<Reply>) {
        self.open.push(OpenQuestion {
            id: review.id,
            reply,
            texts: texts(&review.files),
            has_choices: false,
            outlives_turn: false,
        });
        self.editor.tell(ToEditor::Changes(review));
    }

    /// Asks the person whether co may send a text to the model.
    pub fn put_trust(&mut self, question: TrustQuestion, reply: oneshot::Sender<Reply>) {
        self.open.push(OpenQuestion {
            id: question.id,
            reply,
            texts: Vec::new(),
            has_choices: false,
            outlives_turn: false,
        });
        self.editor.tell(ToEditor::Trust(question));
    }

    /// Sends Lua the next part of a text under review, after its first `from` bytes. Does nothing if the question is not open.
    pub fn show_part(&self, id: u64, file: usize, from: usize) {
        let open = self.open.iter().find(|open| open.id == id);
        if let Some(text) = open.and_then(|open| open.texts.get(file)) {
            let (text, more) = text.part(from);
            self.editor.tell(ToEditor::ReviewPart {
                id,
                file,
                from,
                text: text.to_owned(),
                more,
            });
        }
    }

    /// Answers and closes a question. Does nothing if the question is not open, so a second answer is harmless.
    pub fn answer(&mut self, id: u64, reply: Reply) {
        let Some(index) = self.open.iter().position(|open| open.id == id) else {
            return;
        };
        let word = match &reply {
            Reply::Once => "approved",
            Reply::Always(_) => "always",
            Reply::Deny(_) => "denied",
            Reply::Edited(_) => "edited",
            Reply::Reviewed(_) => "reviewed",
            Reply::Chosen(_) => "chosen",
            Reply::Real => "approved",
            Reply::Try { .. } => "tried",
        };
        let heard = self.open.swap_remove(index).reply.send(reply).is_ok();
        self.settled(id, if heard { word } else { "withdrawn" });
    }

    /// Returns true if this question is open.
    pub fn is_open(&self, id: u64) -> bool {
        self.open.iter().any(|open| open.id == id)
    }

    /// Returns true if at least one question is open.
    pub fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns true if a question that the model asks with `ask_person` is open.
    pub fn any_choice(&self) -> bool {
        self.open.iter().any(|open| open.has_choices)
    }

    /// Withdraws a question that no longer needs an answer.
    pub fn withdraw(&mut self, id: u64) {
        if let Some(index) = self.open.iter().position(|open| open.id == id) {
            self.open.swap_remove(index);
            self.settled(id, "withdrawn");
        }
    }

    /// Withdraws every question that ends with its turn, except the questions with the ids in `kept`.
    pub fn withdraw_of_turn(&mut self, kept: &[Option<u64>]) {
        self.withdraw_unless(|open| open.outlives_turn || kept.contains(&Some(open.id)));
    }

    /// Withdraws all questions.
    pub fn withdraw_all(&mut self) {
        self.withdraw_unless(|_| false);
    }

    fn withdraw_unless(&mut self, stays: impl Fn(&OpenQuestion) -> bool) {
        let all = std::mem::take(&mut self.open).into_iter();
        let (open, withdrawn): (Vec<_>, Vec<_>) = all.partition(stays);
        self.open = open;
        for open in withdrawn {
            self.settled(open.id, "withdrawn");
        }
    }

    fn settled(&self, id: u64, decision: &str) {
        self.editor.tell(ToEditor::Settled {
            id,
            decision: decision.to_owned(),
        });
    }
}

/// Returns the texts of the files that the person reviews.
fn texts<'a>(files: impl IntoIterator<Item = &'a FileChange>) -> Vec<ReviewText> {
    files.into_iter().map(|file| file.text.clone()).collect()
}

impl From<QuestionAnswer> for Reply {
    fn from(answered: QuestionAnswer) -> Self {
        match answered.decision {
            Answer::Once => Self::Once,
            Answer::Always => Self::Always(answered.scope.unwrap_or(Scope::Command)),
            Answer::Deny => Self::Deny(answered.reason.filter(|reason| !reason.trim().is_empty())),
            Answer::Reviewed => Self::Reviewed(answered.hunks),
            Answer::Chosen => Self::Chosen(answered.chosen),
            Answer::Real => Self::Real,
            Answer::Try => Self::Try { later: false },
            Answer::TryFirst => Self::Try { later: true },
            Answer::Edited => match answered
                .command
                .filter(|command| !command.trim_ascii().is_empty())
            {
                Some(command) => Self::Edited(command),
                None => Self::Deny(None),
            },
        }
    }
}
