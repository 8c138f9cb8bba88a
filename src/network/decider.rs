//! Decides about the hosts of one command: by the rules, or by a question.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use co_exec::TimeLimit;
use co_policy::{HostRules, HostVerdict};
use co_proxy::{Decider, Host, Target};

/// The longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The time in which a command may want further hosts, which come into the same question.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// The most hosts of one command that are asked about. So a command cannot ask for ever.
const MAX_ASKED: usize = 100;

/// The most hosts in one question.
const MAX_TOGETHER: usize = 10;

/// The requests that wait. The proxy has fewer connections.
const QUEUE: usize = 64;

/// Asks the person about hosts.
#[async_trait]
pub trait HostAsker: Send + Sync {
    /// Asks whether the command may reach all of these. If the result is dropped, the question is withdrawn.
    ///
    /// # Errors
    /// It may not: the reason, which the command reads.
    async fn ask(&self, targets: &[Target]) -> Result<(), String>;

    /// Returns the number of the current period. When it changes, all answers are forgotten.
    fn period(&self) -> u64 {
        0
    }
}

type HostAnswer = Result<(), String>;

/// A target that waits for its answer.
type Request = (Target, oneshot::Sender<HostAnswer>);

/// Decides by rules, and asks about all other hosts, each once.
pub(super) struct RuleDecider {
    rules: HostRules,
    requests: mpsc::Sender<Request>,
    _questions: AbortOnDropHandle<()>,
}

/// The questions of one command: one at a time.
struct Questions {
    asker: Arc<dyn HostAsker>,
    time_limit: TimeLimit,
    answers: HashMap<Target, HostAnswer>,
    /// The time in which the answers hold.
    period: u64,
    /// Nobody answered a question in time, so no other one comes.
    is_unattended: bool,
}

impl RuleDecider {
    pub(super) fn new(rules: HostRules, asker: Arc<dyn HostAsker>, time_limit: TimeLimit) -> Self {
        let (requests, received) = mpsc::channel(QUEUE);
        let questions = Questions {
            period: asker.period(),
            asker,
            time_limit,
            answers: HashMap::new(),
            is_unattended: false,
        };
        Self {
            rules,
            requests,
            _questions: AbortOnDropHandle::new(tokio::spawn(questions.run(received))),
        }
    }
}

#[async_trait]
impl Decider for RuleDecider {
    async fn decide(&self, target: &Target) -> Result<String, String> {
        let host = target.host.to_string();
        match self.rules.verdict(&host, target.port) {
            HostVerdict::Allowed(rule) => return Ok(format!("the rule `{rule}`")),
            HostVerdict::Denied(rule) => return Err(format!("the rule `{rule}` denies it")),
            HostVerdict::Ask => {}
        }
        let (reply, answer) = oneshot::channel();
        let gone = || "the command has ended".to_owned();
        let sent = self.requests.send((target.clone(), reply)).await;
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())??;
        Ok("the person".to_owned())
    }

    fn denies_address(&self, target: &Target, address: IpAddr) -> Option<String> {
        let rule = self.rules.denied(&host_of(address), target.port)?;
        Some(format!("the rule `{rule}` denies it"))
    }

    fn allows_address(&self, target: &Target, address: IpAddr) -> bool {
        let verdict = self.rules.verdict(&host_of(address), target.port);
        // The name of this machine leads nowhere else.
        let is_local = target.host == Host::Name("localhost".to_owned());
        matches!(verdict, HostVerdict::Allowed(_)) || is_local && address.is_loopback()
    }
}

impl Questions {
    /// Answers requests until the command has ended.
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting: Vec<Request> = Vec::new();
        loop {
            if waiting.is_empty() {
                match requests.recv().await {
                    Some(request) => waiting.push(request),
                    None => return,
                }
            }
            self.forget_old();
            self.answer_known(&mut waiting);
            if waiting.is_empty() {
                continue;
            }
            tokio::time::sleep(GATHER_TIME).await;
            while let Ok(request) = requests.try_recv() {
                waiting.push(request);
            }
            self.answer_known(&mut waiting);
            if self.answers.len() >= MAX_ASKED {
                let why =
                    format!("the command wants more than {MAX_ASKED} hosts that no rule names");
                for (_, reply) in waiting.drain(..) {
                    // It does not matter if the connection is gone.
                    let _gone = reply.send(Err(why.clone()));
                }
                continue;
            }
            let mut targets: Vec<Target> = waiting.iter().map(|(it, _)| it.clone()).collect();
            targets.sort();
            targets.dedup();
            targets.truncate(MAX_TOGETHER);
            let answer = {
                let asked = self.ask(&targets);
                tokio::pin!(asked);
                loop {
                    tokio::select! {
                        answer = &mut asked => break answer,
                        // What is decided does not wait for the answer.
                        Some(request) = requests.recv() => {
                            waiting.push(request);
                            self.answer_known(&mut waiting);
                        }
                    }
                }
            };
            self.is_unattended = answer.is_none();
            let answer = answer.unwrap_or_else(unanswered);
            for target in targets {
                self.answers.insert(target, answer.clone());
            }
            self.answer_known(&mut waiting);
        }
    }

    /// Forgets the answers if their time is over.
    fn forget_old(&mut self) {
        let period = self.asker.period();
        if std::mem::replace(&mut self.period, period) != period {
            self.answers.clear();
            self.is_unattended = false;
        }
    }

    /// Asks the person, unless they did not answer before; none if nobody answers in time. The time of the command stands still
    /// meanwhile.
    async fn ask(&self, targets: &[Target]) -> Option<HostAnswer> {
        if self.is_unattended {
            return None;
        }
        let _hold = self.time_limit.hold();
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, self.asker.ask(targets));
        asked.await.ok()
    }

    /// Answers the requests whose targets are decided. Forgets those whose connections are gone.
    fn answer_known(&self, waiting: &mut Vec<Request>) {
        let all = std::mem::take(waiting);
        let is_over = self.asker.period() != self.period;
        for (target, reply) in all {
            match self.answers.get(&target).filter(|_| !is_over) {
                // It does not matter if the connection is gone.
                Some(answer) => drop(reply.send(answer.clone())),
                None if reply.is_closed() => {}
                None => waiting.push((target, reply)),
            }
        }
    }
}

/// Returns an address as a rule has it.
fn host_of(address: IpAddr) -> String {
    Host::Address(address.to_canonical()).to_string()
}

fn unanswered() -> HostAnswer {
    let seconds = ANSWER_TIMEOUT.as_secs();
    Err(format!("nobody answered for {seconds} s"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::Instant;

    use super::*;

    /// Answers by a list, and keeps the questions.
    #[derive(Default)]
    struct ListAsker {
        refuses: Vec<&'static str>,
        silent: bool,
        silent_about: Option<&'static str>,
        asked: Mutex<Vec<Vec<String>>>,
        period: AtomicU64,
    }

    #[async_trait]
    impl HostAsker for ListAsker {
        async fn ask(&self, targets: &[Target]) -> HostAnswer {
            let names: Vec<_> = targets.iter().map(Target::to_string).collect();
            let refused = names.iter().any(|it| self.refuses.contains(&it.as_str()));
            let silent = self.silent
                || names
                    .iter()
                    .any(|it| Some(it.as_str()) == self.silent_about);
            self.asked.lock().unwrap().push(names);
            if silent {
                std::future::pending::<()>().await;
            }
            match refused {
                true => Err("the person refused it".to_owned()),
                false => Ok(()),
            }
        }

        fn period(&self) -> u64 {
            self.period.load(Ordering::Relaxed)
        }
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    fn decider(asker: &Arc<ListAsker>) -> RuleDecider {
        let rules = HostRules {
            allow: vec!["good.example".parse().unwrap(), "10.0.0.1".parse().unwrap()],
            deny: vec!["bad.example".parse().unwrap(), "1.2.3.4".parse().unwrap()],
        };
        RuleDecider::new(rules, asker.clone(), TimeLimit::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_decides_without_a_question() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        let good = target("good.example:443");
        let ground = decider.decide(&good).await;
        assert_eq!(ground, Ok("the rule `good.example`".to_owned()));
        let denied = decider.decide(&target("bad.example:443")).await;
        assert_eq!(denied, Err("the rule `bad.example` denies it".to_owned()));
        assert!(asker.asked.lock().unwrap().is_empty());
        let allows = |host: &str, address: &str| {
            decider.allows_address(&target(host), address.parse().unwrap())
        };
        assert!(allows("good.example:443", "10.0.0.1"));
        assert!(allows("good.example:443", "::ffff:10.0.0.1"));
        assert!(!allows("good.example:22", "10.0.0.1"));
        assert!(!allows("good.example:443", "127.0.0.1"));
        assert!(allows("localhost:443", "127.0.0.1") && allows("localhost:443", "::1"));
        assert!(!allows("localhost:443", "10.0.0.2"));
        let denies = |address: &str| decider.denies_address(&good, address.parse().unwrap());
        let denied = Some("the rule `1.2.3.4` denies it".to_owned());
        assert_eq!(denies("1.2.3.4"), denied);
        assert_eq!(denies("::ffff:1.2.3.4"), denied);
        assert_eq!(denies("1.2.3.5"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_come_together_are_one_question_and_asked_once() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        let (a, b) = (target("a.example:443"), target("b.example:443"));
        let (first, second, third) =
            tokio::join!(decider.decide(&b), decider.decide(&a), decider.decide(&a));
        assert!(first.is_ok() && second.is_ok() && third.is_ok());
        assert!(decider.decide(&a).await.is_ok());
        assert!(decider.decide(&target("a.example:22")).await.is_ok());
        let asked = asker.asked.lock().unwrap();
        assert_eq!(
            *asked,
            [vec!["a.example:443", "b.example:443"], vec!["a.example:22"]]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_forgotten_when_its_time_is_over() {
        let asker = Arc::new(ListAsker {
            refuses: vec!["b.example:443"],
            ..ListAsker::default()
        });
        let decider = decider(&asker);
        let (a, b) = (target("a.example:443"), target("b.example:443"));
        for period in 0..3 {
            asker.period.store(period, Ordering::Relaxed);
            for _ in 0..2 {
                assert!(decider.decide(&a).await.is_ok());
                assert!(decider.decide(&b).await.is_err());
            }
        }
        assert_eq!(asker.asked.lock().unwrap().len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_stays_and_silence_refuses() {
        let refusing = Arc::new(ListAsker {
            refuses: vec!["a.example:443"],
            ..ListAsker::default()
        });
        let first = decider(&refusing);
        for _ in 0..3 {
            let answer = first.decide(&target("a.example:443")).await;
            assert_eq!(answer, Err("the person refused it".to_owned()));
        }
        assert_eq!(refusing.asked.lock().unwrap().len(), 1);
        let silent = Arc::new(ListAsker {
            silent: true,
            ..ListAsker::default()
        });
        let second = decider(&silent);
        let began = Instant::now();
        let answer = second.decide(&target("a.example:443")).await;
        assert_eq!(answer, Err("nobody answered for 120 s".to_owned()));
        assert_eq!(began.elapsed().as_secs(), 120);
        let answer = second.decide(&target("b.example:443")).await;
        assert_eq!(answer, Err("nobody answered for 120 s".to_owned()));
        assert_eq!(began.elapsed().as_secs(), 120, "it is not asked");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answered_host_does_not_wait_behind_an_open_question() {
        let asker = Arc::new(ListAsker {
            silent_about: Some("b.example:443"),
            ..ListAsker::default()
        });
        let decider = decider(&asker);
        let (a, b) = (target("a.example:443"), target("b.example:443"));
        assert!(decider.decide(&a).await.is_ok());
        let open = decider.decide(&b);
        tokio::pin!(open);
        let began = Instant::now();
        let answered = async {
            while asker.asked.lock().unwrap().len() < 2 {
                tokio::task::yield_now().await;
                tokio::time::sleep(GATHER_TIME).await;
            }
            decider.decide(&a).await
        };
        tokio::select! {
            answer = &mut open => panic!("{answer:?}"),
            answer = answered => assert!(answer.is_ok()),
        }
        assert!(began.elapsed() < ANSWER_TIMEOUT / 2);
        assert!(open.await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_cannot_ask_for_ever() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        for number in 0..MAX_ASKED {
            assert!(
                decider
                    .decide(&target(&format!("h{number}.example:443")))
                    .await
                    .is_ok()
            );
        }
        let answer = decider.decide(&target("more.example:443")).await;
        assert!(answer.unwrap_err().contains("more than 100 hosts"));
        assert_eq!(asker.asked.lock().unwrap().len(), MAX_ASKED);
    }
}
