//! Handles the requests of a command: CONNECT and plain HTTP. Asks the decider about each request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, Uri, client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::client_stream::ClientStream;
use crate::context::ProxyContext;
use crate::refusal::ProxyRefusal;
use crate::route::Stream;
use crate::setup::Permission;
use crate::target::Target;
use crate::traffic::Counted;
use crate::tunnel::{BUFFER, TLS_PORT, Tunnel};

const HTTP_PORT: u16 = 80;

/// The headers that are only for the proxy and are not sent on to the server. The header `Connection` may name further ones.
const FOR_PROXY: [HeaderName; 7] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const OLD_FOR_PROXY: [&str; 2] = ["keep-alive", "proxy-connection"];

type ProxyBody = BoxBody<Bytes, hyper::Error>;

/// The body of a server's response. While the body lives, the task that reads the connection to the server lives too.
struct ServerBody {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

/// A client of the proxy, which sends requests.
struct ServedClient<'a> {
    context: &'a Arc<ProxyContext>,
    stream: ClientStream,
    /// The target of the CONNECT tunnel in which the requests come. All requests in a tunnel must be for this target. It is
    /// `None` for requests outside a tunnel.
    inside: Option<Target>,
}

/// The kind of connection that a CONNECT request opened.
enum Opened {
    Tunnel(Tunnel),
    /// Plain HTTP requests to one target.
    Requests {
        target: Target,
        client: OnUpgrade,
    },
}

/// Serves one connection of a command until it ends.
pub(crate) async fn serve(stream: TcpStream, context: &Arc<ProxyContext>) {
    let stream = ClientStream::new(stream);
    let served = ServedClient {
        context,
        stream: stream.clone(),
        inside: None,
    };
    match served.serve(TokioIo::new(stream)).await {
        Some(Opened::Tunnel(tunnel)) => tunnel.run(context).await,
        Some(Opened::Requests { target, client }) => {
            if let Ok(client) = client.await {
                let inside = Some(target);
                let served = ServedClient { inside, ..served };
                served.serve(client).await;
            }
        }
        None => {}
    }
}

impl ServedClient<'_> {
    /// Serves requests until the connection ends or a CONNECT request opens a tunnel.
    async fn serve(
        &self,
        stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    ) -> Option<Opened> {
        let opened = Mutex::new(None);
        let service =
            service_fn(async |request| Ok::<_, Infallible>(self.answer(request, &opened).await));
        let connection = server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.context.limits.head)
            .half_close(true)
            .max_buf_size(BUFFER)
            .preserve_header_case(true)
            .serve_connection(stream, service)
            .with_upgrades();
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection of a command broke");
        }
        opened.into_inner()
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        opened: &Mutex<Option<Opened>>,
    ) -> Response<ProxyBody> {
        let answered = if request.method() == Method::CONNECT && self.inside.is_none() {
            self.open(request).await.map(|way| {
                *opened.lock() = Some(way);
                Response::new(Empty::new().map_err(|never| match never {}).boxed())
            })
        } else {
            self.forward(request).await
        };
        answered.unwrap_or_else(|refusal| refused(&refusal))
    }

    /// Asks the decider for permission to connect to a target. Stops waiting if the client leaves.
    async fn decide(&self, target: &Target) -> Result<Permission, ProxyRefusal> {
        let decided = tokio::select! {
            decided = self.context.decider.decide(target) => decided,
            () = self.stream.left(self.context.limits.left) => {
                Err("the command closed the connection before the answer".to_owned())
            }
        };
        decided.map_err(|why| target.denied(why))
    }

    /// Opens the connection that a CONNECT request asks for, if its target is allowed. In a tunnel to the port of plain HTTP, the
    /// proxy handles each request itself. So a command cannot reach other hosts at the address of an allowed host.
    async fn open(&self, mut request: Request<Incoming>) -> Result<Opened, ProxyRefusal> {
        let context = self.context;
        let authority = request
            .uri()
            .authority()
            .ok_or(ProxyRefusal::NoProxyRequest)?;
        let target = Target::parse(authority.as_str(), None)?;
        let client = hyper::upgrade::on(&mut request);
        if target.port == HTTP_PORT {
            let decided = self.decide(&target).await;
            context.note(&target, decided)?;
            return Ok(Opened::Requests { target, client });
        }
        let connected = async {
            let Permission { ground, end } = self.decide(&target).await?;
            let stream = context.connect(&target).await?;
            Ok((context.count(&target, stream, &ground)?, end))
        };
        let (upstream, end) = context.note(&target, connected.await)?;
        Ok(Opened::Tunnel(Tunnel {
            upstream,
            client,
            target,
            end,
        }))
    }

    /// Carries out a plain HTTP request over a new connection, if its target is allowed.
    async fn forward(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, ProxyRefusal> {
        let (context, inside) = (self.context, self.inside.as_ref());
        let target = plain_target(&request, inside)?;
        let checked = check_plain(&request, &target);
        context.note(&target, checked)?;
        let sent = async {
            let Permission { ground, end } = self.decide(&target).await?;
            let outer = context.outer.hop("http", &target)?;
            let stream = match &outer {
                None => context.connect_directly(&target).await?,
                Some(hop) => {
                    context.check_for_outer(&target).await?;
                    context.connect_to_outer(hop, &target).await?
                }
            };
            remove_for_proxy(request.headers_mut());
            // The server's "100 Continue" is ours: hyper has sent it to the client.
            request.headers_mut().remove(EXPECT);
            request
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
            let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
            let uri = match outer {
                None => path.to_owned(),
                // Inside of a CONNECT, it is always port 80.
                Some(_) if inside.is_some() => format!("http://{}{path}", target.host),
                Some(_) => request.uri().to_string(),
            };
            *request.uri_mut() = uri
                .parse::<Uri>()
                .map_err(|_| ProxyRefusal::NoProxyRequest)?;
            if let Some(authorization) = outer.and_then(|hop| hop.authorization) {
                request
                    .headers_mut()
                    .insert(PROXY_AUTHORIZATION, authorization);
            }
            let stream: Box<dyn Stream> = Box::new(stream);
            let counted = context.count(&target, stream, &ground)?;
            let failed = |source| ProxyRefusal::NoAnswer {
                target: target.clone(),
                source,
            };
            let (mut sender, connection) = client::conn::http1::Builder::new()
                .max_buf_size(BUFFER)
                .preserve_header_case(true)
                .handshake(TokioIo::new(counted))
                .await
                .map_err(failed)?;
            let connection = AbortOnDropHandle::new(tokio::spawn(async move {
                // The response ends with it.
                tokio::select! {
                    biased;
                    () = end => {}
                    _ = connection => {}
                }
            }));
            let answer = tokio::time::timeout(context.limits.answer, sender.send_request(request));
            let answer = answer.await;
            let response = answer
                .map_err(|_| ProxyRefusal::LateAnswer(target.clone()))?
                .map_err(failed)?;
            Ok((response, connection))
        };
        let (mut response, connection) = context.note(&target, sent.await)?;
        remove_for_proxy(response.headers_mut());
        Ok(response.map(|body| {
            ServerBody {
                body,
                _connection: connection,
            }
            .boxed()
        }))
    }
}

/// Returns the response to a refused request. Its text is for a person.
fn refused(refusal: &ProxyRefusal) -> Response<ProxyBody> {
    let text = Full::from(format!("co: {refusal}\n"));
    let mut response = Response::new(text.map_err(|never| match never {}).boxed());
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    // A refused client may go on with the body of its request.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

impl ProxyContext {
    /// Starts to count the bytes of a connection to a target. `ground` is the reason why the target is allowed.
    fn count<S>(
        &self,
        target: &Target,
        stream: S,
        ground: &str,
    ) -> Result<Counted<S>, ProxyRefusal> {
        let counted = self.traffic.count(target, stream, ground);
        counted.ok_or_else(|| ProxyRefusal::TooManyTargets(target.clone()))
    }

    /// Records a refusal if the command lacked the permission for a target. Returns the result unchanged.
    fn note<T>(&self, target: &Target, tried: Result<T, ProxyRefusal>) -> Result<T, ProxyRefusal> {
        if let Err(refusal) = &tried
            && refusal.is_denial()
        {
            self.traffic.refuse(target, refusal.to_string());
        }
        tried
    }
}

/// Returns the target of a plain HTTP request. In a CONNECT tunnel, this is the target of the tunnel; otherwise it is the host of
/// the URL.
fn plain_target(
    request: &Request<Incoming>,
    inside: Option<&Target>,
) -> Result<Target, ProxyRefusal> {
    let uri = request.uri();
    let target = match (inside, uri.authority()) {
        (Some(target), None) => target.clone(),
        (None, Some(authority)) if uri.scheme_str() == Some("http") => {
            Target::parse(authority.as_str(), Some(HTTP_PORT))?
        }
        _ => return Err(ProxyRefusal::NoProxyRequest),
    };
    Ok(target)
}

/// Checks that a plain HTTP request names its target and no other host, and that its port does not require TLS.
fn check_plain(request: &Request<Incoming>, target: &Target) -> Result<(), ProxyRefusal> {
    let mut hosts = request.headers().get_all(HOST).into_iter();
    if let Some(named) = hosts.next() {
        let named = named.to_str().ok();
        let named = named.and_then(|it| Target::parse(it, Some(HTTP_PORT)).ok());
        if named.as_ref() != Some(target) || hosts.next().is_some() {
            return Err(ProxyRefusal::HostHeader(target.clone()));
        }
    }
    if target.port == TLS_PORT {
        return Err(ProxyRefusal::PlainOn443(target.clone()));
    }
    Ok(())
}

/// Removes the headers that are only for the proxy. So the client and the server cannot switch to another protocol.
fn remove_for_proxy(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // It names the length of the body, and hyper needs it.
        .filter(|name| *name != hyper::header::CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in named.iter().chain(&FOR_PROXY) {
        headers.remove(name);
    }
    for name in OLD_FOR_PROXY {
        headers.remove(name);
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
