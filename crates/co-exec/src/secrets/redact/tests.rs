use super::*;

fn redact(text: &str) -> String {
    Redactor::new(&["own-provider-key-1".to_owned(), "short".to_owned()])
        .redact(text)
        .text
}

/// Made up here, piece by piece, so that no scanner takes this file for a leak.
fn secrets() -> Vec<(String, &'static str)> {
    let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
    [
        (format!("AKIA{}", "ABCDEFGHIJ234567"), "AWS key"),
        (format!("ghp_{}", &long[..36]), "GitHub token"),
        (format!("github_pat_{long}"), "GitHub token"),
        (format!("glpat-{}", &long[..20]), "GitLab token"),
        (format!("xoxb-{}", "123456789012-abcdefghij"), "Slack token"),
        (format!("sk_live_{}", &long[..24]), "Stripe key"),
        (format!("AIza{}", &long[..35]), "Google key"),
        (format!("sk-ant-api03-{long}"), "model provider key"),
        (format!("sk-proj-{long}"), "model provider key"),
        (format!("sk-{long}"), "model provider key"),
        (format!("npm_{}", &long[..36]), "registry token"),
        (
            format!("eyJ{}.eyJ{}.{}", &long[..20], &long[..30], &long[..20]),
            "JWT",
        ),
        ("own-provider-key-1".to_owned(), "provider key"),
    ]
    .into_iter()
    .collect()
}

#[test]
fn shapes_of_keys() {
    for (secret, kind) in secrets() {
        for (before, after) in [
            ("", ""),
            ("x = \"", "\";"),
            ("see ", " here"),
            ("(", ")"),
            ("a:", "\n"),
        ] {
            let expected = format!("{before}[redacted: {kind}]{after}");
            assert_eq!(redact(&format!("{before}{secret}{after}")), expected);
        }
    }
}

#[test]
fn different_secrets_are_counted() {
    let hidden = |text: &str| Redactor::new(&[]).redact(text).hidden;
    assert_eq!(hidden("nothing"), 0);
    assert_eq!(hidden("A_TOKEN=abcdef1 A_TOKEN=abcdef1\n"), 1);
    assert_eq!(hidden("A_TOKEN=abcdef1\nB_TOKEN=abcdef2\n"), 2);
}

#[test]
fn values_of_telling_names() {
    for (text, secret) in [
        ("API_KEY=abc123def", "abc123def"),
        ("export DB_PASSWORD='hunter2 x'", "hunter2 x"),
        ("GITHUB_TOKEN=\"abcdef\"", "abcdef"),
        ("docker run -e APP_SECRET=s3cr3tvalue img", "s3cr3tvalue"),
        ("+MY_TOKEN=tokenvalue", "tokenvalue"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY",
            "wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY",
        ),
        ("SECRET_KEY=a(b)c", "a(b)c"),
        ("{\"password\": \"Hunter2!\"}", "Hunter2!"),
        ("\"apiKey\":\"k3yk3yk3y\"", "k3yk3yk3y"),
        ("client_secret: 'a1b2c3d4e5'", "a1b2c3d4e5"),
        ("password: hunter2", "hunter2"),
        ("  access_token: abcdef123456", "abcdef123456"),
        ("db.password=hunter22", "hunter22"),
        (
            "curl 'https://x/?access_token=abcd1234efgh&x=1'",
            "abcd1234efgh",
        ),
        ("mysql --password=hunter22 x", "hunter22"),
        ("postgres://user:hunter2@db/x", "hunter2"),
        ("https://x-access-token:abcdefg@github.com/a/b", "abcdefg"),
        (
            "https://abcdefghijklmnopqrstuvwx@github.com/a",
            "abcdefghijklmnopqrstuvwx",
        ),
        ("Authorization: Bearer abcdefgh12345", "abcdefgh12345"),
        ("-H 'authorization: token abcdefgh12345'", "abcdefgh12345"),
        ("const password = \"Tr0ub4dor\";", "Tr0ub4dor"),
    ] {
        let clean = redact(text);
        assert!(!clean.contains(secret), "{text} became {clean}");
        let (before, after) = text.split_once(secret).unwrap();
        assert!(
            clean.starts_with(before) && clean.ends_with(after),
            "{text} became {clean}"
        );
    }
}

#[test]
fn private_keys() {
    let body =
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\nC7VJTUt9Us8cKjMzEfYyjiWA4R4xq\nabc=\n";
    for kind in ["", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED "] {
        let text = format!(
            "a\n-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----\nb\n"
        );
        assert_eq!(redact(&text), "a\n[redacted: private key]\nb\n");
    }
    let cut = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}");
    assert_eq!(redact(&cut), "[redacted: private key]\n");
    let numbered = "     1\t-----BEGIN PRIVATE KEY-----\n     2\tMIIEvQIBADANBgkqhkiG9w0BAQEF\n     3\t-----END PRIVATE KEY-----\n";
    assert!(!redact(numbered).contains("MIIE"));
    let one_line = "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0B\\n-----END PRIVATE KEY-----\\n\"}";
    assert!(!redact(one_line).contains("MIIE"));
    let code = "if text.contains(\"-----BEGIN RSA PRIVATE KEY-----\") {\n    let x = 1;\n}\n";
    assert_eq!(redact(code), code);
}

#[test]
fn ordinary_source_stays() {
    let source = r#"
let token = tokens.next();
token = tokens.next()
let key = map.keys().next().unwrap();
const API_KEY = process.env.API_KEY;
api_key = os.environ["API_KEY"]
API_KEY=$API_KEY make test
export TOKEN=$(cat file)
password: string;
password: Option<String>,
pub token: String,
token: u64,
secret: &'a str,
fn secret(key: &str) -> bool {
MAX_TOKENS=4096
max_tokens = 4096
"max_tokens": 8192,
token_count: 12345
KEY_LEN = 32
"key": "value"
{"type": "password", "name": "password"}
<input type="password" name="password" id="password">
password = getpass("Password: ")
label: "Enter your password"
parse_token(token=token, key=key)
foo(token=token_1, password=password2)
if token == "identifier" {
match token { Token::Word(w) => w, _ => return }
sk-fading-circle sk-cube-grid
git+https://github.com/a/b.git
http://localhost:8080/path?x=1
ssh://git@github.com/a/b
https://user:${PASSWORD}@host/
postgres://user:<password>@localhost/db
let url = format!("https://{user}:{pass}@{host}");
commit 3f786850e387550fdab836ed7e6dc881de23001b
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
checksum = "2a2d2e8f5d9a8f6c3f5b7ec0d0fcf8a8b6f7d4e1e5a6b7c8d9e0f1a2b3c4d5e6"
name = "secrecy"
version = "0.10.3"
primary_key=True
foreign_key: users.id
keyboard: qwerty123
monkey = "banana12"
tokenizer: "gpt-4"
secret_name: my-secret-1
credentials: include
"token_type": "bearer"
TOKEN_URL=https://example.org/token
SSH_KEY_PATH=/home/x/.ssh/id_rsa
PASSWORD_FILE=/run/secrets/db
const SECRET: &str = "SECRET";
env("OPENAI_API_KEY")
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
"#;
    for line in source.lines() {
        assert_eq!(redact(line), line);
    }
    assert_eq!(redact(source), source);
}

#[test]
fn this_crate_is_ordinary_source() {
    for text in [
        include_str!("../../../../co-policy/src/rules.rs"),
        include_str!("../../../../co-policy/src/paths.rs"),
        include_str!("../../../../co-policy/src/bash.rs"),
        include_str!("../../lib.rs"),
        include_str!("../../../../co-llm/src/transcript.rs"),
        include_str!("../../../../../Cargo.toml"),
        include_str!("../../../../../Cargo.lock"),
        include_str!("../../../../co-policy/src/programs/files.toml"),
        include_str!("../../../../../docs/PROTOCOL.md"),
    ] {
        assert_eq!(redact(text), text);
    }
}
