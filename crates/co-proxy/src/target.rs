//! A host and a port that a command wants to connect to.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::address;

/// The longest host name in DNS, in bytes.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// The name of the loopback interface.
const LOCALHOST: &str = "localhost";

/// A host: a DNS name in lower case without a dot at the end, or an IP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    pub host: Host,
    pub port: u16,
}

/// The reason why a text is not a host and a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("{0:?} is no name or address of a host")]
    Host(String),
    #[error("{0:?} names no port from 1 to 65535")]
    Port(String),
}

impl Host {
    /// Returns the reason why this address is not on the internet, such as "this machine". Returns `None` for names and for all
    /// other addresses.
    pub fn special(&self) -> Option<&'static str> {
        match self {
            Self::Name(_) => None,
            Self::Address(address) => address::special(*address),
        }
    }

    /// Returns true if a name in a TLS or HTTP message means this host.
    pub(crate) fn is(&self, name: &str) -> bool {
        name.parse::<Self>().is_ok_and(|host| host == *self)
    }
}

impl FromStr for Host {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let bracketed = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Some(address) = bracketed {
            let address = address.parse::<Ipv6Addr>();
            let address = address.map_err(|_| TargetError::Host(text.to_owned()))?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > MAX_NAME || !name.split('.').all(is_label) || is_number(name) {
            return Err(TargetError::Host(text.to_owned()));
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => to.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(to, "[{address}]"),
            Self::Address(address) => write!(to, "{address}"),
        }
    }
}

impl Target {
    /// Parses `HOST:PORT`. If the port is missing, it is `default`.
    ///
    /// # Errors
    /// The text has another form, or it has no port and there is no default.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, TargetError> {
        // An address of IPv6 has its colons in brackets.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err(TargetError::Host(text.to_owned()));
        }
        let wrong = || TargetError::Port(text.to_owned());
        let port = match port {
            None => default.ok_or_else(wrong)?,
            Some(port) if port.bytes().all(|it| it.is_ascii_digit()) => {
                port.parse().map_err(|_| wrong())?
            }
            Some(_) => return Err(wrong()),
        };
        if port == 0 {
            return Err(wrong());
        }
        Ok(Self {
            host: host.parse()?,
            port,
        })
    }
}

impl Target {
    /// Returns true if the target is on this machine's loopback interface.
    pub(crate) fn is_local(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == LOCALHOST,
            Host::Address(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.host, self.port)
    }
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
}

/// Returns true if resolvers take this name for an IP address, such as `127.1`, `0x7f.1` or `2130706433`.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|it| it.is_ascii_hexdigit()),
        None => last.bytes().all(|it| it.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let read = Target::parse(text, None).ok();
        assert_eq!(
            read.map(|it| it.to_string()).as_deref(),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn each_host_has_one_form() {
        check("Example.ORG:443", Some("example.org:443"));
        check("example.org.:443", Some("example.org:443"));
        check("_x.a-b.example:1", Some("_x.a-b.example:1"));
        check("127.0.0.1:80", Some("127.0.0.1:80"));
        check("[::1]:80", Some("[::1]:80"));
        check("[0:0::1]:80", Some("[::1]:80"));
        check("[::ffff:127.0.0.1]:80", Some("127.0.0.1:80"));
    }

    #[test]
    fn other_texts_are_no_hosts() {
        for text in [
            "",
            ":443",
            "example.org",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "example.org:+1",
            "example.org:443:443",
            "::1:80",
            "[::1]",
            "[::1%eth0]:80",
            "[example.org]:80",
            "a..b:1",
            "..:1",
            ".:1",
            "a b:1",
            "a/b:1",
            "user@a:1",
            "a\u{e9}.org:1",
            "*.example.org:1",
            "2130706433:80",
            "0x7f.1:80",
            "0x7f000001:80",
            "127.1:80",
            "0177.0.0.01:80",
            "127.0.0.1.:80",
        ] {
            check(text, None);
        }
        check(&format!("{}:1", "a".repeat(64)), None);
        check(
            &format!("{}:1", "a.".repeat(127)),
            Some(&format!("{}:1", "a.".repeat(127).trim_end_matches('.'))),
        );
        check(&format!("{}a:1", "a.".repeat(127)), None);
    }
}
