//! A port of this machine that the command reaches at its own loopback interface.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::context::ProxyContext;
use crate::refusal::ProxyRefusal;
use crate::target::{Host, Target};
use crate::tunnel;

/// The ground on which a command reaches such a port.
const BY_RULE: &str = "a rule";

/// Connects the command to a port of this machine, and copies until both ends have closed. Takes the first of the addresses at
/// which a server is.
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
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let counted = context.traffic.count(&target, stream, BY_RULE);
                if let Some(mut upstream) = counted {
                    tunnel::copy(&mut client, &mut upstream).await;
                }
                return;
            }
            Err(source) => failed = failed.or(Some((target, source))),
        }
    }
    if let Some((target, source)) = failed {
        refuse(context, target, source);
    }
}

/// Notes that no server is at a port.
fn refuse(context: &ProxyContext, target: Target, source: io::Error) {
    let why = ProxyRefusal::Unreachable {
        target: target.clone(),
        source,
    };
    context.traffic.refuse(&target, why.to_string());
}
