//! The environment variables that make the programs of a command use a proxy.

use std::ffi::OsString;

use co_exec::CERTIFICATES;

/// The variables with the address of the proxy. Most are set in both cases, because curl reads `http_proxy` only in lower case.
///
/// Sources: curl's manual ("Proxy environment variables"), which git and cargo follow through libcurl; the documentations of pip,
/// uv, npm and Go (`net/http.ProxyFromEnvironment`).
const PROXY: [&str; 12] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    // Yarn 2 and later read their own settings only (`httpProxy` and `httpsProxy` of .yarnrc.yml).
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    // These clients prefer their own variables to a proxy in their settings files, and these files to the variables above:
    // cargo ("Configuration", http.proxy), pip ("Configuration", precedence), npm and pnpm ("config", environment variables).
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
];

/// The variables with the hosts that programs connect to without the proxy: those at the command's own loopback interface.
const NO_PROXY: [&str; 3] = ["NO_PROXY", "no_proxy", "npm_config_noproxy"];
const OWN_HOSTS: &str = "localhost,127.0.0.1,::1";

/// Further variables that make certain clients use the proxy.
const SWITCHES: [(&str, &str); 2] = [
    // `fetch` and `node:http` of Node.js 22.21, 24.5 and later ("Command-line API", NODE_USE_ENV_PROXY).
    ("NODE_USE_ENV_PROXY", "1"),
    // The installer of Electron (`@electron/get`).
    ("ELECTRON_GET_USE_PROXY", "1"),
];

/// The Java options that make Maven 3.9 and later use Java's proxy settings ("Maven Artifact Resolver", Configuration Options).
const MAVEN: [&str; 2] = [
    "-Daether.connector.http.useSystemProperties=true",
    "-Daether.transport.apache.useSystemProperties=true",
];

/// Returns the environment variables for a proxy on this port of the loopback interface.
pub(super) fn proxy(port: u16) -> Vec<(String, String)> {
    let url = format!("http://127.0.0.1:{port}");
    let proxy = PROXY.iter().map(|name| (*name, url.as_str()));
    let direct = NO_PROXY.iter().map(|name| (*name, OWN_HOSTS));
    // A virtual machine of Java reads no variables about proxies, but options ("Java Networking and Proxies").
    let java = ["http", "https"]
        .map(|scheme| format!("-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}"));
    let java: Vec<_> = java.into_iter().chain(MAVEN.map(str::to_owned)).collect();
    let all = proxy.chain(direct).chain(SWITCHES);
    let mut all: Vec<_> = all
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    all.push(("JAVA_TOOL_OPTIONS".to_owned(), java.join(" ")));
    // "git-config", GIT_CONFIG_COUNT: these win over `http.proxy` of all files. A file may still name a proxy of one address
    // (`http.https://example.org.proxy`); git then reaches nothing.
    let git = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.proxy"),
        ("GIT_CONFIG_VALUE_0", url.as_str()),
    ];
    all.extend(git.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all
}

/// Returns the environment variables of this process that name the person's own certificates.
pub(super) fn certificates(environment: &[(OsString, OsString)]) -> Vec<(String, String)> {
    let value = |name: &&str| {
        let found = environment.iter().find(|(it, _)| it == *name)?;
        Some(((*name).to_owned(), found.1.to_str()?.to_owned()))
    };
    CERTIFICATES.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_proxy_and_the_certificates() {
        let variables = proxy(17);
        let value = |name| variables.iter().find(|(it, _)| it == name);
        for name in ["HTTPS_PROXY", "CARGO_HTTP_PROXY", "npm_config_https_proxy"] {
            assert_eq!(value(name).unwrap().1, "http://127.0.0.1:17", "{name}");
        }
        let environment = [("SSL_CERT_FILE", "/c.pem"), ("HOME", "/h")];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        let expected = [("SSL_CERT_FILE".to_owned(), "/c.pem".to_owned())];
        assert_eq!(certificates(&environment), expected);
    }
}
