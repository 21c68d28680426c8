//! Reading of a phase from one flat table, in which a key that its action does not have is an error.
//!
//! Hand-written, because serde's `flatten` accepts unknown keys.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::action::{
    Action, Arrive, Contacts, Cut, Login, Notify, Phase, Play, Publish, PublishMethod, ReadArchive, Resume,
    Return, Rooms, Speak, Talk,
};
use super::shape::Shape;
use super::span::Span;

/// All keys of all actions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: Option<String>,
    timeout: Option<Span>,
    r#do: ActionName,
    rate: Option<Shape>,
    in_flight: Option<u32>,
    steps: Option<u32>,
    r#for: Option<Span>,
    topic: Option<String>,
    by: Option<PublishMethod>,
    items: Option<u32>,
    payload_bytes: Option<usize>,
    audience: Option<String>,
    batch: Option<u32>,
    bucket: Option<u32>,
    contacts: Option<u32>,
    page: Option<u32>,
    pages: Option<u32>,
    cut: Option<Cut>,
    r#return: Option<Return>,
    resend: Option<bool>,
    occupants: Option<u32>,
    rooms: Option<u32>,
    light: Option<bool>,
    seats: Option<u32>,
    tick_rate: Option<u32>,
    ahead: Option<u32>,
    cut_share: Option<f64>,
}

/// The names of the actions.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActionName {
    Login,
    Befriend,
    Arrive,
    Hold,
    Subscribe,
    Publish,
    Notify,
    Talk,
    EnterRooms,
    Speak,
    ReadArchive,
    Resume,
    Play,
    Drop,
    AwaitGone,
    Churn,
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        let action =
            table.action().map_err(|key| D::Error::custom(format!("the setting `{key}` is missing")))?;
        if let Some(key) = table.left_over() {
            return Err(D::Error::custom(format!("`{}` has no setting `{key}`", action.name())));
        }
        let timeout = table.timeout.unwrap_or_else(Self::default_timeout);
        Ok(Self { name: table.name, timeout, action })
    }
}

impl Table {
    /// Takes the keys of the action; the error is the missing key.
    fn action(&mut self) -> Result<Action, &'static str> {
        Ok(match self.r#do {
            ActionName::Login => Action::Login(Login {
                rate: self.rate.take(),
                in_flight: self.in_flight(),
                steps: self.steps.take().unwrap_or_else(Login::default_steps),
            }),
            ActionName::Befriend => Action::Befriend(self.contacts()),
            ActionName::Arrive => Action::Arrive(Arrive {
                contacts: self.contacts(),
                rate: self.rate.take(),
                in_flight: self.in_flight(),
            }),
            ActionName::Hold => Action::Hold { span: self.span()? },
            ActionName::Subscribe => Action::Subscribe { topic: self.topic()? },
            ActionName::Publish => Action::Publish(Publish {
                topic: self.topic()?,
                by: self.by.take().ok_or("by")?,
                items: self.items.take().ok_or("items")?,
                rate: self.rate.take(),
                payload_bytes: self.payload(),
            }),
            ActionName::Notify => Action::Notify(Notify {
                rate: self.rate()?,
                span: self.span()?,
                audience: self.audience.take().unwrap_or_else(Notify::default_audience),
                batch: self.batch.take().unwrap_or_else(Notify::default_batch),
                payload_bytes: self.payload(),
            }),
            ActionName::Talk => Action::Talk(Talk {
                bucket: self.bucket.take().unwrap_or_else(Talk::default_bucket),
                rate: self.rate.take(),
                span: self.span()?,
                payload_bytes: self.payload(),
            }),
            ActionName::EnterRooms => Action::EnterRooms(self.rooms()),
            ActionName::Speak => Action::Speak(Speak {
                rooms: self.rooms(),
                rate: self.rate()?,
                span: self.span()?,
                payload_bytes: self.payload(),
            }),
            ActionName::ReadArchive => Action::ReadArchive(ReadArchive {
                page: self.page.take().unwrap_or_else(ReadArchive::default_page),
                pages: self.pages.take().unwrap_or_default(),
                in_flight: self.in_flight(),
            }),
            ActionName::Resume => Action::Resume(Resume {
                bucket: self.bucket.take().unwrap_or_else(Talk::default_bucket),
                rate: self.rate.take(),
                payload_bytes: self.payload(),
                cut: self.cut.take().unwrap_or_default(),
                comeback: self.r#return.take().unwrap_or(Return { over: Span::default() }),
                resend: self.resend.take().unwrap_or(false),
            }),
            ActionName::Play => Action::Play(Play {
                seats: self.seats.take().unwrap_or_else(Play::default_seats),
                tick_rate: self.tick_rate.take().unwrap_or_else(Play::default_tick_rate),
                span: self.span()?,
                payload_bytes: self.payload_bytes.take().unwrap_or_else(Play::default_payload),
                ahead: self.ahead.take().unwrap_or(1),
                cut_share: self.cut_share.take().unwrap_or_default(),
                in_flight: self.in_flight(),
            }),
            ActionName::Drop => Action::Drop,
            ActionName::AwaitGone => Action::AwaitGone,
            ActionName::Churn => Action::Churn { rate: self.rate()?, span: self.span()? },
        })
    }

    fn in_flight(&mut self) -> u32 {
        self.in_flight.take().unwrap_or_else(Login::default_in_flight)
    }

    fn contacts(&mut self) -> Contacts {
        Contacts {
            contacts: self.contacts.take().unwrap_or_else(Contacts::default_contacts),
            bucket: self.bucket.take().unwrap_or_else(Contacts::default_bucket),
        }
    }

    fn rooms(&mut self) -> Rooms {
        Rooms {
            bucket: self.bucket.take().unwrap_or_else(Rooms::default_bucket),
            occupants: self.occupants.take().unwrap_or_else(Rooms::default_occupants),
            rooms: self.rooms.take().unwrap_or_else(Rooms::default_rooms),
            light: self.light.take().unwrap_or_default(),
        }
    }

    fn span(&mut self) -> Result<Span, &'static str> {
        self.r#for.take().ok_or("for")
    }

    fn topic(&mut self) -> Result<String, &'static str> {
        self.topic.take().ok_or("topic")
    }

    fn rate(&mut self) -> Result<Shape, &'static str> {
        self.rate.take().ok_or("rate")
    }

    fn payload(&mut self) -> usize {
        self.payload_bytes.take().unwrap_or_else(super::action::default_payload)
    }

    /// A key that the action does not have.
    fn left_over(&self) -> Option<&'static str> {
        let given = [
            ("rate", self.rate.is_some()),
            ("in_flight", self.in_flight.is_some()),
            ("steps", self.steps.is_some()),
            ("for", self.r#for.is_some()),
            ("topic", self.topic.is_some()),
            ("by", self.by.is_some()),
            ("items", self.items.is_some()),
            ("payload_bytes", self.payload_bytes.is_some()),
            ("audience", self.audience.is_some()),
            ("batch", self.batch.is_some()),
            ("bucket", self.bucket.is_some()),
            ("contacts", self.contacts.is_some()),
            ("page", self.page.is_some()),
            ("pages", self.pages.is_some()),
            ("cut", self.cut.is_some()),
            ("return", self.r#return.is_some()),
            ("resend", self.resend.is_some()),
            ("occupants", self.occupants.is_some()),
            ("rooms", self.rooms.is_some()),
            ("light", self.light.is_some()),
            ("seats", self.seats.is_some()),
            ("tick_rate", self.tick_rate.is_some()),
            ("ahead", self.ahead.is_some()),
            ("cut_share", self.cut_share.is_some()),
        ];
        given.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
    }
}
