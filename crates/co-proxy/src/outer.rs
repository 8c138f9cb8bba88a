//! The person's own proxy. co's proxy connects through it.

use std::ffi::OsString;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::{Builder, Matcher};

use crate::refusal::ProxyRefusal;
use crate::target::Target;

const HTTP_PORT: u16 = 80;

/// The address that replaces a proxy address of the person that cannot be parsed. Without this replacement, co's proxy would
/// connect directly.
const UNREADABLE: &str = "socks5://unreadable.invalid";

/// The person's own proxies, from variables such as `HTTPS_PROXY`. The list may be empty.
#[derive(Debug, Clone)]
pub struct OuterProxy(Arc<Matcher>);

/// The person's proxy for one connection.
#[derive(Debug)]
pub(crate) struct OuterHop {
    pub(crate) proxy: Target,
    pub(crate) authorization: Option<HeaderValue>,
}

impl OuterProxy {
    /// Returns an empty list of proxies.
    pub fn none() -> Self {
        Self(Arc::new(Matcher::builder().build()))
    }

    /// Reads the proxies from `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case.
    pub fn from_environment(variables: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| {
            let of = |name: &str| {
                let found = variables.iter().find(|(key, _)| key == name);
                let text = found.and_then(|(_, value)| value.to_str());
                text.filter(|it| !it.is_empty())
            };
            of(name)
                .or_else(|| of(&name.to_ascii_lowercase()))
                .unwrap_or_default()
                .to_owned()
        };
        let all = value("ALL_PROXY");
        let or_all = |name| match value(name) {
            own if own.is_empty() => all.clone(),
            own => own,
        };
        let or_all = |name| match or_all(name) {
            text if text.is_empty() || is_readable(&text) => text,
            _ => UNREADABLE.to_owned(),
        };
        let matcher = Builder::default()
            .http(or_all("HTTP_PROXY"))
            .https(or_all("HTTPS_PROXY"))
            .no(value("NO_PROXY"));
        Self(Arc::new(matcher.build()))
    }

    /// Returns the person's proxy for a request to a target with this scheme. Returns `None` if co's proxy connects to the target
    /// directly.
    ///
    /// # Errors
    /// co's proxy cannot connect through the person's proxy.
    pub(crate) fn hop(
        &self,
        scheme: &str,
        target: &Target,
    ) -> Result<Option<OuterHop>, ProxyRefusal> {
        // The loopback interface of the person's proxy is that of another machine.
        if target.is_local() {
            return Ok(None);
        }
        let Ok(uri) = format!("{scheme}://{target}/").parse::<Uri>() else {
            return Ok(None);
        };
        let Some(hop) = self.0.intercept(&uri) else {
            return Ok(None);
        };
        // The name of the person in the address is left out.
        let unusable = || {
            let uri = hop.uri();
            let (scheme, host) = (uri.scheme_str(), uri.host());
            let shown = format!(
                "{}://{}",
                scheme.unwrap_or_default(),
                host.unwrap_or_default()
            );
            ProxyRefusal::OuterKind(match shown == UNREADABLE {
                true => "of the environment".to_owned(),
                false => shown,
            })
        };
        if hop.uri().scheme_str() != Some("http") {
            return Err(unusable());
        }
        let authority = hop.uri().authority().ok_or_else(unusable)?;
        let address = authority.as_str().rsplit('@').next().unwrap_or_default();
        Ok(Some(OuterHop {
            proxy: Target::parse(address, Some(HTTP_PORT)).map_err(|_| unusable())?,
            authorization: hop.basic_auth().cloned(),
        }))
    }
}

/// Returns true if the address of a proxy can be parsed, whatever its scheme.
fn is_readable(text: &str) -> bool {
    let matcher = Builder::default().http(text.to_owned()).build();
    matcher
        .intercept(&Uri::from_static("http://host.invalid/"))
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(variables: &[(&str, &str)], scheme: &str, target: &str) -> Option<String> {
        let variables: Vec<_> = variables
            .iter()
            .map(|(a, b)| (a.into(), b.into()))
            .collect();
        let target = Target::parse(target, None).unwrap();
        let hop = OuterProxy::from_environment(&variables).hop(scheme, &target);
        match hop {
            Ok(hop) => hop.map(|it| it.proxy.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    #[test]
    fn the_proxy_of_the_person_is_found() {
        let https = [("HTTPS_PROXY", "http://u:p@p.example:3128")];
        assert_eq!(
            hop(&https, "https", "a.example:443").unwrap(),
            "p.example:3128"
        );
        assert_eq!(hop(&https, "http", "a.example:80"), None);
        let all = [
            ("all_proxy", "p.example:8"),
            ("no_proxy", "a.example,10.0.0.0/8"),
        ];
        assert_eq!(hop(&all, "http", "b.example:80").unwrap(), "p.example:8");
        assert_eq!(hop(&all, "http", "x.a.example:80"), None);
        assert_eq!(hop(&all, "https", "10.1.1.1:443"), None);
        for local in ["localhost:80", "127.0.0.1:80", "[::1]:80"] {
            assert_eq!(hop(&all, "http", local), None, "{local}");
        }
        let socks = [("ALL_PROXY", "socks5h://u:secret@p.example:1")];
        let why = hop(&socks, "https", "a.example:443").unwrap();
        assert!(why.contains("socks5h://p.example cannot be used"), "{why}");
        for unreadable in ["socks://p.example:1/", "http://u:p@ss word@p.example"] {
            let variables = [("ALL_PROXY", unreadable), ("NO_PROXY", "b.example")];
            let why = hop(&variables, "https", "a.example:443").unwrap();
            assert!(
                why.contains("your proxy of the environment cannot be used"),
                "{why}"
            );
            assert_eq!(hop(&variables, "https", "b.example:443"), None);
        }
    }
}
