//! The filter of the system calls of a confined command (seccomp).
//!
//! The filter consists of a list of allowed calls ([`calls`]) and a list of refused arguments ([`arguments`]). All other calls
//! return "not implemented". The filter compares only arguments, not the memory to which they point, because a program could
//! change that memory after the check. Calls that need such a check are not allowed, or are left to Landlock.

#[cfg(test)]
mod tests;

mod arguments;
mod calls;
mod refused_call;

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::sock_filter;

use self::calls::SystemCalls;
use self::refused_call::{Condition, RefusedCall};

pub(super) use self::refused_call::FilterConfig;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the numbers of system calls have been looked at for x86_64 and aarch64 only");

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ALWAYS: u16 = 0x05;
const ANY_BIT: u16 = 0x45;

const ALLOW: u32 = 0x7FFF_0000;
const FAIL: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;

const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;

/// The instructions for all system calls from the number `from` up to the start of the next segment. They end with a verdict.
#[derive(Debug)]
struct Segment {
    from: u32,
    code: Vec<sock_filter>,
}

/// Returns the filter program for a configuration.
pub(super) fn program(config: FilterConfig) -> Vec<sock_filter> {
    let mut code = vec![
        step(LOAD, ARCH_AT),
        jump(EQUAL, ARCH, 1, 0),
        step(RETURN, KILL),
        step(LOAD, NUMBER_AT),
    ];
    search(&segments(config), &mut code);
    code
}

/// Returns the segments for all call numbers, sorted by number.
///
/// The last segment has no upper bound, so it also refuses calls of the x32 ABI, whose numbers are far above the others.
fn segments(config: FilterConfig) -> Vec<Segment> {
    let mut known = BTreeMap::new();
    let calls = SystemCalls::of(config);
    for call in calls.refused {
        known.insert(number(call), vec![fail(libc::EPERM)]);
    }
    let refusals = arguments::refusals(config);
    for call in calls.allowed {
        let refusals = refusals.iter().filter(|refusal| refusal.call == call);
        let mut code: Vec<_> = refusals.flat_map(|refusal| body(*refusal)).collect();
        code.push(step(RETURN, ALLOW));
        known.insert(number(call), code);
    }
    let absent = || vec![fail(libc::ENOSYS)];
    let mut segments = vec![Segment {
        from: 0,
        code: absent(),
    }];
    for (from, code) in known {
        segments.pop_if(|gap| gap.from == from);
        if segments.last().is_none_or(|last| last.code != code) {
            segments.push(Segment { from, code });
        }
        segments.push(Segment {
            from: from + 1,
            code: absent(),
        });
    }
    segments
}

/// Appends a binary search for the call number in the accumulator. At load time, the kernel runs the filter once for every
/// possible call, so a linear search would be slow.
fn search(segments: &[Segment], code: &mut Vec<sock_filter>) {
    if let [segment] = segments {
        code.extend_from_slice(&segment.code);
        return;
    }
    let (lower, upper) = segments.split_at(segments.len() / 2);
    // A conditional jump reaches 255 steps only, an unconditional one any.
    code.push(jump(AT_LEAST, upper[0].from, 0, 1));
    let over = code.len();
    code.push(step(ALWAYS, 0));
    search(lower, code);
    code[over].k = (code.len() - over - 1) as u32;
    search(upper, code);
}

fn number(call: i64) -> u32 {
    u32::try_from(call).expect("the number of a system call is small")
}

/// Returns the instructions for one refusal. If a condition of the refusal is false, the kernel continues with the instruction
/// after them.
fn body(refusal: RefusedCall) -> Vec<sock_filter> {
    let and = condition(refusal.and, 1);
    let mut steps = condition(refusal.when, and.len() + 1);
    steps.extend(and);
    steps.push(fail(refusal.errno));
    steps
}

/// Returns the instructions that check a condition on an argument. If the condition is false, they skip the next `rest`
/// instructions.
fn condition(when: Condition, rest: usize) -> Vec<sock_filter> {
    let skip = u8::try_from(rest).unwrap_or(u8::MAX);
    match when {
        Condition::Always => Vec::new(),
        Condition::AnyBit(argument, mask) => vec![
            step(LOAD, argument_at(argument)),
            jump(ANY_BIT, mask, 0, skip),
        ],
        Condition::Masked(argument, mask, value) => vec![
            step(LOAD, argument_at(argument)),
            step(AND, mask),
            jump(EQUAL, value, 0, skip),
        ],
        Condition::In(argument, values) => {
            let mut steps = vec![step(LOAD, argument_at(argument))];
            // A match skips the jump for non-matches.
            steps.extend(each(values, 1));
            steps.push(step(ALWAYS, rest as u32));
            steps
        }
        Condition::NotIn(argument, values) => {
            let mut steps = vec![step(LOAD, argument_at(argument))];
            steps.extend(each(values, rest));
            steps
        }
        Condition::Some(argument) => vec![
            step(LOAD, argument_at(argument)),
            jump(EQUAL, 0, 0, 2),
            step(LOAD, argument_at(argument) + 4),
            jump(EQUAL, 0, skip, 0),
        ],
    }
}

/// Returns a comparison for each value. On a match, a comparison skips the remaining comparisons and `further` more instructions.
fn each(values: &[u32], further: usize) -> impl Iterator<Item = sock_filter> {
    let count = values.len();
    values.iter().enumerate().map(move |(at, value)| {
        let over = u8::try_from(count - at - 1 + further).unwrap_or(u8::MAX);
        jump(EQUAL, *value, over, 0)
    })
}

/// Returns the offset of an argument's low word in the data of the filter. Both supported architectures are little-endian.
const fn argument_at(argument: u8) -> u32 {
    16 + 8 * argument as u32
}

const fn step(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const fn fail(errno: i32) -> sock_filter {
    step(RETURN, FAIL | errno as u32)
}
