use super::parse;

/// Renders each command: its directory, its words (`?` before one that bash computes) and its redirections.
fn shape(source: &str) -> Vec<String> {
    let script = parse(source);
    let word = |word: &super::Word| match word.is_literal() {
        true => word.text().to_owned(),
        false => format!("?{}", word.text()),
    };
    let render = |command: &super::SimpleCommand| {
        let dir = command.dir.as_ref().map(|dir| format!("[{dir}]"));
        let assigned = command.assigned.iter().map(|name| format!("{name}="));
        let words = command.words.iter().map(word);
        let redirects = command.redirects.iter();
        let redirects = redirects.map(|it| format!("{}{}", it.operator, word(&it.target)));
        let all: Vec<String> = dir
            .into_iter()
            .chain(assigned)
            .chain(words)
            .chain(redirects)
            .collect();
        all.join(" ")
    };
    script.commands.iter().map(render).collect()
}

fn check(source: &str, expected: &[&str]) {
    assert_eq!(shape(source), expected, "{source:?}: {:?}", parse(source));
}

#[test]
fn finds_the_commands_of_every_form() {
    check("a; b && c || d | e\nf", &["a", "b", "c", "d", "e", "f"]);
    check("(a; b)", &["a", "b"]);
    check("{ a; b; }", &["a", "b"]);
    check("{a,b} c; { {d,} e; }", &["?a c", "?d e"]);
    check("! a", &["a"]);
    check(
        "if a; then b; elif c; then d; else e; fi",
        &["a", "b", "c", "d", "e"],
    );
    check("for x in 1 2; do a $x; done", &["a ?$x"]);
    check(
        "while a; do b; done; until c; do d; done",
        &["a", "b", "c", "d"],
    );
    check("case $x in y) a;; *) b;; esac", &["a", "b"]);
    check("f() { a; }; f", &["a", "f"]);
    check(
        "a $(b c) \"$(d)\" `e`",
        &["a ?$(b c) ?$(d) ?`e`", "b c", "d", "e"],
    );
    check("a <(b) >(c)", &["a ?<(b) ?>(c)", "b", "c"]);
    check("a <<X | b\n$(c)\nX\nd", &["a", "b", "c", "d"]);
    check("a <<'X'\n$(c)\nX", &["a"]);
    check("x=$(a) y=1 b", &["x= y= b", "a"]);
    check("x=1", &["x="]);
    check("export x=$(a)", &["export ?x=$(a)", "a"]);
    check("[[ -f $(a) ]] && b", &["[[", "a", "b"]);
    check("[ -f x ]", &["["]);
    check("(( x + 1 ))", &["(("]);
    check("a # b\nc", &["a", "c"]);
    check("", &[]);
}

#[test]
fn reads_words_and_redirections_as_bash_does() {
    check("a 'b c' \"d\" e\\ f g'h'", &["a b c d e f gh"]);
    check(
        "a *.rs ?x [ab] $y ${z} ~/w",
        &["a ?*.rs ??x ?[ab] ?$y ?${z} ~/w"],
    );
    check("a {} x{1..3} @{0}", &["a {} x{1..3} @{0}"]);
    check("a >b 2>&1 <c", &["a >b 2>&1 <c"]);
    check("2>/dev/null a b", &["a b 2>/dev/null"]);
    check("a > b c", &["a c >b"]);
    check("{ a; b; } > c", &["a", "b", ">c"]);
    check("a \\\n b", &["a b"]);
    check("a 'é' \u{2713}", &["a é \u{2713}"]);
    let script = parse("rm {a,b}/{c,d} '{e,f}'");
    assert_eq!(
        script.commands[0].texts(),
        ["rm", "a/c", "a/d", "b/c", "b/d", "{e,f}"]
    );
}

#[test]
fn follows_the_directory() {
    check(
        "cd a && b; cd c; d",
        &["cd a", "[a] b", "[a] cd c", "[a/c] d"],
    );
    check("(cd a && b); c", &["cd a", "[a] b", "c"]);
    check("cd a; cd -; b", &["cd a", "[a] cd -", "b"]);
    check("cd; a", &["cd", "[~] a"]);
    check("cd /x; a", &["cd /x", "[/x] a"]);
}

#[test]
fn says_what_it_cannot_sort() {
    for (source, part) in [
        ("a &", "background"),
        ("a & b", "background"),
        ("a \"b", "cannot read"),
        ("a; if b", "cannot read"),
        ("a \u{202e}", "invisible"),
        ("a\rb", "invisible"),
        (
            &format!("a {}", "x".repeat(super::MAX_CHARS)),
            "longer than",
        ),
        (&"a;".repeat(1_000), "too many"),
        (&format!("{}a{}", "$(".repeat(300), ")".repeat(300)), "too"),
    ] {
        let problems = parse(source).problems;
        let found = problems.iter().any(|it| it.text.contains(part));
        assert!(found, "{source:.40?}: {problems:?}");
    }
    assert!(parse("f() { f | f & }; f").fork_bomb);
    assert!(!parse("f() { g; }; f").fork_bomb);
    assert!(
        parse("a 2>&1 && b &>/dev/null; (( x & 1 ))")
            .problems
            .is_empty()
    );
}

#[test]
fn every_span_is_in_the_text() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let soup = "([a-z./*?~'\"\\\\$(){}<>|&;`!#=0-9@:, \n-]|é|if |do |done|<<X){0,40}";
    let strategy = proptest::string::string_regex(soup).unwrap();
    for _ in 0..2_000 {
        let source = strategy.new_tree(&mut runner).unwrap().current();
        let script = parse(&source);
        let spans = script.commands.iter().map(|it| &it.span);
        let problems = script.problems.iter().filter_map(|it| it.span.as_ref());
        for span in spans.chain(problems) {
            assert!(source.get(span.clone()).is_some(), "{source:?}: {script:?}");
        }
    }
}
