//! What a domain's own administrators may choose: any policy within what the operator grants.

use super::{Policy, PubsubCreate, RoomsCreate, SessionPolicy};

impl Policy {
    /// The first member, by its name in the API, by which this policy takes more of the node or lets in more people than `granted` does.
    pub fn beyond(&self, granted: &Policy) -> Option<&'static str> {
        // Without `..`: a new member has to be given its place here.
        let Policy {
            sessions,
            registration,
            account_management,
            pubsub_create,
            sessions_max,
            messages_durable,
            resumption_ms_max,
            archive,
            archive_days,
            archive_messages_max,
            archive_bytes_max,
            keys_max,
            other_domains,
            requests_per_second,
            stanzas_per_second,
            bytes_per_second,
            rooms_create,
            rooms_owned_max,
            rooms_max,
            accounts_max,
            topics_max,
            topics_owned_max,
            subscriptions_max,
            sessions_total_max,
            bytes_out_per_second,
            stored_bytes_max,
            room_events,
            room_archive_days: _,
        } = *self;
        let only_multi = |policy| policy == SessionPolicy::Multi;
        let anybody = |create| create == PubsubCreate::Any;
        let any_account = |create| create == RoomsCreate::Any;
        let members = [
            ("sessions", only_multi(sessions) && !only_multi(granted.sessions)),
            ("registration", registration && !granted.registration),
            ("account_management", account_management && !granted.account_management),
            ("pubsub_create", anybody(pubsub_create) && !anybody(granted.pubsub_create)),
            ("sessions_max", sessions_max > granted.sessions_max),
            ("messages_durable", messages_durable && !granted.messages_durable),
            ("resumption_ms_max", resumption_ms_max > granted.resumption_ms_max),
            ("archive", archive && !granted.archive),
            ("archive_days", bound(archive_days) > bound(granted.archive_days)),
            ("archive_messages_max", bound(archive_messages_max) > bound(granted.archive_messages_max)),
            ("archive_bytes_max", bound(archive_bytes_max) > bound(granted.archive_bytes_max)),
            ("keys_max", keys_max > granted.keys_max),
            ("other_domains", other_domains && !granted.other_domains),
            ("requests_per_second", bound(requests_per_second) > bound(granted.requests_per_second)),
            ("stanzas_per_second", bound(stanzas_per_second) > bound(granted.stanzas_per_second)),
            ("bytes_per_second", bound(bytes_per_second) > bound(granted.bytes_per_second)),
            ("rooms_create", any_account(rooms_create) && !any_account(granted.rooms_create)),
            ("rooms_owned_max", bound(rooms_owned_max) > bound(granted.rooms_owned_max)),
            ("rooms_max", bound(rooms_max) > bound(granted.rooms_max)),
            ("accounts_max", bound(accounts_max) > bound(granted.accounts_max)),
            ("topics_max", bound(topics_max) > bound(granted.topics_max)),
            ("topics_owned_max", bound(topics_owned_max) > bound(granted.topics_owned_max)),
            ("subscriptions_max", bound(subscriptions_max) > bound(granted.subscriptions_max)),
            ("sessions_total_max", bound(sessions_total_max) > bound(granted.sessions_total_max)),
            ("bytes_out_per_second", bound(bytes_out_per_second) > bound(granted.bytes_out_per_second)),
            ("stored_bytes_max", bound(stored_bytes_max) > bound(granted.stored_bytes_max)),
            ("room_events", room_events > granted.room_events),
            ("room_archive_days", bound(self.days_of_rooms()) > bound(granted.days_of_rooms())),
        ];
        members.into_iter().find(|(_, is_beyond)| *is_beyond).map(|(name, _)| name)
    }

    /// This policy after what is granted changed from `before` to `after`: members that changed there are as they are there now, others
    /// stay as they were chosen.
    pub fn after_grant(&self, before: &Policy, after: &Policy) -> Policy {
        macro_rules! members {
            ($($member:ident),* $(,)?) => {
                Policy {
                    $($member: if before.$member == after.$member { self.$member } else { after.$member },)*
                }
            };
        }
        members!(
            sessions,
            registration,
            account_management,
            pubsub_create,
            sessions_max,
            messages_durable,
            resumption_ms_max,
            archive,
            archive_days,
            archive_messages_max,
            archive_bytes_max,
            keys_max,
            other_domains,
            requests_per_second,
            stanzas_per_second,
            bytes_per_second,
            rooms_create,
            rooms_owned_max,
            rooms_max,
            accounts_max,
            topics_max,
            topics_owned_max,
            subscriptions_max,
            sessions_total_max,
            bytes_out_per_second,
            stored_bytes_max,
            room_events,
            room_archive_days,
        )
    }
}

/// A bound of which 0 is none.
fn bound(most: impl Into<u64>) -> u64 {
    most.into().wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RoomEvents;

    /// What is granted, and for each member a policy that has less of it.
    fn tighter() -> (Policy, Vec<(&'static str, Policy)>) {
        let granted = Policy {
            sessions: SessionPolicy::Multi,
            registration: true,
            account_management: true,
            pubsub_create: PubsubCreate::Any,
            sessions_max: 20,
            messages_durable: true,
            resumption_ms_max: 60_000,
            archive: true,
            archive_days: 0,
            archive_messages_max: 1000,
            archive_bytes_max: 0,
            keys_max: 10,
            other_domains: true,
            requests_per_second: 0,
            stanzas_per_second: 1000,
            bytes_per_second: 0,
            rooms_create: RoomsCreate::Any,
            rooms_owned_max: 10,
            rooms_max: 0,
            accounts_max: 0,
            topics_max: 10,
            topics_owned_max: 0,
            subscriptions_max: 10,
            sessions_total_max: 0,
            bytes_out_per_second: 1000,
            stored_bytes_max: 0,
            room_events: RoomEvents::All,
            room_archive_days: 365,
        };
        let policies = vec![
            ("sessions", Policy { sessions: SessionPolicy::Single, ..granted }),
            ("registration", Policy { registration: false, ..granted }),
            ("account_management", Policy { account_management: false, ..granted }),
            ("pubsub_create", Policy { pubsub_create: PubsubCreate::Admin, ..granted }),
            ("sessions_max", Policy { sessions_max: 19, ..granted }),
            ("messages_durable", Policy { messages_durable: false, ..granted }),
            ("resumption_ms_max", Policy { resumption_ms_max: 0, ..granted }),
            ("archive", Policy { archive: false, ..granted }),
            ("archive_days", Policy { archive_days: 36_500, ..granted }),
            ("archive_messages_max", Policy { archive_messages_max: 999, ..granted }),
            ("archive_bytes_max", Policy { archive_bytes_max: u64::MAX, ..granted }),
            ("keys_max", Policy { keys_max: 9, ..granted }),
            ("other_domains", Policy { other_domains: false, ..granted }),
            ("requests_per_second", Policy { requests_per_second: 1000, ..granted }),
            ("stanzas_per_second", Policy { stanzas_per_second: 999, ..granted }),
            ("bytes_per_second", Policy { bytes_per_second: 1, ..granted }),
            ("rooms_create", Policy { rooms_create: RoomsCreate::Admin, ..granted }),
            ("rooms_owned_max", Policy { rooms_owned_max: 9, ..granted }),
            ("rooms_max", Policy { rooms_max: 1, ..granted }),
            ("accounts_max", Policy { accounts_max: 1, ..granted }),
            ("topics_max", Policy { topics_max: 9, ..granted }),
            ("topics_owned_max", Policy { topics_owned_max: 1, ..granted }),
            ("subscriptions_max", Policy { subscriptions_max: 9, ..granted }),
            ("sessions_total_max", Policy { sessions_total_max: 1000, ..granted }),
            ("bytes_out_per_second", Policy { bytes_out_per_second: 999, ..granted }),
            ("stored_bytes_max", Policy { stored_bytes_max: 1 << 40, ..granted }),
            ("room_events", Policy { room_events: RoomEvents::Membership, ..granted }),
            ("room_archive_days", Policy { room_archive_days: 364, ..granted }),
        ];
        (granted, policies)
    }

    #[test]
    fn each_member_may_be_tightened_and_none_loosened() {
        let (granted, policies) = tighter();
        assert_eq!(granted.beyond(&granted), None);
        for (member, policy) in policies {
            assert_ne!(policy, granted, "{member}");
            assert_eq!(policy.beyond(&granted), None, "{member}");
            assert_eq!(granted.beyond(&policy), Some(member));
        }
    }

    #[test]
    fn what_was_chosen_stays_where_the_grant_does() {
        let (granted, policies) = tighter();
        for (member, policy) in policies {
            assert_eq!(policy.after_grant(&granted, &granted), policy, "{member}");
            assert_eq!(granted.after_grant(&granted, &policy), policy, "{member}");
        }
    }
}
