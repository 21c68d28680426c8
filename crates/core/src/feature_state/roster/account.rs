//! What is known of an account at its home: its contacts.

use crate::form::{Clock, decode, encode};
use crate::model::{Contact, Generation, Roster, Standing};
use bytes::Bytes;
use carillon_wire::jid::BareJid;

/// The contacts of an account, packed, by their addresses: an account with a few takes a few hundred bytes, one with none eight.
#[derive(Debug, Default)]
pub struct Contacts(Option<Box<Packed>>);

#[derive(Debug, Default)]
struct Packed {
    version: Generation,
    /// One entry after the other: its length (4 bytes), the standing (1), whether it is listed (1), the length of the address (2), the
    /// address, and in the form of `core::form` the name, the groups and the request.
    entries: Vec<u8>,
    /// Where each of them starts.
    starts: Vec<u32>,
}

/// A contact as it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedContact<'a> {
    /// Its address.
    pub(crate) jid: &'a str,
    /// Where its subscriptions stand.
    pub(crate) standing: Standing,
    pub(crate) is_listed: bool,
    rest: &'a [u8],
}

/// What stands in front of the address.
const HEAD: usize = 8;

impl Contacts {
    /// A roster that was read.
    pub(crate) fn of(roster: &Roster) -> Contacts {
        if roster.version == Generation::default() && roster.contacts.is_empty() {
            return Contacts::default();
        }
        let mut contacts: Vec<&Contact> = roster.contacts.iter().collect();
        contacts.sort_unstable_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
        let mut packed = Packed { version: roster.version, ..Packed::default() };
        contacts.into_iter().for_each(|contact| packed.push(contact));
        packed.shrink()
    }

    /// Bytes that it takes beside its own size.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |packed| packed.bytes())
    }

    /// The version of the roster.
    pub(crate) fn version(&self) -> Generation {
        self.0.as_ref().map_or(Generation::default(), |packed| packed.version)
    }

    /// All contacts, those that are not listed, too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PackedContact<'_>> {
        let mut rest = self.0.as_ref().map_or(&[][..], |packed| &packed.entries);
        std::iter::from_fn(move || {
            let (entry, behind) = split(rest)?;
            rest = behind;
            Some(entry)
        })
    }

    /// The contact with this address.
    pub(crate) fn get(&self, jid: &str) -> Option<PackedContact<'_>> {
        let packed = self.0.as_ref()?;
        let place = packed.place(jid).ok()?;
        packed.entry(*packed.starts.get(place)?)
    }

    /// Has the roster say this of a contact from this version on.
    pub(crate) fn put(&mut self, jid: &BareJid, contact: Option<&Contact>, version: Generation) {
        let mut packed = Packed { version, ..Packed::default() };
        let is_before = |entry: &PackedContact<'_>| entry.jid < jid.as_str();
        self.iter().take_while(is_before).for_each(|entry| packed.push_entry(entry));
        contact.into_iter().for_each(|contact| packed.push(contact));
        let behind = self.iter().skip_while(is_before).filter(|entry| entry.jid != jid.as_str());
        behind.for_each(|entry| packed.push_entry(entry));
        *self = packed.shrink();
    }
}

impl Packed {
    fn bytes(&self) -> usize {
        size_of::<Packed>() + self.entries.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    /// Where the contact with this address is, or would be.
    fn place(&self, jid: &str) -> Result<usize, usize> {
        self.starts.binary_search_by(|start| self.entry(*start).map_or("", |entry| entry.jid).cmp(jid))
    }

    fn entry(&self, start: u32) -> Option<PackedContact<'_>> {
        Some(split(self.entries.get(start as usize..)?)?.0)
    }

    fn push(&mut self, contact: &Contact) {
        let Contact { jid, name, groups, standing, is_listed, request } = contact;
        let rest = encode(&(name.clone(), groups.clone(), request.clone()), 0);
        self.push_entry(PackedContact {
            jid: jid.as_str(),
            standing: *standing,
            is_listed: *is_listed,
            rest: &rest,
        });
    }

    /// Appends an entry; its address is behind those of all others.
    fn push_entry(&mut self, entry: PackedContact<'_>) {
        // A roster has far fewer bytes: `limits.roster_bytes`.
        self.starts.push(self.entries.len() as u32);
        entry.append(&mut self.entries);
    }

    fn shrink(mut self) -> Contacts {
        self.entries.shrink_to_fit();
        self.starts.shrink_to_fit();
        Contacts(Some(Box::new(self)))
    }
}

impl PackedContact<'_> {
    /// The address.
    pub(crate) fn address(&self) -> Option<BareJid> {
        BareJid::new(self.jid).ok()
    }

    /// Names its groups.
    pub(crate) fn each_group(&self, each: &mut dyn FnMut(&str)) {
        self.contact().iter().flat_map(|contact| &contact.groups).for_each(|group| each(group));
    }

    /// The whole contact.
    pub(crate) fn contact(&self) -> Option<Contact> {
        let (name, groups, request): (Box<str>, Vec<Box<str>>, Option<Bytes>) =
            decode(self.rest, Clock::default()).ok()?;
        let (jid, standing, is_listed) = (self.address()?, self.standing, self.is_listed);
        Some(Contact { jid, name, groups, standing, is_listed, request })
    }

    fn append(&self, out: &mut Vec<u8>) {
        let length = HEAD + self.jid.len() + self.rest.len();
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[self.standing.bits(), u8::from(self.is_listed)]);
        out.extend_from_slice(&(self.jid.len() as u16).to_le_bytes());
        out.extend_from_slice(self.jid.as_bytes());
        out.extend_from_slice(self.rest);
    }
}

/// The first entry, and what follows it.
fn split(entries: &[u8]) -> Option<(PackedContact<'_>, &[u8])> {
    let length = u32::from_le_bytes(*entries.first_chunk()?) as usize;
    let (entry, behind) = entries.split_at_checked(length)?;
    let [_, _, _, _, standing, is_listed, low, high] = *entry.first_chunk::<HEAD>()?;
    let (jid, rest) = entry.get(HEAD..)?.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    let jid = std::str::from_utf8(jid).ok()?;
    Some((
        PackedContact { jid, standing: Standing::of_bits(standing), is_listed: is_listed != 0, rest },
        behind,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(n: u8) -> Contact {
        let jid = BareJid::new(&format!("c{n}@example.org")).unwrap();
        let groups = vec!["Friends".into(), "Läufer".into()];
        let standing = Standing::of_bits(n % 32);
        let request = n.is_multiple_of(2).then(|| Bytes::from_static(b"<status>hi</status>"));
        Contact {
            name: format!("No {n}").into(),
            groups,
            standing,
            is_listed: !n.is_multiple_of(3),
            request,
            ..Contact::new(jid)
        }
    }

    #[test]
    fn contacts_are_unpacked_as_they_were() {
        let mut contacts: Vec<Contact> = (0..40).map(contact).collect();
        contacts.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
        let mut packed = Contacts::of(&Roster { version: Generation(7), contacts: contacts.clone() });
        let unpacked =
            |packed: &Contacts| packed.iter().map(|entry| entry.contact().unwrap()).collect::<Vec<_>>();
        assert_eq!((unpacked(&packed), packed.version()), (contacts.clone(), Generation(7)));
        assert_eq!(packed.get("c5@example.org").unwrap().contact(), Some(contact(5)));
        assert!(packed.get("c99@example.org").is_none());
        let other = Contact { name: "another".into(), ..contact(5) };
        packed.put(&other.jid, Some(&other), Generation(8));
        packed.put(&contact(6).jid, None, Generation(9));
        packed.put(&contact(99).jid, Some(&contact(99)), Generation(9));
        let expected = contacts.into_iter().filter(|c| c.jid != contact(6).jid);
        let expected = expected.map(|c| if c.jid == other.jid { other.clone() } else { c });
        let mut expected: Vec<Contact> = expected.chain([contact(99)]).collect();
        expected.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
        assert_eq!(unpacked(&packed), expected);
        for entry in packed.iter() {
            assert_eq!(packed.get(entry.jid), Some(entry));
        }
        assert!(packed.get("c6@example.org").is_none() && packed.get("").is_none());
        assert_eq!(packed.version(), Generation(9));
    }

    #[test]
    fn a_contact_takes_few_bytes() {
        let contacts = (0..20).map(|n| Contact {
            standing: Standing { to: true, from: true, ..Standing::default() },
            is_listed: true,
            ..Contact::new(BareJid::new(&format!("player{n}@example.org")).unwrap())
        });
        let packed = Contacts::of(&Roster { version: Generation(20), contacts: contacts.collect() });
        assert!(packed.bytes() < 20 * 45, "{} bytes for 20 contacts", packed.bytes());
        assert_eq!(size_of::<Contacts>(), 8);
        assert_eq!(Contacts::default().bytes(), 0);
    }
}
