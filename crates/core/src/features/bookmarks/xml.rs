//! Bookmarks as elements: the list of XEP-0048, and the items of XEP-0402.

use crate::model::Map;
use carillon_wire::jid::Jid;
use carillon_wire::xml::Element;

/// The namespace of the items, and the name of their node.
pub(super) const NODE: &str = "urn:xmpp:bookmarks:1";
/// The namespace of the list, and the name of its node.
pub(super) const LIST: &str = "storage:bookmarks";

/// What both forms say of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bookmark {
    /// The room's address.
    pub(super) room: Box<str>,
    name: Option<Box<str>>,
    autojoin: bool,
    nick: Option<Box<str>>,
    password: Option<Box<str>>,
}

/// A list.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    /// The rooms in it, each once.
    pub(super) bookmarks: Vec<Bookmark>,
    /// What it has besides.
    pub(super) rest: Vec<Element>,
}

impl Bookmark {
    /// Reads an element of the list, or the payload of an item, whose namespace is `ns`.
    fn read(room: &str, conference: &Element, ns: &str) -> Bookmark {
        let text = |name| {
            let text = conference.child(name, ns).map(Element::text);
            text.filter(|text| !text.is_empty()).map(Into::into)
        };
        Bookmark {
            room: room.into(),
            name: conference.attr("name").map(Into::into),
            autojoin: matches!(conference.attr("autojoin"), Some("true" | "1")),
            nick: text("nick"),
            password: text("password"),
        }
    }

    /// Reads an item; none where it is about no room.
    pub(super) fn of_item(id: &str, payload: &Element) -> Option<Bookmark> {
        payload.is("conference", NODE).then(|| Bookmark::read(id, payload, NODE))
    }

    /// Reads an element of the list; none where that has no address of a room.
    fn of_list(conference: &Element) -> Option<Bookmark> {
        let room = conference.attr("jid").filter(|_| conference.is("conference", LIST))?;
        let room = Jid::new(room).ok().filter(|jid| jid.local().is_some())?;
        Some(Bookmark::read(room.bare_str(), conference, LIST))
    }

    fn write(&self, mut conference: Element, ns: &str) -> Element {
        if let Some(name) = &self.name {
            conference.set_attr("name", &**name);
        }
        if self.autojoin {
            conference.set_attr("autojoin", "true");
        }
        for (name, text) in [("nick", &self.nick), ("password", &self.password)] {
            if let Some(text) = text {
                conference.push(Element::new(name, ns).with_text(&**text));
            }
        }
        conference
    }

    fn to_list(&self) -> Element {
        self.write(Element::new("conference", LIST).with_attr("jid", &*self.room), LIST)
    }

    /// The payload of its item. What the list cannot say, such as `<extensions/>`, is as it `was`.
    pub(super) fn to_item(&self, was: Option<&Element>) -> Element {
        let mut conference = self.write(Element::new("conference", NODE), NODE);
        let is_said = |child: &Element| child.is("nick", NODE) || child.is("password", NODE);
        for child in was.into_iter().flat_map(Element::children).filter(|child| !is_said(child)) {
            conference.push(child.clone());
        }
        conference
    }
}

impl List {
    /// Reads a list. What is no room that could be joined is among the rest.
    pub(super) fn of(storage: &Element) -> List {
        let mut list = List::default();
        let mut rooms: Map<Box<str>, ()> = Map::default();
        for child in storage.children() {
            match Bookmark::of_list(child) {
                Some(bookmark) if rooms.contains_key(&bookmark.room) => {}
                Some(bookmark) => {
                    rooms.insert(bookmark.room.clone(), ());
                    list.bookmarks.push(bookmark);
                }
                None => list.rest.push(child.clone()),
            }
        }
        list
    }

    /// Adds what another list has and this one has not.
    pub(super) fn adopt(&mut self, other: List) {
        let rooms: Map<Box<str>, ()> = self.bookmarks.iter().map(|known| (known.room.clone(), ())).collect();
        self.bookmarks.extend(other.bookmarks.into_iter().filter(|one| !rooms.contains_key(&one.room)));
        self.rest.extend(other.rest);
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.bookmarks.is_empty() && self.rest.is_empty()
    }

    /// The whole list.
    pub(super) fn to_element(&self) -> Element {
        let mut storage = self.to_rest();
        self.bookmarks.iter().for_each(|bookmark| storage.push(bookmark.to_list()));
        storage
    }

    /// What is not kept as items.
    pub(super) fn to_rest(&self) -> Element {
        let mut storage = Element::new("storage", LIST);
        self.rest.iter().for_each(|child| storage.push(child.clone()));
        storage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(xml: &str) -> Element {
        Element::parse(xml.as_bytes(), "").expect("XML")
    }

    #[test]
    fn a_list_has_each_room_once_and_keeps_what_is_no_room() {
        let list = List::of(&parsed(
            "<storage xmlns='storage:bookmarks'><url name='Page' url='https://x.example'/><conference jid='A@X.example/r' autojoin='1'><nick>n</nick>\
             <password>p</password></conference><conference jid='a@x.example'/><conference jid='@'/><conference jid='x.example'/></storage>",
        ));
        assert_eq!(list.bookmarks.len(), 1);
        assert_eq!(list.bookmarks[0].room.as_ref(), "a@x.example");
        assert_eq!(list.rest.len(), 3);
        assert_eq!(
            list.to_element().to_string_in(""),
            "<storage xmlns='storage:bookmarks'><url name='Page' url='https://x.example'/><conference jid='@'/><conference jid='x.example'/>\
             <conference jid='a@x.example' autojoin='true'><nick>n</nick><password>p</password></conference></storage>"
        );
    }

    #[test]
    fn what_a_list_cannot_say_stays_with_the_item() {
        let was = parsed(
            "<conference xmlns='urn:xmpp:bookmarks:1' name='Old' autojoin='true'><nick>n</nick><extensions><e xmlns='urn:e'/></extensions></conference>",
        );
        let list = List::of(&parsed(
            "<storage xmlns='storage:bookmarks'><conference jid='a@x' name='New'/></storage>",
        ));
        assert_eq!(
            list.bookmarks[0].to_item(Some(&was)).to_string_in(""),
            "<conference xmlns='urn:xmpp:bookmarks:1' name='New'><extensions><e xmlns='urn:e'/></extensions></conference>"
        );
        assert_ne!(Bookmark::of_item("a@x", &was).as_ref(), Some(&list.bookmarks[0]));
        let same = list.bookmarks[0].to_item(None);
        assert_eq!(Bookmark::of_item("a@x", &same).as_ref(), Some(&list.bookmarks[0]));
    }
}
