//! The script of a conversation, line by line.

mod broadcasts;
mod hops;
mod modules;
mod pushes;
mod quotas;
mod set;

use crate::modules::Active;
use crate::tokens;
use crate::world::{Kept, Questions, World};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_core::command::{Actor, Command, Outcome, TopicOp, TopicOutcome};
use carillon_core::event::{Kind, Kinds};
use carillon_core::model::*;
use carillon_core::settings::{Limits, Settings};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::{self, Element, Node};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::mpsc::Receiver;

const DOMAIN: &str = "localhost";
const HEADER: &str = "<stream:stream xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>";

/// Which sessions leave their shard as bytes and come back, after each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    Nobody,
    /// Those that are parked, as at a restart.
    Parked,
    /// All, as in a live upgrade.
    Everybody,
}

/// Plays a conversation; what went otherwise than written.
pub(crate) fn play(text: &str, kept: Kept, moves: Moves, nodes: u16) -> Result<(), String> {
    played(text, kept, moves, nodes)?.leftovers()
}

/// Everything that happens in a conversation, as a number.
pub(crate) fn history(text: &str) -> Result<u64, String> {
    played(text, Kept::InMemory, Moves::Nobody, 1).map(|script| script.world.history())
}

fn played(text: &str, kept: Kept, moves: Moves, nodes: u16) -> Result<Script, String> {
    let mut script = Script::new(text, kept, moves, nodes);
    for (number, line) in lines(text) {
        script.line(&line).map_err(|error| format!("line {number}: {error}\n  {line}"))?;
        match script.moves {
            Moves::Nobody => {}
            Moves::Parked => script.world.move_parked(),
            Moves::Everybody => script.world.hand_over(),
        }
    }
    Ok(script)
}

fn milliseconds(time: &str) -> Result<u64, String> {
    let (number, unit) = match time.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (time.trim_end_matches('s'), 1000),
    };
    number.parse::<u64>().map(|number| number * unit).map_err(|_| format!("{time} is no time"))
}

/// Lines with their numbers; an indented line goes on with the one before.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match lines.last_mut() {
            Some((_, last)) if line.starts_with(' ') => {
                last.push_str(line.trim());
            }
            _ => lines.push((i + 1, line.trim_end().to_owned())),
        }
    }
    lines
}

/// The secret of the node.
const SECRET: [u8; 32] = [7; 32];

struct Script {
    world: World,
    /// Which sessions move after each line.
    moves: Moves,
    conns: BTreeMap<String, usize>,
    bound: BTreeMap<String, String>,
    passwords: BTreeMap<String, String>,
    notified: u64,
    /// What came of the last stanza that somebody outside had an account send.
    acted: Option<Receiver<Outcome>>,
    /// The modules that are active.
    modules: Active,
}

impl Script {
    fn new(text: &str, kept: Kept, moves: Moves, nodes: u16) -> Script {
        let mut moves = moves;
        let mut settings = Settings { secret: SECRET, ..Settings::default() };
        for line in text.lines().filter_map(|line| line.strip_prefix("setting ")) {
            let (key, value) = line.split_once(' ').expect("setting KEY VALUE");
            match key {
                "features.disabled" => {
                    settings.features_disabled = value.split(',').map(Into::into).collect();
                }
                // What others have not settled, a client repeats after a move.
                "parked_sessions_move" if value == "no" && moves == Moves::Parked => moves = Moves::Nobody,
                // What is under way is stored before, and its sender acknowledged sooner.
                "sessions_handed_over" if value == "no" && moves == Moves::Everybody => {
                    moves = Moves::Nobody;
                }
                "parked_sessions_move" | "sessions_handed_over" => {}
                "bytes_per_second" => {
                    settings.limits.rates.bytes_per_second = value.parse().expect("a number");
                }
                "stanzas_per_second" => {
                    settings.limits.rates.stanzas_per_second = value.parse().expect("a number");
                }
                "stanzas_burst" => settings.limits.rates.stanzas_burst = value.parse().expect("a number"),
                "token_lifetime_ms" => settings.fast.token_lifetime_ms = value.parse().expect("a number"),
                "remembered_accounts" => {
                    settings.fast.remembered_accounts = value.parse().expect("a number");
                }
                "all_unacknowledged_bytes" => {
                    // The bound is a node's.
                    let all: usize = value.parse().expect("a number");
                    settings.limits.all_unacknowledged_bytes = all / usize::from(nodes);
                }
                "invitations" => settings.invitations.enabled = value == "yes",
                "invitations_per_account" => {
                    settings.invitations.per_account = value.parse().expect("a number");
                }
                "ping_idle_ms" => settings.timeouts.ping_idle_ms = value.parse().expect("a number"),
                "push.service_url" => settings.push.service.url = value.to_owned(),
                "fanout.slice" => settings.fanout.slice = value.parse().expect("a number"),
                _ if key.starts_with("upload.") => set::upload(&mut settings.upload, key, value),
                "privacy_lists" => settings.privacy_lists.enabled = value == "yes",
                "privacy_rules" => settings.privacy_lists.bounds.rules = value.parse().expect("a number"),
                _ if key.starts_with("muclight.") => set::muclight(&mut settings.muclight, key, value),
                _ => set_limit(&mut settings.limits, key, value),
            }
        }
        let mut world = World::with_store(settings, kept, nodes);
        world.domain(DOMAIN, Policy::default());
        let mut script = Script {
            world,
            moves,
            conns: BTreeMap::new(),
            bound: BTreeMap::new(),
            passwords: BTreeMap::new(),
            notified: 0,
            acted: None,
            modules: Active::default(),
        };
        script.read_broadcasts();
        script
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((count, line)) = line.strip_prefix("many ").and_then(|rest| rest.split_once(' ')) {
            return self.many(count, line);
        }
        if let Some((name, xml)) = line.split_once(" >> ") {
            let xml = &xml.replace(r"\n", "\n");
            let xml = self.fill(xml);
            let xml = tokens::fill(&xml);
            if let Some(account) = name.strip_prefix("as ") {
                return self.act(account, &xml);
            }
            let conn = self.conn(name)?;
            self.world.bytes(conn, unescape(&xml).as_bytes());
            return Ok(());
        }
        if let Some((name, xml)) = line.split_once(" << ") {
            return match name.strip_prefix("as ") {
                Some(_) => self.acted(xml),
                None => self.expect(name, xml),
            };
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["setting", ..] => Ok(()),
            ["store", words @ ..] => self.store(words),
            ["after", time] => self.pass(time),
            ["restarts", "for", time, rest @ ..] => self.restart(time, rest),
            ["upgrades"] => {
                self.world.hand_over();
                self.read_broadcasts();
                Ok(())
            }
            ["asked", count, "records"] => {
                let asked = self.world.questions().records;
                (asked.to_string() == *count).then_some(()).ok_or(format!("asked {asked} records"))
            }
            ["asked", who, "identities", what, "logins", parts @ ..] => self.asked(who, what, parts),
            ["log", kinds @ ..] => self.log(kinds),
            ["logged", ..] => self.logged(line.trim_start_matches("logged ")),
            ["notify", to, rest @ ..] => self.notify(to, rest),
            ["push", endpoint, text, rest @ ..] => self.push(endpoint, text, rest),
            ["broadcast", words @ ..] => self.broadcast(words),
            ["hops", id, words @ ..] => self.hops(id, words),
            ["trace", id, "is", state @ ..] => self.trace(id, &state.join(" ")),
            ["cancel", id, "is", state @ ..] => self.cancel(id, &state.join(" ")),
            ["topic", name, op, rest @ ..] => self.topic(name, op, rest),
            ["room", room, "is", "behind"] => {
                self.world.keep_pace(room, true);
                Ok(())
            }
            ["room", room, "keeps", "up"] => {
                self.world.keep_pace(room, false);
                Ok(())
            }
            ["module", name, rest @ ..] => self.module(name, rest),
            ["render", account, text, "is", wanted @ ..] => self.render(account, text, &wanted.join(" ")),
            ["domain" | "account" | "invitation" | "revoke" | "password" | "drain", ..] => {
                self.administer(&words)
            }
            [name, words @ ..] => self.connection(name, words),
            [] => Err("not understood".into()),
        }
    }

    /// What an operator does.
    fn administer(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["domain", name, flags @ ..] => {
                self.world.domain(name, policy(flags)?);
            }
            ["account", jid, password] => {
                let (local, domain) = jid.split_once('@').unwrap_or((jid, DOMAIN));
                self.world.account(domain, local, password);
                self.passwords.insert(format!("{local}@{domain}"), (*password).to_owned());
            }
            ["invitation", token, what @ ..] => self.invite(token, what)?,
            ["revoke", local] => {
                let domain = self.world.domain_id(DOMAIN);
                let account = BareJid::new(&format!("{local}@{DOMAIN}")).map_err(|e| e.to_string())?;
                let command = Command::RevokeTokens { domain, account: account.clone() };
                self.world.command(account.as_str(), command);
            }
            ["password", local, password] => {
                self.world.password(DOMAIN, local, password);
            }
            ["drain", "stops"] => self.world.every_shard(&|| carillon_core::Input::StopDraining),
            ["drain", "slice", number, "of", slices, farewell @ ..] => {
                let slice = drain_slice(number, slices, farewell)?;
                self.world.every_shard(&|| carillon_core::Input::DrainSlice(slice.clone()));
            }
            _ => return Err("not understood".into()),
        }
        Ok(())
    }

    /// `invitation TOKEN [from=LOCALPART] [for=LOCALPART] [uses=N] [contacts]`: somebody makes one, that is valid for an hour
    fn invite(&mut self, token: &str, what: &[&str]) -> Result<(), String> {
        let value = |key: &str| what.iter().find_map(|word| word.strip_prefix(key));
        let uses_max = value("uses=").map_or(Ok(1), str::parse).map_err(|_| "uses=N")?;
        let invitation = Invitation {
            id: InvitationId(0),
            domain: self.world.domain_id(DOMAIN),
            inviter: value("from=").map(Into::into),
            local: value("for=").map(Into::into),
            registers: !what.contains(&"contacts"),
            uses_max,
            uses: 0,
            created: UnixMs(0),
            expires: UnixMs(3_600_000),
        };
        self.world.invite(token, &invitation);
        Ok(())
    }

    /// What a connection does, or its client.
    fn connection(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        match words {
            ["connects", how @ ..] => return self.connect(name, how),
            ["opens"] => {
                self.connect(name, &["raw"])?;
                let conn = self.conn(name)?;
                self.world.bytes(conn, HEADER.as_bytes());
                self.expect(name, "anything")?;
                self.expect(name, "anything")?;
            }
            ["drops"] => {
                let conn = self.conn(name)?;
                self.world.drop_connection(conn);
                self.conns.remove(name);
            }
            ["closed"] => {
                let conn = self.conn(name)?;
                if !self.world.is_closed(conn) {
                    return Err("the connection is open".into());
                }
                self.conns.remove(name);
            }
            ["stops", "reading"] => {
                let conn = self.conn(name)?;
                self.world.stop_reading(conn);
            }
            ["has", "most", "waiting", "of", "all"] => {
                let conn = self.conn(name)?;
                self.world.overflow_together(conn);
            }
            ["reads", how @ ("once" | "again")] => {
                let conn = self.conn(name)?;
                if *how == "once" { self.world.read_once(conn) } else { self.world.read_on(conn) }
            }
            ["has", "at", "most", bytes, "unread"] => {
                let unread = self.world.unread(self.conn(name)?);
                let max: usize = bytes.parse().map_err(|_| "NAME has at most BYTES unread")?;
                return (unread <= max).then_some(()).ok_or(format!("it has {unread}"));
            }
            _ => return Err("not understood".into()),
        }
        Ok(())
    }

    fn store(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["refuses", kinds @ ..] => kinds.iter().try_for_each(|kind| self.world.store_refuses(kind)),
            ["loses", "answers", "of", kind] => self.world.store_loses(kind, true),
            ["loses", kind] => self.world.store_loses(kind, false),
            ["holds", kinds @ ..] => kinds.iter().try_for_each(|kind| self.world.store_holds(kind)),
            ["goes", "on", "with", kind] => self.world.store_goes_on_with(kind),
            ["goes", "on"] => {
                self.world.store_goes_on();
                Ok(())
            }
            _ => Err("not understood".into()),
        }
    }

    fn pass(&mut self, time: &str) -> Result<(), String> {
        self.world.pass(milliseconds(time)?);
        Ok(())
    }

    /// `restarts for TIME: N sessions go on, M end`: the node ends in an orderly way and starts TIME later.
    fn restart(&mut self, time: &str, wanted: &[&str]) -> Result<(), String> {
        let (go_on, end) = self.world.restart(milliseconds(time.trim_end_matches(':'))?);
        self.read_broadcasts();
        let found = format!("{go_on} sessions go on, {end} end");
        (found == wanted.join(" ")).then_some(()).ok_or(found)
    }

    /// `asked COUNT identities COUNT logins [for PART …]`: what the store was asked since somebody looked
    fn asked(&mut self, who: &str, what: &str, wanted: &[&str]) -> Result<(), String> {
        let Questions { identities, logins, parts, .. } = self.world.questions();
        let parts = [
            ("subscriptions", parts.subscriptions),
            ("notifications", parts.notifications),
            ("messages", parts.messages),
        ];
        let parts =
            parts.into_iter().filter_map(|(part, is_asked)| is_asked.then_some(part)).collect::<Vec<_>>();
        let is_as_wanted = match wanted {
            [] => true,
            ["for", "nothing", "else"] => parts.is_empty(),
            ["for", wanted @ ..] => parts == wanted,
            _ => return Err("asked COUNT identities COUNT logins [for PART …]".into()),
        };
        let is_so = identities.to_string() == who && logins.to_string() == what && is_as_wanted;
        is_so.then_some(()).ok_or(format!("asked {identities} identities {logins} logins for {parts:?}"))
    }

    fn conn(&self, name: &str) -> Result<usize, String> {
        self.conns.get(name).copied().ok_or_else(|| format!("{name} is not connected"))
    }

    /// `NAME[/RESOURCE] connects [quietly] [sm] [unbound] [raw] [raw-plain] [websocket]`
    fn connect(&mut self, name: &str, how: &[&str]) -> Result<(), String> {
        let framing = if how.contains(&"websocket") { Framing::WebSocket } else { Framing::Tcp };
        let conn = self.world.open(framing, !how.contains(&"raw-plain"));
        self.conns.insert(name.to_owned(), conn);
        if how.contains(&"raw") || how.contains(&"raw-plain") {
            return Ok(());
        }
        let (user, resource) = name.split_once('/').unwrap_or((name, "r"));
        let jid = if user.contains('@') { user.to_owned() } else { format!("{user}@{DOMAIN}") };
        let (local, domain) = jid.split_once('@').expect("joined above");
        let password = self.passwords.get(&jid).cloned().ok_or_else(|| format!("no account {jid}"))?;
        let plain = BASE64.encode(format!("\0{local}\0{password}"));
        let open = match framing {
            Framing::Tcp => format!(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='{domain}' version='1.0'>"
            ),
            Framing::WebSocket => {
                format!("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='{domain}' version='1.0'/>")
            }
        };
        let bind = format!(
            "<iq xmlns='jabber:client' type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>{resource}</resource></bind></iq>"
        );
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let mut steps = vec![(&open, 2), (&auth, 1), (&open, 2), (&bind, 1)];
        let is_unbound = how.contains(&"unbound");
        if is_unbound {
            steps.pop();
        }
        for (send, expect) in steps {
            self.world.bytes(conn, send.as_bytes());
            for _ in 0..expect {
                let got = self.world.received(conn).ok_or("the login went silent")?;
                let got = String::from_utf8_lossy(&got).into_owned();
                if got.contains("<failure") || got.contains("stream:error") || got.contains("type='error'") {
                    return Err(format!("the login failed: {got}"));
                }
            }
        }
        if is_unbound {
            return Ok(());
        }
        if how.contains(&"sm") {
            self.world.bytes(conn, b"<enable xmlns='urn:xmpp:sm:3'/>");
            self.expect(name, "<enabled xmlns='urn:xmpp:sm:3'/>")?;
        }
        if !how.contains(&"quietly") {
            self.world.bytes(conn, b"<presence xmlns='jabber:client'/>");
            self.expect(name, &format!("<presence from='{jid}/{resource}' to='{jid}/{resource}'/>"))?;
        }
        Ok(())
    }

    /// The next thing that `name` receives is exactly this.
    /// Somebody outside has an account send a stanza.
    fn act(&mut self, account: &str, xml: &str) -> Result<(), String> {
        let account = BareJid::new(&format!("{account}@{DOMAIN}")).map_err(|e| e.to_string())?;
        let context = Context::new(Framing::Tcp, xml::Limits::trusted());
        let Ok(Unit::Stanza(stanza)) = read(xml.as_bytes(), &context) else { return Err("no stanza".into()) };
        let command = Command::Act { account: account.clone(), stanza: Box::new(stanza) };
        self.acted = Some(self.world.begin(account.as_str(), command));
        Ok(())
    }

    /// What that came to.
    fn acted(&mut self, pattern: &str) -> Result<(), String> {
        let outcome = self.acted.as_ref().ok_or("nobody acted")?.try_recv();
        let got = match outcome.map_err(|_| "no answer yet")? {
            Outcome::Count(0) => return (pattern == "done").then_some(()).ok_or("it is done".into()),
            Outcome::Answered(stanza) => {
                let mut got = Vec::new();
                stanza.write(&mut got, Framing::Tcp);
                String::from_utf8_lossy(&got).into_owned()
            }
            other => return Err(format!("{other:?}")),
        };
        if pattern.starts_with('<') { self.same_xml(pattern, &got) } else { Err(format!("got {got}")) }
    }

    fn expect(&mut self, name: &str, pattern: &str) -> Result<(), String> {
        let conn = self.conn(name)?;
        let got = self.world.received(conn);
        let got = got.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match (pattern, got) {
            ("nothing", None) => Ok(()),
            ("nothing", Some(got)) => Err(format!("got {got}")),
            (_, None) => Err("got nothing".into()),
            ("anything", Some(_)) => Ok(()),
            (pattern, Some(got))
                if !pattern.starts_with('<') || pattern.starts_with("</") || pattern.starts_with("<?xml") =>
            {
                self.same_text(pattern, &got).then_some(()).ok_or(format!("got {got}"))
            }
            (pattern, Some(got)) => self.same_xml(pattern, &got),
        }
    }

    fn same_xml(&mut self, pattern: &str, got: &str) -> Result<(), String> {
        let parse = |xml: &str| Element::parse(with_stream_prefix(xml).as_bytes(), "jabber:client");
        let wanted = parse(pattern).map_err(|e| format!("the expectation is not XML: {e}"))?;
        let found = parse(got).map_err(|e| format!("what came is not XML: {e}: {got}"))?;
        if self.same(&wanted, &found) { Ok(()) } else { Err(format!("got {got}")) }
    }

    fn same(&mut self, wanted: &Element, found: &Element) -> bool {
        wanted.name() == found.name()
            && wanted.ns() == found.ns()
            && wanted.attrs().count() == found.attrs().count()
            && wanted
                .attrs()
                .all(|a| found.attr(a.name()).is_some_and(|value| self.same_text(a.value(), value)))
            && wanted.nodes().len() == found.nodes().len()
            && wanted.nodes().iter().zip(found.nodes()).all(|nodes| match nodes {
                (Node::Element(a), Node::Element(b)) => self.same(a, b),
                (Node::Text(a), Node::Text(b)) => self.same_text(a, b),
                _ => false,
            })
    }

    /// `{any}` matches anything; `{name}` what it matched before, or anything the first time.
    fn same_text(&mut self, pattern: &str, text: &str) -> bool {
        let Some(open) = pattern.find('{') else { return pattern == text };
        let Some(close) = pattern[open..].find('}').map(|i| open + i) else { return pattern == text };
        let (before, name, after) = (&pattern[..open], &pattern[open + 1..close], &pattern[close + 1..]);
        let Some(rest) = text.strip_prefix(before) else { return false };
        if let Some(value) = self.bound.get(name).cloned() {
            return rest.strip_prefix(value.as_str()).is_some_and(|rest| self.same_text(after, rest));
        }
        let literal = &after[..after.find('{').unwrap_or(after.len())];
        let end = if literal.is_empty() { Some(rest.len()) } else { rest.find(literal) };
        let Some(end) = end else { return false };
        if name != "any" {
            self.bound.insert(name.to_owned(), rest[..end].to_owned());
        }
        self.same_text(after, &rest[end..])
    }

    /// Puts in what was bound.
    fn fill(&self, text: &str) -> String {
        self.bound
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// `log KIND …`: the event log keeps these from now on
    fn log(&mut self, kinds: &[&str]) -> Result<(), String> {
        let kinds: Option<Vec<Kind>> = kinds.iter().map(|word| Kind::named(word)).collect();
        self.world.log(Kinds::of(kinds.ok_or("log KIND …")?));
        Ok(())
    }

    /// `logged KIND field=value …`: the next line of the event log
    fn logged(&mut self, pattern: &str) -> Result<(), String> {
        let line = self.world.logged().ok_or("nothing was logged")?;
        self.same_text(pattern, &line).then_some(()).ok_or(format!("logged {line}"))
    }

    /// `notify JID AUDIENCE JSON [key=value …] [as NAME] [followed] is STATE`
    fn notify(&mut self, to: &str, rest: &[&str]) -> Result<(), String> {
        let (audience, rest) = rest.split_first().ok_or("notify JID AUDIENCE JSON … is STATE")?;
        let (json, options) = rest.split_first().ok_or("notify JID AUDIENCE JSON … is STATE")?;
        let at = options.iter().position(|w| *w == "is").ok_or("… is STATE")?;
        let (options, state) = (&options[..at], options[at + 1..].join(" "));
        let to = BareJid::new(&if to.contains('@') { to.to_owned() } else { format!("{to}@{DOMAIN}") })
            .map_err(|e| e.to_string())?;
        let option = |key: &str| options.iter().find_map(|o| o.strip_prefix(key)?.strip_prefix('='));
        let now = self.world.now();
        let name = options.iter().position(|o| *o == "as").and_then(|i| options.get(i + 1));
        let again = options.iter().position(|o| *o == "again").and_then(|i| options.get(i + 1));
        let id = match again {
            Some(name) => self.notification(name)?.0,
            None => {
                self.notified += 1;
                let number = self.notified;
                let id = NotificationId::new(now, bucket(to.as_str()), number);
                let name = name.map_or_else(|| format!("id{number}"), |name| (*name).to_owned());
                self.bound.insert(name, id.to_string());
                id
            }
        };
        let notification = Notification {
            id,
            domain: self.world.domain_id(to.domain()),
            to: to.clone(),
            audience: serde_word(audience)?,
            priority: option("priority").map_or(Ok(Priority::Normal), serde_word)?,
            expires: option("ttl").map(|s| now.plus(s.parse::<u64>().expect("seconds") * 1000)),
            collapse_key: option("collapse").map(Into::into),
            key: None,
            payload: Payload::Json((*json).into()),
            accepted: now,
            send_at: None,
        };
        let command = hops::command(notification, options.contains(&"followed"));
        let outcome = self.world.command(to.as_str(), command);
        match outcome {
            Outcome::Notified(trace) => same_state(&trace, &state),
            Outcome::Unavailable if state == "unavailable" => Ok(()),
            Outcome::Unknown if state == "unknown" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn trace(&mut self, id: &str, state: &str) -> Result<(), String> {
        let (id, to) = self.notification(id)?;
        match self.world.command(&to, Command::Trace { id }) {
            Outcome::Trace(trace) => same_state(&trace, state),
            Outcome::Missing if state == "missing" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn cancel(&mut self, id: &str, state: &str) -> Result<(), String> {
        let (id, to) = self.notification(id)?;
        match self.world.command(&to, Command::Cancel { id }) {
            Outcome::Trace(trace) => same_state(&trace, state),
            other => Err(format!("{other:?}")),
        }
    }

    fn notification(&self, name: &str) -> Result<(NotificationId, String), String> {
        let id: NotificationId =
            self.bound.get(name).ok_or("no such notification")?.parse().map_err(|_| "not a notification")?;
        let accounts = self.passwords.keys().find(|jid| bucket(jid) == id.bucket());
        Ok((id, accounts.cloned().ok_or("no account of that bucket")?))
    }

    /// `topic NAME create [json config] | publish JSON [id=…] | subscribe JID | retract ID | delete | purge`
    fn topic(&mut self, name: &str, op: &str, rest: &[&str]) -> Result<(), String> {
        let account = |jid: &str| {
            BareJid::new(&if jid.contains('@') { jid.to_owned() } else { format!("{jid}@{DOMAIN}") })
                .map_err(|e| e.to_string())
        };
        let op = match (op, rest) {
            ("create", []) => TopicOp::Create { config: TopicConfig::default() },
            ("create", fields) => TopicOp::Create { config: config(fields)? },
            ("configure", fields) => TopicOp::Configure { config: config(fields)? },
            ("publish", [json, options @ ..]) => TopicOp::Publish {
                id: options.iter().find_map(|o| o.strip_prefix("id=")).map(Into::into),
                payload: Payload::Json((*json).into()),
                operation: None,
            },
            ("retract", [id]) => TopicOp::Retract { id: (*id).into(), notify: None },
            ("subscribe", [jid]) => TopicOp::Subscribe { account: account(jid)? },
            ("unsubscribe", [jid]) => TopicOp::Unsubscribe { account: account(jid)? },
            ("delete", []) => TopicOp::Delete,
            ("purge", []) => TopicOp::Purge,
            _ => return Err("no such operation".into()),
        };
        let domain = self.world.domain_id(DOMAIN);
        let command = Command::Topic { domain, name: name.into(), actor: Actor::Provider, op };
        match self.world.command(&format!("{name}@pubsub.{DOMAIN}"), command) {
            Outcome::Topic(Ok(TopicOutcome::Published(item))) => {
                self.bound.insert("item".to_owned(), item.id.to_string());
                Ok(())
            }
            Outcome::Topic(Ok(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// `many COUNT LINE`: the line so many times, `{i}` in it being 1, 2 …, and `{NKiB}` so many KiB of text
    fn many(&mut self, count: &str, line: &str) -> Result<(), String> {
        let count: usize = count.parse().map_err(|_| "many COUNT LINE")?;
        let line = match line.find("KiB}") {
            Some(end) => {
                let start = line[..end].rfind('{').ok_or("{NKiB}")?;
                let kib: usize = line[start + 1..end].parse().map_err(|_| "{NKiB}")?;
                format!("{}{}{}", &line[..start], "x".repeat(kib * 1024), &line[end + 4..])
            }
            None => line.to_owned(),
        };
        (1..=count).try_for_each(|i| {
            self.line(&line.replace("{i}", &i.to_string())).map_err(|error| format!("the {i}th: {error}"))
        })
    }

    /// At the end nobody has anything left that was not expected.
    fn leftovers(&mut self) -> Result<(), String> {
        for (name, conn) in &self.conns {
            if let Some(bytes) = self.world.received(*conn) {
                return Err(format!("at the end {name} has {}", String::from_utf8_lossy(&bytes)));
            }
        }
        match self.world.logged() {
            Some(line) => Err(format!("at the end the log has {line}")),
            None => Ok(()),
        }
    }
}

fn same_state(trace: &Trace, wanted: &str) -> Result<(), String> {
    let mut found = format!("{:?}", trace.state).to_lowercase();
    if let Some(by) = trace.acknowledged_by {
        found.push_str(&format!(" by {by:?}").to_lowercase());
    }
    if let Some(reason) = trace.reason {
        found.push_str(&format!(" {reason:?}").to_lowercase());
    }
    if found == wanted { Ok(()) } else { Err(format!("it is {found}")) }
}

fn serde_word<T: Word>(word: &str) -> Result<T, String> {
    T::of(word).ok_or_else(|| format!("{word}?"))
}

trait Word: Sized {
    fn of(word: &str) -> Option<Self>;
}

impl Word for Audience {
    fn of(word: &str) -> Option<Audience> {
        [("active", Audience::Active), ("connected", Audience::Connected), ("always", Audience::Always)]
            .into_iter()
            .find_map(|(w, a)| (w == word).then_some(a))
    }
}

impl Word for Priority {
    fn of(word: &str) -> Option<Priority> {
        [("low", Priority::Low), ("normal", Priority::Normal), ("high", Priority::High)]
            .into_iter()
            .find_map(|(w, a)| (w == word).then_some(a))
    }
}

fn config(fields: &[&str]) -> Result<TopicConfig, String> {
    let mut config = TopicConfig::default();
    for field in fields {
        match field.split_once('=') {
            Some(("max_items", n)) => config.max_items = n.parse().map_err(|_| "max_items=NUMBER")?,
            Some(("access", "whitelist")) => config.access_model = Access::Whitelist,
            Some(("publish", "open")) => config.publish_model = PublishModel::Open,
            Some(("persist", "no")) => config.persist_items = false,
            Some(("send_last", "never")) => config.send_last_published_item = SendLast::Never,
            Some(("send_last", "on_sub")) => config.send_last_published_item = SendLast::OnSub,
            _ => return Err(format!("no field {field}")),
        }
    }
    Ok(config)
}

fn policy(flags: &[&str]) -> Result<Policy, String> {
    let mut policy = Policy::default();
    for flag in flags {
        match *flag {
            "single" => policy.sessions = SessionPolicy::Single,
            "registration" => policy.registration = true,
            "managed-elsewhere" => policy.account_management = false,
            "archive" => policy.archive = true,
            "other-domains" => policy.other_domains = true,
            "routed" => policy.messages_durable = false,
            "pubsub-admin" => policy.pubsub_create = PubsubCreate::Admin,
            "rooms-admin" => policy.rooms_create = RoomsCreate::Admin,
            "room-events" => policy.room_events = RoomEvents::All,
            other => match other.split_once('=').and_then(|(name, n)| Some((name, n.parse::<u32>().ok()?))) {
                Some((name, n)) if quotas::set(&mut policy, name, n) => {}
                _ => return Err(format!("no policy {other}, or no number in it")),
            },
        }
    }
    Ok(policy)
}

fn drain_slice(number: &str, slices: &str, farewell: &[&str]) -> Result<DrainSlice, String> {
    let count = |text: &str| text.parse::<u32>().map_err(|e| e.to_string());
    let farewell = match farewell {
        [] => Farewell::Shutdown,
        ["to", host] => Farewell::SeeOtherHost(host.parse().map_err(|e| format!("{host}: {e}"))?),
        ["restart", least, spread] => Farewell::Restart { least_s: count(least)?, spread_s: count(spread)? },
        _ => return Err("drain slice K of N [to HOST | restart SECONDS SPREAD]".into()),
    };
    let slices = count(slices)?;
    let slices_left = slices - count(number)?;
    Ok(DrainSlice { farewell: farewell.into(), slices_left, slices, is_last: slices_left == 0 })
}

/// `\xNN` and `\0` for bytes that cannot stand in a script.
fn unescape(text: &str) -> String {
    text.replace("\\0", "\0").replace("\\r", "\r").replace("\\n", "\n")
}

/// `<stream:…>` stands inside the stream that declared the prefix.
fn with_stream_prefix(xml: &str) -> String {
    let rest = xml.strip_prefix("<stream:").filter(|_| !xml.contains("xmlns:stream"));
    let Some(rest) = rest else { return xml.to_owned() };
    let at = rest.find(['>', '/', ' ']).unwrap_or(rest.len());
    format!("<stream:{} xmlns:stream='http://etherx.jabber.org/streams'{}", &rest[..at], &rest[at..])
}

/// Sets a bound.
fn set_limit(limits: &mut Limits, key: &str, value: &str) {
    fn number<T: FromStr>(value: &str) -> T {
        value.parse().ok().expect("a number")
    }
    match key {
        "unacknowledged" => limits.unacknowledged = number(value),
        "offline_messages" => limits.offline_messages = number(value),
        "blocked_addresses" => limits.block_list.addresses = number(value),
        "blocked_bytes" => limits.block_list.bytes = number(value),
        "roster_contacts" => limits.roster.contacts = number(value),
        "nodes_per_account" => limits.nodes.nodes = number(value),
        "node_items" => limits.nodes.items = number(value),
        "node_bytes" => limits.nodes.bytes = number(value),
        "records_bytes" => limits.records_bytes = number(value),
        "presence_bytes" => limits.presence_bytes = number(value),
        "unacknowledged_bytes" => limits.unacknowledged_bytes = number(value),
        "offline_bytes" => limits.offline_bytes = number(value),
        "topic_bytes" => limits.topic_bytes = number(value),
        "room_presence" => limits.room_presence = number(value),
        "rooms_joined" => limits.rooms_joined = number(value),
        "vcard_bytes" => limits.vcard_bytes = number(value),
        "topics_owned" => limits.topics_owned = number(value),
        "topics_followed" => limits.topics_followed = number(value),
        "topic_items" => limits.topic_items = number(value),
        _ => panic!("no setting {key}"),
    }
}
