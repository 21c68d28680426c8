//! What every [`Store`] must pass.
//!
//! A [`Case`] gets a store with nothing in it and panics where the store does not do what the port promises. A
//! [`Lasting`] case has two halves, with the store closed and opened in between. An implementation's tests are a loop
//! over [`CASES`] and [`LASTING`]; `tests/sqlite.rs` shows one. Stores that share a database also pass [`shared::CASES`], and [`CASES`] with
//! their questions by turns ([`shared::ByTurns`]).

mod accounts;
mod activity;
mod acts;
mod again;
mod archives;
mod blocklists;
mod broadcasts;
pub mod bus;
mod cells;
pub mod claims;
mod domains;
mod endpoints;
mod ends;
mod events;
mod ground;
mod idempotency;
mod inbox;
mod invitations;
mod items;
mod keys;
mod lasting;
mod leases;
mod links;
mod listing;
mod logins;
pub mod members;
mod modules;
mod names;
mod nodes;
pub mod nothing_left;
mod notifications;
mod offline;
mod parked;
mod private;
mod push;
pub mod queue;
mod removals;
mod room_events;
mod rooms;
mod rosters;
mod schedule;
pub mod session_log;
pub mod shared;
mod subscriptions;
mod together;
mod topics;
mod uploads;
mod vcards;
mod webhooks;

use carillon_core::model::DomainId;
use carillon_core::ports::{Ask, Store};

/// One thing that every store must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its module and function.
    pub name: &'static str,
    /// Asks a store that has nothing in it, and panics when it does not do what it must.
    pub run: fn(&dyn Store),
}

/// One thing that every store must still know after it was closed and opened again.
#[derive(Clone, Copy)]
pub struct Lasting {
    /// Its module and function.
    pub name: &'static str,
    /// Writes to a store that has nothing in it.
    pub write: fn(&dyn Store),
    /// Finds it again.
    pub check: fn(&dyn Store),
}

macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        &[$($(Case { name: concat!(stringify!($module), "::", stringify!($case)), run: $module::$case }),+),+]
    };
}

/// Every case, by what it is about.
pub const CASES: &[Case] = cases! {
    domains: are_measured_in_pages, are_listed_by_name, are_changed_by_putting_them_again, are_changed_unless_somebody_else_was_first, that_are_missing, take_all_along,
        leave_others_alone;
    accounts: are_created_once, need_a_domain, are_imported_and_replaced, get_other_keys, are_disabled_and_enabled,
        have_tokens_taken_back,
        are_described, are_listed_in_pages, that_are_deleted_take_all_along, that_are_deleted_leave_bans,
        of_the_same_name_in_two_domains, are_never_numbered_twice, are_as_many_as_the_domain_may_have;
    logins: of_nobody, hold_keys_and_state, hold_topics_by_id_with_last_items, share_items,
        hold_what_was_asked_for, say_whether_notifications_wait, say_whether_messages_wait,
        have_a_higher_generation_after_each_change, have_a_generation_of_their_own, of_many_at_once;
    topics: are_created_once, need_a_domain, are_described, are_listed_in_pages, are_configured,
        lose_items_over_a_new_bound, lose_items_over_a_new_bound_in_parts, are_deleted_in_parts, hold_affiliations_by_jid, show_where_one_stands, are_deleted_with_all,
        are_bounded_for_their_owner, are_as_many_as_the_domain_may_have;
    subscriptions: are_made_once, need_account_and_topic, give_the_last_item, end_once, are_listed_by_name,
        are_listed_by_jid_in_pages,
        are_bounded_for_their_account;
    items: are_kept_newest_first, replace_those_of_their_id, are_bounded, not_kept_are_only_numbered,
        are_found_by_id, have_ids_of_any_length, come_page_by_page, are_bounded_by_bytes, are_retracted, are_purged, are_purged_in_parts, are_bounded_in_bytes,
        have_ever_higher_revisions,
        show_every_change_by_the_revision, are_seen_in_the_order_of_their_revisions, of_no_topic;
    notifications: are_stored_and_traced, need_an_account, are_stored_once, wait_in_delivery_order,
        are_handed_out_in_pages, are_handed_out_in_pages_of_bytes, leave_out_what_is_excepted, replace_those_of_their_key, leave_sent_ones,
        are_bounded, carry_json_and_xml, are_for_the_client_that_they_name, that_expired_are_left_out,
        that_have_not_ended_are_read_by_their_ids;
    ends: are_traced, happen_once, of_what_is_not_there, note_when_it_was_sent, by_cancelling, by_expiry,
        are_forgotten, come_in_pages, drop_the_payload;
    events: tell_how_notifications_ended, are_of_a_domain_and_of_states, come_in_pages, are_forgotten, are_numbered_in_the_order_of_commits;
    room_events: tell_what_happened, of_what_was_not_done_are_none, of_messages_that_are_gone_tell_nothing_of_their_contents, are_given_to_who_wants_them,
        are_numbered_with_those_of_notifications, of_large_messages_come_in_pages, go_with_their_domain, are_forgotten,
        tell_that_members_are_removed;
    listing: is_newest_first, says_what_a_trace_says, is_of_an_account, is_of_a_domain, is_of_states, is_of_a_sender,
        is_of_a_time, comes_in_pages, finds_what_is_rare, is_whole_when_they_end_in_any_order;
    schedule: hands_out_what_is_due, takes_its_place_when_it_is_handed_over, for_who_is_there_waits_for_nobody_else, a_claim_is_one_nodes, what_was_not_handed_over_is_due_again,
        comes_in_pages, comes_in_pages_of_bytes, leaves_out_what_expired, is_bounded_and_collapsed, can_be_cancelled;
    offline: messages_come_back_in_order, messages_come_in_pages, messages_come_in_pages_of_bytes, messages_are_bounded,
        messages_are_bounded_in_bytes, messages_are_deleted,
        messages_expire, messages_need_an_account, messages_are_of_their_account;
    keys: are_found_by_hash, are_listed, are_deleted, are_made_once, need_their_domain, expire_as_they_were_created,
        are_as_many_as_the_domain_may_have, of_no_domain_are_bounded, are_ended_earlier_or_later,
        have_networks_and_a_time_of_use;
    idempotency: first_goes, second_waits_then_goes, finished_is_replayed, released_goes_at_once, released_stays_released, other_body_is_refused,
        is_forgotten_after_a_day, are_bounded_in_bytes, are_bounded_for_a_domain, is_of_its_key, notes_lines, lines_renew_it_and_go_with_it;
    webhooks: are_created_at_the_newest_event, need_their_domain, are_bounded, are_listed, are_changed, are_deleted_with_their_letters,
        go_with_their_domain, are_one_owners_until_the_claim_ends, that_are_disabled_are_not_claimed, are_committed_by_their_owner,
        pass_what_is_of_no_interest, whose_receiver_is_gone_are_disabled, keep_dead_letters, letters_come_in_pages, letters_are_bounded,
        letters_are_bounded_by_bytes;
    leases: are_one_holders_until_they_end, are_taken_anew_and_given_up_by_their_holder, say_what_their_holders_say,
        are_listed_by_their_names, are_bounded;
    modules: are_pushed_once, are_activated_and_kept, are_bounded, are_removed_unless_they_are_activated;
    cells: are_created_changed_and_removed, of_many_at_once_the_first_places, move_step_by_step_with_what_is_held,
        hold_requests_in_order_once_and_bounded, forget_what_expired;
    parked: groups_are_kept_by_their_numbers, groups_come_in_pages, groups_are_bounded_by_bytes, groups_are_forgotten;
    rosters: are_empty_and_of_generation_0_at_first, hold_what_was_put, are_imported_with_where_subscriptions_stand, tell_the_generation_before_and_after, change_both_sides_together,
        need_no_account_on_the_other_side, are_bounded, are_looked_up, keep_the_newest_requests, go_with_their_account, of_many_at_once;
    removals: of_an_account_end_its_subscriptions, of_a_domain_end_its_subscriptions, of_a_domain_come_in_parts, of_an_account_come_in_parts, that_are_unfinished_are_listed,
        hold_names_back, are_told_the_same_again;
    nodes: are_created_by_publishing, keep_the_newest_items, are_edited, are_edited_together, are_as_their_publisher_wants_them, are_bounded,
        go_with_their_account, give_their_last_items, give_their_last_items_without_payloads_where_they_say_so;
    blocklists: are_sorted_and_without_doubles, are_of_addresses_of_any_length, say_what_changed, are_emptied_in_parts, are_bounded_and_need_their_account, go_with_their_account,
        keep_subscriptions_out, and_default_lists_are_one, of_names_are_bounded_and_go_with_their_account,
        of_groups_are_read_with_who_asks, of_names_keep_subscriptions_out;
    archives: hold_a_message_for_both_sides, hold_one_side_where_there_is_one, come_in_pages_both_ways, are_filtered, are_read_in_bounded_steps, are_found_by_number,
        follow_preferences, have_times_that_ascend, are_erased, keep_what_their_domain_wants, go_with_their_account;
    private: is_kept_by_name_and_namespace, is_listed, is_bounded_in_bytes, goes_with_its_account;
    push: has_registrations_by_their_names, has_so_many_registrations, comes_of_what_is_stored, is_one_for_each_topic, is_of_what_waits, are_hinted_at_where_there_are_registrations,
        is_one_owners_until_the_claim_ends, comes_in_pages, that_fails_is_tried_again, ends_with_its_registration,
        goes_with_its_account_and_its_domain, is_a_step_of_the_trace_of_its_notification, comes_of_what_its_app_wants,
        comes_of_every_message_of_a_room_that_its_app_wants, is_of_a_room_for_so_many_that_want_all_of_it;
    endpoints: are_found_by_their_ids, go_on_when_they_are_asked_for_again, are_as_many_as_an_account_may_have, are_forgotten_when_they_have_expired,
        are_revoked, go_with_their_account_and_their_domain;
    vcards: are_kept_and_replaced, go_with_their_account;
    inbox: lists_the_newest_first, counts_until_it_is_answered_or_seen, is_changed_by_its_owner,
        is_in_folders_until_a_message_comes, is_emptied_in_parts, loses_what_the_archive_loses;
    invitations: are_made_found_and_listed, are_bounded_and_forgotten, register_an_account_once_per_use,
        are_for_their_name_their_time_and_their_purpose, make_contacts_of_accounts,
        make_an_account_where_there_is_no_room_for_a_contact, are_done_once, go_with_their_account_and_their_domain;
    links: lead_where_they_were_made_to, of_one_url_are_one, give_way_to_others, are_bounded_in_number_and_bytes,
        are_taken_down, that_expired_begin_anew_or_are_forgotten, are_listed_newest_first, have_a_secret_of_their_domain,
        are_counted, open_their_notifications, have_files, go_with_their_domain;
    uploads: are_slots_first, are_listed_by_account, are_uploaded_once, that_take_too_long_do_not_count, are_bounded_for_account_and_domain, cost_something_however_small_they_are, expire, are_deleted,
        go_with_their_account, go_with_their_domain;
    acts: are_listed_newest_first, are_forgotten_in_their_time;
    activity: is_the_latest_that_was_noted, goes_with_its_account;
    broadcasts: are_created_once, are_bounded_while_they_are_open, are_steered_until_they_end, are_heard_of_page_by_page, end_once_per_account, are_counted_by_many,
        finish_and_are_forgotten, go_with_their_account_and_their_domain;
    rooms: are_created_once, are_owned_by_few, are_destroyed_in_parts, are_as_many_as_the_domain_may_have, are_listed_in_pages, are_configured_and_have_a_subject,
        have_a_vcard, list_members,
        do_not_list_who_is_removed, go_with_their_domain, keep_messages_in_their_order, find_messages_by_sender_and_time,
        times_of_messages_ascend, replace_and_erase_messages, keep_what_their_domain_keeps, keep_for_as_many_days_as_is_said_of_rooms, are_destroyed,
        are_in_inboxes, are_read_and_put_away, are_read_since_one_is_a_member, are_refused;
    again: every_write_is_done_once, with_another_id_it_is_done_again,
        is_forgotten_after_its_time;
    names: in_every_script, hostile, very_long, far_in_time;
    together: what_fails_changes_nothing, together_is_as_one_after_the_other, writes_are_in_order,
        reads_see_answered_writes, many_threads, each_question_is_answered_once, generations_and_revisions_do_not_go_back,
        closed_answers_closed;
};

/// What other cases need of a noun: each of its writes, all that can be asked of it, and what of it lasts.
#[derive(Clone, Copy)]
pub(crate) struct Noun {
    /// One of every write about it, of a domain with an account `alice`; each changes something.
    pub(crate) writes: fn(DomainId) -> Vec<Ask>,
    /// All that can be asked for, in words.
    state: fn(&dyn Store, DomainId) -> String,
    /// Writes to a store with a domain and an account `alice`.
    write_lasting: fn(&dyn Store, DomainId),
    /// Finds it again.
    check_lasting: fn(&dyn Store, DomainId),
}

/// The nouns that say this in their own files. Of the others it is in `again.rs` and `lasting.rs`.
pub(crate) const NOUNS: &[Noun] = &[
    activity::NOUN,
    acts::NOUN,
    broadcasts::NOUN,
    cells::NOUN,
    endpoints::NOUN,
    invitations::NOUN,
    modules::NOUN,
    push::NOUN,
    rooms::NOUN,
    uploads::NOUN,
];

/// Every case that needs the store to be opened again.
pub const LASTING: &[Lasting] = lasting::ALL;
