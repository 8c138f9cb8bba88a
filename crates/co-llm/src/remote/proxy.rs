//! Finds out whether co reaches a server through a proxy.

use reqwest::Url;

/// Returns true for a server on this machine. co never uses a proxy for such a server.
pub(super) fn is_local(base_url: &str) -> bool {
    let Ok(url) = Url::parse(base_url) else {
        return false;
    };
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// Returns the environment variable that sets a proxy for a server at this address. The HTTP client itself reads these variables.
pub(super) fn variable(base_url: &str, is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    let own = match base_url.starts_with("https://") {
        true => ["HTTPS_PROXY", "https_proxy"],
        false => ["HTTP_PROXY", "http_proxy"],
    };
    let mut names = own.into_iter().chain(["ALL_PROXY", "all_proxy"]);
    names.find(|name| !is_local(base_url) && is_set(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_a_proxy_is_that_of_the_address() {
        let check = |url: &str, set: &[&str], expected: Option<&str>| {
            let found = variable(url, |name| set.contains(&name));
            assert_eq!(found, expected, "{url} {set:?}");
        };
        check("https://h/", &["ALL_PROXY"], Some("ALL_PROXY"));
        check(
            "http://h/",
            &["all_proxy", "https_proxy"],
            Some("all_proxy"),
        );
        check(
            "https://h/",
            &["ALL_PROXY", "https_proxy"],
            Some("https_proxy"),
        );
        check("http://localhost:1/", &["ALL_PROXY"], None);
        check("https://h/", &[], None);
    }

    #[test]
    fn local_servers_are_reached_directly() {
        for url in [
            "http://localhost:1/",
            "http://127.0.0.1:1/",
            "http://[::1]:1/",
        ] {
            assert!(is_local(url), "{url}");
        }
        assert!(!is_local("https://api.openai.com/v1/"));
    }
}
