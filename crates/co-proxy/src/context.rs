//! The state that all connections of one command share.

use std::sync::Arc;

use crate::outer::OuterProxy;
use crate::setup::{Decider, ProxyLimits, Resolver};
use crate::traffic::Traffic;

/// The data that all connections of one command share.
pub(crate) struct ProxyContext {
    pub(crate) decider: Arc<dyn Decider>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) outer: OuterProxy,
    pub(crate) limits: ProxyLimits,
    pub(crate) traffic: Traffic,
}
