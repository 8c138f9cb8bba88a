use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::checkpoint::Checkpoints;
use crate::checkpoint::tests::Scene;
use crate::checkpoint::{CallChanges, Overlap, Undo};
use co_llm::transcript::Decision;

const CHAT: &str = "chat";

impl Scene {
    fn record(&self, by: By, found: CallChanges) {
        let record = Record {
            changes: found.changes,
            ..Record::of_person(0, by, self.workspace.root())
        };
        self.checkpoints.append(CHAT, &record).unwrap();
    }

    fn command(&self, run: impl FnOnce()) {
        let found = self.call(run);
        self.record(call(true), found);
    }

    fn edit(&self, path: &str, text: &str) {
        let files = [self.at(path)];
        let before = self.workspace.before_edit(&files).unwrap();
        self.write(path, text);
        let found = self.workspace.after_edit(before);
        self.record(call(false), found);
    }

    fn round(&self) -> Round {
        // Another process reads what this one wrote.
        let records = Checkpoints::new(self.top.join("state/checkpoints")).records(CHAT);
        let (root, store) = (self.workspace.root(), &self.workspace.store);
        let mut round = Round::of(&records, root, store).unwrap();
        round.look(root, &OpenBuffers::default(), store).unwrap();
        round
    }

    fn open(&self) -> Vec<OpenFile> {
        self.round().open_files(&[], &self.workspace.store)
    }

    /// Answers the parts of open files. Returns the numbers of parts.
    fn answer(&self, mut answers: impl FnMut(&OpenFile, &OpenPart) -> Verdict) {
        let (mut refused, mut accepted) = (Vec::new(), Vec::new());
        let (round, store) = (self.round(), &self.workspace.store);
        for file in round.open_files(&[], store) {
            let answers: Vec<_> = file.parts.iter().map(|it| answers(&file, it)).collect();
            let answered = file.answered(&answers, store).unwrap();
            refused.extend(answered.refused);
            accepted.extend(answered.accepted);
        }
        self.record(By::Accepted { files: accepted }, CallChanges::default());
        refused.extend(round.directories_of(&refused));
        let undo = Undo::of(
            refused.iter(),
            self.workspace.root(),
            store,
            &OpenBuffers::default(),
            Overlap::Refuse,
        );
        assert_eq!(undo.kept, []);
        let done = self.make(undo);
        assert_eq!(done.failed, []);
        let changes = done.changes;
        self.record(
            By::TakenBack,
            CallChanges {
                changes,
                ..CallChanges::default()
            },
        );
    }

    /// Returns the texts of the open files for a review.
    fn texts(&self) -> String {
        let store = &self.workspace.store;
        let files = self.open().into_iter().map(|file| {
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

fn call(command: bool) -> By {
    By::Call {
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
    scene.record(By::Redo, found);
    assert_eq!(scene.texts(), "a +1 -0\n 1\n@\n+2\n");
}

#[test]
fn a_change_of_two_chats_names_the_other_one() {
    let scene = Scene::new();
    scene.write("a", "1\n2\n");
    scene.edit("a", "1\nx\ny\nz\n2\nend\n");
    let before = scene.workspace.before_edit(&[scene.at("a")]).unwrap();
    scene.write("a", "other\n1\nx\nz\n2\nend\n");
    let found = scene.workspace.after_edit(before);
    let root = scene.workspace.root();
    let record = Record {
        changes: found.changes,
        ..Record::of_person(0, call(false), root)
    };
    scene.checkpoints.append("other", &record).unwrap();
    let others = scene.checkpoints.others(CHAT, root, None).into_iter();
    let own = scene.checkpoints.records(CHAT).into_iter();
    let records: Vec<_> = own.chain(others.map(|it| it.1)).collect();
    let store = &scene.workspace.store;
    let [file] = &scene.round().open_files(&records, store)[..] else {
        panic!("one file is open");
    };
    let by: Vec<_> = file.parts.iter().map(|it| it.records.clone()).collect();
    assert_eq!(by, [vec![1], vec![0]]);
    let text = "~other\n 1\n@\n+x\n+z\n 2\n@\n+end\n";
    assert_eq!(file.for_review(store).text.as_str(), text);
}

/// A line of a file, and whether the baseline and the present file have it.
#[derive(Debug, Clone)]
struct Line {
    text: String,
    baseline: bool,
    now: bool,
}

/// A file as the answers say it must be. Its lines are unique.
#[derive(Debug, Clone, Default)]
struct Expected {
    lines: Vec<Line>,
    /// The name and the mode.
    baseline: Option<(String, u32)>,
    now: Option<(String, u32)>,
}

impl Expected {
    fn text(&self) -> String {
        let now = self.lines.iter().filter(|it| it.now);
        now.map(|it| it.text.as_str()).collect()
    }

    /// Changes some lines of the present file.
    fn change(&mut self, rng: &mut fastrand::Rng, by_person: bool, count: &mut usize) {
        let visible = self.lines.iter().filter(|it| it.now).count();
        let start = rng.usize(0..=visible);
        let end = rng.usize(start..=visible.min(start + 3));
        let added = rng.usize(usize::from(start == end)..4);
        let mut place = 0;
        let mut lines = Vec::new();
        let new = |lines: &mut Vec<Line>, count: &mut usize| {
            for _ in 0..added {
                *count += 1;
                lines.push(Line {
                    text: format!("{}{count}\n", if by_person { "p" } else { "m" }),
                    baseline: by_person,
                    now: true,
                });
            }
        };
        let mut is_added = false;
        // What the person writes in place of lines stands where the last of them stood.
        let replaces = by_person && start < end;
        for mut line in std::mem::take(&mut self.lines) {
            let was_there = line.now;
            if was_there {
                // Before the first line that stays.
                if place == end && !replaces {
                    new(&mut lines, count);
                    is_added = true;
                }
                if (start..end).contains(&place) {
                    line.now = false;
                    line.baseline &= !by_person;
                }
                place += 1;
            }
            lines.push(line);
            if was_there && place == end && replaces {
                new(&mut lines, count);
                is_added = true;
            }
        }
        if !is_added {
            new(&mut lines, count);
        }
        lines.retain(|it| it.now || it.baseline);
        self.lines = lines;
        if by_person && added > 0 && self.baseline.is_none() {
            self.baseline.clone_from(&self.now);
        }
        self.sort();
    }

    /// Two texts do not say where removed and added lines of a part stand: the removed ones come first.
    fn sort(&mut self) {
        let differs = |it: &Line| it.now != it.baseline;
        for run in self.lines.chunk_by_mut(|a, b| differs(a) && differs(b)) {
            run.sort_by_key(|it| it.now);
        }
    }

    fn remove(&mut self, by_person: bool) {
        self.now = None;
        self.lines.retain(|it| it.baseline && !by_person);
        self.lines.iter_mut().for_each(|it| it.now = false);
        if by_person {
            self.baseline = None;
        }
    }

    /// Returns the number of parts with lines.
    fn runs(&self) -> usize {
        let runs = self
            .lines
            .chunk_by(|a, b| (a.now != a.baseline) == (b.now != b.baseline));
        runs.filter(|it| it[0].now != it[0].baseline).count()
    }

    fn parts(&self) -> usize {
        let (Some(baseline), Some(now)) = (&self.baseline, &self.now) else {
            let is_there = self.baseline.is_some() || self.now.is_some();
            return if is_there { self.runs().max(1) } else { 0 };
        };
        self.runs() + usize::from(baseline.0 != now.0) + usize::from(baseline.1 != now.1)
    }

    fn answer(&mut self, answers: &[(PartKind, Verdict)]) {
        let (baseline, now) = (self.baseline.clone(), self.now.clone());
        let runs = self
            .lines
            .chunk_by_mut(|a, b| (a.now != a.baseline) == (b.now != b.baseline));
        let mut runs = runs.filter(|it| it[0].now != it[0].baseline);
        for (kind, answer) in answers {
            let is_accepted = *answer == Verdict::Accepted;
            let run = match kind {
                PartKind::Lines(_) => runs.next().unwrap(),
                _ => &mut [],
            };
            if *answer == Verdict::Open {
                continue;
            }
            for line in run {
                (line.baseline, line.now) = match is_accepted {
                    true => (line.now, line.now),
                    false => (line.baseline, line.baseline),
                };
            }
            match (kind, &mut self.baseline, &mut self.now) {
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
        self.lines.retain(|it| it.now || it.baseline);
        self.sort();
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
            trial.create(true);
        }
        trial
    }

    fn create(&mut self, by_person: bool) {
        self.names += 1;
        let mut file = Expected {
            now: Some((format!("d{}/f{}", self.names % 2, self.names), 0o644)),
            ..Expected::default()
        };
        for _ in 0..3 {
            file.change(&mut self.rng, by_person, &mut self.count);
        }
        if by_person {
            file.baseline.clone_from(&file.now);
        }
        self.write(&file);
        if !by_person {
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
    fn change(&mut self, by_person: bool) {
        let is_free = |it: &usize| self.files[*it].now.is_some() && !self.busy.contains(it);
        let free: Vec<_> = (0..self.files.len()).filter(is_free).collect();
        let Some(at) = self.rng.choice(free) else {
            return self.create(by_person);
        };
        if !by_person {
            self.busy.push(at);
        }
        let mut file = self.files[at].clone();
        let (name, mode) = file.now.clone().unwrap();
        match self.rng.usize(0..10) {
            0 => return self.create(by_person),
            1 => {
                file.remove(by_person);
                fs::remove_file(self.scene.at(&name)).unwrap();
                self.files[at] = file;
                return;
            }
            2 => {
                let new = if mode == 0o644 { 0o755 } else { 0o644 };
                file.now = Some((name.clone(), new));
                // A new file of a call has no mode in the baseline.
                if let Some((_, mode)) = file.baseline.as_mut().filter(|_| by_person) {
                    *mode = new;
                }
            }
            3 if !by_person => {
                self.names += 1;
                let new = format!("d{}/f{}", self.names % 2, self.names);
                fs::rename(self.scene.at(&name), self.scene.at(&new)).unwrap();
                file.now = Some((new, mode));
                self.files[at] = file;
                return;
            }
            _ => file.change(&mut self.rng, by_person, &mut self.count),
        }
        self.write(&file);
        self.files[at] = file;
    }

    fn command(&mut self) {
        self.scene.workspace.prepare();
        let window = self.scene.workspace.begin().unwrap();
        // A file that one command moves and changes is another file, so it changes each file once.
        self.busy.clear();
        for _ in 0..self.rng.usize(1..4) {
            self.change(false);
        }
        self.busy.clear();
        let found = window.end();
        self.scene.record(call(true), found);
    }

    fn review(&mut self, mut answer: impl FnMut(&mut fastrand::Rng) -> Verdict) {
        let (scene, rng) = (&self.scene, &mut self.rng);
        let mut all: BTreeMap<PathBuf, Vec<(PartKind, Verdict)>> = BTreeMap::new();
        scene.answer(|file, part| {
            let answer = answer(rng);
            let path = all.entry(file.path.clone()).or_default();
            path.push((part.kind.clone(), answer.clone()));
            answer
        });
        for file in &mut self.files {
            let name = file.now.as_ref().or(file.baseline.as_ref());
            let Some((name, _)) = name else {
                continue;
            };
            let answers = all.remove(Path::new(name)).unwrap_or_default();
            assert_eq!(answers.len(), file.parts(), "{file:?} {answers:?}");
            file.answer(&answers);
        }
        assert!(all.is_empty(), "{:?}", all.into_keys().collect::<Vec<_>>());
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

#[test]
fn after_random_rounds_the_tree_is_what_the_answers_say() {
    for seed in 0..200 {
        let mut trial = Trial::new(seed);
        for _ in 0..trial.rng.usize(4..20) {
            match trial.rng.usize(0..6) {
                0 | 1 => trial.change(true),
                2 => trial.review(|rng| match rng.usize(0..3) {
                    0 => Verdict::Accepted,
                    1 => Verdict::Refused,
                    _ => Verdict::Open,
                }),
                _ => trial.command(),
            }
            trial.check();
        }
        let last = match seed % 2 {
            0 => Verdict::Accepted,
            _ => Verdict::Refused,
        };
        trial.review(|_| last.clone());
        trial.check();
        trial.review(|_| unreachable!("nothing is open"));
    }
}
