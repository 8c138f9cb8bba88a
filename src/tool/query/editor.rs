//! The tool `editor_context`: asks the person's Neovim and its language servers about the workspace.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::protocol::{EditorEntry, EditorQuery, EditorTopic};
use crate::tool::schema::{self, BadCall, arguments};
use crate::workspace::files::EDITOR as NAME;
use crate::workspace::files::attached;
use crate::workspace::files::limits::{EditorFacts, FileQueryError, FileQueryResult, FileScope};
use crate::workspace::files::places::{self, PlaceReader};
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_text::plural;

/// The arguments of an `editor_context` call, as [`spec`] describes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditorArguments {
    what: EditorTopic,
    path: Option<String>,
    name: Option<String>,
    line: Option<u64>,
}

/// A query about the editor.
#[derive(Debug, Clone, PartialEq)]
pub struct EditorContext {
    what: EditorTopic,
    path: Option<String>,
    name: Option<String>,
    line: Option<u64>,
}

/// Returns the description of `editor_context` for a model.
pub(super) fn spec() -> ToolSpec {
    let description = "Returns what the person's editor knows. `state`: their file, cursor and visible lines, and the open \
        files. `diagnostics`: of language servers and linters, errors first. `quickfix`: the quickfix list. `symbols`: of \
        a file. `definition` and `references`: of a name that stands in a file. The last three ask the language server \
        and need a file that is open in the editor. Runs at once and changes nothing. Secrets and places outside the \
        workspace are left out.";
    let properties = json!({
        "what": {
            "type": "string",
            "enum": ["state", "diagnostics", "quickfix", "symbols", "definition", "references"],
        },
        "path": {
            "type": "string",
            "description": "The file, or for `diagnostics` and `quickfix` also a directory. Without it, they are of the \
                whole workspace.",
        },
        "name": {
            "type": "string",
            "description": "For `definition` and `references`: the name, as it stands in the file.",
        },
        "line": {
            "type": "integer",
            "minimum": 1,
            "description": "The line in which `name` stands. Default: the first that the language server knows it in.",
        },
    });
    schema::spec(NAME, description.to_owned(), properties, &["what"])
}

impl EditorContext {
    pub(super) fn parse(call: &Call) -> Result<Self, BadCall> {
        let EditorArguments {
            what,
            path,
            name,
            line,
        } = arguments(call)?;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let query = Self {
            what,
            path: given(path),
            name: given(name),
            line,
        };
        let missing = match (&query.path, &query.name) {
            (None, _) if query.asks_servers() => "path",
            (_, None) if query.looks_up() => "name",
            _ => return Ok(query),
        };
        Err(BadCall(format!(
            "{NAME} {} needs `{missing}`.",
            query.topic()
        )))
    }

    /// Returns true if the query is about a name in a file.
    fn looks_up(&self) -> bool {
        matches!(self.what, EditorTopic::Definition | EditorTopic::References)
    }

    /// Returns true if the query asks language servers about a file.
    fn asks_servers(&self) -> bool {
        self.looks_up() || self.what == EditorTopic::Symbols
    }

    fn topic(&self) -> &'static str {
        match self.what {
            EditorTopic::State => "state",
            EditorTopic::Diagnostics => "diagnostics",
            EditorTopic::Quickfix => "quickfix",
            EditorTopic::Symbols => "symbols",
            EditorTopic::Definition => "definition",
            EditorTopic::References => "references",
            EditorTopic::Rename => "rename",
        }
    }

    /// Returns the path for the judge. It is the working directory if the call names no path.
    pub(super) fn path(&self) -> &str {
        match self.what {
            EditorTopic::State => ".",
            _ => self.path.as_deref().unwrap_or("."),
        }
    }

    pub(super) fn line(&self) -> String {
        let topic = self.topic();
        let name = self.name.as_deref().filter(|_| self.looks_up());
        match (name, self.path()) {
            (Some(name), path) => format!("{NAME} {topic} \"{name}\" in {path}"),
            (None, ".") => format!("{NAME} {topic}"),
            (None, path) => format!("{NAME} {topic} {path}"),
        }
    }

    /// Returns the message to the editor. `path` is the canonical path of the query.
    pub fn message(&self, path: &Path) -> EditorQuery {
        let file = path.to_str().filter(|_| self.asks_servers());
        EditorQuery {
            topic: self.what,
            file: file.map(str::to_owned),
            name: self.name.clone().filter(|_| self.looks_up()),
            line: self.line.filter(|_| self.looks_up()),
            new_name: None,
        }
    }

    pub(super) fn run(&self, scope: &FileScope) -> Result<FileQueryResult, FileQueryError> {
        let Some(EditorFacts { answer, cwd }) = &scope.editor else {
            return Err(FileQueryError("The editor was not asked.".to_owned()));
        };
        if let Some(problem) = &answer.problem {
            let path = self.path();
            return Err(FileQueryError(format!(
                "Cannot ask about {path}: {problem}."
            )));
        }
        let below = self.path.is_some()
            && matches!(self.what, EditorTopic::Diagnostics | EditorTopic::Quickfix);
        let mut known: HashMap<PathBuf, bool> = HashMap::new();
        let mut text = String::new();
        let (mut listed, mut rest, mut hidden) = (0, answer.more, 0);
        let mut allowed = |file: &Path| match known.get(file) {
            Some(known) => *known,
            None => {
                let allowed = scope.allowed.allows(file);
                known.insert(file.to_owned(), allowed);
                allowed
            }
        };
        let mut reader = PlaceReader::new(scope.open.clone());
        let named = answer.places.iter().map(|place| {
            let file = attached::real_path(place.path());
            let line = match allowed(&file) {
                true => reader.lines(&file, place.row, 1).next().unwrap_or_default(),
                false => "",
            };
            let column = place.unit.bytes(line, place.character) as u64 + 1;
            EditorEntry {
                line: Some(place.row as u64 + 1),
                column: Some(column),
                text: places::bounded(line).into_bytes(),
                file: file.into_os_string().into_vec(),
            }
        });
        let named: Vec<_> = named.collect();
        for entry in answer.entries.iter().chain(&named) {
            let file = Path::new(OsStr::from_bytes(&entry.file));
            if below && !file.starts_with(&scope.path) {
                continue;
            }
            if !allowed(file) {
                hidden += 1;
                continue;
            }
            let shown = file.strip_prefix(cwd).unwrap_or(file).display().to_string();
            let mut line = co_text::printable(&shown);
            for number in [entry.line, entry.column].into_iter().flatten() {
                line.push_str(&format!(":{number}"));
            }
            let words = String::from_utf8_lossy(&entry.text);
            line.push_str(&format!(": {}\n", words.trim().replace(['\n', '\r'], " ")));
            if text.len() + line.len() > scope.bytes {
                rest += 1;
                continue;
            }
            listed += 1;
            text.push_str(&line);
        }
        let mut summary = plural(listed, "entry", "entries");
        if rest > 0 {
            summary.push_str(&format!("; {rest} more left out"));
        }
        if hidden > 0 {
            summary.push_str(&format!(
                "; {hidden} left out, outside the workspace or secret"
            ));
        }
        Ok(FileQueryResult {
            text,
            summary,
            short: String::new(),
            whole: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::buffers::OpenBuffers;
    use crate::protocol::EditorAnswer;
    use crate::workspace::files::Deadline;

    fn parse(arguments: serde_json::Value) -> Result<EditorContext, String> {
        let call = Call::new("1", NAME, arguments);
        EditorContext::parse(&call).map_err(|bad| bad.0)
    }

    fn entry(file: &str, text: &str) -> EditorEntry {
        EditorEntry {
            file: file.into(),
            line: Some(3),
            column: Some(1),
            text: text.into(),
        }
    }

    fn run(arguments: serde_json::Value, answer: EditorAnswer, bytes: usize) -> [String; 2] {
        let query = parse(arguments).unwrap();
        let result = query.run(&FileScope {
            path: Path::new("/work").join(query.path()),
            open: OpenBuffers::new(),
            editor: Some(EditorFacts {
                answer,
                cwd: "/work".into(),
            }),
            allowed: Arc::new(|path: &Path| path.starts_with("/work")),
            bytes,
            end: Deadline::new(CancellationToken::new()),
        });
        result.map_or_else(
            |why| [String::new(), why.0],
            |result| [result.text, result.summary],
        )
    }

    #[test]
    fn calls_are_parsed_and_shown() {
        let check = |arguments, expected: &str| {
            let line = parse(arguments).map_or_else(|why| why, |query| query.line());
            assert_eq!(line, expected);
        };
        check(
            json!({"what": "state", "path": "a", "name": "", "line": 0}),
            "editor_context state",
        );
        check(
            json!({"what": "diagnostics", "path": "src"}),
            "editor_context diagnostics src",
        );
        check(
            json!({"what": "references", "path": "a.rs", "name": "b", "line": "4"}),
            "editor_context references \"b\" in a.rs",
        );
        check(
            json!({"what": "symbols"}),
            "editor_context symbols needs `path`.",
        );
        check(
            json!({"what": "definition", "path": "a.rs"}),
            "editor_context definition needs `name`.",
        );
    }

    #[test]
    fn entries_elsewhere_are_counted_and_the_text_is_bounded() {
        let answer = EditorAnswer {
            entries: vec![
                entry("/work/src/a.rs", "one\n two"),
                entry("/etc/passwd", "root"),
                entry("/work/b.rs", "three"),
            ],
            more: 2,
            ..EditorAnswer::default()
        };
        let all = json!({"what": "diagnostics"});
        assert_eq!(
            run(all.clone(), answer.clone(), 1000),
            [
                "src/a.rs:3:1: one  two\nb.rs:3:1: three\n",
                "2 entries; 2 more left out; 1 left out, outside the workspace or secret"
            ]
        );
        assert_eq!(
            run(all, answer.clone(), 30),
            [
                "src/a.rs:3:1: one  two\n",
                "1 entry; 3 more left out; 1 left out, outside the workspace or secret"
            ]
        );
        let [text, _] = run(json!({"what": "quickfix", "path": "src"}), answer, 1000);
        assert_eq!(text, "src/a.rs:3:1: one  two\n");
    }

    #[test]
    fn a_problem_is_told_with_the_file() {
        let answer = EditorAnswer {
            problem: Some("no language server is attached to it".to_owned()),
            ..EditorAnswer::default()
        };
        let [_, why] = run(json!({"what": "symbols", "path": "a.rs"}), answer, 1000);
        assert_eq!(
            why,
            "Cannot ask about a.rs: no language server is attached to it."
        );
    }
}
