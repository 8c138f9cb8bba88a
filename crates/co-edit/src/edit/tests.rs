use super::*;

fn edit(old: &str, new: &str) -> Edit {
    Edit {
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn all(old: &str, new: &str) -> Edit {
    Edit {
        all: true,
        ..edit(old, new)
    }
}

/// Returns the file after the edits, or the sentence of the refusal.
fn applied(file: &str, edits: &[Edit]) -> Result<String, String> {
    let file = FileText::decode(file.as_bytes()).unwrap();
    match apply(&file, edits) {
        Ok(edited) => Ok(String::from_utf8(edited.file.encode().unwrap()).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn check(file: &str, edits: &[Edit], expected: &str) {
    assert_eq!(applied(file, edits).as_deref(), Ok(expected));
}

#[track_caller]
fn refused(file: &str, edits: &[Edit], expected: &str) {
    assert_eq!(applied(file, edits).unwrap_err(), expected);
}

#[test]
fn a_text_is_replaced_where_it_stands() {
    check("a b c", &[edit("b", "x")], "a x c");
    check("a\nb\n", &[edit("a\nb", "c")], "c\n");
    check("a\r\nb\r\n", &[edit("a\nb", "a\nx\nb")], "a\r\nx\r\nb\r\n");
    check("a\nb\n", &[edit("a\r\nb", "c\r\nd")], "c\nd\n");
    check("$1 \\1", &[edit("$1", "$&$0")], "$&$0 \\1");
    check("a a a", &[all("a", "aa")], "aa aa aa");
    check("a\r\na\na", &[all("a\n", "b\nc\n")], "b\r\nc\r\nb\nc\na");
    check("a\n", &[edit("\n", "")], "a");
}

#[test]
fn each_edit_applies_to_what_the_ones_before_it_left() {
    check("a b", &[edit("a", "x"), edit("x b", "y")], "y");
    check(
        "one\ntwo\n",
        &[edit("one", "1"), edit("two", "2")],
        "1\n2\n",
    );
}

#[test]
fn a_place_that_differs_in_white_space_is_taken_and_told() {
    let file = FileText::decode(b"fn a() {\n\tb();\n\tc();\n}\n").unwrap();
    let edits = [edit("    b();\n    c();\n", "    b();\n    d();\n")];
    let edited = apply(&file, &edits).unwrap();
    assert_eq!(edited.file.as_str(), "fn a() {\n\tb();\n\td();\n}\n");
    assert_eq!(
        edited.notes[0].to_string(),
        "edit 1 replaced lines 2 to 3, which differ from `old` in white space, and `new` got the file's indentation"
    );
}

#[test]
fn a_refusal_says_what_to_do_next() {
    refused("a", &[], "there are no edits: give at least one");
    refused(
        "a",
        &[edit("", "x")],
        "`old` is empty: give the text to replace, or write the whole file with write_file",
    );
    refused(
        "a",
        &[edit("a", "a")],
        "`old` and `new` are equal, so nothing would change: correct `new` or leave the edit out",
    );
    refused(
        "a\na\nb a\n",
        &[edit("a", "x")],
        "`old` stands 3 times, at lines 1, 2 and 3: add lines around the right one, or set `all` to replace every one",
    );
    refused(
        "aaa",
        &[edit("aa", "x")],
        "`old` stands 2 times, at line 1: add lines around the right one, or set `all` to replace every one",
    );
    refused(
        "if x\n  b = 1\nelse\n    b  = 1\n",
        &[edit("b=1", "b=2")],
        "`old` does not stand in the file as given; with other white space it stands 2 times, at lines 2 and 4: copy the \
         right lines exactly, with lines around them",
    );
    refused(
        "one\ntwo\nthree\n",
        &[
            edit("three", "3"),
            edit("one\ntwo", "1"),
            edit("two\nthree", "2"),
        ],
        "edit 3 of 3: `old` overlaps edit 1, which changed line 2: join the two edits into one",
    );
    refused(
        "one\nlet two = 2;\nthree\n",
        &[edit("let two = 3;", "x")],
        "`old` does not stand in the file: copy it from the file, where these lines are the nearest\n     2\tlet two = 2;",
    );
    refused(
        "one\n",
        &[edit("something else", "x")],
        "neither `old` nor anything like it stands in the file: read the file again",
    );
    refused(
        "\ta =  1\n        b\n",
        &[edit("a = 1\n b", "c\n b")],
        "`old` differs from the file in its indentation, and that of `new` cannot be derived from it: copy the lines of the \
         file into `old` and indent `new` as they are\n     1\t\ta =  1\n     2\t        b",
    );
    refused(
        "a b",
        &[edit("a", "c"), edit("c", "a")],
        "edit 2 of 2: the file already is as the edit would make it: leave the edit out",
    );
}

#[test]
fn a_refused_edit_takes_the_others_with_it() {
    let file = FileText::decode(b"a\nb\n").unwrap();
    let error = apply(&file, &[edit("a", "x"), edit("nothing like it", "y")]).unwrap_err();
    assert_eq!((error.number, error.refusal), (2, Refusal::NothingNear));
}

#[test]
fn a_request_is_read_from_json() {
    let read = |text| serde_json::from_str::<Edit>(text);
    assert_eq!(read(r#"{"old":"a","new":"b"}"#).unwrap(), edit("a", "b"));
    assert_eq!(
        read(r#"{"old":"a","new":"b","all":true}"#).unwrap(),
        all("a", "b")
    );
    assert!(read(r#"{"old":"a","new":"b","every":true}"#).is_err());
}
