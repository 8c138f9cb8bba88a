//! A port of this machine that the command can connect to at its own loopback interface.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::context::ProxyContext;
use crate::refusal::ProxyRefusal;
use crate::target::{Host, Target};
use crate::tunnel;

/// The reason why a command may connect to a port of this machine, as the traffic list shows it.
const BY_RULE: &str = "a rule";

/// Connects the command to a port of this machine, and copies bytes until both ends have closed. Connects to the first address of
/// `leads_to` at which a server listens.
pub(crate) async fn forward(
    context: &ProxyContext,
    mut client: TcpStream,
    leads_to: &[SocketAddr],
) {
    let mut failed = None;
    for address in leads_to {
        let target = Target {
            host: Host::Address(address.ip()),
            port: address.port(),
        };
        let connected = match context.decider.refuses_port(*address).await {
            Some(why) => Err(target.denied(why)),
            None => TcpStream::connect(address)
                .await
                .map_err(|source| ProxyRefusal::Unreachable {
                    target: target.clone(),
                    source,
                }),
        };
        match connected {
            Ok(stream) => {
                let counted = context.traffic.count(&target, stream, BY_RULE);
                if let Some(mut upstream) = counted {
                    tunnel::copy(&mut client, &mut upstream).await;
                }
                return;
            }
            Err(refusal) => failed = failed.or(Some((target, refusal))),
        }
    }
    if let Some((target, refusal)) = failed {
        context.traffic.refuse(&target, refusal.to_string());
    }
}
