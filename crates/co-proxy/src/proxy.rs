//! Accepts the connections of a command, with limits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::context::ProxyContext;
use crate::setup::ProxySetup;
use crate::traffic::{TargetTraffic, Traffic};
use crate::{ports, requests};

/// The pause after the system refused to accept a connection because it lacks descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The proxy of one command. Dropping it ends all its connections.
pub struct Proxy {
    traffic: Traffic,
    _listeners: Vec<AbortOnDropHandle<()>>,
}

/// The service behind a listening socket.
#[derive(Debug, Clone)]
enum Service {
    Proxy,
    /// Forwards connections to a port of this machine, at one of these addresses.
    Port(Arc<[SocketAddr]>),
}

impl Proxy {
    /// Starts to accept connections. Call it within a tokio runtime that has I/O and time drivers.
    ///
    /// # Errors
    /// The system refuses one of the sockets.
    pub fn start(setup: ProxySetup) -> io::Result<Self> {
        let traffic = Traffic::new(setup.limits.targets);
        let context = Arc::new(ProxyContext {
            decider: setup.decider,
            resolver: setup.resolver,
            outer: setup.outer,
            limits: setup.limits,
            traffic: traffic.clone(),
        });
        let connections = Arc::new(Semaphore::new(setup.limits.connections));
        let ports = setup.ports.into_iter();
        let ports = ports.map(|it| (it.listener, Service::Port(it.leads_to.into())));
        let all = std::iter::once((setup.listener, Service::Proxy)).chain(ports);
        let listeners = all.map(|(listener, service)| {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let accepting = accept(
                listener,
                service,
                Arc::clone(&context),
                Arc::clone(&connections),
            );
            Ok(AbortOnDropHandle::new(tokio::spawn(accepting)))
        });
        Ok(Self {
            traffic,
            _listeners: listeners.collect::<io::Result<_>>()?,
        })
    }

    /// Returns the targets that the command asked for, sorted by the first request for each.
    pub fn traffic(&self) -> Vec<TargetTraffic> {
        self.traffic.all()
    }
}

/// Accepts connections forever. If the command has the largest allowed number of connections, further ones wait in the kernel's
/// queue.
async fn accept(
    listener: TcpListener,
    service: Service,
    context: Arc<ProxyContext>,
    connections: Arc<Semaphore>,
) {
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                // One that waits for its turn keeps the next one in the kernel's queue.
                let permit = Arc::clone(&connections).acquire_owned().await;
                let Ok(permit) = permit else {
                    return;
                };
                let (context, service) = (Arc::clone(&context), service.clone());
                tasks.spawn(async move {
                    let _permit = permit;
                    serve(stream, service, &context).await;
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection of a command was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, service: Service, context: &Arc<ProxyContext>) {
    // Small messages of a handshake go out at once.
    let _ = stream.set_nodelay(true);
    match service {
        Service::Proxy => requests::serve(stream, context).await,
        Service::Port(leads_to) => ports::forward(context, stream, &leads_to).await,
    }
}
