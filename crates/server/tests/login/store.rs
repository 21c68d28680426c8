//! A store with ten accounts, `u0` to `u9`, all of whose passwords are `secret`.

use carillon_core::model::{
    AccountId, AccountState, Credentials, Domain, DomainId, Generation, Identity, Login, Policy,
};
use carillon_core::ports::store::accounts;
use carillon_core::ports::store::domains::Domains;
use carillon_core::ports::store::notifications::{ClaimDue, Sweep};
use carillon_core::ports::store::offline::ExpiredOffline;
use carillon_core::ports::store::parked::ParkedGroups;
use carillon_core::ports::{Answer, Ask, Fault, Part, Question, Reply, Store, StoreStats};
use carillon_core::sasl::scram;
use std::sync::mpsc;

pub(crate) struct Accounts {
    questions: mpsc::Sender<(Ask, Reply<Answer>)>,
}

impl Accounts {
    /// Answers from a thread of its own, as a real store does.
    pub(crate) fn new() -> Accounts {
        let (questions, asked) = mpsc::channel::<(Ask, Reply<Answer>)>();
        let credentials = scram::keys("secret", b"salt of ten, yes", 4096).unwrap();
        std::thread::spawn(move || {
            asked.into_iter().for_each(|(ask, reply)| reply(answer(&ask, &credentials)));
        });
        Accounts { questions }
    }
}

fn answer(ask: &Ask, credentials: &Credentials) -> Answer {
    if Domains::of(ask).is_some() {
        let domain = Domain::new(DomainId(1), "localhost", Policy::default());
        Domains::wrap(vec![domain])
    } else if let Some(accounts::Identity { local, .. }) = accounts::Identity::of(ask) {
        let number = local.strip_prefix('u').and_then(|n| n.parse::<u64>().ok()).filter(|n| *n < 10);
        accounts::Identity::wrap(number.map(|n| Box::new(identity(n, credentials))))
    } else if accounts::Login::of(ask).is_some() {
        accounts::Login::wrap(Some(Box::new(login())))
    } else if ClaimDue::of(ask).is_some() {
        ClaimDue::wrap(Part::default())
    } else if ParkedGroups::of(ask).is_some() {
        ParkedGroups::wrap(Part::default())
    } else if Sweep::of(ask).is_some() {
        Sweep::wrap(Part::default())
    } else if ExpiredOffline::of(ask).is_some() {
        ExpiredOffline::wrap(Part::default())
    } else {
        Answer::Failed(Fault::Broken)
    }
}

fn identity(n: u64, credentials: &Credentials) -> Identity {
    Identity {
        account: AccountId(n),
        credentials: credentials.clone(),
        state: AccountState::Enabled,
        revocations: Default::default(),
    }
}

fn login() -> Login {
    Login {
        state: AccountState::Enabled,
        subscriptions: Vec::new(),
        waiting: Default::default(),
        generation: Generation(1),
        record: Generation::default(),
    }
}

impl Store for Accounts {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        self.questions.send((ask, reply)).unwrap();
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn close(&self) {}
}
