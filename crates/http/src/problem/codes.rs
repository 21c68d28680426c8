//! Every error the API gives, in one table. A code, once published, keeps its meaning and its status for good.

use axum::http::StatusCode;

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $name:ident: $status:ident, $code:literal, $title:literal;)+) => {
        /// What went wrong, as a stable word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $meaning])+ $name,)+
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// Its word: the member `code`, and the end of the member `type`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// The HTTP status it is answered with.
            pub fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)+ }
            }

            /// The member `title`: the same for every problem of this code.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// What it means and what to do about it, for the documentation.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => concat!($($meaning),+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    // ---- the request cannot be read
    /// The body is not JSON text; `detail` says where it breaks.
    NotJson: BAD_REQUEST, "not-json", "The body is not JSON";
    /// A member of the body is not one this route knows; `pointer` names it.
    UnknownField: BAD_REQUEST, "unknown-field", "Unknown field";
    /// A member that this route needs is not there.
    MissingField: BAD_REQUEST, "missing-field", "Missing field";
    /// A member is there twice.
    DuplicateField: BAD_REQUEST, "duplicate-field", "Duplicate field";
    /// A member has another type than it should, or is not one of the words it may be.
    WrongType: BAD_REQUEST, "wrong-type", "Wrong type";
    /// A query parameter is not one this route knows.
    UnknownParameter: BAD_REQUEST, "unknown-parameter", "Unknown query parameter";
    /// A query parameter or a part of the path cannot be read.
    InvalidParameter: BAD_REQUEST, "invalid-parameter", "Invalid parameter";
    /// A request header cannot be read.
    InvalidHeader: BAD_REQUEST, "invalid-header", "Invalid header";
    /// The body did not arrive in time.
    SlowBody: REQUEST_TIMEOUT, "slow-body", "The body took too long";
    /// The body, or a line of it, is larger than this node takes.
    TooLarge: PAYLOAD_TOO_LARGE, "too-large", "Too large";
    /// The payload is larger than this node delivers.
    PayloadTooLarge: PAYLOAD_TOO_LARGE, "payload-too-large", "Payload too large";
    /// The body's content type is not one this route reads.
    WrongContentType: UNSUPPORTED_MEDIA_TYPE, "wrong-content-type", "Wrong content type";
    /// `Range` names a part that the file does not have. `Content-Range` says how large it is.
    RangeOutside: RANGE_NOT_SATISFIABLE, "range-outside", "No such part of the file";

    // ---- the request was read and asks for what cannot be
    /// A member is out of its bounds; `detail` names them.
    InvalidValue: UNPROCESSABLE_ENTITY, "invalid-value", "Invalid value";
    /// A JID or a local part breaks RFC 7622.
    InvalidJid: UNPROCESSABLE_ENTITY, "invalid-jid", "Invalid JID";
    /// The XML payload is not one well-formed element in a namespace of its own.
    InvalidXml: UNPROCESSABLE_ENTITY, "invalid-xml", "Invalid XML payload";
    /// The secret or password is empty or has characters that SASLprep forbids.
    InvalidSecret: UNPROCESSABLE_ENTITY, "invalid-secret", "Invalid secret";
    /// One request names more targets than this node takes.
    TooManyTargets: UNPROCESSABLE_ENTITY, "too-many-targets", "Too many targets";
    /// The idempotency key was used before with another body, or for another route, or for a batch with another line of this number.
    IdempotencyMismatch: UNPROCESSABLE_ENTITY, "idempotency-mismatch", "Idempotency key used with another body";

    /// The body is not a module that this node can run; `detail` says why.
    InvalidModule: UNPROCESSABLE_ENTITY, "invalid-module", "Not a module";

    // ---- who asks
    /// The request has no `Authorization: Bearer KEY`.
    MissingKey: UNAUTHORIZED, "missing-key", "No API key";
    /// The key is not one of this node, or was deleted.
    UnknownKey: UNAUTHORIZED, "unknown-key", "Unknown API key";
    /// The key does not have the scope that this route needs; `detail` names it.
    MissingScope: FORBIDDEN, "missing-scope", "The key lacks a scope";
    /// The key is bound to another domain, or the route needs a key of the whole node.
    OtherDomain: FORBIDDEN, "other-domain", "Not in the domain of the key";
    /// The key is bound to certificates, and the client showed none of them.
    OtherCertificate: FORBIDDEN, "other-certificate", "Other certificate";
    /// The key may be used from other networks only.
    OtherNetwork: FORBIDDEN, "other-network", "Other network";
    /// The endpoint is for one sender (RFC 8292), and the push does not say who sends it.
    MissingSender: UNAUTHORIZED, "missing-sender", "No sender";
    /// The endpoint is for another sender, or the token of the sender is not valid; `detail` says why.
    OtherSender: FORBIDDEN, "other-sender", "Other sender";
    /// The key has expired; `detail` says when.
    ExpiredKey: UNAUTHORIZED, "expired-key", "Expired API key";
    /// The operator of the node does not grant the domain this much; `pointer` names the member.
    NotGranted: FORBIDDEN, "not-granted", "More than is granted";
    /// The topic does not allow it.
    Forbidden: FORBIDDEN, "forbidden", "Forbidden";

    // ---- what it is about is not there
    /// No route has this path.
    UnknownRoute: NOT_FOUND, "unknown-route", "No such route";
    /// The node has no such domain.
    UnknownDomain: NOT_FOUND, "unknown-domain", "No such domain";
    /// The domain has no such device.
    UnknownDevice: NOT_FOUND, "unknown-device", "No such device";
    /// The domain has no such account.
    UnknownAccount: NOT_FOUND, "unknown-account", "No such account";
    /// The account's roster has no such contact.
    UnknownContact: NOT_FOUND, "unknown-contact", "No such contact";
    /// The account has no such conversation.
    UnknownConversation: NOT_FOUND, "unknown-conversation", "No such conversation";
    /// Nobody is connected under this JID.
    UnknownSession: NOT_FOUND, "unknown-session", "No such session";
    /// The domain has no such topic.
    UnknownTopic: NOT_FOUND, "unknown-topic", "No such topic";
    /// The domain has no such broadcast, or it was forgotten.
    UnknownBroadcast: NOT_FOUND, "unknown-broadcast", "No such broadcast";
    /// The domain has no such room.
    UnknownRoom: NOT_FOUND, "unknown-room", "No such room";
    /// The room has no avatar.
    UnknownAvatar: NOT_FOUND, "unknown-avatar", "No avatar";
    /// Nobody in the room has this nick.
    UnknownOccupant: NOT_FOUND, "unknown-occupant", "No such occupant";
    /// The front has no such cell.
    UnknownCell: NOT_FOUND, "unknown-cell", "No such cell";
    /// There is no such module, or no such version of it.
    UnknownModule: NOT_FOUND, "unknown-module", "No such module";
    /// The archive has no such message.
    UnknownMessage: NOT_FOUND, "unknown-message", "No such message";
    /// The topic has no such item.
    UnknownItem: NOT_FOUND, "unknown-item", "No such item";
    /// The account does not follow the topic.
    NotSubscribed: NOT_FOUND, "not-subscribed", "Not subscribed";
    /// No notification has this id, or it ended so long ago that its trace is gone.
    UnknownNotification: NOT_FOUND, "unknown-notification", "No such notification";
    /// No API key has this number.
    UnknownKeyId: NOT_FOUND, "unknown-key-id", "No such API key";
    /// The key reaches no webhook of this number.
    UnknownWebhook: NOT_FOUND, "unknown-webhook", "No such webhook";
    /// Nobody holds a lease of this name.
    UnknownLease: NOT_FOUND, "unknown-lease", "No such lease";
    /// The settings of the node name no such queue.
    UnknownQueue: NOT_FOUND, "unknown-queue", "No such queue";
    /// The cell has no such node, or it is dead.
    UnknownNode: NOT_FOUND, "unknown-node", "No such node";
    /// The webhook has no dead letter of this event.
    UnknownDeadLetter: NOT_FOUND, "unknown-dead-letter", "No such dead letter";
    /// The domain has no short link with this code.
    UnknownLink: NOT_FOUND, "unknown-link", "No such link";
    /// The domain has no such file of an app, or there is no file of this name.
    UnknownLinkFile: NOT_FOUND, "unknown-link-file", "No such file";
    /// There is no file at this URL, or it has expired or was deleted.
    UnknownUpload: NOT_FOUND, "unknown-upload", "No such file";
    /// The domain has no invitation of this number.
    UnknownInvitation: NOT_FOUND, "unknown-invitation", "No such invitation";
    /// The URL is not that of an endpoint of this server as a push service, or the key reaches no endpoint of this id.
    UnknownEndpoint: NOT_FOUND, "unknown-endpoint", "No such endpoint";
    /// The endpoint was revoked, or has expired: nothing is pushed to it any more.
    EndpointGone: GONE, "endpoint-gone", "The endpoint is gone";
    /// The client has not acknowledged the push, and will not be given it any more: there is no receipt.
    PushGone: GONE, "push-gone", "The push has ended";
    /// The key reaches no registration for push of this number.
    UnknownRegistration: NOT_FOUND, "unknown-registration", "No such registration";
    /// The domain has no such queue of the matchmaker. Queues are in memory: declare it again after the node was restarted.
    UnknownMatchQueue: NOT_FOUND, "unknown-match-queue", "No such queue of the matchmaker";
    /// The queue has no such ticket, or it was over more than a minute ago.
    UnknownTicket: NOT_FOUND, "unknown-ticket", "No such ticket";
    /// No match of this name is played in the domain.
    UnknownMatch: NOT_FOUND, "unknown-match", "No such match";
    /// The path exists, but not with this method; the header `Allow` names those it has.
    WrongMethod: METHOD_NOT_ALLOWED, "wrong-method", "Wrong method";

    // ---- it collides with what is there
    /// What was to be created exists already. If a `PUT` gives members other values than it has, `detail` names them and `pointer` the first.
    AlreadyExists: CONFLICT, "already-exists", "It exists already";
    /// The message cannot be delivered: the recipient does not exist, or one of the two blocks the other. `reason` says which to a key
    /// that reaches the recipient's domain: `unknown-account`, `blocked`.
    Refused: CONFLICT, "refused", "The message was refused";
    /// The notification has come too far to be cancelled; `state` says how far.
    TooLate: CONFLICT, "too-late", "Too late to cancel";
    /// It is the last key with scope `admin` that reaches the whole node. With `last=true` it is deleted all the same, and nobody can
    /// administer the node until its next start.
    LastAdminKey: CONFLICT, "last-admin-key", "The last key with scope admin";
    /// The domain has as many API keys as its policy's `keys_max` allows, or the node as many that are of no domain as it may.
    TooManyKeys: CONFLICT, "too-many-keys", "Too many API keys";
    /// The domain keeps no archives, and conversations are made from archives: its policy's `archive` is off.
    NoArchive: CONFLICT, "no-archive", "No archives";
    /// The domain, or the node, has as many webhooks as are allowed; `detail` says how many.
    TooManyWebhooks: CONFLICT, "too-many-webhooks", "Too many webhooks";
    /// The account has as many registrations for push as `push.per_account_max` allows.
    TooManyRegistrations: CONFLICT, "too-many-registrations", "Too many registrations";
    /// The domain has no host of short links: the setting `links.hosts` does not name it.
    NoLinkHost: CONFLICT, "no-link-host", "No host of short links";
    /// The short link of this URL was taken down.
    LinkRemoved: CONFLICT, "link-removed", "The link was taken down";
    /// The domain has as many broadcasts that have not ended as it may, or they take up as much as they may; `detail` names the setting.
    TooManyBroadcasts: CONFLICT, "too-many-broadcasts", "Too many broadcasts";
    /// The broadcast has ended, and is not changed any more.
    BroadcastEnded: CONFLICT, "broadcast-ended", "The broadcast has ended";
    /// The domain has as many short links as it may.
    TooManyLinks: CONFLICT, "too-many-links", "Too many links";
    /// The domain has as many invitations as `invitations.per_domain` allows.
    TooManyInvitations: CONFLICT, "too-many-invitations", "Too many invitations";
    /// There are no invitations here: the setting `invitations.enabled` is off.
    NoInvitations: CONFLICT, "no-invitations", "No invitations";
    /// The node lives: it is heard, or it is the one that was asked. `detail` says which.
    NodeAlive: CONFLICT, "node-alive", "The node lives";
    /// Somebody else holds the lease; `detail` says who, and until when.
    LeaseHeld: CONFLICT, "lease-held", "Somebody else holds the lease";
    /// There are as many leases as there may be; `detail` says how many.
    TooManyLeases: CONFLICT, "too-many-leases", "Too many leases";
    /// Somebody else has this nick in the room, or it is reserved for somebody else.
    NickTaken: CONFLICT, "nick-taken", "The nick is taken";
    /// The room would list more accounts than it may; `detail` says how many.
    TooManyMembers: CONFLICT, "too-many-members", "Too many members";
    /// The domain has as many rooms as its policy's `rooms_max` allows.
    TooManyRooms: CONFLICT, "too-many-rooms", "Too many rooms";
    /// The domain has as many accounts as its policy's `accounts_max` allows.
    TooManyAccounts: CONFLICT, "too-many-accounts", "Too many accounts";
    /// The domain has as many topics as its policy's `topics_max` allows.
    TooManyTopics: CONFLICT, "too-many-topics", "Too many topics";
    /// The account is subscribed to as many topics as the domain's policy's `subscriptions_max` allows.
    TooManySubscriptions: CONFLICT, "too-many-subscriptions", "Too many subscriptions";
    /// Others configured the room at the same time, again and again. Try again.
    RoomChanged: CONFLICT, "room-changed", "The room was changed";
    /// There are as many modules as there may be; `detail` says how many.
    TooManyModules: CONFLICT, "too-many-modules", "Too many modules";
    /// A version of the module is activated: deactivate it first.
    ModuleActive: CONFLICT, "module-active", "The module is active";
    /// No version of the module is activated, or there is none before it to go back to.
    NotActivated: CONFLICT, "not-activated", "Nothing to go back to";
    /// The node is not a front: the setting `cells.front` is off.
    NoFront: CONFLICT, "no-front", "Not a front";
    /// A front does not do this: ask the cells themselves.
    NotAtFront: CONFLICT, "not-at-front", "Not done by a front";
    /// Devices are in the cell or move to it, or requests are held for it. Drain it first.
    CellInUse: CONFLICT, "cell-in-use", "The cell is in use";
    /// There are as many cells as there may be; `detail` says how many.
    TooManyCells: CONFLICT, "too-many-cells", "Too many cells";
    /// No cell takes devices: there is none, or all have weight 0 or are drained.
    NoCell: CONFLICT, "no-cell", "No cell takes devices";
    /// The device is moving to another cell. Try again after `Retry-After`.
    DeviceMoving: CONFLICT, "device-moving", "The device is moving";
    /// There are no matches on this node: the setting `matches.max` is 0.
    NoMatches: CONFLICT, "no-matches", "No matches";
    /// The account has a ticket in the queue that is not over: it waits, or its match is played.
    AccountQueued: CONFLICT, "account-queued", "The account has a ticket";
    /// The ticket does not wait any more: there is a match for it, or it is over.
    TicketMatched: CONFLICT, "ticket-matched", "The ticket does not wait";
    /// The node has as many queues of the matchmaker as `matches.queues` allows.
    TooManyQueues: CONFLICT, "too-many-queues", "Too many queues";
    /// Another request with this idempotency key is being worked on; `Retry-After` says when to ask again.
    InProgress: CONFLICT, "in-progress", "A request with this idempotency key is in progress";

    // ---- it comes too fast
    /// More is published to the topic than its followers can be given, or more operations wait for the topic or the room than may; nothing
    /// was changed. Publish again after `Retry-After`, and more slowly. The header `RateLimit` says the same.
    TooFast: TOO_MANY_REQUESTS, "too-fast", "Too fast";
    /// As much is kept for the idempotency keys of the API key as may be; nothing was done. Each is forgotten 24 hours after its first use. Without
    /// an `Idempotency-Key` the request is done, and may be done twice if it is sent again.
    TooManyIdempotencyKeys: TOO_MANY_REQUESTS, "too-many-idempotency-keys", "Too many idempotency keys";
    /// As much waits for the account of the endpoint, or is stored of its domain, as may; nothing was kept. Push again after `Retry-After`.
    TooManyPushes: TOO_MANY_REQUESTS, "too-many-pushes", "Too many pushes";

    /// The cell does not answer, and as much is held for it as `cells.held_bytes_max` allows, or this is not held. Try again after `Retry-After`.
    CellAway: SERVICE_UNAVAILABLE, "cell-away", "The cell is away";

    /// The node has as many tickets as `matches.tickets` allows; try again when matches have ended.
    TooManyTickets: TOO_MANY_REQUESTS, "too-many-tickets", "Too many tickets";
    /// The keys of the domain make as many requests as its policy's `requests_per_second` allows, or somebody without a key has made as many links in a
    /// minute as they may; nothing was done. Try again after `Retry-After`.
    TooManyRequests: TOO_MANY_REQUESTS, "too-many-requests", "Too many requests";

    // ---- our fault
    /// This binary was built without modules.
    NoModules: NOT_IMPLEMENTED, "no-modules", "Built without modules";
    /// The node cannot do it now (busy, starting, draining, or its disk is full); nothing was changed. Try again after `Retry-After`.
    Unavailable: SERVICE_UNAVAILABLE, "unavailable", "Not available now";
    /// The store failed while it did this, and whether it was done is not known. The same request again settles it: notifications and items
    /// with the same `Idempotency-Key`, what is put or deleted as it is. Try again after `Retry-After`.
    OutcomeUnknown: SERVICE_UNAVAILABLE, "outcome-unknown", "It is unknown whether it was done";
    /// The node serves as many event streams as `http.streams_max` allows.
    TooManyStreams: SERVICE_UNAVAILABLE, "too-many-streams", "Too many event streams";
    /// The node did not answer in time; whether it was done is not known. Retry after `Retry-After` with the same
    /// `Idempotency-Key`.
    TimedOut: GATEWAY_TIMEOUT, "timed-out", "Timed out";
    /// The node failed; its log says more.
    Internal: INTERNAL_SERVER_ERROR, "internal", "Internal error";
    /// As much is stored of the domain as its policy's `stored_bytes_max` allows.
    StorageFull: INSUFFICIENT_STORAGE, "storage-full", "Storage is full";
}

#[cfg(test)]
mod tests {
    use super::Code;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_one_word_of_its_own_with_an_error_status() {
        let mut seen = HashSet::new();
        for &code in Code::ALL {
            let word = code.as_str();
            assert!(word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-'), "{word}");
            assert!(seen.insert(word), "{word} twice");
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{word}");
            assert!(code.meaning().ends_with('.') && !code.title().is_empty(), "{word}");
        }
    }
}
