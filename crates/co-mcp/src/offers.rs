//! The offers of a server beside its tools: resources, which are texts to attach, and prompts.

use rmcp::RoleClient;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value};

use crate::answer::{AnswerPart, content_part, resource_part};

/// The most resources, and the most prompts, that are read of a server, and the most pages of each list.
const MOST_OFFERS: usize = 500;
const MOST_PAGES: usize = 20;

/// The most arguments of a prompt.
const MOST_ARGUMENTS: usize = 20;

/// The resources and prompts of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerOffers {
    pub resources: Vec<ServerResource>,
    pub prompts: Vec<ServerPrompt>,
}

/// A text or other bytes that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerResource {
    pub uri: String,
    pub name: String,
}

/// A prompt that a server writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    pub name: String,
    pub about: String,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// Those of them that it needs.
    pub required: Vec<String>,
}

impl ServerOffers {
    /// Reads the lists. A list that cannot be read is empty.
    pub(crate) async fn read(peer: &Peer<RoleClient>) -> Self {
        let info = peer.peer_info();
        let capabilities = info.map(|it| it.capabilities.clone()).unwrap_or_default();
        let mut offers = Self::default();
        if capabilities.resources.is_some() {
            let mut cursor = None;
            for _ in 0..MOST_PAGES {
                let asked = PaginatedRequestParams::default().with_cursor(cursor.take());
                let Ok(page) = peer.list_resources(Some(asked)).await else {
                    break;
                };
                let page_resources = page.resources.into_iter().map(|it| ServerResource {
                    name: it.title.unwrap_or(it.name),
                    uri: it.uri,
                });
                let room = MOST_OFFERS - offers.resources.len();
                offers.resources.extend(page_resources.take(room));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        if capabilities.prompts.is_some() {
            let mut cursor = None;
            for _ in 0..MOST_PAGES {
                let asked = PaginatedRequestParams::default().with_cursor(cursor.take());
                let Ok(page) = peer.list_prompts(Some(asked)).await else {
                    break;
                };
                let page_prompts = page.prompts.into_iter().map(|it| {
                    let mut arguments = it.arguments.unwrap_or_default();
                    arguments.truncate(MOST_ARGUMENTS);
                    let required = arguments.iter().filter(|it| it.required == Some(true));
                    ServerPrompt {
                        about: it.description.or(it.title).unwrap_or_default(),
                        name: it.name,
                        required: required.map(|it| it.name.clone()).collect(),
                        arguments: arguments.into_iter().map(|it| it.name).collect(),
                    }
                });
                let room = MOST_OFFERS - offers.prompts.len();
                offers.prompts.extend(page_prompts.take(room));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        offers
    }
}

/// Reads a resource. Returns none if the server asks for more. It has no time-out.
pub(crate) async fn resource(
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

/// Reads a prompt with these arguments. Returns none if the server asks for more. It has no time-out.
pub(crate) async fn prompt(
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
