//! Other agents, which work in the place of a model: their presets, their programs, and the confined process of one.
//!
//! This module knows no chat: it gets the context of a turn, and asks the person through that.

mod home;
mod hosts;
mod preset;
mod process;
mod session;
pub mod tools;
mod trial;

pub use hosts::TurnAsker;
pub use preset::{AgentSpec, PRESETS, names};
pub use process::{
    AgentProcess, AgentStart, ConnectedAgent, EarlyUpdate, MOST_MEMORY, OpenedAgent, SessionBegin,
    StartFault,
};
pub use session::{AgentOption, AgentWish, PlanMode, SessionChange, SessionState};
pub use trial::TrialGrants;
