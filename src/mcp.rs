//! Tool servers (MCP): their confined processes, and the connections to them and to servers over HTTP. Chats of one workspace
//! share a server.
//!
//! This module knows no chat and no model. It trusts nothing that a server says about itself: only the confinement decides what a
//! server can do.

mod download;
mod environment;
mod home;
mod http;
mod http_client;
mod level;
mod login;
mod login_file;
mod process;
mod server;
mod shown;
mod start;
mod workspace_file;

use co_mcp::ClientName;

pub use download::{advice as download_advice, fetching};
pub use environment::ServerSecrets;
pub use http::failure;
pub use level::{acting_words, acts_for_good, level_hint, level_name, level_words, may_write};
pub use login::{BegunLogin, begin_login};
pub use login_file::LoginFile;
pub use server::{ReadyServer, ServerState, ToolServer, ToolServers};
pub use shown::{ShownTool, server_hash, shown_tools, tool_hash};
pub use start::ServerStart;
pub use workspace_file::{WORKSPACE_FILE, WorkspaceServers};

/// The name and version that co tells servers.
const CLIENT: ClientName = ClientName {
    name: "co",
    version: env!("CARGO_PKG_VERSION"),
};
