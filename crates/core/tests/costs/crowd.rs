//! Accounts, and the one of them that has a session.

use super::requests::Request;
use super::world::World;
use carillon_core::model::*;
use carillon_core::ports::store::accounts::CreateAccount;
use carillon_core::ports::store::blocking::ChangeBlockList;
use carillon_core::ports::store::roster::ChangeSubscription;
use carillon_core::sasl::scram;
use carillon_core::settings::Settings;
use carillon_load::client::{
    Client, ClientEvent, Entropy, Options, Outbox, Profile, Settings as Login, Transport,
};
use carillon_wire::Framing;
use carillon_wire::jid::{BareJid, Jid};
use std::ops::Range;

const DOMAIN: &str = "example.org";

/// Accounts `u0`, `u1`, `c2` and so on, of which the first has a session.
pub(crate) struct Crowd {
    world: World,
    conn: Option<usize>,
    /// The session of another account.
    other: Option<usize>,
    count: usize,
    /// How many hashes of capabilities the client has named.
    hashes: u32,
}

impl Crowd {
    pub(crate) fn new(count: usize) -> Crowd {
        let mut settings = Settings::default();
        // All of it happens in one moment, and what is refused for its size is no work.
        settings.limits.rates.stanzas_per_second = 0;
        settings.limits.rates.bytes_per_second = 0;
        settings.limits.block_list = BlockListBounds { addresses: 100_000, bytes: 16 << 20 };
        settings.privacy_lists.enabled = true;
        settings.privacy_lists.bounds = PrivacyBounds { lists: 10, rules: 100_000, bytes: 16 << 20 };
        let mut world = World::new(settings);
        world.domain(DOMAIN, Policy { archive: true, ..Policy::default() });
        let domain = world.domain_id(DOMAIN);
        let credentials = scram::keys("pw", b"0123456789abcdef", 4096).expect("a password");
        for n in 0..count {
            let (local, credentials, now) = (local(n), credentials.clone(), world.now());
            world.ask(CreateAccount { domain, local, credentials, now, is_in_band: false });
        }
        Crowd { world, conn: None, other: None, count, hashes: 0 }
    }

    /// What the client says, and all that it hears then. It logs in before it says anything.
    pub(crate) fn says(&mut self, text: &str) -> String {
        let conn = match self.conn {
            Some(conn) => conn,
            None => {
                let conn = self.log_in(0);
                self.conn = Some(conn);
                conn
            }
        };
        self.world.bytes(conn, text.as_bytes());
        self.hears(conn)
    }

    /// A request with the id of the question that it answers, if it does: the client is asked what a new hash is of.
    pub(crate) fn addressed(&mut self, request: &Request, text: String) -> String {
        if !request.is_asked() {
            return text;
        }
        self.hashes += 1;
        let caps = "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='n' ver='HASH'/>";
        let said = format!("<presence>{}</presence>", caps.replace("HASH", &self.hashes.to_string()));
        let heard = self.says(&said);
        let question = heard.split_once("<iq").map(|(_, question)| question).expect("it is asked");
        let id = question.split_once("id='").and_then(|(_, rest)| rest.split_once('\'')).expect("an id").0;
        text.replace("ASKED", id)
    }

    fn hears(&mut self, conn: usize) -> String {
        let mut heard = String::new();
        while let Some(bytes) = self.world.received(conn) {
            heard += &String::from_utf8_lossy(&bytes);
        }
        heard
    }

    /// Another account has a session, of which nobody reads anything; what the store has of it is read anew.
    pub(crate) fn is_there(&mut self, account: usize) {
        if let Some(conn) = self.other.take() {
            self.world.bytes(conn, b"</stream:stream>");
            self.world.drop_connection(conn);
        }
        let conn = self.log_in(account);
        self.world.bytes(conn, b"<presence/>");
        self.other = Some(conn);
    }

    fn log_in(&mut self, account: usize) -> usize {
        // TLS is none of the core's business: to it the connection is secured, to the client it is plain.
        let login = Login { transport: Transport::Plain, ..Login::default() };
        let profile = Profile::new(login).expect("plain text needs nothing");
        let conn = self.world.open(Framing::Tcp, true);
        let entropy = Entropy::from_system().expect("the system has some");
        let mut client = Client::new(Options::new(jid(account), "pw", &profile), entropy);
        let mut out = Outbox::default();
        client.start(&mut out);
        while !out.events.iter().any(|event| matches!(event, ClientEvent::Ready)) {
            let bytes = std::mem::take(&mut out.bytes);
            self.world.bytes(conn, &bytes);
            while let Some(bytes) = self.world.received(conn) {
                client.receive(&bytes, &mut out);
            }
        }
        let bytes = std::mem::take(&mut out.bytes);
        self.world.bytes(conn, &bytes);
        self.hears(conn);
        conn
    }

    /// All other accounts are given the presence of the first.
    pub(crate) fn befriends_all(&mut self) {
        self.befriends(0, 1..self.count);
        self.begin_anew();
    }

    /// These are given the presence of an account, by the store: no home is told.
    pub(crate) fn befriends(&mut self, account: usize, others: Range<usize>) {
        let domain = self.world.domain_id(DOMAIN);
        let bounds = Settings::default().limits.roster;
        for n in others {
            let said =
                [(n, account, SubscriptionAction::Subscribe), (account, n, SubscriptionAction::Subscribed)];
            for (who, whom, action) in said {
                let request = Default::default();
                let (local, contact, other) = (local(who), jid(whom), domain);
                self.world.ask(ChangeSubscription {
                    domain,
                    local,
                    contact,
                    other,
                    action,
                    request,
                    bounds,
                    by_lists: false,
                });
            }
        }
    }

    /// The first account blocks so many that it has nothing to do with.
    pub(crate) fn blocks_strangers(&mut self, count: usize) {
        let domain = self.world.domain_id(DOMAIN);
        let jids = (0..count).map(|n| Jid::new(&format!("s{n}@x.example")).expect("an address")).collect();
        let (edit, bounds) = (BlockListEdit::Block(jids), Settings::default().limits.block_list);
        self.world.ask(ChangeBlockList { domain, local: local(0), edit, bounds });
        self.begin_anew();
    }

    /// A new session learns what the store has, and is as available as the one before.
    fn begin_anew(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.world.bytes(conn, b"</stream:stream>");
            self.world.drop_connection(conn);
            self.says("<presence><status>a</status></presence>");
        }
    }
}

/// `u0`, `u1`, and others: all of these are before the two in a roster.
fn local(n: usize) -> Box<str> {
    let letter = if n < 2 { 'u' } else { 'c' };
    format!("{letter}{n}").into()
}

fn jid(n: usize) -> BareJid {
    BareJid::new(&format!("{}@{DOMAIN}", local(n))).expect("an address")
}
