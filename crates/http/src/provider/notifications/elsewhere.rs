//! Where devices are, if not at this node: a front sends each notification to the cell of its device.

use super::SendResult;
use crate::app::App;
use crate::problem::Problem;
use carillon_core::model::Notification;
use carillon_wire::jid::BareJid;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// What takes notifications whose devices are not at this node.
pub(crate) trait Elsewhere: Send + Sync {
    /// Sends one to its device.
    fn send<'a>(
        &self,
        app: &'a App,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<SendResult, Problem>>;

    /// Looks whether a device is there.
    fn rehearse<'a>(&self, app: &'a App, device: &'a BareJid) -> BoxFuture<'a, Result<SendResult, Problem>>;
}

impl App {
    /// What takes notifications whose devices are not at this node; none of a node whose devices are its own.
    pub(super) fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        self.part::<Option<Arc<dyn Elsewhere>>>().clone()
    }
}
