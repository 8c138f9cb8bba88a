//! The prompts that go into a turn that runs.

use super::{Chat, Prompt};

impl Chat {
    /// Lets the newest queued prompt go with the next request of the turn.
    pub(super) fn steer(&mut self) {
        match self.queue.iter_mut().rev().find(|prompt| !prompt.steer) {
            Some(prompt) if prompt.range.is_some() => {
                self.complain(
                    "the queued prompt is about lines of a range: it needs a turn of its own",
                );
            }
            Some(prompt) => {
                prompt.steer = true;
                self.show_state();
            }
            None => self.say("no prompt waits; /steer {text} sends one into the turn"),
        }
    }

    /// Records and shows the prompts that go with the next request. Call it only if each call has its result.
    pub(super) async fn take_steering(&mut self) {
        self.flush().await;
        while let Some(at) = self.first_steering()
            && let Some(prompt) = self.queue.remove(at)
        {
            if !self.take(prompt).await {
                return;
            }
        }
    }

    /// Takes the prompt of the next turn off the queue.
    pub(super) fn next_prompt(&mut self) -> Option<Prompt> {
        self.queue.remove(self.first_steering().unwrap_or(0))
    }

    fn first_steering(&self) -> Option<usize> {
        self.queue.iter().position(|prompt| prompt.steer)
    }
}
