//! Agents, which work instead of a model: their presets, their programs, and the confined process of an agent.
//!
//! This module does not know chats: the caller passes the context of a turn, through which the module asks the person.

mod early_start;
mod home;
mod hosts;
mod preset;
mod process;
mod session;
pub mod tools;
mod trial;

pub use early_start::IdleAgent;
pub use hosts::TurnAsker;
pub use preset::{AgentSpec, PRESETS, names};
pub use process::{
    AgentProcess, AgentStart, ConnectedAgent, EarlyUpdate, IdleEvent, MOST_MEMORY, OpenedAgent,
    SessionBegin, StartFault,
};
pub use session::{AgentOption, AgentWish, PlanMode, SessionChange, SessionState};
pub use trial::TrialGrants;
