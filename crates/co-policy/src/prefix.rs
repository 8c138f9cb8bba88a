//! Prefix rules: the words that a rule must contain to allow a command, and the prefix that the answer `always` offers.

use std::collections::BTreeSet;

use crate::form::{self, CommandForm};
use crate::programs::{self, GivenCode};
use crate::rules::Pattern;

/// Returns the indices of the words that name a program or contain code, except the command's own program. A prefix rule applies
/// to a command only if the rule contains these words.
pub(crate) fn code_places(words: &[String]) -> BTreeSet<usize> {
    let readings = CommandForm::readings(&form::literal(words));
    readings
        .iter()
        .flat_map(|form| places_in(form, words))
        .collect()
}

fn places_in(form: &CommandForm, words: &[String]) -> BTreeSet<usize> {
    let mut places = BTreeSet::new();
    let code = form.options_in(|row| &row.code);
    let texts = form.options_in(|row| &row.texts);
    let definitions = form.options_in(|row| &row.definitions);
    for option in code.chain(texts).chain(definitions) {
        places.extend([option.at, option.value_at]);
    }
    if form.options_in(|row| &row.actions).next().is_some() {
        places.extend(1..words.len());
    }
    if let Some(at) = form.starts {
        places.insert(at);
        let started = words.get(at..).unwrap_or_default();
        places.extend(code_places(started).into_iter().map(|place| place + at));
    }
    let operands = || form.operands.iter();
    let Some(row) = form.syntax() else {
        // An unknown sub-command is a program, such as `cargo-x`, or an alias.
        places.extend(form.subcommand_at.last());
        return places;
    };
    match row.given {
        None => {}
        Some(GivenCode::First) => places.extend(operands().take(1).map(|it| it.at)),
        Some(GivenCode::Operands) => places.extend(operands().map(|it| it.at)),
        Some(GivenCode::Variables) => {
            let set = operands().filter(|it| sets_code(&it.text));
            places.extend(set.map(|it| it.at));
        }
        Some(GivenCode::AfterDashes) if !form.dashes => {}
        Some(GivenCode::AfterDashes | GivenCode::Words) => places.extend(1..words.len()),
    }
    if row.joins && form.starts.is_some() {
        places.extend(1..words.len());
    }
    places.extend(operands().take(row.text_operands).map(|it| it.at));
    places
}

/// Returns true if an operand assigns to a variable a value that may be code. A number and the null device are not code.
fn sets_code(operand: &str) -> bool {
    operand.split_once('=').is_some_and(|(_, value)| {
        let number = value.bytes().all(|byte| byte.is_ascii_digit());
        !number && value != "/dev/null"
    })
}

/// Returns the prefix that the answer `always` offers for a command: the program and its sub-command. Returns `None` if the
/// command could run other code under this prefix.
pub(crate) fn for_always(words: &[String]) -> Option<Pattern> {
    let form = CommandForm::read(&form::literal(words));
    let row = form.syntax();
    let depth = form.subcommand.len();
    let operands = match depth {
        0 => row?.prefix?,
        _ => row.and_then(|row| row.prefix).unwrap_or_default(),
    };
    let known = row.is_some() || programs::is_subcommand(&form.program, &form.subcommand);
    let starts = |row: &programs::Program| {
        row.command.is_some() || row.command_after_dashes || row.given == Some(GivenCode::Words)
    };
    let length = 1 + depth + operands;
    let in_row = form.subcommand_at.iter().copied().eq(1..=depth)
        && (form.operands.iter().take(operands).map(|it| it.at)).eq(1 + depth..length);
    let plain = |word: &String| {
        !word.starts_with('-') && !word.contains(['*', '=', '/', '\n']) && !word.is_empty()
    };
    let taken = words.get(..length)?;
    let offers = known
        && !row.is_some_and(starts)
        && in_row
        && taken.iter().all(plain)
        && code_places(words).iter().all(|place| *place < length);
    offers.then(|| Pattern::prefix(taken.iter().cloned()))
}

#[cfg(test)]
mod tests {
    use super::{code_places, for_always};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn offers_the_subcommand_if_no_code_is_given() {
        let table = "\
git commit -m x | git commit
npm run build | npm run build
pytest -x | pytest
cargo test --lib | cargo test
cargo t | cargo t
git push origin main | git push
docker compose up | docker compose up
kubectl delete pod x | kubectl delete
go test ./... | go test
make test | make test
make test V=1 | make test
npm install | npm install
git stash drop | git stash drop
systemctl stop x | systemctl stop
gh pr merge 3 | gh pr merge
terraform apply -auto-approve | terraform apply
helm uninstall x | helm uninstall
cargo test --message-format x --target y | cargo test
git -c a=b commit |
git frobnicate |
npm run |
bash -c x |
env cargo test |
sudo ls |
python3 x.py |
rm -rf x |
mytool x |
uv run python |
uv run pytest |
docker exec web ls |
docker run alpine |
bundle exec ruby |
deno run x.ts |
gh api x |
npx cowsay |
npm install cowsay |
pip install cowsay |
cargo install x |
go run x |
git push --receive-pack=x |
git push --rec=x |
git fetch --upload-pack x |
git clone -u x y |
git rebase -x make |
git config a.b c |
go test -exec x |
go test -exec=x |
go test --exec=x |
go build -toolexec x |
make test CC=id; |
make -f x test |
make --eval=x test |
cargo --config x test |
cargo test --config=x |
pytest -p x |
pytest -px |
find . -exec rm {} ; |
bun run build | bun run build";
        for line in table.lines() {
            let (command, expected) = line.split_once(" |").unwrap();
            let offered = for_always(&words(command)).map(|pattern| pattern.to_string());
            assert_eq!(offered.unwrap_or_default(), expected.trim(), "{command}");
        }
    }

    #[test]
    fn knows_the_words_that_are_code() {
        let check = |command: &str, expected: &[usize]| {
            let found: Vec<usize> = code_places(&words(command)).into_iter().collect();
            assert_eq!(found, expected, "{command}");
        };
        check("cargo test --lib", &[]);
        check("mytool --exec x", &[]);
        check("uv run pytest -x", &[2]);
        check("uv run python -c x", &[2, 3, 4]);
        check("timeout 5 bash x.sh", &[2, 3]);
        check("docker exec -it web sh -c x", &[4, 6]);
        check("git push --receive-pack=x", &[2]);
        check("git push --receive-pack x origin", &[2, 3]);
        check("make CC=x V=1 all", &[1]);
        check("cargo frobnicate", &[1]);
        check("gh api x -X DELETE", &[1, 2, 3, 4]);
    }
}
