use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::checkpoint::Checkpoints;
use crate::checkpoint::tests::Scene;
use crate::checkpoint::{CallChanges, Undo};
use co_llm::transcript::Decision;

/// Two chats in one workspace.
const CHATS: [&str; 2] = ["chat", "other"];
const CHAT: &str = CHATS[0];

impl Scene {
    fn record(&self, chat: usize, by: ChangeCause, found: CallChanges) {
        let record = Record {
            changes: found.changes,
            ..Record::new(0, by, self.workspace.root())
        };
        self.checkpoints.append(CHATS[chat], &record).unwrap();
    }

    fn command(&self, run: impl FnOnce()) {
        self.command_by(0, run);
    }

    fn command_by(&self, chat: usize, run: impl FnOnce()) {
        let found = self.call(run);
        self.record(chat, call(true), found);
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.at(path)).unwrap().permissions().mode() & 0o777
    }

    fn edit(&self, path: &str, text: &str) {
        self.edit_by(0, path, text);
    }

    fn edit_by(&self, chat: usize, path: &str, text: &str) {
        let files = [self.at(path)];
        let before = self.workspace.before_edit(&files).unwrap();
        self.write(path, text);
        let found = self.workspace.after_edit(before);
        self.record(chat, call(false), found);
    }

    fn round(&self, chat: usize) -> Round {
        // Another process reads what this one wrote.
        let checkpoints = Checkpoints::new(self.top.join("state/checkpoints"));
        let (root, store) = (self.workspace.root(), &self.workspace.store);
        let others = checkpoints.others(CHATS[chat], root, None).into_iter();
        let own = checkpoints.records(CHATS[chat]);
        let chats = std::iter::once(own).chain(others.map(|it| it.1));
        let records = in_order(chats.collect());
        let mut round = Round::of(&records, root, store).unwrap();
        round.look(root, &OpenBuffers::default(), store).unwrap();
        round
    }

    fn open(&self) -> Vec<OpenFile> {
        self.round(0).open_files(&self.workspace.store)
    }

    fn answer(&self, answers: impl FnMut(&OpenFile, &OpenPart) -> Verdict) {
        self.answer_in(0, answers);
    }

    /// Answers the parts of the open files of a chat.
    fn answer_in(&self, chat: usize, mut answers: impl FnMut(&OpenFile, &OpenPart) -> Verdict) {
        let (mut refused, mut accepted) = (Vec::new(), Vec::new());
        let (round, store) = (self.round(chat), &self.workspace.store);
        for file in round.open_files(store) {
            let answers: Vec<_> = file.parts.iter().map(|it| answers(&file, it)).collect();
            let answered = file.answered(&answers, store).unwrap();
            refused.extend(answered.refused);
            accepted.extend(answered.accepted);
        }
        let by = ChangeCause::Accepted { files: accepted };
        self.record(chat, by, CallChanges::default());
        refused.extend(round.directories_of(&refused));
        let undo = Undo::of(
            refused.iter(),
            self.workspace.root(),
            store,
            &OpenBuffers::default(),
        );
        assert_eq!(undo.kept, []);
        let done = self.make(undo);
        assert_eq!(done.failed, []);
        let changes = done.changes;
        self.record(
            chat,
            ChangeCause::TakenBack,
            CallChanges {
                changes,
                ..CallChanges::default()
            },
        );
    }

    /// Returns the texts of the open files for a review.
    fn texts(&self) -> String {
        self.texts_in(0)
    }

    fn texts_in(&self, chat: usize) -> String {
        let store = &self.workspace.store;
        let files = self.round(chat).open_files(store).into_iter().map(|file| {
            let review = file.for_review(store);
            assert_eq!(review.parts, file.parts.len());
            assert_eq!(review.text.as_str().matches("@\n").count(), review.parts);
            format!(
                "{} {}\n{}",
                review.path,
                review.counts(),
                review.text.as_str()
            )
        });
        files.collect()
    }

    fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), Permissions::from_mode(mode)).unwrap();
    }
}

fn call(command: bool) -> ChangeCause {
    ChangeCause::Call {
        what: "x".to_owned(),
        decision: Decision::Approved,
        command,
    }
}

#[test]
fn what_the_person_changes_is_shown_and_never_taken_back() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n3\n4\n5\n");
    scene.edit("a", "1\nTWO\n3\n4\nFIVE\n");
    scene.write("a", "mine\n1\nTWO\n3\n4\nFIVE\nmine too\n");
    let expected = "a +2 -2\n~mine\n 1\n@\n-2\n+TWO\n 3\n 4\n@\n-5\n+FIVE\n~mine too\n";
    assert_eq!(scene.texts(), expected);
    scene.answer(|_, part| match part.line {
        3 => Verdict::Refused,
        _ => Verdict::Accepted,
    });
    assert_eq!(scene.read("a"), "mine\n1\n2\n3\n4\nFIVE\nmine too\n");
    assert_eq!(scene.texts(), "");
    // In the next round, all of that is the baseline.
    scene.edit("a", "mine\n1\n2\n3\nFIVE\nmine too\n");
    let expected = "a +0 -1\n mine\n 1\n 2\n 3\n@\n-4\n FIVE\n mine too\n";
    assert_eq!(scene.texts(), expected);
}

#[test]
fn the_person_may_change_the_lines_of_a_call() {
    let scene = Scene::new();
    scene.edit("new", "1\n2\n3\n");
    scene.write("new", "1\nmine\n3\n");
    assert_eq!(scene.texts(), "new +2 -0\n@\n+1\n~mine\n@\n+3\n");
    scene.answer(|_, _| Verdict::Refused);
    assert_eq!(scene.read("new"), "mine\n");
    assert_eq!(scene.texts(), "");
}

#[test]
fn moves_and_modes_are_parts() {
    let scene = Scene::new();
    for name in ["a", "b", "bin"] {
        scene.write(name, "1\n2\n");
    }
    fs::write(scene.at("bin"), b"\0a").unwrap();
    scene.command(|| {
        fs::create_dir(scene.at("dir")).unwrap();
        fs::rename(scene.at("a"), scene.at("dir/a2")).unwrap();
        fs::rename(scene.at("bin"), scene.at("dir/bin")).unwrap();
        scene.set_mode("b", 0o755);
    });
    scene.edit("dir/a2", "1\n2\n3\n");
    let expected = "b mode 644 -> 755\n@\n!mode 644 => 755\n 1\n 2\ndir/a2 +1 -0\n@\n!moved from a\n 1\n 2\n@\n+3\ndir/bin moved from bin\n@\n!no text: 2 bytes => 2 bytes\n!moved from bin\n";
    assert_eq!(scene.texts(), expected);
    // The move is taken back, and the line stays open.
    scene.answer(|file, part| match part.kind {
        PartKind::Moved if file.path.ends_with("a2") => Verdict::Refused,
        PartKind::Mode => Verdict::Accepted,
        _ => Verdict::Open,
    });
    assert_eq!(scene.read("a"), "1\n2\n3\n");
    let expected = "a +1 -0\n 1\n 2\n@\n+3\ndir/bin moved from bin\n@\n!no text: 2 bytes => 2 bytes\n!moved from bin\n";
    assert_eq!(scene.texts(), expected);
    scene.answer(|_, _| Verdict::Refused);
    assert_eq!(scene.read("a"), "1\n2\n");
    assert!(!scene.at("dir").exists());
    assert_eq!(scene.texts(), "");
}

#[test]
fn another_text_of_the_person_is_accepted() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n");
    scene.edit("a", "1\nTWO\nthree\n");
    scene.answer(|_, _| Verdict::Edited("my two\n".to_owned()));
    assert_eq!(scene.read("a"), "1\nmy two\n");
    assert_eq!(scene.texts(), "");
}

#[test]
fn what_comes_back_is_open_again() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    scene.edit("a", "1\n2\n");
    scene.answer(|_, _| Verdict::Refused);
    let taken_back = scene.checkpoints.records(CHAT).pop().unwrap();
    let back: Vec<_> = taken_back.changes.iter().map(Change::inverse).collect();
    scene.write("a", "1\n2\n");
    let found = CallChanges {
        changes: back,
        ..CallChanges::default()
    };
    scene.record(0, ChangeCause::Redo, found);
    assert_eq!(scene.texts(), "a +1 -0\n 1\n@\n+2\n");
}

#[test]
fn a_change_of_two_chats_names_the_other_one() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n");
    scene.edit("a", "1\nx\ny\nz\n2\nend\n");
    scene.edit_by(1, "a", "other\n1\nx\nz\n2\nend\n");
    let store = &scene.workspace.store;
    let [file] = &scene.open()[..] else {
        panic!("one file is open");
    };
    let by: Vec<_> = file.parts.iter().map(|it| it.records.clone()).collect();
    assert_eq!(by, [vec![0, 1], vec![0]]);
    let text = "~other\n 1\n@\n+x\n+z\n 2\n@\n+end\n";
    assert_eq!(file.for_review(store).text.as_str(), text);
}

#[test]
fn refused_changes_of_two_chats_do_not_come_back() {
    for first in [0, 1] {
        let scene = Scene::new();
        scene.write("a", "1\n2\n3\n");
        scene.edit_by(0, "a", "1\nfirst\n3\n");
        scene.edit_by(1, "a", "1\nsecond\n3\n");
        scene.edit_by(0, "new", "first\n");
        scene.edit_by(1, "new", "first\nsecond\n");
        let texts = [0, 1].map(|chat| scene.texts_in(chat));
        let expected = "a +0 -1\n 1\n@\n-2\n~second\n 3\nnew +1 -0\n@\n+first\n~second\n";
        assert_eq!(texts[0], expected);
        let expected = "a +1 -1\n 1\n@\n-first\n+second\n 3\nnew +1 -0\n first\n@\n+second\n";
        assert_eq!(texts[1], expected);
        for chat in [first, 1 - first] {
            scene.answer_in(chat, |_, _| Verdict::Refused);
        }
        assert_eq!([0, 1].map(|chat| scene.texts_in(chat)), ["", ""]);
        assert_eq!(scene.read("a"), "1\n2\n3\n");
        assert!(!scene.at("new").exists());
    }
}

/// The changes of two chats to one property of a file. The second change covers the first.
struct Covered {
    scene: Scene,
    /// Returns the state of the file.
    state: fn(&Scene) -> String,
    /// The states before the changes, between them and after them.
    states: [&'static str; 3],
}

/// Makes scenes in which two chats move a file, change its mode, change a file that is no text, or remove a file after a move.
fn covered() -> Vec<Covered> {
    fn names(scene: &Scene) -> String {
        let entries = fs::read_dir(scene.at("")).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|it| it.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.concat()
    }
    fn text(scene: &Scene) -> String {
        scene.read("a")
    }
    fn mode(scene: &Scene) -> String {
        format!("{:o}", scene.mode("a"))
    }
    let scene = || {
        let scene = Scene::new();
        scene.write("a", "1\n2\n");
        scene
    };
    let [moved, changed, written, removed] = [scene(), scene(), scene(), scene()];
    moved.command(|| moved.rename("a", "b"));
    moved.command_by(1, || moved.rename("b", "c"));
    changed.set_mode("a", 0o644);
    changed.command(|| changed.set_mode("a", 0o755));
    changed.command_by(1, || changed.set_mode("a", 0o700));
    written.write("a", "\0a");
    written.edit("a", "\0b");
    written.edit_by(1, "a", "\0c");
    removed.command(|| removed.rename("a", "b"));
    removed.command_by(1, || fs::remove_file(removed.at("b")).unwrap());
    let covered = |scene, state, states| Covered {
        scene,
        state,
        states,
    };
    vec![
        covered(moved, names, ["a", "b", "c"]),
        covered(changed, mode, ["644", "755", "700"]),
        covered(written, text, ["\0a", "\0b", "\0c"]),
        covered(removed, names, ["a", "b", ""]),
    ]
}

#[test]
fn a_change_that_another_chat_covers_is_open_if_that_is_taken_back() {
    use Verdict::{Accepted, Refused};
    // The verdicts on the second and on the first change, and the last state.
    for (second, first, last) in [
        (Refused, Refused, 0),
        (Refused, Accepted, 1),
        (Accepted, Refused, 2),
    ] {
        for Covered {
            scene,
            state,
            states,
        } in covered()
        {
            assert_eq!(state(&scene), states[2]);
            assert_eq!(scene.texts_in(0), "", "{states:?}");
            let mut asked = 0;
            scene.answer_in(1, |_, _| {
                asked += 1;
                second.clone()
            });
            assert_eq!(asked, 1, "{states:?}");
            let is_accepted = second == Accepted;
            assert_eq!(state(&scene), states[if is_accepted { 2 } else { 1 }]);
            asked = 0;
            scene.answer_in(0, |_, part| {
                asked += 1;
                assert_eq!(part.records, [0], "what was taken back is not named");
                first.clone()
            });
            assert_eq!(asked, usize::from(!is_accepted), "{states:?}");
            assert_eq!(state(&scene), states[last]);
            assert_eq!([0, 1].map(|chat| scene.texts_in(chat)), ["", ""]);
        }
    }
}

#[test]
fn after_a_part_of_a_chat_is_taken_back_the_rest_is_open() {
    let scene = Scene::new();
    scene.write("a", "\0a");
    scene.set_mode("a", 0o644);
    scene.edit("a", "\0b");
    scene.command(|| scene.set_mode("a", 0o755));
    scene.command(|| {
        scene.write("a", "\0c");
        scene.set_mode("a", 0o700);
    });
    let records = scene.checkpoints.records(CHAT);
    let (back, kept) = scene.take_back(&records.last().unwrap().changes);
    assert_eq!(kept, Vec::<String>::new());
    let found = CallChanges {
        changes: back,
        ..CallChanges::default()
    };
    scene.record(0, ChangeCause::Undo, found);
    let expected = "a mode 644 -> 755, no text: 2 bytes => 2 bytes\n@\n!no text: 2 bytes => 2 bytes\n!mode 644 => 755\n@\n";
    assert_eq!(scene.texts(), expected);
    scene.answer(|_, _| Verdict::Refused);
    assert_eq!((scene.read("a"), scene.mode("a")), ("\0a".into(), 0o644));
}

#[test]
fn a_change_names_only_the_calls_after_the_last_answer() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n");
    scene.command(|| scene.rename("a", "b"));
    scene.answer(|_, _| Verdict::Accepted);
    scene.command(|| scene.rename("b", "c"));
    let [file] = &scene.open()[..] else {
        panic!("one file is open");
    };
    let records = scene.checkpoints.records(CHAT);
    let last = records.len() - 1;
    assert_eq!(file.parts[0].records, [last]);
    assert_eq!(file.since, records[last].at);
}

/// Lets two chats and the person change the name and the mode of one file. Then takes all back that the person has not accepted.
fn check_covered(seed: u64) {
    let (scene, mut rng) = (Scene::new(), fastrand::Rng::with_seed(seed));
    scene.write("f0", "1\n2\n");
    scene.set_mode("f0", 0o644);
    let mut now = ("f0".to_owned(), 0o644);
    // The name and the mode without the changes that are open.
    let mut settled = now.clone();
    for count in 1..rng.usize(3..12) {
        let chat = rng.usize(0..2);
        let mode = rng.choice([0o644, 0o755, 0o700, 0o600]).unwrap();
        let name = rng
            .choice([format!("f{count}"), settled.0.clone()])
            .unwrap();
        match rng.usize(0..8) {
            0 => {
                scene.set_mode(&now.0, mode);
                if mode != now.1 {
                    (now.1, settled.1) = (mode, mode);
                }
            }
            1 | 2 => scene.answer_in(chat, |_, part| {
                let is_accepted = rng.bool();
                match part.kind {
                    PartKind::Moved if is_accepted => settled.0.clone_from(&now.0),
                    PartKind::Mode if is_accepted => settled.1 = now.1,
                    _ => return Verdict::Refused,
                }
                Verdict::Accepted
            }),
            3..5 => scene.command_by(chat, || scene.set_mode(&now.0, mode)),
            _ => scene.command_by(chat, || scene.rename(&now.0, &name)),
        }
        let entry = fs::read_dir(scene.at("")).unwrap().next().unwrap();
        now.0 = entry.unwrap().file_name().into_string().unwrap();
        now.1 = scene.mode(&now.0);
    }
    for chat in [0, 1].repeat(12) {
        scene.answer_in(chat, |_, _| Verdict::Refused);
    }
    assert_eq!([0, 1].map(|chat| scene.texts_in(chat)), ["", ""]);
    assert_eq!(
        (scene.read(&settled.0), scene.mode(&settled.0)),
        ("1\n2\n".into(), settled.1)
    );
}

#[test]
fn what_is_refused_of_names_and_modes_does_not_stay() {
    (0..100).for_each(check_covered);
}

#[test]
fn what_a_person_writes_in_place_of_a_change_settles_it() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n3\n");
    scene.edit("a", "one\ntwo\n3\n");
    scene.write("a", "one\nmine\n3\n");
    assert_eq!(scene.texts(), "a +1 -1\n@\n-1\n+one\n~mine\n 3\n");
    scene.answer(|_, _| Verdict::Refused);
    assert_eq!(scene.read("a"), "1\nmine\n3\n");
    assert_eq!(scene.texts(), "");
}

#[test]
fn a_file_that_is_moved_and_changed_at_once_is_one_file() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n3\n4\n");
    scene.edit("a", "1\n2\n3\n4\n5\n");
    scene.command(|| {
        fs::create_dir(scene.at("dir")).unwrap();
        fs::remove_file(scene.at("a")).unwrap();
        scene.write("dir/b", "1\ntwo\n3\n4\n5\n");
    });
    let expected = "dir/b +2 -1\n@\n!moved from a\n 1\n@\n-2\n+two\n 3\n 4\n@\n+5\n";
    assert_eq!(scene.texts(), expected);
    // The calls are known by the name that the file had then.
    let calls: Vec<_> = (scene.open()[0].parts.iter().map(|it| it.records.clone())).collect();
    assert_eq!(calls, [vec![1], vec![1], vec![0]]);
    scene.answer(|_, _| Verdict::Refused);
    assert_eq!(scene.read("a"), "1\n2\n3\n4\n");
    assert!(!scene.at("dir").exists());
}

/// A line of a file.
#[derive(Debug, Clone)]
struct Line {
    text: String,
    /// The chat that added the line, if the line is not accepted.
    by: Option<usize>,
    /// The chat that removed it.
    gone: Option<usize>,
}

/// A file as the answers say it must be. Its lines are unique.
#[derive(Debug, Clone, Default)]
struct Expected {
    lines: Vec<Line>,
    /// For each chat, the name and the mode in its baseline.
    baselines: [Option<(String, u32)>; 2],
    now: Option<(String, u32)>,
    /// The chat that made the file, if the file is not accepted.
    made_by: Option<usize>,
    /// The person has changed it since the last call, which co sees as one change.
    is_edited: bool,
}

impl Line {
    fn is_shown(&self) -> bool {
        self.gone.is_none()
    }

    fn is_base(&self, chat: usize) -> bool {
        self.by != Some(chat) && self.gone.is_none_or(|it| it == chat)
    }

    /// Returns whether the baseline of a chat and the present file have it.
    fn stays(&self, chat: usize) -> bool {
        self.is_shown() && self.is_base(chat)
    }

    fn differs(&self, chat: usize) -> bool {
        self.is_shown() != self.is_base(chat)
    }
}

impl Expected {
    fn text(&self) -> String {
        let now = self.lines.iter().filter(|it| it.is_shown());
        now.map(|it| it.text.as_str()).collect()
    }

    /// Changes some lines of the present file. `by` is a chat, or none for the person.
    fn change(&mut self, rng: &mut fastrand::Rng, by: Option<usize>, count: &mut usize) {
        let shown = self.lines.iter().filter(|it| it.is_shown()).count();
        let start = rng.usize(0..=shown);
        let end = rng.usize(start..=shown.min(start + 3));
        let added = rng.usize(usize::from(start == end)..4);
        let new = (0..added).map(|_| {
            *count += 1;
            let name = by.map_or("p".to_owned(), |it| format!("m{it}."));
            Line {
                text: format!("{name}{count}\n"),
                by,
                gone: None,
            }
        });
        let mut new: Vec<_> = new.collect();
        if by.is_none() && added > 0 {
            self.settle(start..end);
        }
        let mut place = 0;
        let mut lines = Vec::new();
        for mut line in std::mem::take(&mut self.lines) {
            let was_shown = line.is_shown();
            // What is inserted stands before the first line that stays.
            if was_shown && place == end {
                lines.append(&mut new);
            }
            let is_removed = was_shown && (start..end).contains(&place);
            place += usize::from(was_shown);
            if is_removed && by.is_some() && line.by != by {
                line.gone = by;
                lines.push(line);
            } else if !is_removed {
                lines.push(line);
            }
            // What replaces lines stands where the last of them stood.
            if is_removed && place == end {
                lines.append(&mut new);
            }
        }
        lines.append(&mut new);
        self.lines = lines;
        for chat in (0..2).filter(|it| by != Some(*it) && added > 0) {
            if self.baselines[chat].is_none() {
                self.baselines[chat].clone_from(&self.now);
            }
        }
        self.unmake();
    }

    /// Without lines of others, the baseline does not have a file that the chat made.
    fn unmake(&mut self) {
        if let Some(chat) = self.made_by
            && self.lines.iter().all(|it| !it.is_base(chat))
        {
            self.baselines[chat] = None;
        }
    }

    /// Drops the lines that chats replaced by shown lines of a range, which the person replaces.
    fn settle(&mut self, range: Range<usize>) {
        let shown: Vec<_> = (0..self.lines.len())
            .filter(|at| self.lines[*at].is_shown())
            .collect();
        let removed = &shown[range];
        let mut dropped = BTreeSet::new();
        let mut at = 0;
        let mut pairs = Vec::new();
        while at < self.lines.len() {
            // The lines that a chat removed at a place, and those that it added there.
            let chat = self.lines[at].gone.or(self.lines[at].by);
            let first = at;
            let is_old = |it: &&Line| chat.is_some() && it.gone == chat;
            let old = self.lines[at..].iter().take_while(is_old).count();
            at += old;
            let is_new = |it: &&Line| chat.is_some() && it.is_shown() && it.by == chat;
            let new = self.lines[at..].iter().take_while(is_new).count();
            let is_removed = |it: usize| removed.contains(&it);
            if new > 0 && (at..at + new).all(is_removed) {
                dropped.extend(first..at);
            } else if old == new && (at..at + new).any(is_removed) {
                dropped.extend(
                    (0..old)
                        .filter(|it| is_removed(at + it))
                        .map(|it| first + it),
                );
                pairs.push((first, old));
            }
            at += new.max(usize::from(old + new == 0));
        }
        let mut order: Vec<_> = (0..self.lines.len()).collect();
        for (first, count) in pairs {
            let pair = |at| [first + at, first + count + at];
            order.splice(first..first + 2 * count, (0..count).flat_map(pair));
        }
        order.retain(|it| !dropped.contains(it));
        self.lines = order.into_iter().map(|it| self.lines[it].clone()).collect();
    }

    fn remove(&mut self, by: Option<usize>) {
        self.now = None;
        self.lines.retain(|it| by.is_some() && it.by != by);
        for line in self.lines.iter_mut().filter(|it| it.is_shown()) {
            line.gone = by;
        }
        for chat in (0..2).filter(|it| Some(*it) != by) {
            self.baselines[chat] = None;
        }
    }

    fn is_open(&self, chat: usize) -> bool {
        self.baselines[chat] != self.now || self.lines.iter().any(|it| it.differs(chat))
    }

    /// Returns the parts with lines in the baseline of a chat.
    fn runs(&mut self, chat: usize) -> impl Iterator<Item = &mut [Line]> {
        let runs = self.lines.split_mut(move |it| it.stays(chat));
        runs.filter(move |it| it.iter().any(|it| it.differs(chat)))
    }

    fn parts(&mut self, chat: usize) -> usize {
        let runs = self.runs(chat).count();
        let (Some(baseline), Some(now)) = (&self.baselines[chat], &self.now) else {
            let is_there = self.baselines[chat].is_some() || self.now.is_some();
            return if is_there { runs.max(1) } else { 0 };
        };
        runs + usize::from(baseline.0 != now.0) + usize::from(baseline.1 != now.1)
    }

    fn answer(&mut self, chat: usize, answers: &[(PartKind, Verdict)]) {
        let (baseline, now) = (self.baselines[chat].clone(), self.now.clone());
        let is_changed = |it: &Verdict| *it != Verdict::Open;
        let mut lines = answers
            .iter()
            .filter(|it| matches!(it.0, PartKind::Lines(_)));
        for run in self.runs(chat) {
            let (_, answer) = lines.next().unwrap();
            for line in run.iter_mut().filter(|_| is_changed(answer)) {
                let is_accepted = *answer == Verdict::Accepted;
                match (line.by == Some(chat), line.gone == Some(chat)) {
                    (true, _) if is_accepted => line.by = None,
                    // An accepted removal, and a line that is taken back.
                    (true, _) => line.text.clear(),
                    (_, true) if is_accepted => line.text.clear(),
                    (_, true) => line.gone = None,
                    _ => {}
                }
            }
        }
        self.lines.retain(|it| !it.text.is_empty());
        for (kind, answer) in answers.iter().filter(|it| is_changed(&it.1)) {
            let is_accepted = *answer == Verdict::Accepted;
            match (kind, &mut self.baselines[chat], &mut self.now) {
                (PartKind::Moved, Some(baseline), Some(_)) if is_accepted => {
                    baseline.0 = now.clone().unwrap().0;
                }
                (PartKind::Moved, Some(_), Some(now)) => now.0 = baseline.clone().unwrap().0,
                (PartKind::Mode, Some(baseline), Some(_)) if is_accepted => {
                    baseline.1 = now.clone().unwrap().1;
                }
                (PartKind::Mode, Some(_), Some(now)) => now.1 = baseline.clone().unwrap().1,
                (_, Some(_), Some(_)) => {}
                (_, baseline, now) if is_accepted => baseline.clone_from(now),
                (_, baseline, now) => now.clone_from(baseline),
            }
        }
        if answers.iter().any(|it| it.1 == Verdict::Accepted) && self.made_by == Some(chat) {
            self.made_by = None;
        }
        self.unmake();
        // The other chat sees what is taken back as a change of the person.
        let other = 1 - chat;
        let has_lines = self.lines.iter().any(|it| it.is_base(other));
        if self.made_by == Some(chat) && !has_lines {
            self.baselines[other] = None;
        }
        if self.now.is_some() && self.now != now {
            let is_there = now.is_some() || has_lines;
            self.baselines[other] = self.now.clone().filter(|_| is_there);
        } else if self.now.is_none() && !has_lines {
            self.baselines[other] = None;
        }
    }
}

/// A workspace and its files as they must be.
struct Trial {
    scene: Scene,
    rng: fastrand::Rng,
    files: Vec<Expected>,
    /// The files that the command has changed.
    busy: Vec<usize>,
    names: usize,
    count: usize,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut trial = Self {
            scene: Scene::new(),
            rng: fastrand::Rng::with_seed(seed),
            files: Vec::new(),
            busy: Vec::new(),
            names: 0,
            count: 0,
        };
        for _ in 0..4 {
            trial.create(None);
        }
        trial
    }

    fn create(&mut self, by: Option<usize>) {
        self.names += 1;
        let mut file = Expected {
            now: Some((format!("d{}/f{}", self.names % 2, self.names), 0o644)),
            made_by: by,
            ..Expected::default()
        };
        for chat in (0..2).filter(|it| Some(*it) != by) {
            file.baselines[chat].clone_from(&file.now);
        }
        for _ in 0..3 {
            file.change(&mut self.rng, by, &mut self.count);
        }
        self.write(&file);
        if by.is_some() {
            self.busy.push(self.files.len());
        }
        self.files.push(file);
    }

    fn write(&self, file: &Expected) {
        let (name, mode) = file.now.as_ref().unwrap();
        self.scene.write(name, &file.text());
        self.scene.set_mode(name, *mode);
    }

    /// Makes a change of one file.
    fn change(&mut self, by: Option<usize>) {
        // If one chat has moved or made a file, the other one leaves it alone.
        let is_free = |it: &usize| {
            let file = &self.files[*it];
            let is_whole = by.is_none_or(|by| file.baselines[1 - by] == file.now);
            let is_free = by.is_some() || !file.is_edited;
            file.now.is_some() && is_whole && is_free && !self.busy.contains(it)
        };
        let free: Vec<_> = (0..self.files.len()).filter(is_free).collect();
        let Some(at) = self.rng.choice(free) else {
            return self.create(by);
        };
        if by.is_some() {
            self.busy.push(at);
        }
        let mut file = self.files[at].clone();
        file.is_edited = by.is_none();
        let (name, mode) = file.now.clone().unwrap();
        let is_alone = by.is_none_or(|by| !file.is_open(1 - by));
        match self.rng.usize(0..10) {
            0 => return self.create(by),
            1 if is_alone => {
                file.remove(by);
                fs::remove_file(self.scene.at(&name)).unwrap();
                self.files[at] = file;
                return;
            }
            2 if is_alone => {
                let new = if mode == 0o644 { 0o755 } else { 0o644 };
                file.now = Some((name.clone(), new));
                for chat in (0..2).filter(|it| Some(*it) != by) {
                    // A new file of a call has no mode in the baseline.
                    if let Some((_, mode)) = &mut file.baselines[chat] {
                        *mode = new;
                    }
                }
            }
            3 if by.is_some() && is_alone => {
                self.names += 1;
                let new = format!("d{}/f{}", self.names % 2, self.names);
                fs::rename(self.scene.at(&name), self.scene.at(&new)).unwrap();
                file.now = Some((new.clone(), mode));
                if let Some(Some((name, _))) = by.map(|by| &mut file.baselines[1 - by]) {
                    *name = new;
                }
                self.files[at] = file;
                return;
            }
            _ => file.change(&mut self.rng, by, &mut self.count),
        }
        self.write(&file);
        self.files[at] = file;
    }

    fn command(&mut self, chat: usize) {
        self.scene.workspace.prepare();
        let checkpoint = self.scene.workspace.begin().unwrap();
        // A file that one command moves and changes may be another file, so it changes each file once.
        self.busy.clear();
        for _ in 0..self.rng.usize(1..4) {
            self.change(Some(chat));
        }
        self.busy.clear();
        let found = checkpoint.end();
        self.scene.record(chat, call(true), found);
    }

    fn review(&mut self, chat: usize, mut answer: impl FnMut(&mut fastrand::Rng) -> Verdict) {
        let (scene, rng) = (&self.scene, &mut self.rng);
        let mut all: BTreeMap<PathBuf, Vec<(PartKind, Verdict)>> = BTreeMap::new();
        scene.answer_in(chat, |file, part| {
            let answer = answer(rng);
            let path = all.entry(file.path.clone()).or_default();
            path.push((part.kind.clone(), answer.clone()));
            answer
        });
        for file in &mut self.files {
            let name = file.now.as_ref().or(file.baselines[chat].as_ref());
            let Some((name, _)) = name else {
                continue;
            };
            let answers = all.remove(Path::new(name)).unwrap_or_default();
            assert_eq!(answers.len(), file.parts(chat), "{file:?} {answers:?}");
            file.answer(chat, &answers);
        }
        assert!(all.is_empty(), "{all:?}");
    }

    fn check(&self) {
        let mut expected = BTreeMap::new();
        for file in &self.files {
            if let Some((name, mode)) = &file.now {
                expected.insert(name.clone(), (*mode, file.text()));
            }
        }
        let mut found = BTreeMap::new();
        for dir in ["d0", "d1"] {
            for entry in fs::read_dir(self.scene.at(dir)).into_iter().flatten() {
                let entry = entry.unwrap();
                let name = format!("{dir}/{}", entry.file_name().to_str().unwrap());
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                let text = self.scene.read(&name);
                found.insert(name, (mode, text));
            }
        }
        assert_eq!(found, expected);
    }
}

/// Makes random changes and answers of some chats. Then answers all that is open.
fn check_rounds(seed: u64, chats: usize) {
    let mut trial = Trial::new(seed);
    for _ in 0..trial.rng.usize(4..20) {
        let chat = trial.rng.usize(0..chats);
        match trial.rng.usize(0..6) {
            0 | 1 => trial.change(None),
            2 => trial.review(chat, |rng| match rng.usize(0..3) {
                0 => Verdict::Accepted,
                1 => Verdict::Refused,
                _ => Verdict::Open,
            }),
            _ => trial.command(chat),
        }
        trial.check();
    }
    // What one chat removed may come back, so that it is open in the other one.
    for chat in (0..chats).chain(0..chats) {
        let last = match (seed + chat as u64) % 2 {
            0 => Verdict::Accepted,
            _ => Verdict::Refused,
        };
        trial.review(chat, |_| last.clone());
        trial.check();
    }
    for chat in 0..chats {
        trial.review(chat, |_| unreachable!("nothing is open"));
    }
}

#[test]
fn after_random_rounds_the_tree_is_what_the_answers_say() {
    (0..100).for_each(|seed| check_rounds(seed, 1));
}

#[test]
fn after_random_rounds_of_two_chats_the_tree_is_what_the_answers_say() {
    (0..200).for_each(|seed| check_rounds(seed, 2));
}
