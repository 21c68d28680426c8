//! A node among others, or alone: its number, where homes are, and its bus.

use super::StartError;
use crate::cell::{Cell, Unsettled};
use crate::channels::inbox::{Inbox, InboxItem, LogNews};
use crate::channels::replies::Replies;
use crate::clock::Clock;
use crate::far::Intake;
use crate::node::Node;
use carillon_core::model::NodeId;
use carillon_core::ports::{Bus, Computed, Directory, LogHeard, LogHears, SessionLog};
use std::sync::{Arc, OnceLock};

/// What a server has of its cell.
pub(super) struct Among {
    pub(super) own: NodeId,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) replies: Arc<Replies>,
    pub(super) bus: Option<Arc<dyn Bus>>,
    pub(super) unsettled: Arc<Unsettled>,
    /// Where the sessions are written down, if they are.
    pub(super) log: Option<Arc<dyn SessionLog>>,
    /// The node, for what comes from the bus: it is told as soon as there is one.
    pub(super) known: Arc<OnceLock<Node>>,
}

impl Among {
    /// Joins a cell, if there is one. What comes from the bus goes to these inboxes.
    pub(super) fn join(
        cell: Option<Cell>,
        inboxes: &Arc<[Arc<Inbox>]>,
        clock: Clock,
    ) -> Result<Among, StartError> {
        let alone = || (NodeId::default(), Vec::new(), Vec::new());
        let (own, mut nodes, leaving) =
            cell.as_ref().map_or_else(alone, |cell| (cell.node, cell.others.clone(), cell.leaving.clone()));
        if nodes.is_empty() || cell.as_ref().is_none_or(|cell| !cell.yields) {
            nodes.push(own);
        }
        let (told, open_bus, open_log) =
            cell.map_or((None, None, None), |cell| (Some(cell.told), Some(cell.bus), cell.log));
        let shards = inboxes.len() as u16;
        let directory: Arc<dyn Directory> = Arc::new(Computed::with_leaving(&nodes, &leaving, own, shards));
        let replies = Arc::new(Replies::new(own, shards));
        let known: Arc<OnceLock<Node>> = Arc::default();
        let unsettled = Arc::new(Unsettled::new(own, inboxes.len()));
        let intake = Intake {
            own,
            inboxes: Arc::clone(inboxes),
            replies: Arc::clone(&replies),
            unsettled: Arc::clone(&unsettled),
            clock,
            told,
            node: Arc::clone(&known),
        };
        let bus = open_bus.map(|open| open(intake.hears())).transpose().map_err(StartError::Bus)?;
        let log = open_log.map(|open| open(log_hears(inboxes))).transpose().map_err(StartError::Log)?;
        Ok(Among { own, directory, replies, bus, unsettled, log, known })
    }
}

/// What is heard of the log of sessions is for the shards.
fn log_hears(inboxes: &Arc<[Arc<Inbox>]>) -> LogHears {
    let inboxes = Arc::clone(inboxes);
    let tell_all = move |inboxes: &[Arc<Inbox>], news| {
        inboxes.iter().for_each(|inbox| inbox.push(InboxItem::Log(news)));
    };
    Arc::new(move |heard| match heard {
        LogHeard::Written(shard, number) => {
            if let Some(inbox) = inboxes.get(usize::from(shard.0)) {
                inbox.push(InboxItem::Log(LogNews::Written(number)));
            }
        }
        LogHeard::Away => tell_all(&inboxes, LogNews::Away),
        LogHeard::Back => tell_all(&inboxes, LogNews::Back),
    })
}
