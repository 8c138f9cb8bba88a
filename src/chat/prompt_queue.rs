//! The queued prompts. A prompt waits for the next turn, or for the next request of the running turn (steering).

use std::collections::VecDeque;
use std::path::Path;

use super::message::Prompt;

/// The result of [`PromptQueue::steer_newest`].
pub(super) enum Steered {
    Taken,
    /// The prompt cannot steer, because it is about a range of lines or about a plan.
    NeedsOwnTurn,
    NoPrompt,
}

#[derive(Default)]
pub(super) struct PromptQueue {
    waiting: VecDeque<Prompt>,
    /// The number of prompts that were recorded or dropped. Prompts that went back to the person do not count.
    taken: u64,
    /// True if the person cancelled the turn. The prompts then wait until the person sends another prompt, or starts a turn.
    held: bool,
}

impl PromptQueue {
    /// Adds a prompt to the end of the queue. If the queue is held, adds the prompt to its front and releases the queue.
    pub(super) fn push(&mut self, prompt: Prompt) {
        match std::mem::take(&mut self.held) {
            true => self.waiting.push_front(prompt),
            false => self.waiting.push_back(prompt),
        }
    }

    /// Keeps the prompts in the queue after the end of the turn. Does nothing if the queue is empty.
    pub(super) fn hold(&mut self) {
        self.held = !self.waiting.is_empty();
    }

    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Ends the hold of the queue: the next prompt starts when the turn that starts now has ended.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts a prompt that is now in the transcript.
    pub(super) fn count_taken(&mut self) {
        self.taken += 1;
    }

    /// Returns the number of prompts that wait for a turn of their own.
    pub(super) fn queued(&self) -> usize {
        self.waiting.len() - self.steering()
    }

    /// Returns the number of prompts that wait for the next request of the running turn.
    pub(super) fn steering(&self) -> usize {
        self.waiting.iter().filter(|prompt| prompt.steer).count()
    }

    /// Removes the prompt for the next turn from the queue and returns it. Prompts that came too late to steer the last turn come
    /// first.
    pub(super) fn next(&mut self) -> Option<Prompt> {
        self.next_steering().or_else(|| self.waiting.pop_front())
    }

    /// Removes the next prompt that steers the running turn from the queue and returns it.
    pub(super) fn next_steering(&mut self) -> Option<Prompt> {
        let at = self.waiting.iter().position(|prompt| prompt.steer)?;
        self.waiting.remove(at)
    }

    /// Changes the newest prompt that waits for a turn of its own, so that it steers the running turn.
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

    /// Removes all prompts from the queue. The caller gives them back to the person.
    pub(super) fn take_all(&mut self) -> impl DoubleEndedIterator<Item = Prompt> + use<> {
        std::mem::take(&mut self.waiting).into_iter()
    }

    /// Removes the prompts that come from the prompt file `path` from the queue. If `path` is `None`, removes the prompts of all
    /// prompt files.
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
