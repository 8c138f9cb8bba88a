//! The limits of a turn. A turn ends if it repeats the same calls or has too many steps.
//!
//! This module does no I/O. It counts steps, tokens and calls.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use co_llm::transcript::Usage;

/// The largest number of calls in a repeated cycle that co recognizes.
const LONGEST_CYCLE: usize = 5;
const REPEATS_TO_HINT: usize = 3;
const REPEATS_TO_END: usize = 5;

/// The note to the model in the last request of a turn that has used all its steps.
pub(super) const STEPS_USED_UP: &str = "The steps of this turn are used up, and no more tools can be called. Sum up for the person: what you \
     did, what came of it, and what is left to do.";

/// The note to a scout in the last request of its turn.
pub(super) const REPORT_NOW: &str = "Your steps or tokens are used up, and no more tools can be called. Report now: what you found, with \
     file:line, and what you could not look at.";

/// The result of a call that the model makes in its answer to the last request.
pub(super) const NO_STEPS_LEFT: &str = "Not run: the steps of this turn are used up.";

/// The step that a turn may make next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum NextStep {
    Go,
    /// One more step without tools, in which the model summarizes its work.
    Summarise,
    Stop,
}

/// Says whether a call completes a repetition of the calls before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) enum Repetition {
    Harmless,
    /// The call repeats earlier calls. Its result gets this hint for the model.
    Hint(String),
    /// The call repeats earlier calls too often. The turn must end.
    End,
}

/// The limits of one turn.
#[derive(Debug)]
pub(in crate::chat) struct LoopLimits {
    max_steps: u32,
    steps: u32,
    /// The largest number of tokens that the turn may use; none if there is no limit. Tokens that the model reads from its cache
    /// do not count.
    max_tokens: Option<u64>,
    tokens: u64,
    /// True if the turn has sent its last request, which asks the model to summarize its work.
    summed_up: bool,
    calls: VecDeque<u64>,
}

impl LoopLimits {
    /// Allows `max_steps` requests, and one more to summarize; 0 means no limit.
    pub(in crate::chat) fn new(max_steps: u32) -> Self {
        Self {
            max_steps,
            steps: 0,
            max_tokens: None,
            tokens: 0,
            summed_up: false,
            calls: VecDeque::with_capacity(LONGEST_CYCLE * REPEATS_TO_END),
        }
    }

    /// Sets the limit of tokens to `most`.
    pub(in crate::chat) fn with_tokens(self, most: u64) -> Self {
        Self {
            max_tokens: Some(most),
            ..self
        }
    }

    /// Counts the tokens that a request used.
    pub(in crate::chat) fn used(&mut self, usage: &Usage) {
        self.tokens += usage.input.saturating_sub(usage.cached) + usage.output;
    }

    /// Changes the limit of steps. The number of steps so far stays.
    pub(in crate::chat) fn set_max_steps(&mut self, max_steps: u32) {
        self.max_steps = max_steps;
    }

    /// Counts a request and returns the step that may follow.
    pub(in crate::chat) fn step(&mut self) -> NextStep {
        self.steps = self.steps.saturating_add(1);
        let has_tokens = self.max_tokens.is_none_or(|most| self.tokens < most);
        match self.max_steps {
            _ if self.summed_up => NextStep::Stop,
            0 if has_tokens => NextStep::Go,
            max if self.steps <= max && has_tokens => NextStep::Go,
            _ => {
                self.summed_up = true;
                NextStep::Summarise
            }
        }
    }

    /// Adds a call with its result. Returns whether the call completes a repetition of the calls before it.
    pub(in crate::chat) fn call(
        &mut self,
        name: &str,
        arguments: &Value,
        result: &str,
    ) -> Repetition {
        if self.calls.len() == LONGEST_CYCLE * REPEATS_TO_END {
            self.calls.pop_front();
        }
        self.calls.push_back(fingerprint(name, arguments, result));
        for length in 1..=LONGEST_CYCLE {
            let repeated = self.repeated(length);
            if repeated >= REPEATS_TO_END * length {
                return Repetition::End;
            }
            if repeated == REPEATS_TO_HINT * length {
                return Repetition::Hint(hint(length));
            }
            if repeated > REPEATS_TO_HINT * length {
                return Repetition::Harmless;
            }
        }
        Repetition::Harmless
    }

    /// Returns the number of calls, counted back from the last call, that form repeated cycles of `length` calls; 0 if the cycle
    /// does not repeat.
    fn repeated(&self, length: usize) -> usize {
        let last = self.calls.len();
        let repeated = (length..last)
            .rev()
            .take_while(|at| self.calls[*at] == self.calls[*at - length])
            .count();
        match repeated {
            0 => 0,
            repeated => repeated + length,
        }
    }
}

fn hint(length: usize) -> String {
    let what = match length {
        1 => "This same call has".to_owned(),
        _ => format!("These same {length} calls have"),
    };
    format!(
        "{what} now had the same result {REPEATS_TO_HINT} times. Doing it again will not change that: \
         try something else, or say what is in the way."
    )
}

fn fingerprint(name: &str, arguments: &Value, result: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hash_value(arguments, &mut hasher);
    for word in result.split_whitespace() {
        if !passing(word) {
            word.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Hashes a value. The order of an object's keys does not matter.
fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            keys.len().hash(hasher);
            for key in keys {
                key.hash(hasher);
                hash_value(&map[key], hasher);
            }
        }
        Value::Array(values) => {
            values.len().hash(hasher);
            values.iter().for_each(|value| hash_value(value, hasher));
        }
        other => other.to_string().hash(hasher),
    }
}

/// Returns true if a word is a duration, a time of day or a memory address. Such words differ each time that a command runs.
fn passing(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| text.split('.').all(digits) && text.matches('.').count() < 2;
    let duration = ["ns", "us", "µs", "ms", "min", "s", "m", "h"]
        .iter()
        .any(|unit| word.strip_suffix(unit).is_some_and(number));
    let clock = word.contains(':') && word.split(':').all(number);
    let address = word
        .strip_prefix("0x")
        .is_some_and(|hex| hex.len() > 5 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
    duration || clock || address
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `calls` names each call by a letter; the result has `.` for harmless, `n` for a hint, `?` for the end.
    fn check(calls: &str, expected: &str) {
        let mut limits = LoopLimits::new(0);
        let verdicts: String = calls
            .chars()
            .map(
                |c| match limits.call("run", &json!({"cmd": c.to_string()}), "same") {
                    Repetition::Harmless => '.',
                    Repetition::Hint(_) => 'n',
                    Repetition::End => '?',
                },
            )
            .collect();
        assert_eq!(verdicts, expected, "{calls}");
    }

    #[test]
    fn a_turn_whose_tokens_are_used_up_sums_up() {
        let mut limits = LoopLimits::new(0).with_tokens(100);
        let usage = |input, cached, output| Usage {
            input,
            cached,
            output,
            ..Usage::default()
        };
        assert_eq!(limits.step(), NextStep::Go);
        limits.used(&usage(1_000, 950, 49));
        assert_eq!(limits.step(), NextStep::Go);
        limits.used(&usage(1_000, 1_000, 1));
        assert_eq!(limits.step(), NextStep::Summarise);
        assert_eq!(limits.step(), NextStep::Stop);
    }

    #[test]
    fn repeats() {
        check("AAB", "...");
        check("AABAAC", "......");
        check("AAAAAA", "..n.??");
        check("ABABABABAB", ".....n...?");
        check("ABCABCABC", "........n");
        check("ABCDEABCDEABCDE", "..............n");
        check("ABCDEFABCDEFABCDEF", "..................");
        check("AABAABAAB", "........n");
        check("ABCDEABCDEABCDEABCDEABCDE", "..............n.........?");
    }

    #[test]
    fn another_result_or_argument_is_another_call() {
        let mut limits = LoopLimits::new(0);
        for (arguments, result) in [
            (json!({"id": 1}), "10 %"),
            (json!({"id": 1}), "20 %"),
            (json!({"id": 1}), "30 %"),
            (json!({"id": 2}), "30 %"),
            (json!({"id": 3}), "30 %"),
        ] {
            assert_eq!(
                limits.call("job_output", &arguments, result),
                Repetition::Harmless
            );
        }
    }

    #[test]
    fn times_and_addresses_do_not_hide_a_repeat() {
        let mut limits = LoopLimits::new(0);
        let mut last = Repetition::Harmless;
        for result in [
            "12:01:07 failed in 0.52s at 0x7ffe1234",
            "12:01:09 failed in 1.3s at 0x7ffe5678",
            "12:02:00 failed  in 12ms at 0x7ffe9abc\n",
        ] {
            last = limits.call("run", &json!({"a": 1, "b": 2}), result);
        }
        assert!(matches!(last, Repetition::Hint(_)));
    }

    #[test]
    fn the_order_of_keys_says_nothing() {
        assert_eq!(
            fingerprint("x", &json!({"a": 1, "b": [1, 2]}), ""),
            fingerprint("x", &json!({"b": [1, 2], "a": 1}), "")
        );
        assert_ne!(
            fingerprint("x", &json!({"a": 1}), ""),
            fingerprint("x", &json!({"a": "1"}), "")
        );
    }

    #[test]
    fn steps_end_with_a_summary() {
        use NextStep::{Go, Stop, Summarise};
        let mut limits = LoopLimits::new(3);
        let verdicts: Vec<_> = (0..5).map(|_| limits.step()).collect();
        assert_eq!(verdicts, [Go, Go, Go, Summarise, Stop]);
        let mut limits = LoopLimits::new(0);
        assert!((0..500).all(|_| limits.step() == Go));
        // A limit below the number of steps so far ends the turn with a summary, too.
        limits.set_max_steps(3);
        assert_eq!([limits.step(), limits.step()], [Summarise, Stop]);
    }
}
