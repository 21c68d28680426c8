//! The cell as an operator sees it and acts on it, by any of its nodes. A node that runs alone is a cell of one.

pub(crate) mod drain;
pub(crate) mod evict;
pub(crate) mod locate;
pub(crate) mod nodes;
pub(crate) mod status;

use crate::app::App;
use crate::problem::{Code, Problem};
use carillon_core::cell::Fence;
use carillon_core::model::NodeId;
use carillon_server::{CellView, MemberView, NodeReport, NodeRequest, Standing};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a node may take to answer another.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The cell as this node sees it. A node that runs alone sees itself.
fn view(app: &App) -> Arc<CellView> {
    app.node.cell().unwrap_or_else(|| {
        let (own, now) = (app.node.own(), Instant::now());
        let name = "this node".into();
        let member = MemberView { node: own, name, standing: Standing::Lives, heard: Some(now) };
        Arc::new(CellView { own, fence: None, read: now, members: vec![member] })
    })
}

/// The node that a part of the path names: by its name, or by its number.
fn named<'a>(view: &'a CellView, name: &str) -> Result<&'a MemberView, Problem> {
    view.named(name).ok_or_else(|| Problem::new(Code::UnknownNode, format!("the cell has no node `{name}`")))
}

/// Asks a node, which may be this one. None if it does not answer in time.
async fn ask(app: &App, node: NodeId, request: NodeRequest) -> Option<NodeReport> {
    let (reply, report) = oneshot::channel();
    app.node.ask_node(node, request, Box::new(move |report| drop(reply.send(report))));
    tokio::time::timeout(ANSWER_MAX, report).await.ok()?.ok()
}

/// What is said of a node that does not act.
pub(crate) fn why_fenced(fence: Fence) -> &'static str {
    match fence {
        Fence::Buried => "fenced: the other nodes have buried this one; it ends, to be started again",
        Fence::Blind => "fenced: this node cannot read the store, and others can",
        Fence::Alone => "fenced: this node reaches neither the other nodes nor the store",
        Fence::Stopped => "fenced: this node was stopped, and has yet to read whether it was buried",
    }
}
