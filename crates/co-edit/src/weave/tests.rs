use proptest::prelude::*;

use super::*;

const ONE: usize = Weave::FIRST;
const TWO: usize = 1;

/// Returns the base of an author who has changed `base` to `seen`, after the owner changed the text to `now`.
fn carried(base: &str, seen: &str, now: &str) -> String {
    let mut weave = Weave::new(base, seen, 0);
    weave.edit(now, EditBy::Owner);
    weave.base(ONE)
}

fn edit(weave: &mut Weave, now: &str, author: usize) {
    weave.edit(now, EditBy::Author(Mark { author, change: 9 }));
}

#[test]
fn an_edit_is_made_in_the_base_too() {
    for (base, seen, now, expected) in [
        // Elsewhere.
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "B\nc\n", "b\nc\n"),
        ("a\nb\nc\n", "a\nc\n", "x\na\nc\n", "x\na\nb\nc\n"),
        // In the same place.
        ("a\nb\n", "a\nb\nx\ny\nz\n", "a\nb\nx\nY\nz\n", "a\nb\nY\n"),
        ("a\nb\n", "a\nb\nx\ny\n", "a\nb\n", "a\nb\n"),
        ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", "a\nb\nx\nc\n"),
        ("", "x\ny\n", "x\nme\ny\n", "me\n"),
        // In place of lines that replaced others.
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB2\nc\n", "a\nB2\nc\n"),
        ("a\nb\n", "A\nB\n", "A\nme\n", "a\nme\n"),
        ("a\nb\n", "A\nB\n", "me\nB\n", "me\nb\n"),
        ("a\nb\n", "A\nB\n", "me\n", "me\n"),
        ("a\nb\n", "A\nB\nC\n", "A\nme\nC\n", "a\nb\nme\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nc\n", "a\nb\nc\n"),
        // Directly above.
        ("a\nb\nc\n", "a\nb\nC\n", "a\nx\nC\n", "a\nx\nc\n"),
        ("a\nb\nc\n", "a\nc\n", "A\nc\n", "A\nb\nc\n"),
        ("x\nb\n", "x\n", "y\nb\n", "y\nb\n"),
        // What was changed is as before again.
        ("a\nb\nc\n", "a\nc\n", "a\nb\nc\n", "a\nb\nc\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\n", "a\nb\nc\n"),
        ("a\nb\nc\n", "", "a\nb\n", "a\nb\nc\n"),
        // A last line without its line break.
        ("a\nb", "a\nb\nc", "a\nb\nc\nd", "a\nb\nd"),
        ("a\nb", "a\nb\nc", "a\nb\nc\n", "a\nb"),
        ("a", "a\n", "x\na\n", "x\na"),
    ] {
        assert_eq!(
            carried(base, seen, now),
            expected,
            "{base:?} {seen:?} {now:?}"
        );
    }
}

#[test]
fn each_author_has_a_base() {
    let mut weave = Weave::new("1\n2\n3\n", "1\none\n3\n", 0);
    edit(&mut weave, "1\ntwo\n3\n", TWO);
    assert_eq!(weave.base(ONE), "1\n2\ntwo\n3\n");
    assert_eq!(weave.base(TWO), "1\none\n3\n");
    // The changes of the first author are taken back: the text of the second one stays.
    let mut back = weave.clone();
    back.edit("1\n2\ntwo\n3\n", EditBy::TakingBack(ONE));
    assert_eq!(back.base(TWO), "1\n2\n3\n");
    // The other way around.
    weave.edit("1\none\n3\n", EditBy::TakingBack(TWO));
    assert_eq!(weave.base(ONE), "1\n2\n3\n");
}

#[test]
fn accepted_changes_are_in_each_base() {
    let mut weave = Weave::new("1\n2\n3\n", "1\none\n3\nmore\n", 0);
    edit(&mut weave, "1\ntwo\n3\nmore\n", TWO);
    weave.accept(ONE, "1\ntwo\n3\n", 9);
    assert_eq!(weave.base(ONE), "1\ntwo\n3\n");
    assert_eq!(weave.base(TWO), "1\none\n3\nmore\n");
    weave.edit("1\none\n3\nmore\n", EditBy::TakingBack(TWO));
    assert_eq!(weave.base(ONE), "1\none\n3\n");
}

#[test]
fn other_lines_may_be_accepted_in_place_of_changes() {
    let mut weave = Weave::new("1\n2\n", "1\none\n", 0);
    weave.accept(ONE, "1\nmine\n", 9);
    assert_eq!(
        (weave.base(ONE), weave.text()),
        ("1\nmine\n".into(), "1\none\n".into())
    );
    weave.edit("1\nmine\n", EditBy::TakingBack(ONE));
    assert_eq!(
        (weave.base(ONE), weave.text()),
        ("1\nmine\n".into(), "1\nmine\n".into())
    );
}

#[test]
fn a_hunk_knows_the_changes_of_all_authors() {
    let mut weave = Weave::new("1\n2\n3\n", "1\none\n3\n", 5);
    edit(&mut weave, "1\ntwo\n3\n", TWO);
    let both = [(ONE, 5), (TWO, 9)].map(|(author, change)| Mark { author, change });
    assert_eq!(weave.changes_of(ONE, &[(1..2, 1..1)]), [both]);
    assert_eq!(weave.changes_of(TWO, &[(1..2, 1..2)]), [both]);
    assert_eq!(weave.changes_at(1..2), both[1..]);
}

#[test]
fn equal_lines_of_the_owner_stay_when_those_of_an_author_go() {
    let base = "fn a() {\nx\n}\n";
    let back = |by| {
        let mut weave = Weave::new(base, "fn a() {\nx\ny\n}\n", 0);
        edit(&mut weave, "fn a() {\nx\n}\n\nfn b() {\ny\n}\n", ONE);
        weave.edit(base, by);
        assert_eq!((weave.base(ONE), weave.text()), (base.into(), base.into()));
    };
    back(EditBy::TakingBack(ONE));
    back(EditBy::Owner);
    // A part is taken back.
    let mut weave = Weave::new("{\n}\n", "{\n}\n{\n}\n", 0);
    edit(&mut weave, "{\n}\n{\n}\nmore\n", ONE);
    weave.edit("{\n}\nmore\n", EditBy::TakingBack(ONE));
    assert_eq!(weave.base(ONE), "{\n}\n");
}

#[test]
fn equal_lines_of_another_author_stay_open() {
    let base = "start\n";
    let mut weave = Weave::new(base, "start\n\n#[test]\nfn b() {\n}\n", 0);
    edit(
        &mut weave,
        "start\n\n#[test]\nfn b() {\n}\n\n#[test]\nfn a() {\n}\n",
        TWO,
    );
    let last = "start\n\n#[test]\nfn b() {\n}\n\n#[test]\nfn a() {\n}\nend\n";
    edit(&mut weave, last, ONE);
    // The first author's last change is accepted, the first one is not.
    weave.accept(ONE, "start\n\n#[test]\nfn a() {\n}\nend\n", 9);
    assert_eq!(weave.base(TWO), "start\n\n#[test]\nfn b() {\n}\nend\n");
}

proptest! {
    #[test]
    fn a_full_return_closes_all(
        base in "([abc]{0,1}\n){0,6}",
        texts in prop::collection::vec(("([abc]{0,1}\n){0,6}", 0..2_usize), 1..5),
        by_owner: bool,
    ) {
        let mut weave = Weave::new(&base, &texts[0].0, 0);
        for (text, author) in &texts[1..] {
            edit(&mut weave, text, *author);
        }
        for author in [ONE, TWO] {
            let mut weave = weave.clone();
            let back = weave.base(author);
            weave.edit(&back, if by_owner { EditBy::Owner } else { EditBy::TakingBack(author) });
            prop_assert_eq!(weave.text(), back.clone());
            prop_assert!(by_owner || weave.base(author) == back);
        }
    }

    #[test]
    fn an_edit_of_the_same_text_or_back_to_it_is_exact(
        base in "([abc]{0,2}\n){0,6}[ab]?",
        seen in "([abc]{0,2}\n){0,6}[ab]?",
        now in "([abc]{0,2}\n){0,6}[ab]?",
    ) {
        let mut weave = Weave::new(&base, &seen, 0);
        prop_assert_eq!(weave.base(ONE), base.clone());
        prop_assert_eq!(weave.text(), seen.clone());
        weave.edit(&now, EditBy::Owner);
        prop_assert_eq!(weave.text(), now.clone());
        prop_assert_eq!(carried(&base, &base, &now), now.clone());
        prop_assert_eq!(carried(&base, &seen, &seen), base.clone());
        let carried = weave.base(ONE);
        // No line of the edit is lost.
        let [seen, now] = [&seen, &now].map(|it| Ending::of(it).text);
        for hunk in hunks(&seen, &now) {
            for line in hunk.text.lines() {
                prop_assert!(carried.lines().any(|it| it == line));
            }
        }
    }

    #[test]
    fn what_is_accepted_is_the_base(
        base in "([abc]{0,2}\n){0,6}[ab]?",
        seen in "([abc]{0,2}\n){0,6}[ab]?",
        now in "([abc]{0,2}\n){0,6}[ab]?",
        accepted in "([abc]{0,2}\n){0,6}[ab]?",
    ) {
        let mut weave = Weave::new(&base, &seen, 0);
        edit(&mut weave, &now, TWO);
        weave.accept(ONE, &accepted, 1);
        prop_assert_eq!(weave.base(ONE), accepted);
        prop_assert_eq!(weave.text(), now.clone());
        weave.accept(ONE, &now, 1);
        prop_assert_eq!(weave.base(ONE), now);
    }
}
