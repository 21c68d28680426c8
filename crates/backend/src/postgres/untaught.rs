//! The questions that this store is not taught yet. While there are any, [`carillon_backend::open`](crate::open) opens none.

use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::ports::store::*;

macro_rules! untaught {
    ($($noun:ident { reads $($read:ident)*; writes $($write:ident)*; })*) => {
        /// The names of the questions that the store on PostgreSQL cannot answer yet.
        pub const UNTAUGHT: &[&str] = &[$($(stringify!($read),)* $(stringify!($write),)*)*];

        $($(impl Answers<$noun::$read, Error> for Snapshot<'_> {
            fn answer(&mut self, _: &$noun::$read) -> Result<<$noun::$read as Question>::Answer> {
                Err(Error::Untaught(stringify!($read)))
            }
        })*
        $(impl Answers<$noun::$write, Error> for Transaction<'_> {
            fn answer(&mut self, _: &$noun::$write) -> Result<<$noun::$write as Question>::Answer> {
                Err(Error::Untaught(stringify!($write)))
            }
        })*)*
    };
}

untaught! {
    domains { reads; writes DeleteDomain; }
    accounts { reads; writes DeleteAccount; }
    topics { reads Topic Topics AffiliationsOf; writes ConfigureTopic SetAffiliations CreateTopic DeleteTopic; }
    subscriptions { reads SubscriptionsOf IsSubscribed Subscribers SubscriberCount; writes Subscribe Unsubscribe; }
    items { reads Items ItemNames; writes Purge Publish Retract; }
    notifications { reads NotificationQuery; writes; }
    roster { reads ReadRecord; writes PutContact RemoveContact ChangeSubscription; }
    blocking { reads ; writes ChangeBlockList; }
    archive { reads ArchivePage ArchivedMessages ReadArchiveEnds ReadArchivePreferences; writes SetArchivePreferences EraseArchive SweepArchives KeepMessage; }
    inbox { reads ReadInbox; writes ChangeConversation EmptyBin; }
    private { reads ReadPrivate; writes StorePrivate; }
    nodes { reads NodeItems NodeItemNames LastNodeItems; writes EditNode; }
    vcard { reads ReadVcard; writes StoreVcard; }
}
