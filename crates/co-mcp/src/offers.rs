//! The offers of a server other than tools: resources, which are texts to attach, and prompts.

use std::collections::HashMap;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, GetPromptRequestParams,
    GetPromptResponse, PaginatedRequestParams, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, Reference,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::answer::{AnswerPart, content_part, resource_part};
use crate::cut;

/// The largest number of entries that are read of each list.
const MOST_OFFERS: usize = 500;
const MOST_PAGES: usize = 20;

/// The largest number of arguments of a prompt.
const MOST_ARGUMENTS: usize = 20;

/// The longest name of a prompt and the longest address, in bytes. An entry with a longer name or address is left out, because a
/// shortened name could belong to another entry.
const LONGEST_NAME: usize = 400;
const LONGEST_ARGUMENT: usize = 100;

/// The longest description or title of an entry, in bytes. Longer ones are cut.
const LONGEST_ABOUT: usize = 1_000;

/// The time-out for each list. It is short, because the server's tools are available only after these lists.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// The largest number of completion candidates for one argument.
const MOST_VALUES: usize = 100;

/// The resources and prompts of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerOffers {
    pub resources: Vec<ServerResource>,
    /// Resources whose addresses have placeholders. Each address is a URI template, such as `notes://{year}/{name}`.
    pub templates: Vec<ServerResource>,
    pub prompts: Vec<ServerPrompt>,
    /// True if the server can complete values of arguments.
    pub completes: bool,
}

/// A resource of a server: a text or other data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerResource {
    pub uri: String,
    pub name: String,
}

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    pub name: String,
    pub about: String,
    /// The names of the prompt's arguments.
    pub arguments: Vec<String>,
    /// The names of the arguments that must be given.
    pub required: Vec<String>,
}

/// An argument whose value the person is typing.
#[derive(Debug, Clone)]
pub struct OpenArgument {
    pub of: ArgumentOf,
    pub name: String,
    /// The part of the argument's value that the person has typed so far.
    pub value: String,
    /// The values of the other arguments, by name.
    pub others: HashMap<String, String>,
}

/// The prompt or the template that has the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentOf {
    /// The name of a prompt.
    Prompt(String),
    /// The URI template of a resource.
    Template(String),
}

impl ServerOffers {
    /// Reads all lists. Leaves out entries and lists that cannot be read.
    pub(crate) async fn read(peer: &Peer<RoleClient>) -> Self {
        let info = peer.peer_info();
        let capabilities = info.map(|it| it.capabilities.clone()).unwrap_or_default();
        let mut offers = Self {
            completes: capabilities.completions.is_some(),
            ..Self::default()
        };
        if capabilities.resources.is_some() {
            let mut list = PagedList::new();
            while let Some(asked) = list.next_page() {
                let Some(page) = list.in_time(peer.list_resources(Some(asked))).await else {
                    break;
                };
                let found = page.resources.into_iter();
                let found = found.filter_map(|it| resource(it.uri, it.title.unwrap_or(it.name)));
                list.add(found, page.next_cursor);
            }
            offers.resources = list.found;
            let mut list = PagedList::new();
            while let Some(asked) = list.next_page() {
                let page = list.in_time(peer.list_resource_templates(Some(asked)));
                let Some(page) = page.await else {
                    break;
                };
                let found = page.resource_templates.into_iter();
                let found =
                    found.filter_map(|it| resource(it.uri_template, it.title.unwrap_or(it.name)));
                list.add(found, page.next_cursor);
            }
            offers.templates = list.found;
        }
        if capabilities.prompts.is_some() {
            let mut list = PagedList::new();
            while let Some(asked) = list.next_page() {
                let Some(page) = list.in_time(peer.list_prompts(Some(asked))).await else {
                    break;
                };
                let found = page.prompts.into_iter().filter_map(prompt_of);
                list.add(found, page.next_cursor);
            }
            offers.prompts = list.found;
        }
        offers
    }
}

/// Collects the entries of a list with several pages, until the time-out.
struct PagedList<T> {
    found: Vec<T>,
    /// The cursor of the next page: `Some(None)` before the first page, and `None` after the last page.
    next: Option<Option<String>>,
    pages: usize,
    until: Instant,
}

impl<T> PagedList<T> {
    fn new() -> Self {
        Self {
            found: Vec::new(),
            next: Some(None),
            pages: 0,
            until: Instant::now() + LIST_TIMEOUT,
        }
    }

    /// Returns the request for the next page, or `None` if there are no more pages or enough were read.
    fn next_page(&mut self) -> Option<PaginatedRequestParams> {
        self.pages += 1;
        let cursor = self.next.take().filter(|_| self.pages <= MOST_PAGES)?;
        Some(PaginatedRequestParams::default().with_cursor(cursor))
    }

    /// Waits for a page. Returns `None` after the time-out, or if the page cannot be read.
    async fn in_time<P>(&self, page: impl Future<Output = Result<P, ServiceError>>) -> Option<P> {
        timeout_at(self.until, page).await.ok()?.ok()
    }

    fn add(&mut self, entries: impl Iterator<Item = T>, next: Option<String>) {
        let room = MOST_OFFERS - self.found.len();
        self.found.extend(entries.take(room));
        self.next = next.filter(|_| self.found.len() < MOST_OFFERS).map(Some);
    }
}

fn resource(uri: String, mut name: String) -> Option<ServerResource> {
    cut(&mut name, LONGEST_ABOUT);
    (uri.len() <= LONGEST_NAME).then_some(ServerResource { uri, name })
}

fn prompt_of(prompt: Prompt) -> Option<ServerPrompt> {
    let mut arguments = prompt.arguments.unwrap_or_default();
    arguments.truncate(MOST_ARGUMENTS);
    let is_short = |it: &String| it.len() <= LONGEST_ARGUMENT;
    if prompt.name.len() > LONGEST_NAME || !arguments.iter().all(|it| is_short(&it.name)) {
        return None;
    }
    let required = arguments.iter().filter(|it| it.required == Some(true));
    let mut about = prompt.description.or(prompt.title).unwrap_or_default();
    cut(&mut about, LONGEST_ABOUT);
    Some(ServerPrompt {
        about,
        name: prompt.name,
        required: required.map(|it| it.name.clone()).collect(),
        arguments: arguments.into_iter().map(|it| it.name).collect(),
    })
}

/// Returns the first values that complete an argument. This function has no time-out.
pub(crate) async fn complete(
    peer: &Peer<RoleClient>,
    argument: OpenArgument,
) -> Result<Vec<String>, ServiceError> {
    let of = match argument.of {
        ArgumentOf::Prompt(name) => Reference::for_prompt(name),
        ArgumentOf::Template(uri) => Reference::for_resource(uri),
    };
    let asked = CompleteRequestParams::new(of, ArgumentInfo::new(argument.name, argument.value));
    let asked = match argument.others.is_empty() {
        true => asked,
        false => asked.with_context(CompletionContext::with_arguments(argument.others)),
    };
    let mut values = peer.complete(asked).await?.completion.values;
    values.retain(|it| it.len() <= LONGEST_NAME);
    values.truncate(MOST_VALUES);
    Ok(values)
}

/// Reads a resource. Returns `None` if the server asks a question before it answers. This function has no time-out.
pub(crate) async fn read_resource(
    peer: &Peer<RoleClient>,
    uri: &str,
) -> Result<Option<Vec<AnswerPart>>, ServiceError> {
    let asked = ReadResourceRequestParams::new(uri);
    Ok(match peer.read_resource_once(asked).await? {
        ReadResourceResponse::Complete(read) => {
            Some(read.contents.into_iter().map(resource_part).collect())
        }
        _ => None,
    })
}

/// Reads a prompt with these arguments. Returns `None` if the server asks a question before it answers. This function has no
/// time-out.
pub(crate) async fn read_prompt(
    peer: &Peer<RoleClient>,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Option<Vec<AnswerPart>>, ServiceError> {
    let asked = GetPromptRequestParams::new(name).with_arguments(arguments);
    Ok(match peer.get_prompt_once(asked).await? {
        GetPromptResponse::Complete(read) => {
            let parts = read.messages.into_iter().map(|it| content_part(it.content));
            Some(parts.collect())
        }
        _ => None,
    })
}
