//! What follows when a change of a room of MUC Light is stored.

use crate::command::RoomOutcome;
use crate::model::{RoomKey, RoomRecord};
use crate::room::asker::Asker;
use crate::room::home::Home;
use crate::room::step::Change;
use crate::session::Cx;
use std::sync::Arc;

impl Home {
    /// Those whom the change concerns are told before it is answered (§5.4). The changes that are like those of other rooms are given back.
    pub(in crate::room) fn carry_light(
        &mut self,
        record: &Arc<RoomRecord>,
        change: Change,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Option<(Change, Asker)> {
        let id = asker.id();
        match change {
            Change::Configure(config) => {
                let version = record.version + 1;
                let after = Arc::new(RoomRecord { config: *config, version, ..(**record).clone() });
                self.open(after.clone());
                self.tell_configured(record, &after, id, cx);
                asker.done(self.outcome(after), cx);
            }
            Change::Members { changes, .. } => {
                let (members, version) = (record.members_after(&changes), record.version + 1);
                let after = Arc::new(RoomRecord { members, version, ..(**record).clone() });
                self.state.note_members(&after, cx);
                self.open(after.clone());
                self.tell_members(Some(record), &after, &changes, id, key, cx);
                asker.done(RoomOutcome::Done, cx);
                if after.members.is_empty() {
                    // §5.2
                    self.remove_deserted(after, key, cx);
                }
            }
            Change::Destroy { .. } => {
                self.tell_destroyed(record, id.as_deref(), cx);
                self.destroyed(None, None, None, cx);
                asker.done(RoomOutcome::Done, cx);
            }
            Change::Subject(..) | Change::Vcard { .. } | Change::Moderate { .. } | Change::EraseArchive => {
                return Some((change, asker));
            }
        }
        None
    }
}
