//! The contexts of a prompt that co reads from the workspace: `@file:`, `@diff`, `@git:`, `@search:` and `@lsp:`, and the check
//! of the files whose text the editor sends.
//!
//! co reads these files with the reader and the judge of the file tools, and runs git at the read-only level. The model may not
//! read some files itself, such as files outside the workspace. co asks the person before it sends such a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::chat_context::ChatContext;
use super::questions::OpenQuestions;
use super::skills;
use crate::blocking::blocking;
use crate::protocol::{
    ContextQuery, ContextRead, ContextRequest, ServerPlace, ToEditor, TrustQuestion,
};
use crate::services::Services;
use crate::tool::permissions::Reply;
use crate::tool::query::FileQuery;
use crate::tool::server::{ChatServers, ServerText, StartedWord, WantedItem};
use crate::workspace::files::attached::{self, Attached};
use crate::workspace::files::places::{PlaceReader, bounded, real_paths};
use crate::workspace::files::{Deadline, FileScope, PathFilter};
use crate::workspace::judge::{Judge, workspace_of};
use crate::workspace::own_git::{GitCommand, GitError, OwnGit, PLAIN_DIFF};
use co_text::{one_line, start_of};

/// The largest number of bytes of one context. The editor cuts a longer text.
const LONGEST: usize = 512 << 10;
/// The largest number of lines that co reads of a definition.
const DEFINITION_LINES: usize = 40;
/// The largest number of bytes of a text that the question about the text shows.
const LONGEST_SHOWN: usize = 64 << 10;
/// The capacity of the channel of questions. A reader waits until the chat has received its question.
const MAX_WAITING: usize = 1;

/// The files that the person allowed this chat to send, and the questions about other files.
pub(super) struct ContextReads {
    shared: Shared,
    questions: mpsc::Receiver<ContextQuestion>,
    /// The ids of the questions that may still be open.
    open: Vec<u64>,
}

#[derive(Clone)]
struct Shared {
    /// The canonical paths of the files that the person allowed the chat to send.
    allowed: Arc<Mutex<HashSet<PathBuf>>>,
    ask: mpsc::Sender<ContextQuestion>,
}

/// A question that asks whether co may send a text to the model.
pub(super) struct ContextQuestion {
    question: TrustQuestion,
    reply: oneshot::Sender<Reply>,
}

/// The reason why a context cannot be read.
enum NoContext {
    /// The reason in a few words for the person.
    Because(String),
    /// The person cancelled the question.
    Cancelled,
}

impl From<String> for NoContext {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

impl From<GitError> for NoContext {
    fn from(error: GitError) -> Self {
        Self::Because(error.to_string())
    }
}

impl ContextReads {
    pub(super) fn new() -> Self {
        let (ask, questions) = mpsc::channel(MAX_WAITING);
        let allowed = Arc::default();
        Self {
            shared: Shared { allowed, ask },
            questions,
            open: Vec::new(),
        }
    }

    /// Reads a context in another task, and sends the context to the editor.
    pub(super) fn start(
        &self,
        context: &ChatContext,
        servers: &ChatServers,
        request: ContextRequest,
    ) {
        let cwd = PathBuf::from(&request.cwd);
        let reader = ContextReader {
            word: request.word,
            judge: context.services.judge(&workspace_of(&cwd)),
            cwd,
            services: Arc::clone(&context.services),
            shared: self.shared.clone(),
            servers: servers.clone(),
            workspace: context.dirs.workspace.clone(),
            cancel: context.cancel.clone(),
        };
        let number = request.request;
        tokio::spawn(async move {
            let editor = reader.services.editor.clone();
            let read = match reader.read(request.query).await {
                Ok(read) => read,
                Err(NoContext::Because(why)) => ContextRead {
                    problem: Some(one_line(&why)),
                    ..ContextRead::default()
                },
                Err(NoContext::Cancelled) => ContextRead {
                    cancelled: true,
                    ..ContextRead::default()
                },
            };
            editor.tell(ToEditor::ContextRead {
                request: number,
                read,
            });
        });
    }

    /// Asks the person whether co may send a text to the model.
    pub(super) fn ask(&mut self, asked: ContextQuestion, questions: &mut OpenQuestions) {
        self.open.retain(|id| questions.is_open(*id));
        self.open.push(asked.question.id);
        questions.put_trust(asked.question, asked.reply);
    }

    /// Withdraws the questions about contexts. The prompts that contain these contexts go back to the person.
    pub(super) fn cancel(&mut self, questions: &mut OpenQuestions) {
        for id in std::mem::take(&mut self.open) {
            questions.withdraw(id);
        }
    }

    /// Waits for the next question about a file.
    pub(super) async fn question(&mut self) -> ContextQuestion {
        match self.questions.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

/// Reads one context.
struct ContextReader {
    /// The context as written in the prompt, such as `@file:README.md`.
    word: String,
    cwd: PathBuf,
    judge: Arc<Judge>,
    services: Arc<Services>,
    shared: Shared,
    servers: ChatServers,
    /// The workspace of the chat. It determines the tool servers.
    workspace: PathBuf,
    cancel: CancellationToken,
}

impl ContextReader {
    async fn read(&self, query: ContextQuery) -> Result<ContextRead, NoContext> {
        match query {
            ContextQuery::File { path } => self.file(self.cwd.join(path)).await,
            ContextQuery::Text { paths, text, lines } => {
                let cwd = self.cwd.clone();
                let files = blocking(move || {
                    let paths = paths
                        .iter()
                        .map(|path| attached::real_path(&cwd.join(path)));
                    Ok::<_, String>(paths.collect::<Vec<_>>())
                });
                self.check(&files.await?, text.len(), &text).await?;
                self.lines_of_part(lines).await
            }
            ContextQuery::Diff => self.diff().await,
            ContextQuery::Commit { revision } => {
                let words = ["show"].into_iter().chain(PLAIN_DIFF);
                let words = words.chain(["--end-of-options", &revision]);
                let text = self.git().run(self.git_command(words)).await?;
                Ok(text_read(text))
            }
            ContextQuery::Search { text } => self.search(text).await,
            ContextQuery::Skill { name } => self.skill(&name).await,
            ContextQuery::Resource { server, uri } => {
                self.of_server(&server, WantedItem::Resource(&uri)).await
            }
            ContextQuery::ServerPrompt {
                server,
                name,
                arguments,
            } => {
                let wanted = WantedItem::Prompt(&name, &arguments);
                self.of_server(&server, wanted).await
            }
            ContextQuery::ServerArguments {
                server,
                name,
                arguments,
                text,
            } => {
                let started = StartedWord::Argument {
                    prompt: &name,
                    given: &arguments,
                    word: &text,
                };
                let words = self.servers.complete(&server, started).await;
                Ok(text_read(words.join("\n")))
            }
            ContextQuery::ServerAddresses { server, uri } => {
                let started = StartedWord::Address(&uri);
                let words = self.servers.complete(&server, started).await;
                Ok(text_read(words.join("\n")))
            }
            ContextQuery::Places {
                definitions,
                references,
                more,
            } => self.places(definitions, references, more).await,
        }
    }

    /// Returns the whole lines around a selected text, without secret values, if the lines contain a secret. The selected text
    /// alone may contain half of a secret, which the redactor would not recognize. If the lines contain no secret, returns no
    /// text.
    async fn lines_of_part(&self, lines: Option<String>) -> Result<ContextRead, NoContext> {
        let Some(lines) = lines else {
            return Ok(ContextRead::default());
        };
        let (services, root) = (&self.services, self.judge.root());
        let redacted = services
            .redact_for_model(root, &lines, &[], Instant::now())
            .await?;
        Ok(match redacted.hidden {
            0 => ContextRead::default(),
            _ => ContextRead {
                text: Some(redacted.text),
                note: Some("whole lines, because they have a secret".to_owned()),
                ..ContextRead::default()
            },
        })
    }

    async fn file(&self, path: PathBuf) -> Result<ContextRead, NoContext> {
        let attach = move || attached::read(&path, LONGEST + 1);
        let (real, attached) = blocking(attach).await?;
        let (size, shown) = match &attached {
            Attached::Text { text, size } => (*size, text.as_str()),
            Attached::Image { size, .. } => (*size, "(an image)"),
        };
        self.check(&[real], size, shown).await?;
        Ok(match attached {
            Attached::Text { text, size } => ContextRead {
                size: Some(size),
                ..text_read(text)
            },
            Attached::Image { image, .. } => ContextRead {
                image: Some(image),
                ..ContextRead::default()
            },
        })
    }

    /// Returns the reason why the model may not read a file. Returns `None` if the model may read it, or if the person has
    /// allowed this chat to send it.
    async fn problem(&self, real: &Path) -> Result<Option<String>, String> {
        if self.shared.allowed.lock().contains(real) {
            return Ok(None);
        }
        let (judge, path) = (Arc::clone(&self.judge), real.to_owned());
        blocking(move || Ok::<_, String>(judge.reading_problem(&path))).await
    }

    /// Asks the person whether co may send the text of `files`, if the model itself may not read one of these files. Does not ask
    /// again about files that the person has allowed this chat to send.
    async fn check(&self, files: &[PathBuf], size: usize, text: &str) -> Result<(), NoContext> {
        let mut problems = Vec::new();
        for file in files {
            if let Some(why) = self.problem(file).await? {
                problems.push((shown(file), why));
            }
        }
        let mut problems = problems.into_iter();
        let Some((path, why)) = problems.next() else {
            return Ok(());
        };
        let mut notes = vec![why];
        notes.extend(problems.map(|(path, why)| format!("{path}: {why}")));
        let start = start_of(text, LONGEST_SHOWN);
        if start.len() < text.len() {
            notes.push(format!(
                "only its first {} KiB are shown here",
                LONGEST_SHOWN >> 10
            ));
        }
        let question = TrustQuestion {
            id: self.services.id(),
            name: one_line(&self.word),
            path,
            size,
            text: co_text::printable(&start.replace("\r\n", "\n")),
            notes,
            slash: None,
            context: true,
        };
        let (reply, answer) = oneshot::channel();
        let asked = self.shared.ask.send(ContextQuestion { question, reply });
        // It fails if the chat has ended.
        asked.await.ok();
        match answer.await {
            Ok(Reply::Once) => {
                self.shared.allowed.lock().extend(files.iter().cloned());
                Ok(())
            }
            Ok(_) => Err(NoContext::Because("you refused it".to_owned())),
            Err(_) => Err(NoContext::Cancelled),
        }
    }

    async fn diff(&self) -> Result<ContextRead, NoContext> {
        let git = self.git();
        let (secrets, pathspecs) = git.without_secrets().await?;
        let words = ["diff", "HEAD"].into_iter().chain(PLAIN_DIFF);
        let words = words.chain(pathspecs.iter().map(String::as_str));
        let text = match git.run(self.git_command(words)).await {
            Err(GitError::Failed { .. })
                if matches!(git.has_commit(self.cwd.clone()).await, Ok(false)) =>
            {
                return Err("there is no commit yet".to_owned().into());
            }
            text => text?,
        };
        if text.is_empty() {
            return Err("git has no changes".to_owned().into());
        }
        Ok(ContextRead {
            note: left_out(&secrets),
            ..text_read(text)
        })
    }

    /// Returns the text of a skill, and the path of the directory with its other files.
    async fn skill(&self, name: &str) -> Result<ContextRead, NoContext> {
        let skills = skills::for_model(&self.services, self.judge.root()).await?;
        let Some(skill) = skills.into_iter().find(|it| it.name == name) else {
            return Err("there is no such skill that you trust: /skills lists them"
                .to_owned()
                .into());
        };
        Ok(ContextRead {
            note: Some("a skill that the person trusts: follow it".to_owned()),
            ..text_read(skill.whole_text())
        })
    }

    /// Returns a resource or a prompt of a tool server. Starts the server if it does not run.
    async fn of_server(
        &self,
        name: &str,
        wanted: WantedItem<'_>,
    ) -> Result<ContextRead, NoContext> {
        let read = self
            .servers
            .read(&self.services, &self.workspace, name, wanted);
        let read = self.cancel.run_until_cancelled(read).await;
        let ServerText { text, image } = read.ok_or(NoContext::Cancelled)??;
        Ok(ContextRead {
            image,
            note: Some("of a tool server".to_owned()),
            ..text_read(text)
        })
    }

    async fn search(&self, wanted: String) -> Result<ContextRead, NoContext> {
        let query = FileQuery::search_for(wanted);
        let path = self.cwd.clone();
        let path = blocking(move || path.canonicalize()).await?;
        let scope = FileScope {
            open: self.services.buffers.modified_below(&path).await,
            path,
            editor: None,
            allowed: self.readable().await?,
            bytes: LONGEST,
            end: Deadline::new(self.cancel.clone()),
        };
        let found = blocking(move || query.run(&scope)).await?;
        match found.text.is_empty() {
            true => Err("no line contains it".to_owned().into()),
            false => Ok(text_read(format!("{}[{}]\n", found.text, found.summary))),
        }
    }

    /// Returns the lines of the definitions of a name, and the lines that refer to the name. Asks the person about definitions in
    /// files that the model may not read, and leaves out references in such files.
    async fn places(
        &self,
        definitions: Vec<ServerPlace>,
        references: Vec<ServerPlace>,
        more: usize,
    ) -> Result<ContextRead, NoContext> {
        let cwd = self.cwd.clone();
        let cwd = blocking(move || cwd.canonicalize()).await?;
        let definitions = real_places(definitions).await?;
        let references = real_places(references).await?;
        let files = definitions.iter().chain(&references);
        let open = self.services.buffers.read(files.map(|it| it.0.as_path()));
        let mut reader = PlaceReader::new(open.await);
        let (mut text, mut left_out) = (String::new(), Vec::new());
        for (file, row) in definitions {
            let shown = shown_below(&cwd, &file);
            let lines;
            let place = vec![(file.clone(), row)];
            (reader, lines) = read_lines(reader, place, DEFINITION_LINES, &cwd).await?;
            match lines.is_empty() {
                true => left_out.push(format!("{shown} cannot be read")),
                false => match self
                    .check(std::slice::from_ref(&file), lines.len(), &lines)
                    .await
                {
                    Ok(()) => text.push_str(&lines),
                    Err(NoContext::Because(why)) => left_out.push(format!("{shown}: {why}")),
                    Err(NoContext::Cancelled) => return Err(NoContext::Cancelled),
                },
            }
        }
        let (mut readable, mut hidden) = (Vec::new(), 0);
        for places in references.chunk_by(|one, next| one.0 == next.0) {
            match self.problem(&places[0].0).await? {
                Some(_) => hidden += places.len(),
                None => readable.extend_from_slice(places),
            }
        }
        let (_, found) = read_lines(reader, readable, 1, &cwd).await?;
        if !found.is_empty() {
            text.push_str(&format!("References:\n{found}"));
        }
        if text.is_empty() {
            return Err(left_out.join(", ").into());
        }
        for (count, why) in [
            (hidden, "outside the workspace or secret"),
            (more, "too many"),
        ] {
            if count > 0 {
                left_out.push(format!("{count} references, {why}"));
            }
        }
        let note = format!("left out: {}", left_out.join("; "));
        Ok(ContextRead {
            note: (!left_out.is_empty()).then(|| one_line(&note)),
            ..text_read(text)
        })
    }

    async fn readable(&self) -> Result<PathFilter, String> {
        let judge = Arc::clone(&self.judge);
        blocking(move || Ok::<_, String>(judge.readable())).await
    }

    fn git(&self) -> OwnGit {
        self.services.own_git(&self.judge)
    }

    fn git_command<'a>(&self, words: impl Iterator<Item = &'a str>) -> GitCommand {
        GitCommand {
            cwd: self.cwd.clone(),
            arguments: words.map(str::to_owned).collect(),
            variables: Vec::new(),
            needed: LONGEST,
        }
    }
}

/// Returns the canonical path and the row of each place.
async fn real_places(places: Vec<ServerPlace>) -> Result<Vec<(PathBuf, usize)>, String> {
    blocking(move || {
        let rows = places.iter().map(|place| place.row);
        Ok::<_, String>(real_paths(&places).into_iter().zip(rows).collect())
    })
    .await
}

/// Returns `count` lines of each file in `places`, beginning at the row of the place. Each line begins with the path of its file
/// relative to `cwd`, and with its line number.
async fn read_lines(
    mut reader: PlaceReader,
    places: Vec<(PathBuf, usize)>,
    count: usize,
    cwd: &Path,
) -> Result<(PlaceReader, String), String> {
    let cwd = cwd.to_owned();
    blocking(move || {
        let mut text = String::new();
        for (file, row) in places {
            let shown = shown_below(&cwd, &file);
            for (line, number) in reader.lines(&file, row, count).zip(row + 1..) {
                text.push_str(&format!("{shown}:{number}:{}\n", bounded(line)));
            }
        }
        Ok::<_, String>((reader, text))
    })
    .await
}

fn shown_below(cwd: &Path, file: &Path) -> String {
    shown(file.strip_prefix(cwd).unwrap_or(file))
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

fn text_read(text: String) -> ContextRead {
    ContextRead {
        text: Some(text),
        ..ContextRead::default()
    }
}

/// Returns a note about the secret files that the diff leaves out; none if it leaves out no file.
pub(super) fn left_out(secrets: &[PathBuf]) -> Option<String> {
    let names: Vec<_> = secrets
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    (!names.is_empty()).then(|| one_line(&format!("without {}", names.join(", "))))
}
