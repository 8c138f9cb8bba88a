//! Tests a command's access to hosts with three servers of co on this machine. The command may connect to the first one. It may
//! not connect to the second one. It tries to reach the third one without the proxy.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::{HostAccess, HostAsker};
use co_exec::{
    Caller, CommandSpec, Confinement, Environment, Executor, Network, Program, ShownSecrets,
    Streams,
};
use co_policy::HostRules;
use co_proxy::Target;
use co_text::one_line;

/// The time-out for the test command.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The script of the test command. It asks the proxy for the servers at the ports `$1` and `$2`, and tries to connect to the
/// server at the port `$3` without the proxy. It prints one line for each server.
const SCRIPT: &str = r#"
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" || return
    printf 'GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$1" "$1" >&3
    IFS= read -r -t 5 line <&3
    echo "${line%$'\r'}"
}
(ask "$1")
(ask "$2")
(exec 3<>"/dev/tcp/127.0.0.1/$3") 2> /dev/null && echo open || echo closed
"#;

/// The output of the script if the access is correct.
const EXPECTED: &str = "HTTP/1.1 200 OK\nHTTP/1.1 403 Forbidden\nclosed";

/// A server on this machine that answers every request. Dropping it ends the server.
struct LoopbackServer {
    port: u16,
    connections: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl LoopbackServer {
    async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        let port = listener.local_addr()?.port();
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                // A client that leaves early gets no answer.
                let _answered = answer(stream).await;
            }
        };
        Ok(Self {
            port,
            connections,
            _task: AbortOnDropHandle::new(tokio::spawn(serve)),
        })
    }

    fn was_reached(&self) -> bool {
        self.connections.load(Ordering::Relaxed) > 0
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut head = [0; 1024];
    let _length = stream.read(&mut head).await?;
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(reply).await
}

/// Allows only one port of this machine.
struct PortAsker(u16);

#[async_trait]
impl HostAsker for PortAsker {
    async fn rules(&self) -> Result<HostRules, String> {
        Ok(HostRules::default())
    }

    async fn ask(&self, targets: &[Target]) -> Result<(), String> {
        match targets.iter().all(|target| target.port == self.0) {
            true => Ok(()),
            false => Err("it is tried that this one is refused".to_owned()),
        }
    }
}

/// Runs the test. Returns the result as a clause for the person.
///
/// # Errors
/// A command cannot connect to hosts here, or can connect to too many. The error is a clause with the reason.
pub async fn try_access(executor: &Executor) -> Result<&'static str, String> {
    let launcher = executor.launcher();
    let checked = launcher.map(|it| it.report().own_network());
    if let Some(Err(why)) = checked {
        return Err(format!("no network by host: {why}"));
    }
    let failed = |why: String| format!("network by host could not be tried: {why}");
    let dir = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let started = tokio::try_join!(
        LoopbackServer::start(),
        LoopbackServer::start(),
        LoopbackServer::start()
    );
    let (allowed, refused, direct) = started.map_err(|error| failed(error.to_string()))?;
    let workspace = dir.path().canonicalize();
    let workspace = workspace.map_err(|error| failed(error.to_string()))?;
    let ports = [&allowed, &refused, &direct].map(|server| server.port.to_string());
    let argv = ["bash", "-c", SCRIPT, "bash"].map(str::to_owned);
    let spec = CommandSpec {
        program: Program::Argv(argv.into_iter().chain(ports).collect()),
        cwd: workspace.clone(),
        caller: Caller::Agent,
        stdin: None,
        timeout: TIMEOUT,
        confinement: Confinement::Workspace {
            workspace,
            network: Network::Own,
            shown: ShownSecrets::Nothing,
        },
        environment: Environment::default(),
        extra_env: Vec::new(),
    };
    // A proxy of the person has no part in it.
    let access = HostAccess::with_environment(Arc::new(PortAsker(allowed.port)), &[]);
    let started = super::start(executor, spec, Streams::Whole, Some(access)).await;
    let (running, open) = started.map_err(|error| failed(error.to_string()))?;
    let outcome = running.outcome().await;
    drop(open);
    let said = outcome.output.get(..outcome.printed).unwrap_or_default();
    let said = said.trim();
    let reached = [&allowed, &refused, &direct].map(LoopbackServer::was_reached);
    match reached {
        [_, true, _] => Err("a command reaches a host that nobody allowed".to_owned()),
        [_, _, true] => Err("a command reaches a host past co's proxy".to_owned()),
        [true, false, false] if said == EXPECTED => Ok(
            "through co's proxy, a command reaches an allowed host, and no other; past the proxy, it reaches none",
        ),
        [_, false, false] => {
            let told = one_line(&outcome.output);
            Err(failed(format!("the command said \"{told}\"")))
        }
    }
}
