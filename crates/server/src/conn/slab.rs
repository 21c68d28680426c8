//! The connections of a shard, in pages. A page is freed when its last connection is gone, so that a mass disconnect
//! returns memory, and a mass connect never copies a large table.

use super::connection::Conn;
use carillon_core::model::ConnId;
use std::collections::BTreeSet;

/// The connections of a shard.
#[derive(Default)]
pub(crate) struct Slab {
    pages: Vec<Option<Page>>,
    /// Pages with room. The lowest is filled first, so that the others can become empty.
    with_room: BTreeSet<u32>,
    generation: u32,
    len: usize,
}

struct Page {
    entries: Box<[Entry]>,
    free: u16,
    used: u16,
}

/// A place for a connection.
struct Entry {
    conn: Option<Conn>,
    /// The generation of its connection, or of the last one.
    generation: u32,
    /// While it is free: the next free entry of the page.
    next_free: u16,
}

impl Slab {
    /// Adds a connection and names it.
    pub(crate) fn insert(&mut self, conn: Conn) -> ConnId {
        let id = self.reserve();
        if let Some(entry) = self.entry(id) {
            entry.conn = Some(conn);
        }
        id
    }

    /// Names a connection whose socket is elsewhere.
    pub(crate) fn reserve(&mut self) -> ConnId {
        let at = self.with_room.first().copied().unwrap_or_else(|| self.add_page());
        // One sequence for all slots: a name is not reused before 2³² others were used, even if its page was freed.
        self.generation = if self.generation >= GENERATION_MAX { 0 } else { self.generation + 1 };
        let generation = self.generation;
        let page = self.pages[at as usize].as_mut().expect("`with_room` names present pages");
        let index = page.free;
        let entry = &mut page.entries[usize::from(index)];
        entry.generation = generation;
        page.free = entry.next_free;
        page.used += 1;
        if usize::from(page.used) == PAGE {
            self.with_room.remove(&at);
        }
        self.len += 1;
        ConnId { slot: at * PAGE as u32 + u32::from(index), generation }
    }

    /// Adds a connection that had this name in the process before. It comes back if another has its place.
    pub(crate) fn insert_at(&mut self, id: ConnId, conn: Conn) -> Result<(), Conn> {
        let (at, index) = place(id.slot);
        if id.slot >= KEPT_SLOTS_MAX || id.generation > GENERATION_MAX {
            return Err(conn);
        }
        while self.pages.len() <= at {
            self.pages.push(None);
        }
        if self.pages[at].is_none() {
            self.pages[at] = Some(Page::empty());
            self.with_room.insert(at as u32);
        }
        let page = self.pages[at].as_mut().expect("it was made above");
        if !page.take_free(index as u16) {
            return Err(conn);
        }
        page.entries[index].generation = id.generation;
        page.entries[index].conn = Some(conn);
        page.used += 1;
        if usize::from(page.used) == PAGE {
            self.with_room.remove(&(at as u32));
        }
        self.len += 1;
        Ok(())
    }

    /// The generation of the name that was given last.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Gives no name that was given before this generation was reached.
    pub(crate) fn go_on_from(&mut self, generation: u32) {
        self.generation = generation;
    }

    /// The connection with this name, if it is still there.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.entry(id)?.conn.as_mut()
    }

    fn entry(&mut self, id: ConnId) -> Option<&mut Entry> {
        let (at, index) = place(id.slot);
        let entry = self.pages.get_mut(at)?.as_mut()?.entries.get_mut(index)?;
        (entry.generation == id.generation).then_some(entry)
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn> {
        let conn = self.entry(id)?.conn.take()?;
        self.release(id);
        Some(conn)
    }

    /// A name that was reserved is not used any longer.
    pub(crate) fn release(&mut self, id: ConnId) {
        let (at, index) = place(id.slot);
        let Some(page) = self.pages.get_mut(at).and_then(Option::as_mut) else { return };
        page.entries[index].next_free = page.free;
        page.free = index as u16;
        page.used -= 1;
        self.len -= 1;
        match page.used {
            0 => self.drop_page(at),
            _ => {
                self.with_room.insert(at as u32);
            }
        }
    }

    /// The names of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        let pages = self.pages.iter().enumerate().filter_map(|(at, page)| Some((at, page.as_ref()?)));
        let entries = pages.flat_map(|(at, page)| page.entries.iter().enumerate().map(move |e| (at, e)));
        entries
            .filter(|(_, (_, entry))| entry.conn.is_some())
            .map(|(at, (index, entry))| ConnId {
                slot: (at * PAGE + index) as u32,
                generation: entry.generation,
            })
            .collect()
    }

    /// Pages in use.
    #[cfg(test)]
    pub(super) fn pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }

    fn add_page(&mut self) -> u32 {
        let page = Page::empty();
        let vacant = self.pages.iter().position(Option::is_none);
        let at = vacant.unwrap_or_else(|| {
            self.pages.push(None);
            self.pages.len() - 1
        });
        self.pages[at] = Some(page);
        self.with_room.insert(at as u32);
        at as u32
    }

    fn drop_page(&mut self, at: usize) {
        // The last page stays, so that a single connection that comes and goes costs no allocation.
        if self.len == 0 && self.pages.iter().flatten().count() == 1 {
            self.with_room.insert(at as u32);
            return;
        }
        self.pages[at] = None;
        self.with_room.remove(&(at as u32));
        while self.pages.last().is_some_and(Option::is_none) {
            self.pages.pop();
        }
    }
}

impl Page {
    fn empty() -> Page {
        // Built in place: a page built on the stack would enlarge the thread's stack for good.
        let entries =
            (1..=PAGE as u16).map(|next_free| Entry { conn: None, generation: 0, next_free }).collect();
        Page { entries, free: 0, used: 0 }
    }

    /// Takes an entry out of the list of those that are free. Whether it was there.
    fn take_free(&mut self, index: u16) -> bool {
        let next = |entries: &[Entry], at: u16| entries.get(usize::from(at)).map(|entry| entry.next_free);
        if self.free == index {
            let Some(next) = next(&self.entries, index) else { return false };
            self.free = next;
            return true;
        }
        let mut before = self.free;
        while let Some(at) = next(&self.entries, before) {
            if at == index {
                let Some(after) = next(&self.entries, index) else { return false };
                self.entries[usize::from(before)].next_free = after;
                return true;
            }
            before = at;
        }
        false
    }
}

fn place(slot: u32) -> (usize, usize) {
    (slot as usize / PAGE, slot as usize % PAGE)
}

/// Connections per page, of about 100 KiB.
const PAGE: usize = if cfg!(test) { 64 } else { 1024 };
/// A name with a higher slot is not kept, so that nothing that is read makes the table grow beyond that.
const KEPT_SLOTS_MAX: u32 = 1 << 24;
/// Higher generations name listeners and the waker (as tokens of the poll).
const GENERATION_MAX: u32 = u32::MAX - 1;
