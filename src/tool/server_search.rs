//! Two tools that replace the tools of tool servers if there are many: one searches their list, and the other calls one of them.
//!
//! A call of the second tool is passed to the tool that it names. So it is judged, asked about and carried out as a call of that
//! tool.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{CallResult, LookingCall, PlannedCall};
use super::context::{CallContext, CallHalt};
use super::event::ShownCall;
use super::schema::{BadCall, Tool, arguments, spec};
use super::{deny_rules, is_denied};
use co_llm::ToolSpec;
use co_llm::transcript::{Call, ShownPart};
use co_text::{counted, one_line};

/// The largest number of tools whose descriptions each request contains. If there are more tools, the model must search the list.
/// A small model cannot do that (`docs/BENCHMARKS.md`).
const MOST_TOOLS: usize = 40;
/// The largest number of tokens of the descriptions that each request contains. If there are more, the model must search the
/// list.
const MOST_TOKENS: usize = 8_000;

/// The approximate number of bytes of a token in a description.
const TOKEN_BYTES: usize = 4;

/// The largest number of tools that the result of one search describes.
const MOST_FOUND: usize = 8;
/// The largest number of bytes of the result of one search.
const MOST_BYTES: usize = 16 << 10;

/// The largest number of names of tools that a search without a match returns.
const MOST_NAMES: usize = 100;

const SEARCH: &str = "search_server_tools";
const CALL: &str = "call_server_tool";

/// Returns the tools that a model gets for these tools of servers: the tools themselves if they are few, or else the two tools
/// that search and call.
pub(super) fn offered(tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let bytes: usize = tools.iter().map(|it| size(it.spec())).sum();
    if tools.len() <= MOST_TOOLS && bytes <= MOST_TOKENS * TOKEN_BYTES {
        return tools;
    }
    let count = tools.len();
    let tools: Arc<[Arc<dyn Tool>]> = tools.into();
    let search = SearchTool {
        spec: spec(
            SEARCH,
            format!(
                "Searches the {count} tools that the person's tool servers offer. Returns the names, descriptions and arguments of those that \
                 match best. Call one of them with {CALL}."
            ),
            json!({ "query": { "type": "string", "description": "Words about what the tool does, or a part of its name" } }),
            &["query"],
        ),
        tools: Arc::clone(&tools),
    };
    let call = CallTool {
        spec: spec(
            CALL,
            format!("Calls a tool that {SEARCH} has found."),
            json!({
                "name": { "type": "string", "description": "The whole name of the tool, such as server__tool" },
                "arguments": { "type": "object", "description": "The arguments, by the schema of the tool" },
            }),
            &["name", "arguments"],
        ),
        tools,
    };
    vec![Arc::new(search), Arc::new(call)]
}

/// Returns the number of bytes of a description.
fn size(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.schema.to_string().len()
}

struct SearchTool {
    spec: ToolSpec,
    tools: Arc<[Arc<dyn Tool>]>,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        let SearchArguments { query } = arguments(call)?;
        Ok(Box::new(Search {
            query,
            tools: Arc::clone(&self.tools),
        }))
    }

    fn shown_unread(&self, _: &str) -> Option<ShownCall> {
        None
    }
}

#[derive(Clone)]
struct Search {
    query: String,
    tools: Arc<[Arc<dyn Tool>]>,
}

#[async_trait]
impl LookingCall for Search {
    fn shown(&self) -> ShownCall {
        ShownCall::Query(format!("search tools for {}", one_line(&self.query)))
    }

    async fn look(self, context: &CallContext) -> Result<CallResult, CallHalt> {
        let denied = deny_rules(Arc::clone(&context.judge)).await;
        let tools = self.tools.iter().filter(|it| !is_denied(&***it, &denied));
        let specs: Vec<_> = tools.map(|it| it.spec()).collect();
        let found = search(&specs, &self.query);
        let words = match found.len() {
            0 => "no match".to_owned(),
            count => counted(count, "tool"),
        };
        Ok(CallResult {
            ok: true,
            shown: ShownPart::line(words),
            ..CallResult::answer(told(&specs, &found))
        })
    }
}

/// Returns the tools that match a query. The best match comes first.
fn search<'a>(specs: &[&'a ToolSpec], query: &str) -> Vec<&'a ToolSpec> {
    let query = query.to_lowercase();
    let words: Vec<_> = query
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .collect();
    let points = |spec: &ToolSpec| {
        let (name, about) = (spec.name.to_lowercase(), spec.description.to_lowercase());
        let word = |word: &&str| match (name.contains(word), about.contains(word)) {
            (true, _) => 3,
            (_, true) => 1,
            _ => 0,
        };
        match name == query {
            true => usize::MAX,
            false => words.iter().map(word).sum(),
        }
    };
    let mut found: Vec<_> = specs.iter().map(|it| (points(it), *it)).collect();
    found.retain(|(points, _)| *points > 0);
    // A stable sort: equal ones stay in the order of the lists.
    found.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
    found.truncate(MOST_FOUND);
    found.into_iter().map(|(_, spec)| spec).collect()
}

/// Returns the text for the model: the tools that were found. If none was found, names of tools.
fn told(all: &[&ToolSpec], found: &[&ToolSpec]) -> String {
    if found.is_empty() {
        let names = all.iter().take(MOST_NAMES).map(|it| it.name.as_str());
        let names: Vec<_> = names.collect();
        return format!(
            "No tool matches. Some names of tools: {}.",
            names.join(", ")
        );
    }
    let mut text = String::new();
    for (at, spec) in found.iter().enumerate() {
        let ToolSpec {
            name,
            description,
            schema,
        } = spec;
        let one = format!("{name}: {description}\narguments: {schema}\n\n");
        if at > 0 && text.len() + one.len() > MOST_BYTES {
            let left = found[at..].iter().map(|it| it.name.as_str());
            let left: Vec<_> = left.collect();
            text.push_str(&format!("Search for these by name: {}.", left.join(", ")));
            break;
        }
        text.push_str(&one);
    }
    text.trim_end().to_owned()
}

struct CallTool {
    spec: ToolSpec,
    tools: Arc<[Arc<dyn Tool>]>,
}

#[derive(Deserialize)]
struct CallArguments {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl CallTool {
    /// Returns the tool that a call names, and the call of this tool.
    fn find(&self, call: &Call) -> Result<(&Arc<dyn Tool>, Call), BadCall> {
        let CallArguments { name, arguments } = arguments(call)?;
        let tool = self.tools.iter().find(|it| it.spec().name == name);
        let tool = tool.ok_or_else(|| {
            BadCall(format!(
                "No tool server has a tool called {name}.\nSearch for it with {SEARCH}."
            ))
        })?;
        // Models send the arguments as a text, too.
        let arguments = match arguments {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            other => other,
        };
        let call = Call {
            name,
            arguments,
            ..call.clone()
        };
        Ok((tool, call))
    }
}

impl Tool for CallTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        let (tool, call) = self.find(call)?;
        tool.parse(&call)
    }

    fn shown_unread(&self, _: &str) -> Option<ShownCall> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::name_and_arguments;

    fn tool(name: &str, description: &str) -> ToolSpec {
        spec(name, description.to_owned(), json!({}), &[])
    }

    struct OneTool(ToolSpec);

    impl Tool for OneTool {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
            Err(BadCall(name_and_arguments(call)))
        }

        fn shown_unread(&self, _: &str) -> Option<ShownCall> {
            None
        }
    }

    fn many(count: usize, about: &str) -> Vec<Arc<dyn Tool>> {
        let one = |at| -> Arc<dyn Tool> { Arc::new(OneTool(tool(&format!("s__t{at}"), about))) };
        (0..count).map(one).collect()
    }

    fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
        tools.iter().map(|it| it.spec().name.as_str()).collect()
    }

    #[test]
    fn many_or_large_tools_are_searched() {
        assert_eq!(names(&offered(many(2, ""))), ["s__t0", "s__t1"]);
        assert_eq!(offered(many(MOST_TOOLS, "")).len(), MOST_TOOLS);
        for tools in [many(MOST_TOOLS + 1, ""), many(10, &"x".repeat(4_000))] {
            assert_eq!(names(&offered(tools)), [SEARCH, CALL]);
        }
    }

    #[test]
    fn the_best_matches_come_first_and_within_bounds() {
        let long = "x".repeat(MOST_BYTES);
        let specs = [
            tool("a__log", "Shows commits."),
            tool("a__commit", "Records changes."),
            tool("a__large", &format!("commit {long}")),
            tool("b__time", "Tells the time."),
        ];
        let all: Vec<_> = specs.iter().collect();
        let found = |query: &str| -> Vec<_> {
            let found = search(&all, query).into_iter();
            found.map(|it| it.name.as_str()).collect()
        };
        assert_eq!(found("Commit"), ["a__commit", "a__log", "a__large"]);
        assert_eq!(found("a__log"), ["a__log", "a__commit", "a__large"]);
        assert_eq!(found("record changes"), ["a__commit"]);
        assert_eq!(found("weather"), [""; 0]);
        assert!(told(&all, &[]).contains("a__log, a__commit, a__large, b__time"));
        let text = told(&all, &search(&all, "commit"));
        assert!(text.contains("a__commit: Records changes.\narguments: {"));
        assert!(text.ends_with("Search for these by name: a__large."));
    }

    #[test]
    fn a_call_is_one_of_the_tool_that_it_names() {
        let tools = offered(many(100, ""));
        let parse = |arguments: Value| {
            let parsed = tools[1].parse(&Call::new("1", CALL, arguments));
            parsed.err().unwrap().0
        };
        for arguments in [json!({ "a": 1 }), json!("{\"a\":1}")] {
            let told = parse(json!({ "name": "s__t7", "arguments": arguments }));
            assert_eq!(told, "s__t7 {\"a\":1}");
        }
        assert!(
            parse(json!({ "name": "run_shell_command", "arguments": {} }))
                .starts_with("No tool server has")
        );
        assert!(parse(json!({})).contains("do not fit"));
    }
}
