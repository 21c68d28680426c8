//! Checks of a scenario beyond its form: the range of values, and the order of phases.

use super::action::{Action, Contacts, Phase, Play, Resume, Rooms};
use super::scenario::{Protocol, Scenario, ScenarioError};
use super::shape::{NamedShape, Shape};
use super::span::Span;
use crate::client::InitialPresence;

/// The most players of a test.
const PLAYERS_MAX: u32 = 100_000_000;
/// The largest payload, well below the usual stanza limits of servers.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// The most contacts of a player.
const CONTACTS_MAX: u64 = 1000;
/// The most lines of a batch of notifications.
const BATCH_MAX: u32 = 100_000;

impl Scenario {
    /// Checks the range of values and the order of phases.
    pub fn check(&self) -> Result<(), ScenarioError> {
        within("players.count", u64::from(self.players.count), 1, u64::from(PLAYERS_MAX))?;
        if self.phases.is_empty() {
            return Err(wrong("phases", "there are no phases"));
        }
        for (at, phase) in self.phases.iter().enumerate() {
            phase.check()?;
            let here = |why: &str| wrong(phase.name(), why);
            let needs_login = !phase.action.logs_in()
                && !matches!(phase.action, Action::Hold { .. } | Action::AwaitGone | Action::Play(_));
            if needs_login && self.first_login().is_none_or(|login| login > at) {
                return Err(here("no player has logged in yet; put a login phase before it"));
            }
            let speaks_xmpp = phase.action.bucket() > 1
                || matches!(phase.action, Action::Notify(_) | Action::ReadArchive(_));
            if self.players.protocol == Protocol::Light && speaks_xmpp {
                return Err(here("the light protocol has topics only"));
            }
            if matches!(phase.action, Action::Arrive(_)) && self.players.presence != InitialPresence::None {
                return Err(here(
                    "players are available before they arrive; set players.presence = \"none\"",
                ));
            }
            if matches!(phase.action, Action::Resume(_)) && !self.players.resumption {
                return Err(here("no stream can be resumed; set players.resumption = true"));
            }
        }
        // Otherwise no token would be used, and nothing would say why.
        if self.players.fast && !self.players.sasl2 {
            return Err(wrong("players.fast", "tokens need SASL2; set players.sasl2 = true too"));
        }
        self.check_light()
    }

    fn check_light(&self) -> Result<(), ScenarioError> {
        let players = &self.players;
        if players.protocol == Protocol::Xmpp {
            return Ok(());
        }
        let xmpp_only = [
            ("stream_management", players.stream_management),
            ("resumption", players.resumption),
            ("receipts", players.receipts),
            ("sasl2", players.sasl2),
            ("fast", players.fast),
            ("tls_resumption", players.tls_resumption),
            ("presence", players.presence != InitialPresence::default()),
            ("register", players.register),
        ];
        match xmpp_only.into_iter().find(|(_, is_on)| *is_on) {
            Some((key, _)) => Err(wrong(&format!("players.{key}"), "not available with the light protocol")),
            None => Ok(()),
        }
    }
}

impl Shape {
    /// Checks that its rates and durations can be; `at` names it in the error.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, at: &str) -> Result<(), ScenarioError> {
        rate(at, Some(self))
    }
}

impl Phase {
    fn check(&self) -> Result<(), ScenarioError> {
        if self.name().is_empty()
            || ["players", "allow"].contains(&self.name())
            || self.name().contains(['.', '='])
        {
            return Err(wrong("phases.name", &format!("{:?} is not a valid name for a phase", self.name())));
        }
        let key = |key: &str| format!("{}.{key}", self.name());
        lasts(&key("timeout"), self.timeout)?;
        match &self.action {
            Action::Login(login) => {
                within(&key("in_flight"), u64::from(login.in_flight), 1, u64::from(PLAYERS_MAX))?;
                within(&key("steps"), u64::from(login.steps), 1, 10_000)?;
                rate(&key("rate"), login.rate.as_ref())
            }
            Action::Befriend(contacts) => check_contacts(&key, *contacts),
            Action::Arrive(arrive) => {
                within(&key("in_flight"), u64::from(arrive.in_flight), 1, u64::from(PLAYERS_MAX))?;
                rate(&key("rate"), arrive.rate.as_ref())?;
                check_contacts(&key, arrive.contacts)
            }
            Action::Hold { span } => lasts(&key("for"), *span),
            Action::Subscribe { topic: name } => topic(&key("topic"), name),
            Action::Publish(publish) => {
                topic(&key("topic"), &publish.topic)?;
                within(&key("items"), u64::from(publish.items), 1, 1_000_000)?;
                payload(&key("payload_bytes"), publish.payload_bytes)?;
                if publish.rate.as_ref().is_some_and(Shape::is_per_player) {
                    return Err(wrong(
                        &key("rate"),
                        "there is one publisher, so the rate cannot be per player",
                    ));
                }
                rate(&key("rate"), publish.rate.as_ref())
            }
            Action::Play(play) => check_play(&key, play),
            Action::Notify(notify) => {
                rate(&key("rate"), Some(&notify.rate))?;
                lasts(&key("for"), notify.span)?;
                within(&key("batch"), u64::from(notify.batch), 1, u64::from(BATCH_MAX))?;
                payload(&key("payload_bytes"), notify.payload_bytes)?;
                let is_known = ["active", "connected", "always"].contains(&notify.audience.as_str());
                let unknown = || wrong(&key("audience"), "expected active, connected or always");
                is_known.then_some(()).ok_or_else(unknown)
            }
            Action::Talk(talk) => {
                rate(&key("rate"), talk.rate.as_ref())?;
                lasts(&key("for"), talk.span)?;
                within(&key("bucket"), u64::from(talk.bucket), 2, 10_000)?;
                payload(&key("payload_bytes"), talk.payload_bytes)
            }
            Action::EnterRooms(rooms) => check_rooms(&key, *rooms),
            Action::Speak(speak) => {
                check_rooms(&key, speak.rooms)?;
                rate(&key("rate"), Some(&speak.rate))?;
                lasts(&key("for"), speak.span)?;
                payload(&key("payload_bytes"), speak.payload_bytes)
            }
            Action::ReadArchive(read) => {
                within(&key("page"), u64::from(read.page), 1, 1000)?;
                within(&key("in_flight"), u64::from(read.in_flight), 1, u64::from(PLAYERS_MAX))
            }
            Action::Resume(resume) => check_resume(&key, resume),
            Action::Churn { rate: shape, span } => {
                rate(&key("rate"), Some(shape))?;
                lasts(&key("for"), *span)
            }
            Action::Drop | Action::AwaitGone => Ok(()),
        }
    }
}

fn check_rooms(key: &impl Fn(&str) -> String, rooms: Rooms) -> Result<(), ScenarioError> {
    within(&key("occupants"), u64::from(rooms.occupants), 2, 100_000)?;
    within(&key("bucket"), u64::from(rooms.bucket), u64::from(rooms.occupants), 100_000)?;
    within(&key("rooms"), u64::from(rooms.rooms), 1, 1000)?;
    if !rooms.bucket.is_multiple_of(rooms.occupants) {
        return Err(wrong(
            &key("bucket"),
            "a bucket is divided into rooms: expected a multiple of occupants",
        ));
    }
    Ok(())
}

fn check_play(key: &dyn Fn(&str) -> String, play: &Play) -> Result<(), ScenarioError> {
    within(&key("seats"), u64::from(play.seats), 2, 64)?;
    within(&key("tick_rate"), u64::from(play.tick_rate), 1, 60)?;
    within(&key("ahead"), u64::from(play.ahead), 1, 32)?;
    within(&key("payload_bytes"), play.payload_bytes as u64, 1, 512)?;
    within(&key("in_flight"), u64::from(play.in_flight), 1, u64::from(PLAYERS_MAX))?;
    if !(0.0..=1.0).contains(&play.cut_share) {
        return Err(wrong(&key("cut_share"), "expected a share from 0 to 1"));
    }
    lasts(&key("for"), play.span)
}

fn check_contacts(key: &dyn Fn(&str) -> String, plan: Contacts) -> Result<(), ScenarioError> {
    within(&key("contacts"), u64::from(plan.contacts), 2, CONTACTS_MAX)?;
    within(&key("bucket"), u64::from(plan.bucket), u64::from(plan.contacts) + 1, 100_000)?;
    if plan.contacts.is_multiple_of(2) {
        return Ok(());
    }
    Err(wrong(&key("contacts"), "expected an even number: as many before a player as after it"))
}

fn check_resume(key: &dyn Fn(&str) -> String, resume: &Resume) -> Result<(), ScenarioError> {
    rate(&key("rate"), resume.traffic())?;
    within(&key("bucket"), u64::from(resume.bucket), 2, 10_000)?;
    payload(&key("payload_bytes"), resume.payload_bytes)?;
    within(&key("cut.rounds"), u64::from(resume.cut.rounds), 1, 10_000)?;
    if resume.cut.players > 0.0 && resume.cut.players <= 1.0 {
        return Ok(());
    }
    Err(wrong(&key("cut.players"), "expected a share of the players: more than 0, at most 1"))
}

fn wrong(at: &str, why: &str) -> ScenarioError {
    ScenarioError::Value { at: at.to_owned(), why: why.to_owned() }
}

fn within(at: &str, value: u64, min: u64, max: u64) -> Result<(), ScenarioError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(wrong(at, &format!("{value} is out of range; expected {min} to {max}")))
}

fn lasts(at: &str, span: Span) -> Result<(), ScenarioError> {
    if span.0.is_zero() { Err(wrong(at, "the duration must be more than 0")) } else { Ok(()) }
}

fn topic(at: &str, name: &str) -> Result<(), ScenarioError> {
    if name.is_empty() { Err(wrong(at, "the name of the topic is empty")) } else { Ok(()) }
}

fn payload(at: &str, bytes: usize) -> Result<(), ScenarioError> {
    within(at, bytes as u64, 0, PAYLOAD_BYTES_MAX as u64)
}

fn rate(at: &str, shape: Option<&Shape>) -> Result<(), ScenarioError> {
    let Some(shape) = shape else { return Ok(()) };
    let rates = match shape {
        Shape::Steady(rate) | Shape::Named(NamedShape::Steady { rate } | NamedShape::PerPlayer { rate }) => {
            [*rate, *rate]
        }
        Shape::Named(NamedShape::Ramp { from, to, over }) => {
            lasts(&format!("{at}.over"), *over)?;
            [*from, *to]
        }
        Shape::Named(NamedShape::Spike { base, peak, lasts: length, .. }) => {
            lasts(&format!("{at}.lasts"), *length)?;
            [*base, *peak]
        }
        Shape::Named(NamedShape::Bell { base, peak, rise, fall }) => {
            lasts(&format!("{at}.rise"), *rise)?;
            lasts(&format!("{at}.fall"), *fall)?;
            [*base, *peak]
        }
        Shape::Named(NamedShape::TopHeavy { base, peak, rise, fall_per_minute }) => {
            lasts(&format!("{at}.rise"), *rise)?;
            if !fall_per_minute.is_finite() || *fall_per_minute <= 0.0 {
                return Err(wrong(&format!("{at}.fall_per_minute"), "it must be more than 0"));
            }
            if peak < base {
                return Err(wrong(&format!("{at}.peak"), "it must not be lower than the base"));
            }
            [*base, *peak]
        }
    };
    if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
        return Err(wrong(at, "a rate must not be negative"));
    }
    if rates == [0.0; 2] { Err(wrong(at, "a rate must be more than 0")) } else { Ok(()) }
}
