//! A node among others, or alone: its number, where homes are, and its bus.

use super::StartError;
use crate::cell::{Cell, Unsettled};
use crate::clock::Clock;
use crate::far::Intake;
use crate::inbox::Inbox;
use crate::node::Node;
use crate::replies::Replies;
use carillon_core::model::NodeId;
use carillon_core::ports::{Bus, Computed, Directory};
use std::sync::{Arc, OnceLock};

/// What a server has of its cell.
pub(super) struct Among {
    pub(super) own: NodeId,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) replies: Arc<Replies>,
    pub(super) bus: Option<Arc<dyn Bus>>,
    pub(super) unsettled: Arc<Unsettled>,
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
        let (own, mut nodes, told, open_bus) = match cell {
            Some(Cell { node, others, told, bus }) => (node, others, Some(told), Some(bus)),
            None => (NodeId::default(), Vec::new(), None, None),
        };
        nodes.push(own);
        let shards = inboxes.len() as u16;
        let directory: Arc<dyn Directory> = Arc::new(Computed::among(&nodes, own, shards));
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
        Ok(Among { own, directory, replies, bus, unsettled, known })
    }
}
