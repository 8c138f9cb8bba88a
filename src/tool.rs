//! The tools that a model may call.
//!
//! A [`schema::Tool`] parses a call into a [`call::PlannedCall`]. `chat::turn::calls` then judges the call, asks about it and
//! carries it out. It treats commands differently from other calls, but knows no tool by name. Each chat has a [`ToolSet`].

pub mod agent_call;
mod ask;
mod audit_lines;
pub mod call;
mod checkpoints;
pub mod command;
pub mod conditions;
pub mod context;
pub mod edit;
pub mod event;
pub mod explore;
pub mod form;
pub mod job_list;
pub mod jobs;
pub mod permissions;
pub mod plan;
pub mod query;
pub mod rename;
pub mod schema;
pub mod scout;
pub mod server;
mod server_search;
pub mod skill;
pub mod tried;

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use self::agent_call::ShownAgentCall;
use self::call::PlannedCall;
use self::event::{ExecMode, ShownCall};
use self::schema::{BadCall, Tool};
use crate::blocking::blocking;
use crate::workspace::edits;
use crate::workspace::files::{EDITOR, LIST, READ, SEARCH};
use crate::workspace::judge::Judge;
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_policy::Pattern;
use co_text::shorten;

pub use self::checkpoints::CallCheckpoint;

/// The largest number of bytes that are shown of a call's arguments if the tool was removed.
const LONGEST_ARGUMENTS: usize = 400;

/// The names of the tools that the agent of a chat can call.
pub const OF_AGENTS: [&str; 3] = [EDITOR, edits::RENAME, command::request::NAME];

/// The names of the tools that the agent of a chat can call if co has turned off the agent's own tools.
pub const IN_PLACE_OF_OWN: [&str; 10] = [
    READ,
    LIST,
    SEARCH,
    EDITOR,
    edits::EDIT,
    edits::WRITE,
    edits::DELETE,
    edits::MOVE,
    edits::RENAME,
    command::request::NAME,
];

/// The names of the tools that an agent in a terminal of Neovim can call.
pub const OF_TERMINALS: [&str; 2] = [EDITOR, edits::RENAME];

/// The tools that the model of a chat may call. Clones share the same set. Tools may be added and removed while the chat runs,
/// and each request offers the current ones. A call of a removed tool gets an error.
#[derive(Clone)]
pub struct ToolSet(Arc<Mutex<ToolList>>);

#[derive(Clone)]
struct ToolList {
    tools: Vec<Arc<dyn Tool>>,
    /// The deny rules of the person and the workspace. A tool is turned off if one of these rules names the whole tool. The model
    /// does not get the description of such a tool.
    denied: Vec<Pattern>,
    /// The descriptions of the tools that are not turned off.
    specs: Arc<[ToolSpec]>,
}

/// Two sets of co's own tools: the first set lacks the tool that sends scouts, the second set has it. Chats share the
/// descriptions, so they are in memory only once.
static BUILT_IN: [LazyLock<ToolList>; 2] = [
    LazyLock::new(|| ToolList::built_in(false)),
    LazyLock::new(|| ToolList::built_in(true)),
];

impl ToolSet {
    /// Returns co's own tools. `scouts` is true if the tool that sends scouts is included.
    pub fn built_in(scouts: bool) -> Self {
        Self(Arc::new(Mutex::new(BUILT_IN[usize::from(scouts)].clone())))
    }

    /// Returns the tools of a scout. `confines` is true if the kernel or a container can confine commands; then a scout can run
    /// commands too.
    pub fn of_scouts(confines: bool) -> Self {
        let commands = confines.then(command::tool);
        let tools = query::tools().into_iter().chain(commands);
        Self::new(tools.map(|tool| -> Arc<dyn Tool> { Arc::new(tool) }))
    }

    /// Returns the tools with these names, for an agent.
    pub fn of_agents(names: &[&str]) -> Self {
        let queries = query::tools().into_iter().chain(edit::tools());
        let others = [rename::tool(), command::tool_without_jobs()];
        let tools = queries
            .chain(others)
            .filter(|it| names.contains(&it.spec.name.as_str()));
        Self::new(tools.map(|tool| -> Arc<dyn Tool> { Arc::new(tool) }))
    }

    /// Makes a set of tools. Each tool must have a different name.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools.into_iter().collect();
        Self(Arc::new(Mutex::new(ToolList::new(tools, Vec::new()))))
    }

    /// Turns off the tools that a deny rule of the person or the workspace names as a whole. Turns all other tools on.
    pub async fn deny_by(&self, judge: Arc<Judge>) {
        let rules = deny_rules(judge).await;
        let mut list = self.0.lock();
        if list.denied != rules {
            *list = ToolList::new(std::mem::take(&mut list.tools), rules);
        }
    }

    /// Returns the names of co's own tools that the model cannot call.
    pub fn absent(&self) -> Vec<String> {
        let all = BUILT_IN[1].specs.iter().map(|spec| &spec.name);
        all.filter(|name| !self.has(name)).cloned().collect()
    }

    /// Adds a tool at the end. Removes an earlier tool with the same name.
    pub fn add(&self, tool: Arc<dyn Tool>) {
        let name = tool.spec().name.clone();
        self.replace(&[name], vec![tool]);
    }

    /// Removes a tool.
    pub fn remove(&self, name: &str) {
        self.replace(&[name.to_owned()], Vec::new());
    }

    /// Removes the tools with these names, and adds other tools at the end.
    pub fn replace(&self, names: &[String], new: Vec<Arc<dyn Tool>>) {
        if names.is_empty() && new.is_empty() {
            return;
        }
        let mut list = self.0.lock();
        list.tools.retain(|tool| !names.contains(&tool.spec().name));
        list.tools.extend(new);
        *list = ToolList::new(
            std::mem::take(&mut list.tools),
            std::mem::take(&mut list.denied),
        );
    }

    /// Returns the descriptions of the tools for a model. They stay the same while the set does not change, so that providers can
    /// cache them.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.0.lock().specs)
    }

    /// Parses a call.
    ///
    /// # Errors
    /// The tool does not exist or is turned off, or the arguments do not match its schema.
    pub fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        if let Some(tool) = self.find(&call.name) {
            return tool.parse(call);
        }
        let specs = self.specs();
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        // The person sees the first line.
        Err(BadCall(format!(
            "There is no tool called {}.\nThe tools are: {}.",
            call.name,
            names.join(", ")
        )))
    }

    /// Returns a call in the form that the chat shows. Also accepts invalid calls, and calls of removed tools.
    pub fn shown(&self, call: &Call) -> ShownCall {
        if call.name == agent_call::NAME {
            return ShownCall::Agent(ShownAgentCall::new(&call.arguments));
        }
        let tool = self.0.lock().find(&call.name);
        let line = match tool.map(|tool| (tool.parse(call), tool)) {
            Some((Ok(planned), _)) => return planned.shown(),
            Some((Err(_), tool)) => {
                let line = command_of(call);
                if let Some(shown) = tool.shown_unread(&line) {
                    return shown;
                }
                line
            }
            None => name_and_arguments(call),
        };
        ShownCall::Command {
            command: co_text::printable(&line),
            mode: ExecMode::default(),
        }
    }

    /// Returns true if the set has a tool with this name that is not turned off.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let list = self.0.lock();
        list.find(name).filter(|tool| !list.is_off(&**tool))
    }
}

impl ToolList {
    fn built_in(scouts: bool) -> Self {
        let tools = [command::tool()]
            .into_iter()
            .chain(jobs::tools())
            .chain(query::tools())
            .chain(edit::tools())
            .chain([rename::tool(), plan::tool(), ask::tool()])
            .chain(scouts.then(explore::tool));
        let tools = tools.map(|tool| -> Arc<dyn Tool> { Arc::new(tool) });
        Self::new(tools.collect(), Vec::new())
    }

    fn new(tools: Vec<Arc<dyn Tool>>, denied: Vec<Pattern>) -> Self {
        let mut list = Self {
            tools,
            denied,
            specs: Arc::new([]),
        };
        let on = list.tools.iter().filter(|tool| !list.is_off(&***tool));
        list.specs = on.map(|tool| tool.spec().clone()).collect();
        list
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        tool.cloned()
    }

    fn is_off(&self, tool: &dyn Tool) -> bool {
        is_denied(tool, &self.denied)
    }
}

/// Returns the deny rules of the person and the workspace.
async fn deny_rules(judge: Arc<Judge>) -> Vec<Pattern> {
    let rules = blocking(move || Ok::<_, String>(judge.deny_rules())).await;
    rules.unwrap_or_default()
}

/// Returns true if one of the deny rules names a tool as a whole.
fn is_denied(tool: &dyn Tool, denied: &[Pattern]) -> bool {
    if denied.is_empty() {
        return false;
    }
    let names = tool.rule_names();
    let denies = |rule: &Pattern| names.iter().any(|name| rule.is_whole(name));
    denied.iter().any(denies)
}

/// Returns a text for a call that is not valid: its command, or the name of its tool with the paths and patterns in the
/// arguments.
fn command_of(call: &Call) -> String {
    let text = |name: &str| call.arguments.get(name)?.as_str();
    if let Some(cmd) = text("cmd") {
        return cmd.to_owned();
    }
    if let Some(argv) = call.arguments.get("argv").and_then(|argv| argv.as_array()) {
        let words: Vec<_> = argv.iter().filter_map(|word| word.as_str()).collect();
        return words.join(" ");
    }
    let about = ["path", "from", "to", "pattern"];
    let words = std::iter::once(call.name.as_str()).chain(about.into_iter().filter_map(text));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a text for a call of an unknown tool: the name of the tool and the start of the arguments.
fn name_and_arguments(call: &Call) -> String {
    let arguments = call.arguments.to_string();
    format!("{} {}", call.name, shorten(&arguments, LONGEST_ARGUMENTS))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// If a change of the text is meant, copy the left side of the failure into the file.
    #[test]
    fn a_model_is_told_of_these_tools() {
        let tools = ToolSet::built_in(true).specs();
        let told: Vec<_> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                })
            })
            .collect();
        let told = serde_json::to_string_pretty(&told).unwrap();
        let expected = include_str!("../tests/fixtures/tools.json");
        assert!(told == expected.trim_end(), "{told}");
    }

    /// Each request has them. A token of such JSON has 3.8 bytes or more.
    #[test]
    fn all_tools_take_fewer_than_4000_tokens() {
        let tools = ToolSet::built_in(true);
        tools.add(skill::tool(skill::SkillList::default()));
        let specs = tools.specs();
        let sent = specs.iter().map(|tool| {
            let ToolSpec {
                name,
                description,
                schema,
            } = tool;
            json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } })
        });
        let bytes = Value::Array(sent.collect()).to_string().len();
        assert!(bytes * 10 / 38 < 4_000, "{bytes} bytes");
    }

    #[test]
    fn chats_share_descriptions_and_not_their_sets() {
        let (one, other) = (ToolSet::built_in(true), ToolSet::built_in(true));
        assert!(Arc::ptr_eq(&one.specs(), &other.specs()));
        one.remove(plan::tool().spec().name.as_str());
        assert_eq!(one.specs().len() + 1, other.specs().len());
    }

    #[test]
    fn a_call_that_cannot_be_read_is_told_without_its_arguments() {
        let told = |name: &str, arguments| command_of(&Call::new("1", name, arguments));
        let edit = serde_json::json!({ "new": "x\ny", "old": 1, "path": "a.rs" });
        assert_eq!(told("edit_file", edit), "edit_file a.rs");
        assert_eq!(told("search", serde_json::json!(["x"])), "search");
    }

    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("string") => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
            Some("boolean") => json!(true),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(1);
                (0..least).map(|_| sample(&schema["items"])).collect()
            }
            Some("object") => {
                let properties = schema["properties"].as_object().unwrap();
                properties
                    .iter()
                    .map(|(name, it)| (name.clone(), sample(it)))
                    .collect()
            }
            other => panic!("{other:?} has no sample"),
        }
    }

    fn parse(tool: &ToolSpec, arguments: Value) -> Result<(), BadCall> {
        let call = Call::new("1", tool.name.clone(), arguments);
        ToolSet::built_in(true).parse(&call).map(drop)
    }

    #[test]
    fn what_a_schema_offers_is_what_its_parser_takes() {
        for tool in ToolSet::built_in(true).specs().iter() {
            let properties = tool.schema["properties"].as_object().unwrap();
            let samples = properties.iter();
            let mut all: serde_json::Map<_, _> = samples
                .map(|(name, schema)| (name.clone(), sample(schema)))
                .collect();
            if tool.name == command::request::NAME {
                // A call has one or the other.
                let argv = all.shift_remove("argv").unwrap();
                assert_eq!(parse(tool, json!({ "argv": argv })).err(), None);
            }
            let parsed = parse(tool, Value::Object(all.clone()));
            assert_eq!(parsed.err(), None, "{}", tool.name);
            all.insert("unheard_of".into(), json!(1));
            let refused = parse(tool, Value::Object(all)).unwrap_err();
            assert!(refused.0.contains("unheard_of"), "{refused}");
        }
    }
}
