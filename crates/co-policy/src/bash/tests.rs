use super::*;

/// Renders the pipelines with their words, `?` where a word is not literal.
fn shape(source: &str) -> String {
    let script = parse(source);
    if !script.refusals.is_empty() {
        return "refused".to_owned();
    }
    let mut shape = String::new();
    for (join, pipeline) in &script.pipelines {
        let lead = match join {
            Join::Then if shape.is_empty() => "",
            Join::Then => " ; ",
            Join::And => " && ",
            Join::Or => " || ",
        };
        shape.push_str(lead);
        let commands: Vec<String> = pipeline
            .iter()
            .map(|index| {
                let words = &script.commands[*index].words;
                let words: Vec<String> = words
                    .iter()
                    .map(|word| word.literal().unwrap_or_else(|| "?".to_owned()))
                    .collect();
                words.join(",")
            })
            .collect();
        shape.push_str(&commands.join(" | "));
    }
    shape
}

#[test]
fn understands_lists_and_words() {
    let cases = [
        ("ls -la 'a b'", "ls,-la,a b"),
        ("a && b || c; d\ne", "a && b || c ; d ; e"),
        ("a | b |\nc", "a | b | c"),
        ("e\\cho \"x$\" 'y'z\\ w", "echo,x$,yz w"),
        ("cat *.rs", "cat,?"),
        ("a 2>/dev/null b", "a,b"),
        ("a >/dev/null 2>&1 | b", "a | b"),
        ("a # b\nc", "a ; c"),
        ("a \\\n b", "a,b"),
        ("[ -f x ] && y", "[,-f,x,] && y"),
        ("a {} @{0} x=y -o=z", "a,{},@{0},x=y,-o=z"),
        ("a ''", "a,"),
        ("v=\\\n c9", "c9"),
        ("", ""),
        (" \n # x", ""),
    ];
    for (source, expected) in cases {
        assert_eq!(
            shape(source),
            expected,
            "{source:?}: {:?}",
            parse(source).refusals
        );
    }
}

#[test]
fn refuses_what_is_not_plain() {
    let cases = [
        "a &",
        "a |& b",
        "(a)",
        "{ a; }",
        "! a",
        "a $(b)",
        "a `b`",
        "a <(b)",
        "a \"$(b)\"",
        "a ${b}",
        "a $((1))",
        "a $'b'",
        "a $\"b\"",
        "a <<x\nx",
        "a <<<b",
        "if a; then b; fi",
        "f() { a; }",
        "a=1",
        "a=(1)",
        "[[ a ]]",
        "a ~",
        "a ~/b",
        "a x=~",
        "a {1..2}",
        "a 'b",
        "a \"b",
        "a |",
        "&& a",
        "a;;b",
        "a ä",
        "a\rb",
        "a\0b",
        "a\u{202e}b",
        "v=$ c",
        "\"${x:=`rm y`}\"",
        "${x%%$(ls)*}",
        "$[1]",
        "a $$",
        "a $1",
        "a $@",
        "((1))",
        "a)",
        "a(b",
        "[ a\n]",
        "[ $(b) ]",
        "[ a ]]",
        "coproc",
        "a <<`b`\n`b`",
    ];
    for source in cases {
        let refused = shape(source) == "refused";
        assert!(
            refused || source == "coproc" || source == "[ a ]]",
            "{source:?} is {}",
            shape(source)
        );
    }
}

#[test]
fn spans_are_those_of_the_text_as_written() {
    let source = "ls \\\n -l $(x)";
    let script = parse(source);
    let span = script.refusals[0].span.clone().unwrap();
    assert_eq!(&source[span], "$(x)");
}

#[test]
fn a_descriptor_is_read_as_bash_reads_it() {
    for source in [
        "c -y2>&1",
        "-b2>&1",
        "c == 2>&1",
        "c ];&>/dev/null",
        "c ;; d",
        "c {x}>/dev/null",
        "c {x}>&2",
    ] {
        let script = parse(source);
        assert!(!script.refusals.is_empty(), "{source}");
    }
    for source in [
        "c 2>&1",
        "c a2 >&1",
        "c a 2>/dev/null",
        "c 2>/dev/null >&2",
        "c &>/dev/null",
    ] {
        assert!(parse(source).refusals.is_empty(), "{source}");
    }
}

#[test]
fn an_assignment_may_follow_a_redirection() {
    let script = parse(">/dev/null x='a b' c y=2");
    let command = &script.commands[0];
    let words: Vec<_> = command.words.iter().map(|word| word.raw.as_str()).collect();
    assert_eq!(words, ["c", "y=2"]);
    let (name, value) = &command.assignments[0];
    assert_eq!(
        (name.as_str(), value.literal().as_deref()),
        ("x", Some("a b"))
    );
}

#[test]
fn finds_commands_inside_what_it_refuses() {
    let script = parse("if a; then b $(c d); fi; (e) & f() { g; }");
    let names: Vec<String> = script
        .commands
        .iter()
        .flat_map(|command| command.words[0].expansions())
        .collect();
    for name in ["a", "b", "c", "e", "g"] {
        assert!(
            names.iter().any(|found| found == name),
            "{name} in {names:?}"
        );
    }
}

#[test]
fn knows_fork_bombs() {
    for source in [":(){ :|:& };:", "f() { f | f & }; f", "b(){ b& b; }; b"] {
        assert!(parse(source).fork_bomb, "{source}");
    }
    assert!(!parse("f() { echo f; }; f").fork_bomb);
}

#[test]
fn long_and_deep_text_is_refused_quickly() {
    let deep = "(".repeat(5_000);
    for source in [
        "x".repeat(10_001),
        deep,
        "a;".repeat(4_000),
        "{ ".repeat(3_000),
        "$(".repeat(3_000),
        "a|".repeat(4_999),
    ] {
        assert!(!parse(&source).refusals.is_empty());
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(source in "\\PC{0,80}") {
        let _script = parse(&source);
    }

    #[test]
    fn no_shell_text_panics(source in "[a-c$(){}\\[\\]<>|&;`'\"\\\\ \n#*?~=!0-9@^-]{0,60}") {
        let script = parse(&source);
        for reason in &script.refusals {
            if let Some(span) = &reason.span {
                proptest::prop_assert!(source.get(span.clone()).is_some());
            }
        }
    }
}

#[test]
fn wide_characters_are_no_index_into_the_scanners_tables() {
    for wide in ['\u{7ff}', '\u{ffff}', '\u{10fffd}', '\u{2ff85}'] {
        for text in [
            "cat <<X{}\n",
            "cat <<{}\n{}\n",
            "echo {}{}",
            "$(( {} ",
            "a={}[{}",
            "[[ x =~ {} ]]",
            "case {} in {}) ;; esac",
        ] {
            super::parse(&text.replace("{}", &wide.to_string().repeat(3)));
        }
    }
}
