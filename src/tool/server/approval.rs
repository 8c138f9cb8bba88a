//! Judges a call of a tool server, asks the question about it, and starts it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::ServerCall;
use crate::mcp::{acting_words, acts_for_good, level_name, level_words, may_write};
use crate::protocol::{AskedServer, Asker, Question};
use crate::tool::call::{
    AskedQuestion, AuditedText, CANCELLED, CallAction, CallKind, DecidedCall, JudgedCall, NotRun,
    PlannedCall, ReadyCall, Resolution,
};
use crate::tool::context::CallContext;
use crate::tool::event::{ExecMode, ShownCall};
use crate::tool::permissions::{Allowance, TurnMemory};
use co_llm::transcript::Decision;
use co_policy::{ApprovalQuestion, Grant, Verdict};
use co_text::{one_line, printable};

/// The reason why only a key in the float can approve the call.
const FOR_GOOD: &str =
    "what its server sends or does outside of the workspace cannot be taken back";

#[async_trait]
impl PlannedCall for ServerCall {
    fn shown(&self) -> ShownCall {
        ShownCall::Command {
            command: printable(&self.line),
            mode: ExecMode::default(),
        }
    }

    async fn judge(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        // Nobody is asked about a call that cannot run.
        if self.server.needs_login() {
            let name = &self.server.settings.name;
            return Err(format!(
                "Not run: the tool server {name} needs a login. The person can log in by `/mcp login {name}`."
            ));
        }
        let (judge, call) = (Arc::clone(&context.judge), self.named.clone());
        let acts = acting_words(&self.server.settings);
        let rules = memory.permissions.rules.clone();
        let judged = tokio::task::spawn_blocking(move || {
            judge.judge_server_call(&call, acts.as_deref(), &rules)
        });
        let judged = context.unless_cancelled(judged).await;
        let verdict = judged.map_err(|_| CANCELLED)?.map_err(|error| {
            format!("The call could not be judged ({error}), so it was not run.")
        })?;
        let resolution = match &verdict {
            Verdict::Allow(Grant::ReadOnly) => Resolution::Run(Decision::Unasked),
            verdict => Resolution::of(verdict, None, (context, memory), |asking| {
                self.question(context, asking)
            }),
        };
        Ok(JudgedCall {
            kind: match resolution {
                Resolution::Run(Decision::Unasked) => CallKind::Looks,
                _ => CallKind::Acts,
            },
            resolution,
            audited: Some(AuditedText::plain(self.whole_line(), &verdict)),
            action: Box::new(self.clone()),
        })
    }
}

impl ServerCall {
    /// Returns the question about the call. It shows the server, the tool and all arguments, with hidden characters escaped.
    fn question(&self, context: &CallContext, asking: &ApprovalQuestion) -> AskedQuestion {
        let settings = &self.server.settings;
        let arguments = Value::Object(self.arguments.clone());
        let tool = one_line(&self.tool);
        let reasons = asking.reasons.iter().map(|it| one_line(&it.text));
        let question = Question {
            asker: Asker::Chat(context.chat),
            command: printable(&format!("{}: {tool} {arguments:#}", settings.name)),
            cwd: one_line(&self.server.workspace.display().to_string()),
            timeout: Some(context.services.config.mcp_timeout.as_secs()),
            confinement: level_words(settings),
            reasons: reasons.collect(),
            prefix: asking.prefix.as_ref().map(ToString::to_string),
            alone: acts_for_good(settings).then(|| FOR_GOOD.to_owned()),
            server: Some(AskedServer {
                name: settings.name.clone(),
                tool,
            }),
            ..Question::default()
        };
        AskedQuestion {
            question,
            prefix: asking.prefix.clone(),
            server: Some(self.named.server_rule()),
            computed_at: None,
            always: vec![Allowance::Rule(self.named.exact_rule())],
        }
    }
}

#[async_trait]
impl CallAction for ServerCall {
    fn changes_as(&self) -> Option<String> {
        may_write(&self.server.settings).then(|| one_line(&self.line))
    }

    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        _: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let level = level_name(&self.server.settings);
        let (runs, context) = (self.line.clone(), Arc::clone(context));
        let work = async move { self.run(&context).await };
        Ok(ReadyCall::new(Some(level), Some(runs), work))
    }
}
