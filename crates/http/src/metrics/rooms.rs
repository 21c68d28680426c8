//! The figures of rooms.

use crate::exposition::Page;
use carillon_core::shard::RoomFigures;

pub(super) fn rooms(page: &mut Page, figures: &RoomFigures) {
    let help = "Rooms in memory now: those with occupants, and those that were used lately.";
    page.gauge("carillon_rooms", help, figures.rooms);
    page.gauge("carillon_room_occupants", "Occupants of rooms (XEP-0045) now.", figures.occupants);
    page.counter("carillon_rooms_created_total", "Rooms created.", figures.created);
    page.counter("carillon_rooms_destroyed_total", "Rooms removed.", figures.destroyed);
    let help = "Times that a client entered a room.";
    page.counter("carillon_room_joins_total", help, figures.entered);
    let help = "Messages said in rooms, each counted once.";
    page.counter("carillon_room_messages_total", help, figures.messages);
    let help = "Occupants that left a room because somebody had them leave, by reason.";
    page.counters("carillon_room_removals_total", help, "reason", figures.removed.iter());
    let help = "Stanzas of clients that rooms refused, by condition (RFC 6120, section 8.3.3).";
    page.counters("carillon_room_refusals_total", help, "condition", figures.refused.iter());
    let help = "Pages of rooms' archives that clients read.";
    page.counter("carillon_room_archive_pages_total", help, figures.archive_pages);
}
