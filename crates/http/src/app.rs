//! What every handler has at hand: the node, the options, and the parts that features keep beside them.

use crate::options::Options;
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::time::now;
use carillon_core::command::{Actor, Command, NoRoom, Outcome, Refusal, TopicOp, TopicOutcome};
use carillon_core::machine::HeavyAccount;
use carillon_core::model::{Domain, DomainId, OperationId};
use carillon_core::ports::{Fault, Question};
use carillon_server::ModulesError;
use carillon_server::node::Node;
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

/// What every handler has at hand. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

/// What an [`App`] has of its own.
pub(crate) struct Inner {
    /// The node that does everything.
    pub(crate) node: Node,
    /// Bounds and addresses.
    pub(crate) options: Options,
    /// True once the server is closing: streams end.
    pub(crate) closing: watch::Sender<bool>,
    /// Whoever makes events that the node does not tell of says so here, for whoever reads them.
    pub(crate) events: Arc<Notify>,
    parts: Parts,
}

/// What features keep for all requests, one of each type. A feature gives its own a name by a method of [`App`] beside it, so that nothing
/// here knows of features; `parts.rs` lists them.
#[derive(Default)]
pub(crate) struct Parts(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Parts {
    /// These and one more.
    pub(crate) fn with<T: Send + Sync + 'static>(mut self, part: T) -> Parts {
        let replaced = self.0.insert(TypeId::of::<T>(), Box::new(part));
        assert!(replaced.is_none(), "there are two parts of the type {}", type_name::<T>());
        self
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

fn unknown_topic(domain: &Domain, name: &str) -> Problem {
    Problem::new(Code::UnknownTopic, format!("the domain `{}` has no topic `{name}`", domain.name))
}

impl App {
    /// The app of a node, with the parts of features.
    pub(crate) fn new(node: Node, options: Options, events: Arc<Notify>, parts: Parts) -> App {
        App(Arc::new(Inner { node, options, closing: watch::Sender::new(false), events, parts }))
    }

    /// Calls `forget` with each domain that is gone, whoever removed it.
    pub(crate) fn on_removed_domain(&self, forget: fn(&App, &Domain)) {
        let weak = Arc::downgrade(&self.0);
        self.node.watch_removed_domains(Box::new(move |domain| {
            let app = weak.upgrade().map(App);
            app.inspect(|app| forget(app, domain)).is_some()
        }));
    }

    /// What a feature keeps.
    ///
    /// # Panics
    /// `parts.rs` does not list it.
    pub(crate) fn part<T: Send + Sync + 'static>(&self) -> &T {
        let part = self.0.parts.0.get(&TypeId::of::<T>()).and_then(|part| part.downcast_ref());
        part.unwrap_or_else(|| panic!("no part of an app is a {}", type_name::<T>()))
    }

    /// Asks the store. What is unknown is asked again, as the same operation.
    pub(crate) async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, Problem> {
        let random = u128::from(random::number()) << 64 | u128::from(random::number());
        let operation = OperationId::new(now(), random);
        for _ in 1..TRIES {
            match self.ask_as(operation, question.clone()).await? {
                Err(Fault::Unknown) => {}
                answer => return Ok(answer?),
            }
        }
        Ok(self.ask_as(operation, question).await??)
    }

    async fn ask_as<Q: Question>(
        &self,
        operation: OperationId,
        question: Q,
    ) -> Result<Result<Q::Answer, Fault>, Problem> {
        let (reply, answer) = oneshot::channel();
        self.node.ask_as(operation, question, move |answer| drop(reply.send(answer)));
        self.await_reply(answer).await
    }

    /// Has a command carried out.
    pub(crate) async fn command(&self, command: Command) -> Result<Outcome, Problem> {
        let (reply, outcome) = oneshot::channel();
        self.node.command(command, Box::new(move |outcome| drop(reply.send(outcome))));
        match self.await_reply(outcome).await? {
            Outcome::Unavailable => Err(Problem::busy()),
            Outcome::Unknown => Err(Problem::unknown()),
            outcome => Ok(outcome),
        }
    }

    /// Has an operation on a topic carried out, for the provider. `missing` is what it means when what it is about is
    /// not there.
    pub(crate) async fn topic(
        &self,
        domain: &Domain,
        name: &str,
        op: TopicOp,
        missing: Code,
    ) -> Result<TopicOutcome, Problem> {
        let command = Command::Topic { domain: domain.id, name: name.into(), actor: Actor::Provider, op };
        match self.command(command).await? {
            Outcome::Topic(Ok(outcome)) => Ok(outcome),
            Outcome::Topic(Err(Refusal::NoRoom(NoRoom::DomainBytes))) => {
                let detail = "as much is stored of the domain as its policy's `stored_bytes_max` allows";
                Err(Problem::new(Code::StorageFull, detail))
            }
            Outcome::Topic(Err(Refusal::DomainFull)) => {
                let detail = "the domain has as many topics as its policy's `topics_max` allows";
                Err(Problem::new(Code::TooManyTopics, detail))
            }
            Outcome::Topic(Err(Refusal::TooManySubscriptions)) => {
                let detail = "the account is subscribed to as many topics as its domain's policy's `subscriptions_max` allows";
                Err(Problem::new(Code::TooManySubscriptions, detail))
            }
            Outcome::Topic(Err(refusal)) => {
                let problem = Problem::refused(&refusal.into(), missing);
                let is_topic = problem.code() == Code::UnknownTopic;
                Err(if is_topic { unknown_topic(domain, name) } else { problem })
            }
            Outcome::Missing if missing == Code::UnknownTopic => Err(unknown_topic(domain, name)),
            Outcome::Missing => Err(Problem::new(missing, format!("{}: `{name}`", missing.title()))),
            other => Err(Problem::unexpected(&other)),
        }
    }

    /// Has the node read its domains again.
    pub(crate) async fn reload_domains(&self) -> Result<(), Problem> {
        let (reply, done) = oneshot::channel();
        self.node.reload_domains(Box::new(move |()| {
            // Whoever asked may have gone away.
            let _ = reply.send(());
        }));
        self.await_reply(done).await
    }

    /// The accounts of this node that cost most.
    pub(crate) async fn top(&self) -> Result<Vec<HeavyAccount>, Problem> {
        let (reply, accounts) = oneshot::channel();
        self.node.top(Box::new(move |accounts| {
            // Whoever asked may have gone away.
            let _ = reply.send(accounts);
        }));
        self.await_reply(accounts).await
    }

    /// Has the node run the modules that are activated. Compiling them may take longer than other answers.
    pub(crate) async fn reload_modules(&self) -> Result<Result<(), ModulesError>, Problem> {
        let (reply, done) = oneshot::channel();
        self.node.reload_modules(Box::new(move |loaded| {
            // Whoever asked may have gone away.
            let _ = reply.send(loaded);
        }));
        match tokio::time::timeout(MODULES_PATIENCE, done).await {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(_)) => Err(Problem::unavailable("the node is shutting down")),
            Err(_) => Err(Problem::timed_out()),
        }
    }

    /// The domain of this name.
    pub(crate) fn domain(&self, name: &str) -> Option<Arc<Domain>> {
        self.node.domains().named(name).cloned()
    }

    /// The name of a domain; empty when it is gone.
    pub(crate) fn domain_name(&self, id: DomainId) -> Arc<str> {
        self.node.domains().numbered(id).map_or_else(|| "".into(), |domain| domain.name.clone())
    }

    async fn await_reply<T>(&self, reply: oneshot::Receiver<T>) -> Result<T, Problem> {
        let limit = Duration::from_millis(self.options.settings.answer_timeout_ms);
        match tokio::time::timeout(limit, reply).await {
            Ok(Ok(value)) => Ok(value),
            // The asked side is gone without an answer: it was shut down.
            Ok(Err(_)) => Err(Problem::unavailable("the node is shutting down; nothing was changed")),
            Err(_) => Err(Problem::timed_out()),
        }
    }
}

/// How often the store is asked something of which it says that it is unknown whether it was done.
const TRIES: u32 = 3;

/// How long modules may take to be compiled and given to all shards.
const MODULES_PATIENCE: Duration = Duration::from_secs(120);
