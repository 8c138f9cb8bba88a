//! Decides which hosts one command may connect to: by the rules, or by a question to the person.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use co_exec::TimeLimit;
use co_policy::{HostRules, HostVerdict};
use co_proxy::{Decider, Host, Permission, Target};

/// The time-out for an answer of the person.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The delay of a question, in which co collects further hosts of the command for the same question.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// The largest number of hosts of one command that the person is asked about. Without this limit, a command could cause questions
/// forever.
const MAX_ASKED: usize = 100;

/// The largest number of hosts in one question.
const MAX_TOGETHER: usize = 10;

/// The capacity of the queue of requests. The proxy has fewer connections at a time.
const QUEUE: usize = 64;

/// Provides the rules about hosts for a command, and asks the person about other hosts.
#[async_trait]
pub trait HostAsker: Send + Sync {
    /// Returns the current rules. They are read when the command starts and at each connection.
    ///
    /// # Errors
    /// The rules cannot be read, so no host may be reached. The error is a sentence.
    async fn rules(&self) -> Result<HostRules, String>;

    /// Asks the person whether the command may connect to all of these targets. If the returned future is dropped, the question
    /// is withdrawn.
    ///
    /// # Errors
    /// The command may not connect to the targets. The error is the reason, which the command sees.
    async fn ask(&self, targets: &[Target]) -> Result<(), String>;

    /// Returns a token that is cancelled when the current period ends, such as a turn of an agent. Then all answers of this
    /// period are forgotten, and connections that no rule allows are ended.
    fn period(&self) -> CancellationToken {
        CancellationToken::new()
    }
}

type HostAnswer = Result<(), String>;

/// A target that waits for an answer. The answer comes with the token of the period in which it is valid.
type Request = (Target, oneshot::Sender<(HostAnswer, CancellationToken)>);

/// Decides by the rules. Asks the person once about each host that no rule names.
pub(super) struct RuleDecider {
    asker: Arc<dyn HostAsker>,
    /// The rules that the last decision used.
    rules: Mutex<Arc<HostRules>>,
    requests: mpsc::Sender<Request>,
    _questions: AbortOnDropHandle<()>,
}

/// Asks the questions of one command, one at a time.
struct Questions {
    asker: Arc<dyn HostAsker>,
    time_limit: TimeLimit,
    answers: HashMap<Target, HostAnswer>,
    /// The number of hosts that the person was asked about.
    asked: usize,
    /// The token of the period in which the stored answers are valid.
    period: CancellationToken,
    /// True if nobody answered the last question in time. Then no further question is asked in this period.
    is_unattended: bool,
}

impl RuleDecider {
    pub(super) fn new(asker: Arc<dyn HostAsker>, time_limit: TimeLimit) -> Self {
        let (requests, received) = mpsc::channel(QUEUE);
        let questions = Questions {
            period: asker.period(),
            asker: Arc::clone(&asker),
            time_limit,
            answers: HashMap::new(),
            asked: 0,
            is_unattended: false,
        };
        Self {
            asker,
            rules: Mutex::default(),
            requests,
            _questions: AbortOnDropHandle::new(tokio::spawn(questions.run(received))),
        }
    }

    /// Reads the current rules.
    async fn read_rules(&self) -> Result<Arc<HostRules>, String> {
        let rules = Arc::new(self.asker.rules().await?);
        let mut last = self.rules.lock();
        *last = Arc::clone(&rules);
        Ok(rules)
    }

    fn last_rules(&self) -> Arc<HostRules> {
        let last = self.rules.lock();
        Arc::clone(&last)
    }
}

#[async_trait]
impl Decider for RuleDecider {
    async fn decide(&self, target: &Target) -> Result<Permission, String> {
        let host = target.host.to_string();
        match self.read_rules().await?.verdict(&host, target.port) {
            HostVerdict::Allowed(rule) => {
                return Ok(Permission::lasting(format!("the rule `{rule}`")));
            }
            HostVerdict::Denied(rule) => return Err(format!("the rule `{rule}` denies it")),
            HostVerdict::Ask => {}
        }
        let (reply, answer) = oneshot::channel();
        let gone = || "the command has ended".to_owned();
        let sent = self.requests.send((target.clone(), reply)).await;
        sent.map_err(|_| gone())?;
        let (answer, period) = answer.await.map_err(|_| gone())?;
        if let Err(why) = answer {
            // The answer of a person may have made a rule just when its time was over.
            return match self.read_rules().await?.verdict(&host, target.port) {
                HostVerdict::Allowed(rule) => Ok(Permission::lasting(format!("the rule `{rule}`"))),
                _ => Err(why),
            };
        }
        let (asker, target) = (Arc::clone(&self.asker), target.clone());
        Ok(Permission {
            ground: "the person".to_owned(),
            end: Box::pin(async move {
                period.cancelled().await;
                // The answer may have made a rule.
                if asker
                    .rules()
                    .await
                    .is_ok_and(|rules| allows(&rules, &target))
                {
                    std::future::pending().await
                }
            }),
        })
    }

    async fn refuses_port(&self, address: SocketAddr) -> Option<String> {
        match self.read_rules().await {
            Ok(rules) => {
                let ports = rules.loopback_ports();
                let is_allowed = ports.values().flatten().any(|it| *it == address);
                (!is_allowed).then(|| "no rule allows it any more".to_owned())
            }
            Err(why) => Some(why),
        }
    }

    fn denies_address(&self, target: &Target, address: IpAddr) -> Option<String> {
        let rules = self.last_rules();
        let rule = rules.denied(&host_of(address), target.port)?;
        Some(format!("the rule `{rule}` denies it"))
    }

    fn allows_address(&self, target: &Target, address: IpAddr) -> bool {
        let rules = self.last_rules();
        let verdict = rules.verdict(&host_of(address), target.port);
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
            if self.asked >= MAX_ASKED {
                let why =
                    format!("the command wants more than {MAX_ASKED} hosts that no rule names");
                for (_, reply) in waiting.drain(..) {
                    // It does not matter if the connection is gone.
                    let _gone = reply.send((Err(why.clone()), self.period.clone()));
                }
                continue;
            }
            let mut targets: Vec<Target> = waiting.iter().map(|(it, _)| it.clone()).collect();
            targets.sort();
            targets.dedup();
            targets.truncate(MAX_TOGETHER);
            self.asked += targets.len();
            let answer = {
                let asked = self.ask(&targets);
                tokio::pin!(asked);
                loop {
                    tokio::select! {
                        answer = &mut asked => break Some(answer),
                        // What is decided does not wait for the answer.
                        Some(request) = requests.recv() => {
                            waiting.push(request);
                            self.answer_known(&mut waiting);
                        }
                        () = all_left(&mut waiting, &targets) => break None,
                    }
                }
            };
            // If all clients left, the question is withdrawn without an answer.
            let Some(answer) = answer else {
                self.answer_known(&mut waiting);
                continue;
            };
            self.is_unattended = answer.is_none();
            let answer = answer.unwrap_or_else(unanswered);
            for target in targets {
                self.answers.insert(target, answer.clone());
            }
            self.answer_known(&mut waiting);
        }
    }

    /// Forgets all answers if their period has ended.
    fn forget_old(&mut self) {
        if self.period.is_cancelled() {
            self.period = self.asker.period();
            self.answers.clear();
            self.is_unattended = false;
        }
    }

    /// Asks the person about the targets, while the time-out of the command is paused. Returns `None` if nobody answers in time,
    /// or nobody answered an earlier question.
    async fn ask(&self, targets: &[Target]) -> Option<HostAnswer> {
        if self.is_unattended {
            return None;
        }
        let _hold = self.time_limit.hold();
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, self.asker.ask(targets));
        asked.await.ok()
    }

    /// Answers the requests whose targets are already decided. Drops the requests whose connections have closed.
    fn answer_known(&self, waiting: &mut Vec<Request>) {
        let all = std::mem::take(waiting);
        let is_over = self.period.is_cancelled();
        for (target, reply) in all {
            match self.answers.get(&target).filter(|_| !is_over) {
                // It does not matter if the connection is gone.
                Some(answer) => drop(reply.send((answer.clone(), self.period.clone()))),
                None if reply.is_closed() => {}
                None => waiting.push((target, reply)),
            }
        }
    }
}

/// Waits until no client waits for any of these targets.
async fn all_left(waiting: &mut [Request], targets: &[Target]) {
    let of_targets = waiting.iter_mut().filter(|(it, _)| targets.contains(it));
    for (_, reply) in of_targets {
        reply.closed().await;
    }
}

fn allows(rules: &HostRules, target: &Target) -> bool {
    let verdict = rules.verdict(&target.host.to_string(), target.port);
    matches!(verdict, HostVerdict::Allowed(_))
}

/// Returns an address in the notation of rules.
fn host_of(address: IpAddr) -> String {
    Host::Address(address.to_canonical()).to_string()
}

fn unanswered() -> HostAnswer {
    let seconds = ANSWER_TIMEOUT.as_secs();
    Err(format!("nobody answered for {seconds} s"))
}

#[cfg(test)]
mod tests {

    use tokio::time::Instant;

    use super::*;

    /// Answers by a list, and keeps the questions.
    #[derive(Default)]
    struct ListAsker {
        rules: Mutex<Option<HostRules>>,
        refuses: Vec<&'static str>,
        silent: bool,
        silent_about: Option<&'static str>,
        /// The first answer makes a rule for this host, when its time has ended already.
        late_rule: Option<&'static str>,
        asked: Mutex<Vec<Vec<String>>>,
        period: Mutex<CancellationToken>,
    }

    #[async_trait]
    impl HostAsker for ListAsker {
        async fn rules(&self) -> Result<HostRules, String> {
            let rules = self.rules.lock().clone();
            rules.ok_or_else(|| "the rules cannot be read".to_owned())
        }

        async fn ask(&self, targets: &[Target]) -> HostAnswer {
            let names: Vec<_> = targets.iter().map(Target::to_string).collect();
            let refused = names.iter().any(|it| self.refuses.contains(&it.as_str()));
            let silent = self.silent
                || names
                    .iter()
                    .any(|it| Some(it.as_str()) == self.silent_about);
            self.asked.lock().push(names);
            if let Some(host) = self.late_rule {
                let is_first = self.asked.lock().len() == 1;
                if is_first {
                    self.end_period();
                    *self.rules.lock() = Some(rules(&[host], &[]));
                }
                return is_first.then_some(()).ok_or_else(|| "too late".to_owned());
            }
            if silent {
                std::future::pending::<()>().await;
            }
            match refused {
                true => Err("the person refused it".to_owned()),
                false => Ok(()),
            }
        }

        fn period(&self) -> CancellationToken {
            self.period.lock().clone()
        }
    }

    impl ListAsker {
        fn end_period(&self) {
            std::mem::take(&mut *self.period.lock()).cancel();
        }
    }

    /// Returns the ground on which a target is allowed.
    async fn ground(decider: &RuleDecider, target: &Target) -> Result<String, String> {
        decider.decide(target).await.map(|it| it.ground)
    }

    /// Returns why a target is refused.
    async fn refusal(decider: &RuleDecider, of: &str) -> String {
        ground(decider, &target(of)).await.unwrap_err()
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
        let all = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect();
        HostRules {
            allow: all(allow),
            deny: all(deny),
        }
    }

    fn decider(asker: &Arc<ListAsker>) -> RuleDecider {
        let rules = rules(&["good.example", "10.0.0.1"], &["bad.example", "1.2.3.4"]);
        *asker.rules.lock() = Some(rules);
        RuleDecider::new(asker.clone(), TimeLimit::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_decides_without_a_question() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        let good = target("good.example:443");
        let ground = ground(&decider, &good).await;
        assert_eq!(ground, Ok("the rule `good.example`".to_owned()));
        let denied = refusal(&decider, "bad.example:443").await;
        assert_eq!(denied, "the rule `bad.example` denies it");
        assert!(asker.asked.lock().is_empty());
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
    async fn a_new_rule_holds_for_new_connections() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        let change = |changed| *asker.rules.lock() = changed;
        let (good, local) = (target("good.example:443"), "127.0.0.1:80".parse().unwrap());
        change(Some(rules(&["good.example", "localhost:80"], &[])));
        assert!(decider.decide(&good).await.is_ok());
        assert_eq!(decider.refuses_port(local).await, None);
        change(Some(rules(
            &["good.example", "localhost:80"],
            &["good.example", "localhost"],
        )));
        let denied = refusal(&decider, "good.example:443").await;
        assert_eq!(denied, "the rule `good.example` denies it");
        let refused = Some("no rule allows it any more".to_owned());
        assert_eq!(decider.refuses_port(local).await, refused);
        change(None);
        let unread = "the rules cannot be read".to_owned();
        assert_eq!(refusal(&decider, "good.example:443").await, unread);
        assert_eq!(decider.refuses_port(local).await, Some(unread));
        assert!(asker.asked.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_withdrawn_when_its_clients_have_left() {
        let asker = Arc::new(ListAsker {
            silent_about: Some("a.example:443"),
            ..ListAsker::default()
        });
        let decider = decider(&asker);
        let a = target("a.example:443");
        let began = Instant::now();
        for count in 1..=2 {
            let short = tokio::time::timeout(Duration::from_secs(1), decider.decide(&a));
            assert!(short.await.is_err());
            let other = decider
                .decide(&target(&format!("b{count}.example:443")))
                .await;
            assert!(other.is_ok());
            assert_eq!(asker.asked.lock().len(), 2 * count);
        }
        assert!(began.elapsed() < Duration::from_secs(3));
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
        let asked = asker.asked.lock();
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
        for _ in 0..3 {
            for _ in 0..2 {
                assert!(decider.decide(&a).await.is_ok());
                assert!(decider.decide(&b).await.is_err());
            }
            asker.end_period();
        }
        assert_eq!(asker.asked.lock().len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permission_ends_with_its_time_unless_a_rule_allows_the_host_meanwhile() {
        let asker = Arc::<ListAsker>::default();
        let decider = decider(&asker);
        let (a, b) = (target("a.example:443"), target("b.example:443"));
        let (of_a, of_b) = (decider.decide(&a).await, decider.decide(&b).await);
        let of_rule = decider.decide(&target("good.example:443")).await;
        let ends = async |permission: Result<Permission, String>| {
            let end = permission.ok().unwrap().end;
            tokio::time::timeout(Duration::from_secs(9), end)
                .await
                .is_ok()
        };
        *asker.rules.lock() = Some(rules(&["b.example"], &[]));
        asker.end_period();
        assert!(ends(of_a).await && !ends(of_b).await && !ends(of_rule).await);
        let lasting = decider.decide(&a).await;
        assert!(!ends(lasting).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_of_an_answer_counts_also_if_its_time_ends_meanwhile() {
        let asker = Arc::new(ListAsker {
            late_rule: Some("a.example"),
            ..ListAsker::default()
        });
        let decider = decider(&asker);
        let ground = ground(&decider, &target("a.example:443")).await;
        assert_eq!(ground, Ok("the rule `a.example`".to_owned()));
        let refused = refusal(&decider, "b.example:443").await;
        assert_eq!(refused, "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_stays_and_silence_refuses() {
        let refusing = Arc::new(ListAsker {
            refuses: vec!["a.example:443"],
            ..ListAsker::default()
        });
        let first = decider(&refusing);
        for _ in 0..3 {
            let answer = refusal(&first, "a.example:443").await;
            assert_eq!(answer, "the person refused it");
        }
        assert_eq!(refusing.asked.lock().len(), 1);
        let silent = Arc::new(ListAsker {
            silent: true,
            ..ListAsker::default()
        });
        let second = decider(&silent);
        let began = Instant::now();
        let answer = refusal(&second, "a.example:443").await;
        assert_eq!(answer, "nobody answered for 120 s");
        assert_eq!(began.elapsed().as_secs(), 120);
        let answer = refusal(&second, "b.example:443").await;
        assert_eq!(answer, "nobody answered for 120 s");
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
            while asker.asked.lock().len() < 2 {
                tokio::task::yield_now().await;
                tokio::time::sleep(GATHER_TIME).await;
            }
            decider.decide(&a).await
        };
        tokio::select! {
            _ = &mut open => panic!("it is answered"),
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
        let answer = refusal(&decider, "more.example:443").await;
        assert!(answer.contains("more than 100 hosts"));
        assert_eq!(asker.asked.lock().len(), MAX_ASKED);
    }
}
