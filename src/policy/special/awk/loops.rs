//! awk's loops: those that end whatever the input is.
//!
//! `for (k in a)`, and counting from one number to another that nothing else in the program moves.

/// Larger numbers in a loop's head make it endless in practice.
const MAX_DIGITS: usize = 4;

/// True where every loop of the program, given as names, numbers and single signs, is known to end.
pub(super) fn end(tokens: &[&str]) -> bool {
    if tokens.iter().any(|token| matches!(*token, "while" | "do")) {
        return false;
    }
    let heads: Vec<usize> = (0..tokens.len())
        .filter(|at| tokens[*at] == "for")
        .collect();
    heads.iter().all(|at| {
        over_keys(&tokens[at + 1..])
            || Counted::read(&tokens[at + 1..]).is_some_and(|head| head.ends(tokens, *at))
    })
}

/// `(k in a)`
fn over_keys(head: &[&str]) -> bool {
    matches!(head, ["(", key, "in", array, ")", ..] if is_name(key) && is_name(array))
}

/// `(i = 1; i <= NF; i++)` or `(i = NF; i > 0; i--)`
struct Counted<'a> {
    name: &'a str,
    from: &'a str,
    to: &'a str,
    up: bool,
}

impl<'a> Counted<'a> {
    fn read(head: &[&'a str]) -> Option<Self> {
        let ["(", name, "=", from, ";", tested, compared, rest @ ..] = head else {
            return None;
        };
        let rest = rest.strip_prefix(&["="]).unwrap_or(rest);
        let (to, step) = match rest {
            [to, ";", a, b, c, ")", ..] => (to, [*a, *b, *c]),
            _ => return None,
        };
        let up = *compared == "<";
        let sign = if up { "+" } else { "-" };
        let steps = step == [*name, sign, sign] || step == [sign, sign, *name];
        (is_name(name) && tested == name && matches!(*compared, "<" | ">") && steps)
            .then_some(Self { name, from, to, up })
    }

    fn ends(&self, tokens: &[&str], at: usize) -> bool {
        let counts = ["NF", "NR", "FNR"];
        let still = |name: &str| changes(tokens, name).is_empty();
        // Its head changes it twice: where it starts and where it steps.
        let alone = changes(tokens, self.name).len() == 2;
        let (start, bound) = if self.up {
            (self.from, self.to)
        } else {
            (self.to, self.from)
        };
        let bounded = if counts.contains(&bound) {
            // To change a field changes their number.
            still(bound) && (!self.up || bound != "NF" || !changes_fields(tokens))
        } else {
            is_small(bound) || is_split_before(tokens, bound, at)
        };
        alone && is_small(start) && bounded
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_small(token: &str) -> bool {
    token.len() <= MAX_DIGITS && !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit())
}

/// Where a variable may get another value.
fn changes(tokens: &[&str], name: &str) -> Vec<usize> {
    let sign = |at: usize, signs: &[&str]| tokens.get(at).is_some_and(|t| signs.contains(t));
    let steps = |at: usize| {
        ["+", "-"]
            .iter()
            .any(|s| sign(at, &[*s]) && sign(at + 1, &[*s]))
    };
    (0..tokens.len())
        .filter(|at| tokens[*at] == name)
        .filter(|at| {
            let after = at + 1;
            let assigned = sign(after, &["="]) && !sign(after + 1, &["="]);
            let updated =
                sign(after, &["+", "-", "*", "/", "%", "^"]) && sign(after + 1, &["=", "*"]);
            // `sub(r, s, name)`: what a function may change.
            let given = sign(after, &[")"]) && at.checked_sub(1).is_some_and(|b| sign(b, &[","]));
            assigned
                || updated
                || given
                || steps(after)
                || at.checked_sub(2).is_some_and(steps)
                || sign(after, &["in", "["])
        })
        .collect()
}

/// True where a field, or the whole record, may get another value.
fn changes_fields(tokens: &[&str]) -> bool {
    let functions = ["sub", "gsub", "split", "gensub", "patsplit"];
    let assigns = tokens.windows(2).enumerate().any(|(at, two)| {
        let compares = at
            .checked_sub(1)
            .is_some_and(|before| matches!(tokens[before], "=" | "!" | "<" | ">"));
        two[0] == "=" && two[1] != "=" && !compares && !after_name(tokens, at)
    });
    let steps = tokens.windows(2).enumerate().any(|(at, two)| {
        two[0] == two[1] && matches!(two[0], "+" | "-") && !beside_name(tokens, at)
    });
    assigns || steps || tokens.iter().any(|token| functions.contains(token))
}

/// True where the `=` at a place assigns to a variable: `x =`, `x +=`, `a[k] =`.
fn after_name(tokens: &[&str], at: usize) -> bool {
    let operator = at
        .checked_sub(1)
        .is_some_and(|before| matches!(tokens[before], "+" | "-" | "*" | "/" | "%"));
    let end = at.checked_sub(if operator { 2 } else { 1 });
    end.is_some_and(|end| is_variable(tokens, end))
}

/// True where the `++` at a place steps a variable.
fn beside_name(tokens: &[&str], at: usize) -> bool {
    match at.checked_sub(1).map(|before| (before, tokens[before])) {
        Some((end, value)) if !is_sign(value) || matches!(value, ")" | "]") => {
            is_variable(tokens, end)
        }
        _ => tokens.get(at + 2).is_some_and(|next| is_name(next)),
    }
}

fn is_sign(token: &str) -> bool {
    !token.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '"'))
}

/// True where a variable, or an element of an array, ends at a place; a field is none.
fn is_variable(tokens: &[&str], mut end: usize) -> bool {
    if tokens[end] == "]" {
        let mut depth = 0;
        let open = (0..=end).rev().find(|at| {
            match tokens[*at] {
                "]" => depth += 1,
                "[" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        match open.and_then(|open| open.checked_sub(1)) {
            Some(name) => end = name,
            None => return false,
        }
    }
    is_name(tokens[end])
        && end
            .checked_sub(1)
            .is_none_or(|before| tokens[before] != "$")
}

/// True where a variable has one value only, the count of a `split` before the first loop.
fn is_split_before(tokens: &[&str], name: &str, at: usize) -> bool {
    let first = tokens
        .iter()
        .position(|token| *token == "for")
        .unwrap_or(at);
    match changes(tokens, name).as_slice() {
        [only] => *only < first && matches!(&tokens[only + 1..], ["=", "split", "(", ..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan;

    #[test]
    fn only_loops_that_end() {
        for program in [
            "{for(i=1;i<=NF;i++) print $i}",
            "{for (i = NF; i > 0; i--) printf \"%s \", $i}",
            "{for(i=1;i<=NF;i++) s+=$i} END {print s}",
            "{c[$1]++} END {for (k in c) print k, c[k]}",
            "{a[NR]=$0} END {for(i=NR;i>=1;i--) print a[i]}",
            "{n=split($0,a,\",\"); for(i=1;i<=n;i++) print a[i]}",
            "BEGIN{for(i=0;i<10;++i) print i}",
            "{for(i=1;i<=NF;i++) c[$i]++} END{for(w in c) print c[w], w}",
            "{for(i=1;i<=NF;i++) {t[i]+=$i; n[i] = 1}}",
            "{for(i=1;i<=3;i++) for(j=1;j<=3;j++) print i, j}",
        ] {
            assert!(scan(program).is_ok(), "{program}: {:?}", scan(program));
        }
        for program in [
            "BEGIN{while(1);}",
            "BEGIN{do print; while(1)}",
            "BEGIN{for(;;);}",
            "BEGIN{for(i=1;i<=3;i++) i=1}",
            "BEGIN{for(i=1;i<=3;i++) i--}",
            "BEGIN{for(i=1;i<=3;i++) --i}",
            "BEGIN{for(i=1;i<=3;i++) i-=1}",
            "BEGIN{for(i=1;i<=3;i++) for(i=1;i<=2;i++);}",
            "BEGIN{a[0];for(i=1;i<=3;i++) for(i in a);}",
            "BEGIN{for(i=1;i<=3;i++) sub(/./,0,i)}",
            "BEGIN{for(i=1;i<=3;i++) gsub(/./,0,i)}",
            "BEGIN{for(i=1;i>=0;i++);}",
            "BEGIN{for(i=1;i<=3;j++);}",
            "BEGIN{for(i=1;i<=99999999;i++);}",
            "BEGIN{for(i=1;i<=1e300;i++);}",
            "BEGIN{for(i=1;i<=x;i++) x=i+1}",
            "{for(i=1;i<=NF;i++) NF++}",
            "{for(i=1;i<=NF;i++) $(NF+1)=1}",
            "{for(i=1;i<=NF;i++) $0=$0 \" x\"}",
            "{for(i=1;i<=NF;i++) sub(/$/,\" x\")}",
            "{for(i=1;i<=NF;i++) $(i+1)++}",
            "{for(i=1;i<=NF;i++) $(i+1)+=1}",
            "{for(i=1;i<=NF;i++) ++$(NF+1)}",
            "{for(i=1;i<=NF;i++) $(NF+1)++ x}",
            "{for(i=1;i<=NF;i++) $a[1]=3}",
            "{for(i=1;i<=n;i++){s=s \",x\";n=split(s,a,\",\")}}",
            "{for(i=1;i<=NR;i++) NR++}",
            "{for(i=1;i<=3;i++) split(\"x\",i)}",
            "BEGIN{for(i=1;i<=3;i++){a[i--]}}",
        ] {
            assert!(scan(program).is_err(), "{program}");
        }
    }
}
