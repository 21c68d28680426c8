//! Who may do what with a topic (XEP-0060 §4.1, §4.5).

use crate::command::{Actor, Refusal, TopicOp, Unacceptable, check_topic_config};
use crate::model::{Access, Affiliation, PublishModel, Shown, TopicConfig, TopicRecord};
use crate::settings::Limits;
use carillon_wire::jid::BareJid;

/// Whether an operation is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// It is allowed.
    Given,
    /// It is allowed if the actor follows the topic, which the store must be asked.
    IfFollowing,
}

/// Whether `op` is possible, and whether `actor` may do it.
pub(super) fn check(
    actor: &Actor,
    op: &TopicOp,
    record: &TopicRecord,
    limits: &Limits,
) -> Result<Grant, Refusal> {
    let grant = grant(actor, op, record)?;
    if let TopicOp::PublishIf { options, .. } | TopicOp::PublishNothing { options } = op {
        options.check_met_by(&record.config).map_err(Refusal::PreconditionNotMet)?;
    }
    if matches!(actor, Actor::Account(_)) {
        check_item(op, &record.config)?;
    }
    if let Some(config) = config_after(op, &record.config) {
        check_topic_config(&config, limits)?;
    }
    if let TopicOp::SetAffiliations { changes } = op {
        let after = affiliations_after(record, changes);
        if after.len() > limits.topic_affiliations && after.len() > record.affiliations.len() {
            return Err(Refusal::TooManyAffiliations);
        }
        // XEP-0060 §8.9.2.1 leaves it to the service; a topic that nobody may manage is of no use to accounts.
        if matches!(actor, Actor::Account(_)) && !has_owner(&after) {
            return Err(Refusal::Unacceptable(Unacceptable::NoOwner));
        }
    }
    Ok(grant)
}

/// Whether a publication has what a topic of this configuration is told (XEP-0060 §7.1.3.6). A provider has always something to say.
pub(crate) fn check_item(op: &TopicOp, config: &TopicConfig) -> Result<(), Refusal> {
    match (op, config.shows()) {
        (TopicOp::PublishNothing { .. }, Shown::Payload | Shown::Id) => Err(Refusal::ItemRequired),
        (TopicOp::Publish { .. } | TopicOp::PublishIf { .. }, Shown::Nothing) => Err(Refusal::ItemForbidden),
        (TopicOp::Publish { payload, .. } | TopicOp::PublishIf { payload, .. }, Shown::Payload)
            if payload.bytes() == 0 =>
        {
            Err(Refusal::PayloadRequired)
        }
        _ => Ok(()),
    }
}

/// Whether the affiliation of `actor` allows `op`.
pub(super) fn grant(actor: &Actor, op: &TopicOp, record: &TopicRecord) -> Result<Grant, Refusal> {
    match (actor, op) {
        (_, TopicOp::Create { .. }) => Err(Refusal::Exists),
        (Actor::Provider, _) => Ok(Grant::Given),
        (Actor::Anyone, TopicOp::Listen) => match record.config.access_model {
            Access::Open => Ok(Grant::Given),
            Access::Whitelist | Access::Presence | Access::Roster => Err(Refusal::Closed),
        },
        (Actor::Anyone, _) => Err(Refusal::Forbidden),
        (Actor::Account(jid), op) => by_standing(&jid.bare(), op, record),
    }
}

fn by_standing(actor: &BareJid, op: &TopicOp, record: &TopicRecord) -> Result<Grant, Refusal> {
    let standing = record.affiliation(actor);
    let only_if = |may: bool| if may { Ok(Grant::Given) } else { Err(Refusal::Forbidden) };
    match op {
        TopicOp::Create { .. } => Err(Refusal::Exists),
        TopicOp::Put { .. }
        | TopicOp::Configure { .. }
        | TopicOp::Amend { .. }
        | TopicOp::Manage
        | TopicOp::Delete
        | TopicOp::Purge
        | TopicOp::Subscribers { .. }
        | TopicOp::SetAffiliations { .. } => only_if(standing == Affiliation::Owner),
        TopicOp::Retract { .. } => only_if(standing >= Affiliation::Publisher),
        TopicOp::Describe => only_if(standing > Affiliation::Outcast),
        TopicOp::Publish { .. } | TopicOp::PublishIf { .. } | TopicOp::PublishNothing { .. } => {
            match record.config.publish_model {
                _ if standing == Affiliation::Outcast => Err(Refusal::Forbidden),
                _ if standing >= Affiliation::Publisher => Ok(Grant::Given),
                PublishModel::Publishers => Err(Refusal::Forbidden),
                PublishModel::Subscribers => Ok(Grant::IfFollowing),
                PublishModel::Open => Ok(Grant::Given),
            }
        }
        TopicOp::Items { .. } | TopicOp::ItemNames { .. } | TopicOp::Listen => {
            readable(actor, record).map(|()| Grant::Given)
        }
        // XEP-0060 §6.1.3.1. Not an owner either: nobody is given a topic's items without having asked for them, and
        // the answer must not tell which accounts there are.
        TopicOp::Subscribe { account } if account != actor => Err(Refusal::NotItself),
        TopicOp::Subscribe { account } => readable(account, record).map(|()| Grant::Given),
        TopicOp::Unsubscribe { account } => only_if(account == actor || standing == Affiliation::Owner),
    }
}

/// Whether `account` may subscribe to the topic and read its items (XEP-0060 §6.1.3).
pub(super) fn readable(account: &BareJid, record: &TopicRecord) -> Result<(), Refusal> {
    match (record.affiliation(account), record.config.access_model) {
        (Affiliation::Outcast, _) => Err(Refusal::Forbidden),
        (Affiliation::None, Access::Whitelist | Access::Presence | Access::Roster) => Err(Refusal::Closed),
        _ => Ok(()),
    }
}

/// The configuration that `op` gives a topic, if it changes it.
pub(super) fn config_after(op: &TopicOp, before: &TopicConfig) -> Option<TopicConfig> {
    match op {
        TopicOp::Create { config } | TopicOp::Put { config } | TopicOp::Configure { config } => {
            Some(config.clone())
        }
        TopicOp::Amend { change } => Some(change.apply(before)),
        _ => None,
    }
}

/// The affiliations of a topic after `changes`, sorted like [`TopicRecord::affiliations`].
pub(super) fn affiliations_after(
    record: &TopicRecord,
    changes: &[(BareJid, Affiliation)],
) -> Vec<(BareJid, Affiliation)> {
    let mut after: std::collections::BTreeMap<_, _> = record.affiliations.iter().cloned().collect();
    for (jid, affiliation) in changes {
        match affiliation {
            Affiliation::None => after.remove(jid),
            standing => after.insert(jid.clone(), *standing),
        };
    }
    after.into_iter().collect()
}

fn has_owner(affiliations: &[(BareJid, Affiliation)]) -> bool {
    affiliations.iter().any(|(_, affiliation)| *affiliation == Affiliation::Owner)
}
