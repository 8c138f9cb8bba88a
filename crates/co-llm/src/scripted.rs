//! A provider that answers from a script, for tests and examples without a model.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;

use crate::fault::Fault;
use crate::provider::{Delta, Provider, Stop};
use crate::provider_table::DEFAULT_WINDOW;
use crate::request::ModelRequest;

/// A piece of a scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Delta(Delta),
    /// Ends the answer with this fault.
    Fault(Fault),
    /// Sends nothing for this time.
    Pause(Duration),
    /// Sends nothing more. The stream stays open until it is dropped.
    Hang,
}

impl From<Delta> for Part {
    fn from(delta: Delta) -> Self {
        Self::Delta(delta)
    }
}

impl From<Fault> for Part {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A provider that answers from a script: each request gets the next answer. The provider keeps the requests.
#[derive(Debug, Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Vec<Part>>>,
    requests: Mutex<Vec<ModelRequest>>,
    window: Option<u64>,
    learned: Mutex<Option<u64>>,
}

impl Scripted {
    pub fn new(answers: impl IntoIterator<Item = Vec<Part>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    /// Does the same as [`Scripted::new`], for a model with a context window of `window` tokens.
    pub fn with_window(answers: impl IntoIterator<Item = Vec<Part>>, window: u64) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            window: Some(window),
            ..Self::default()
        })
    }

    /// Returns an answer that consists of `text`.
    pub fn says(text: &str) -> Vec<Part> {
        vec![
            Delta::Text(text.to_owned()).into(),
            Delta::Stop(Stop::Done).into(),
        ]
    }

    /// Adds an answer at the end of the script.
    pub fn push(&self, answer: Vec<Part>) {
        self.answers.lock().push_back(answer);
    }

    /// Returns the requests so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().clone()
    }

    /// Returns the number of answers that are not used yet.
    pub fn left(&self) -> usize {
        self.answers.lock().len()
    }
}

#[async_trait]
impl Provider for Scripted {
    fn label(&self) -> String {
        "scripted".to_owned()
    }

    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault> {
        self.requests.lock().push(request);
        let answer = self
            .answers
            .lock()
            .pop_front()
            .ok_or_else(|| Fault::Malformed {
                detail: "the script is at its end".to_owned(),
            })?;
        Ok(stream::iter(answer)
            .filter_map(|part| async {
                match part {
                    Part::Delta(delta) => Some(Ok(delta)),
                    Part::Fault(fault) => Some(Err(fault)),
                    Part::Pause(time) => {
                        tokio::time::sleep(time).await;
                        None
                    }
                    Part::Hang => std::future::pending().await,
                }
            })
            .boxed())
    }

    async fn models(&self) -> Result<Vec<String>, Fault> {
        Ok(vec!["scripted".to_owned()])
    }

    async fn window(&self) -> u64 {
        let learned = *self.learned.lock();
        let window = self.window.unwrap_or(DEFAULT_WINDOW);
        learned.map_or(window, |learned| learned.min(window))
    }

    fn learn_window(&self, tokens: Option<u64>) {
        *self.learned.lock() = tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_come_in_order_and_requests_are_kept() {
        let provider = Scripted::new([
            vec![
                Delta::Text("a".into()).into(),
                Part::Pause(Duration::from_secs(3600)),
                Fault::Cut.into(),
            ],
            Scripted::says("b"),
        ]);
        let request = |system: &str| ModelRequest {
            system: system.into(),
            items: Arc::new([]),
            tools: Arc::new([]),
            may_call: true,
            cache_key: None,
            room: None,
        };
        let first: Vec<_> = provider.stream(request("1")).await.unwrap().collect().await;
        assert_eq!(first, [Ok(Delta::Text("a".into())), Err(Fault::Cut)]);
        let second: Vec<_> = provider.stream(request("2")).await.unwrap().collect().await;
        assert_eq!(
            second,
            [Ok(Delta::Text("b".into())), Ok(Delta::Stop(Stop::Done))]
        );
        assert!(provider.stream(request("3")).await.is_err());
        let systems: Vec<_> = provider
            .requests()
            .iter()
            .map(|r| r.system.clone())
            .collect();
        assert_eq!(systems, ["1", "2", "3"]);
    }
}
