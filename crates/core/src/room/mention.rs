//! Who is mentioned in what is said in a room, and is not in it: by a reference (XEP-0372), or by name in the text.

use super::home::RoomState;
use crate::model::{RoomAffiliation, RoomKind, RoomMember, RoomRecord};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::Stanza;

impl RoomState {
    /// The members of the room's domain that a message mentions, and that are not in the room, as far as that is known here: their local parts.
    pub(super) fn mentioned(&self, record: &RoomRecord, said: &Stanza, sender: &BareJid) -> Vec<Box<str>> {
        if record.members.is_empty() {
            return Vec::new();
        }
        let mut mentioned: Vec<&RoomMember> =
            referred(said).filter_map(|jid| record.member(jid.as_str())).collect();
        if let Some(body) = said.payload.find("body", ns::CLIENT) {
            mentioned.extend(self.named_in(record, &body.element().text()));
        }
        let least = match record.config.members_only || record.kind == RoomKind::MucLight {
            true => RoomAffiliation::Member,
            false => RoomAffiliation::None,
        };
        mentioned.retain(|member| {
            let is_ours = member.jid.domain() == self.domain() && member.affiliation >= least;
            // Nobody is in a room of MUC Light.
            let is_there = self.occupants.of_account(member.jid.as_str()).next().is_some();
            is_ours && !is_there && member.jid != *sender
        });
        mentioned.sort_unstable_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
        mentioned.dedup_by(|a, b| a.jid == b.jid);
        mentioned.truncate(MENTIONED_MAX);
        mentioned.into_iter().filter_map(|member| member.jid.local().map(Box::from)).collect()
    }

    /// The members whose reserved nicks are words of a text, or whose names are after an `@`.
    fn named_in<'a>(&self, record: &'a RoomRecord, text: &str) -> Vec<&'a RoomMember> {
        let mut named = Vec::new();
        let text = text.get(..text.floor_char_boundary(TEXT_MAX)).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().take(WORDS_MAX).collect();
        for name in words.iter().filter_map(|word| word.strip_prefix('@')) {
            let name = name.trim_end_matches(|letter: char| letter.is_ascii_punctuation());
            named.extend(record.member(&[name, "@", self.domain()].concat().to_lowercase()));
        }
        if self.reserved.is_empty() {
            return named;
        }
        for words in (1..=NICK_WORDS_MAX).flat_map(|count| words.windows(count)) {
            let words = words.join(" ");
            let nick = words.trim_start_matches(['@', '(', '"']);
            let bare = nick.trim_end_matches(|letter: char| letter.is_ascii_punctuation());
            named.extend(self.reserving(record, nick));
            if bare.len() < nick.len() {
                named.extend(self.reserving(record, bare));
            }
        }
        named
    }

    /// Those who have reserved a nick.
    fn reserving<'a>(&self, record: &'a RoomRecord, nick: &str) -> Vec<&'a RoomMember> {
        let member = |at: &u32| record.members.get(*at as usize);
        let first = self.reserved.partition_point(|at| member(at).is_some_and(|of| *of.nick < *nick));
        let same = self.reserved.iter().skip(first).map_while(member).take_while(|of| *of.nick == *nick);
        same.take(MENTIONED_MAX).collect()
    }
}

/// The accounts that references of a message are to.
fn referred(said: &Stanza) -> impl Iterator<Item = BareJid> {
    let references = said.payload.children().filter(|child| child.ns() == REFERENCES);
    references.take(MENTIONED_MAX).filter_map(|child| {
        let reference = child.element();
        let is_mention = reference.is("reference", REFERENCES) && reference.attr("type") == Some("mention");
        let uri = reference.attr("uri").filter(|_| is_mention)?;
        Jid::new(uri.strip_prefix("xmpp:")?).ok().map(|jid| jid.bare())
    })
}

const REFERENCES: &str = "urn:xmpp:reference:0";
/// Accounts that a message mentions.
const MENTIONED_MAX: usize = 20;
/// How much of a text is looked at, in bytes and in words, and the most words of a nick.
const TEXT_MAX: usize = 2048;
const WORDS_MAX: usize = 128;
const NICK_WORDS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArchiveId, DomainId, RoomConfig, RoomId, UnixMs};
    use carillon_wire::stanza::MessageType;
    use carillon_wire::xml::Element;

    /// A room with these members, by name and reserved nick, in which nobody is.
    fn room(members: &[(&str, RoomAffiliation, &str)]) -> (RoomState, RoomRecord) {
        let jid = |local: &str| BareJid::new(&format!("{local}@d")).expect("an address");
        let member = |(local, affiliation, nick): &(&str, RoomAffiliation, &str)| RoomMember {
            nick: (*nick).into(),
            ..RoomMember::new(jid(local), *affiliation)
        };
        let mut members: Vec<RoomMember> = members.iter().map(member).collect();
        members.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
        let mut reserved: Vec<u32> = (0..members.len() as u32).collect();
        reserved.retain(|at| !members[*at as usize].nick.is_empty());
        reserved.sort_by_key(|at| members[*at as usize].nick.clone());
        let record = RoomRecord {
            id: RoomId(1),
            domain: DomainId(1),
            kind: RoomKind::Muc,
            name: "tea".into(),
            config: RoomConfig::default(),
            members,
            subject: None,
            created: UnixMs(0),
            version: 0,
            newest: ArchiveId(0),
            photos: Box::default(),
        };
        let state = RoomState {
            reserved: reserved.into(),
            ..RoomState::new(BareJid::new("tea@rooms.d").expect("an address"))
        };
        (state, record)
    }

    fn mentioned(room: &(RoomState, RoomRecord), body: &str) -> Vec<Box<str>> {
        let mut said = Stanza::message(MessageType::Groupchat);
        said.payload.push_element(&Element::new("body", ns::CLIENT).with_text(body));
        let bob = BareJid::new("bob@d").expect("an address");
        room.0.mentioned(&room.1, &said, &bob)
    }

    #[test]
    fn members_are_mentioned_by_their_nicks_and_names() {
        use RoomAffiliation::{Member, None, Outcast, Owner};
        let members = [
            ("ali", Member, "Ali Baba"),
            ("bob", Owner, "Bob"),
            ("carol", None, "Carol"),
            ("dan", Member, ""),
            ("eve", Outcast, "Eve"),
        ];
        let mut tea = room(&members);
        for (body, whom) in [
            ("", &[][..]),
            ("Ali, Baba and the others: dan, carol", &[]),
            ("Ali Baba: come", &["ali"]),
            ("and you, @Ali Baba?", &["ali"]),
            ("Carol! Ali Baba!!", &["ali", "carol"]),
            ("Bob and Eve and @eve", &[]),
            ("(@dan), @Ali...", &["ali"]),
            ("hi @dan", &["dan"]),
            ("CaroL", &[]),
        ] {
            assert_eq!(
                mentioned(&tea, body),
                whom.iter().map(|name| Box::from(*name)).collect::<Vec<_>>(),
                "{body}"
            );
        }
        for (members_only, kind) in [(true, RoomKind::Muc), (false, RoomKind::MucLight)] {
            (tea.1.config.members_only, tea.1.kind) = (members_only, kind);
            assert_eq!(mentioned(&tea, "Carol! Ali Baba!!"), ["ali".into()] as [Box<str>; 1]);
            assert_eq!(mentioned(&tea, "@dan, @carol"), ["dan".into()] as [Box<str>; 1]);
        }
    }

    #[test]
    fn no_more_is_looked_at_than_may_be() {
        let names: Vec<String> = (100..200).map(|n| format!("m{n}")).collect();
        let members: Vec<_> = names.iter().map(|name| (&**name, RoomAffiliation::Member, &**name)).collect();
        let tea = room(&members);
        assert_eq!(mentioned(&tea, &names.join(" ")).len(), MENTIONED_MAX);
        let far = format!("{} m100", "word ".repeat(WORDS_MAX));
        assert!(mentioned(&tea, &far).is_empty());
        assert!(mentioned(&tea, &format!("{} m100", "\u{1f514}".repeat(1000))).is_empty());
    }
}
