//! Who is shown to whom. In a large room, above `rooms.presence_max` occupants, those who enter are shown to nobody, unless they moderate, and are shown those
//! alone who are shown to all: so what it costs that somebody enters does not grow with the room. Whoever was shown that somebody is in the room is told
//! when that one leaves. When the room has become smaller everybody is shown to everybody.

use super::enter::variants;
use super::home::{RoomState, give_clients};
use super::occupants::{Occupant, Shown};
use super::xml::user::{self, Said};
use crate::message::RoomStanza;
use crate::model::RoomRecord;
use crate::session::Cx;
use carillon_wire::jid::Jid;
use std::sync::Arc;

impl RoomState {
    /// Somebody is about to enter under this nick. Whether the room is large with it.
    pub(super) fn note_entry(&mut self, nick: &str, cx: &Cx<'_>) -> bool {
        let occupants = self.occupants.len() + usize::from(self.occupants.named(nick).is_none());
        self.is_large |= occupants > cx.shard.settings.limits.room_presence as usize;
        self.is_large
    }

    /// Somebody has left. When the room is not large any more everybody is shown to everybody: that is so a quarter below the bound, so that a room
    /// near it does not tell it again and again.
    pub(super) fn note_leave(&mut self, record: &RoomRecord, cx: &mut Cx<'_>) {
        let max = cx.shard.settings.limits.room_presence as usize;
        if !self.is_large || self.occupants.len() > max - max / 4 {
            return;
        }
        self.is_large = false;
        let revealed = self.occupants.show_everybody(record.config.presence_broadcast);
        for occupant in revealed.unseen.iter().filter_map(|nick| self.occupants.named(nick)) {
            let Some(shown) = self.presence_of(record, occupant) else { continue };
            self.give_to(Shown::All, &[shown], &occupant.seats(), cx);
        }
        let to: Vec<_> = revealed.to.into_iter().map(|(place, list)| (place, Arc::new(list))).collect();
        for occupant in revealed.seen.iter().filter_map(|nick| self.occupants.named(nick)) {
            let Some(shown) = self.presence_of(record, occupant) else { continue };
            for (place, list) in &to {
                give_clients(*place, list.clone(), std::slice::from_ref(&shown), &occupant.seats(), cx);
            }
        }
    }

    /// An occupant has this role now, or has entered with it, or the room is configured otherwise: it is shown to more, or to nobody any more, who are told
    /// so as if it had left.
    pub(super) fn note_role(&mut self, record: &RoomRecord, nick: &str, cx: &mut Cx<'_>) {
        let Some(occupant) = self.occupants.named(nick) else { return };
        if record.config.presence_broadcast.shows(occupant.role) {
            if !self.is_large {
                self.occupants.show(nick, Shown::Watchers);
            }
            if self.occupants.named(nick).is_some_and(Occupant::is_moderator) {
                self.occupants.show(nick, Shown::All);
            }
        } else if occupant.shown > Shown::Nobody {
            if let Some(of) = occupant.clients.first() {
                let gone = |shows| user::unavailable(occupant, of, shows, &Said::default());
                self.give_to(occupant.shown, &[variants(record, gone)], &occupant.seats(), cx);
            }
            self.occupants.hide(nick);
        }
    }

    /// The room shows the presence of other roles now.
    pub(super) fn note_broadcast(&mut self, record: &RoomRecord, cx: &mut Cx<'_>) {
        let nicks: Vec<Box<str>> = self.occupants.iter().map(|occupant| occupant.nick().into()).collect();
        for nick in nicks {
            let was_shown = self.occupants.named(&nick).map(|occupant| occupant.shown);
            self.note_role(record, &nick, cx);
            let Some(occupant) = self.occupants.named(&nick) else { continue };
            if was_shown == Some(Shown::Nobody)
                && occupant.shown > Shown::Nobody
                && let Some(shown) = self.presence_of(record, occupant)
            {
                self.give_to(occupant.shown, &[shown], &occupant.seats(), cx);
            }
        }
    }

    /// Tells the others to whom a client is shown of its presence.
    pub(super) fn tell_others(&self, record: &RoomRecord, client: &Jid, said: &Said<'_>, cx: &mut Cx<'_>) {
        let occupant = self.occupants.of(client).filter(|occupant| occupant.shown > Shown::Nobody);
        let Some(occupant) = occupant else { return };
        let Some(of) = occupant.clients.iter().find(|of| of.jid == *client) else { return };
        let shown = variants(record, |shows| user::presence(occupant, of, shows, said));
        self.give_to(occupant.shown, &[shown], &occupant.seats(), cx);
    }

    /// Adds the presences that one who enters is shown.
    pub(super) fn push_shown(
        &self,
        record: &RoomRecord,
        entering: &Occupant,
        watches: bool,
        stanzas: &mut Vec<RoomStanza>,
    ) {
        let mut push = |other: &Occupant| {
            if other.shown > Shown::Nobody && other.address != entering.address {
                stanzas.extend(self.presence_of(record, other));
            }
        };
        match watches {
            true => self.occupants.iter().for_each(&mut push),
            false => self.occupants.shown_to_all().for_each(&mut push),
        }
    }

    /// The presence of an occupant, as it is shown to others. In a room of many it is made once, and kept until it changes.
    fn presence_of(&self, record: &RoomRecord, occupant: &Occupant) -> Option<RoomStanza> {
        let of = occupant.clients.first()?;
        let make = || variants(record, |shows| user::presence(occupant, of, shows, &Said::default()));
        Some(match self.occupants.len() >= SNAPSHOTS_MIN {
            true => RoomStanza::clone(occupant.snapshot.get_or_init(|| Box::new(make()))),
            false => make(),
        })
    }
}

/// Occupants of a room that keeps their presences as they are shown: in a smaller one they would take more than they save.
const SNAPSHOTS_MIN: usize = 16;
