//! Notifications whose steps are followed.

use super::Script;
use carillon_core::command::Command;
use carillon_core::model::{HopStep, Notification, TraceContext};

/// The command that sends a notification, and has its steps told.
pub(super) fn command(notification: Notification, is_followed: bool) -> Command {
    match is_followed {
        true => {
            let context = TraceContext { trace: 1, span: 1 };
            Command::NotifyFollowed { notification: notification.into(), context }
        }
        false => Command::Notify(notification.into()),
    }
}

impl Script {
    /// `hops NAME STEP …`: the steps of a followed notification that were told since somebody asked, in their order.
    pub(super) fn hops(&mut self, name: &str, expected: &[&str]) -> Result<(), String> {
        let (id, _) = self.notification(name)?;
        let told = self.world.hops().extract_if(.., |hop| hop.id == id).map(|hop| match hop.step {
            HopStep::Withheld(reason) => format!("withheld:{reason:?}"),
            HopStep::Acknowledged { by, .. } => format!("acknowledged:{by:?}"),
            HopStep::Ended(state, Some(reason)) => format!("ended:{state:?}:{reason:?}"),
            HopStep::Ended(state, None) => format!("ended:{state:?}"),
            step => step.word().to_owned(),
        });
        let told = told.collect::<Vec<_>>().join(" ").to_lowercase();
        if told == expected.join(" ") { Ok(()) } else { Err(format!("its steps are {told}")) }
    }
}
