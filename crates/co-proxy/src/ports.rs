//! A port of this machine that the command reaches at its own loopback interface.

use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::net::TcpStream;

use crate::context::ProxyContext;
use crate::refusal::ProxyRefusal;
use crate::target::{Host, Target};
use crate::tunnel;

/// Connects the command to a port of this machine, and copies until both ends have closed.
pub(crate) async fn forward(context: &ProxyContext, mut client: TcpStream, port: u16) {
    let target = Target {
        host: Host::Address(Ipv4Addr::LOCALHOST.into()),
        port,
    };
    let connected = match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(stream) => Ok(stream),
        Err(error) => (TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await).map_err(|_| error),
    };
    match connected {
        Ok(stream) => {
            if let Some(mut upstream) = context.traffic.count(&target, stream) {
                tunnel::copy(&mut client, &mut upstream).await;
            }
        }
        Err(source) => {
            let why = ProxyRefusal::Unreachable {
                target: target.clone(),
                source,
            };
            context.traffic.refuse(&target, why.to_string());
        }
    }
}
