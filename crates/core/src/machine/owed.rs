//! Asking the store again for what it refused.

use crate::features::{notifications, offline};
use crate::node::Debt;
use crate::ports::store::notifications::{EndNotifications, NotificationChange};
use crate::ports::{Answer, Question};
use crate::session::Cx;
use crate::session::then::Then;

/// Asks the store for what it refused, when it is time.
pub(super) fn retry(cx: &mut Cx<'_>) {
    let debts = cx.hub.owed.take_due(cx.now.mono);
    if debts.is_empty() {
        return;
    }
    let mut changes = Vec::new();
    for debt in debts {
        match debt {
            Debt::End(change) => changes.push(change),
            Debt::Forget(forget) => offline::forget(forget, cx),
        }
    }
    if !changes.is_empty() {
        cx.ask(EndNotifications { changes: changes.clone() }, Then::Owed(changes));
    }
}

/// The store answered to ends that it had refused.
pub(super) fn answered(changes: Vec<NotificationChange>, answer: Answer, cx: &mut Cx<'_>) {
    let now = cx.now.mono;
    match EndNotifications::answer(answer) {
        Ok(()) => {
            changes.iter().for_each(|change| notifications::ended(change.id, cx));
            cx.hub.owed.paid(now);
        }
        Err(_) => changes.into_iter().for_each(|change| cx.hub.owed.owe(Debt::End(change), now)),
    }
}
