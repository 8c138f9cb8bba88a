//! The prompts that wait: for the next turn, or for the next request of the turn that runs (steering).

use std::collections::VecDeque;
use std::path::Path;

use super::message::Prompt;

/// The result of [`PromptQueue::steer_newest`].
pub(super) enum Steered {
    Taken,
    /// The prompt is about lines of a range, or about a plan.
    NeedsOwnTurn,
    NoPrompt,
}

#[derive(Default)]
pub(super) struct PromptQueue {
    waiting: VecDeque<Prompt>,
    /// The number of prompts that were recorded or dropped. Prompts that were given back do not count.
    taken: u64,
    /// The person cancelled the turn: the prompts wait until the person sends one, or starts a turn.
    held: bool,
}

impl PromptQueue {
    /// Adds a prompt behind the others. If the prompts are held, adds it before them, and lets them go on.
    pub(super) fn push(&mut self, prompt: Prompt) {
        match std::mem::take(&mut self.held) {
            true => self.waiting.push_front(prompt),
            false => self.waiting.push_back(prompt),
        }
    }

    /// Lets the prompts wait beyond the end of the turn, if there are some.
    pub(super) fn hold(&mut self) {
        self.held = !self.waiting.is_empty();
    }

    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Lets the queued prompts follow after the turn that starts.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts a prompt as taken, because it is in the transcript now.
    pub(super) fn count_taken(&mut self) {
        self.taken += 1;
    }

    /// Returns the number of prompts that wait for a turn of their own.
    pub(super) fn queued(&self) -> usize {
        self.waiting.len() - self.steering()
    }

    /// Returns the number of prompts that go into the turn that runs.
    pub(super) fn steering(&self) -> usize {
        self.waiting.iter().filter(|prompt| prompt.steer).count()
    }

    /// Takes the prompt of the next turn off the queue. Prompts that came too late to steer the last turn go first.
    pub(super) fn next(&mut self) -> Option<Prompt> {
        self.next_steering().or_else(|| self.waiting.pop_front())
    }

    /// Takes the next prompt that goes into the turn that runs off the queue.
    pub(super) fn next_steering(&mut self) -> Option<Prompt> {
        let at = self.waiting.iter().position(|prompt| prompt.steer)?;
        self.waiting.remove(at)
    }

    /// Lets the newest prompt that waits for a turn of its own go into the turn that runs.
    pub(super) fn steer_newest(&mut self) -> Steered {
        let mut newest_first = self.waiting.iter_mut().rev();
        match newest_first.find(|prompt| !prompt.steer) {
            None => Steered::NoPrompt,
            Some(prompt) if prompt.needs_own_turn() => Steered::NeedsOwnTurn,
            Some(prompt) => {
                prompt.steer = true;
                Steered::Taken
            }
        }
    }

    /// Takes all prompts off the queue, to give them back.
    pub(super) fn take_all(&mut self) -> impl DoubleEndedIterator<Item = Prompt> + use<> {
        std::mem::take(&mut self.waiting).into_iter()
    }

    /// Takes the prompts of a prompt file off the queue; of any prompt file, if `path` is none.
    pub(super) fn take_from_file(&mut self, path: Option<&Path>) -> Vec<Prompt> {
        let from_file = |prompt: &Prompt| {
            (prompt.untrusted_file()).is_some_and(|file| path.is_none_or(|path| path == file))
        };
        let waiting = std::mem::take(&mut self.waiting);
        let (taken, kept): (Vec<_>, _) = waiting.into_iter().partition(from_file);
        self.waiting = kept.into();
        taken
    }

    /// Drops all prompts.
    pub(super) fn drop_all(&mut self) {
        self.held = false;
        self.taken += self.waiting.len() as u64;
        self.waiting.clear();
    }
}
