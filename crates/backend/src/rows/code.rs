//! Enumerations as numbers that never change their meaning, whatever keeps the rows.

use carillon_core::model::*;

/// An enumeration as the number it is stored as.
pub(crate) trait Code: Sized {
    /// Its number.
    fn code(self) -> i64;
    /// The value of a number, where there is one.
    fn of(code: i64) -> Option<Self>;
}

macro_rules! codes {
    ($type:ident { $($variant:ident = $code:literal),* $(,)? }) => {
        impl Code for $type {
            fn code(self) -> i64 {
                match self { $($type::$variant => $code),* }
            }

            fn of(code: i64) -> Option<$type> {
                match code { $($code => Some($type::$variant),)* _ => None }
            }
        }
    };
}

codes!(SessionPolicy { Single = 0, Multi = 1 });
codes!(PubsubCreate { Any = 0, Admin = 1 });
codes!(RoomsCreate { Any = 0, Admin = 1 });
codes!(EventType {
    Notification = 0,
    RoomCreated = 1,
    RoomDestroyed = 2,
    RoomMembers = 3,
    RoomSubject = 4,
    RoomMessage = 5,
    RoomModerated = 6,
});
codes!(RoomEvents { Off = 0, Membership = 1, All = 2 });
codes!(Access { Open = 0, Whitelist = 1, Presence = 2, Roster = 3 });
codes!(PublishModel { Publishers = 0, Subscribers = 1, Open = 2 });
codes!(SendLast { Never = 0, OnSub = 1, OnSubAndPresence = 2 });
codes!(Affiliation { Outcast = 0, None = 1, Member = 2, Publisher = 3, Owner = 4 });
codes!(RoomKind { Muc = 0, MucLight = 1 });
codes!(RoomAffiliation { Outcast = 0, None = 1, Member = 2, Admin = 3, Owner = 4 });
codes!(Audience { Active = 0, Connected = 1, Always = 2 });
// Delivery order is ascending.
codes!(Priority { High = 0, Normal = 1, Low = 2 });
codes!(AcknowledgedBy { StreamManagement = 0, Receipt = 1, Socket = 2, Link = 3 });
codes!(LinkFile { Apple = 0, Android = 1 });
codes!(AgentClass { Mobile = 0, Tablet = 1, Desktop = 2, Other = 3 });
codes!(NotificationState {
    Scheduled = 0,
    Accepted = 1,
    Stored = 2,
    Sent = 3,
    Acknowledged = 4,
    Expired = 5,
    Replaced = 6,
    Cancelled = 7,
    Dropped = 8,
    Opened = 9,
});
codes!(EntryKind { Other = 0, Received = 1, Sent = 2 });
codes!(Folder { Inbox = 0, Archive = 1, Bin = 2, Nowhere = 3 });
codes!(ArchiveDefault { Always = 0, Never = 1, Roster = 2 });
codes!(WebhookStatus { Enabled = 0, Disabled = 1, Gone = 2 });
codes!(PushKind { WebPush = 0, Webhook = 1, Apns = 2, Fcm = 3 });
codes!(PushState { Taken = 0, Refused = 1, Failed = 2, Gone = 3 });
codes!(PushShown { Nothing = 0, Sender = 1, Whole = 2 });
codes!(Draining { Off = 0, Running = 1, Paused = 2 });
codes!(DropReason {
    UnknownDevice = 0,
    NotConnected = 1,
    NotActive = 2,
    ConnectionLost = 3,
    QueueFull = 4,
    DeviceDeleted = 5,
    Module = 6,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_unknown_ones_are_refused() {
        for n in 0..10 {
            assert_eq!(NotificationState::of(n).map(Code::code), Some(n));
        }
        assert_eq!(NotificationState::of(10), None);
        assert_eq!(Priority::of(-1), None);
    }
}
