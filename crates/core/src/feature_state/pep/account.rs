//! What is known of an account's nodes.

use crate::model::{Node, NodeChange};

/// The nodes of an account: eight bytes for none.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "eight bytes for an account without nodes, not twenty-four")]
pub struct Nodes(Option<Box<Vec<Node>>>);

impl Nodes {
    /// Those that were read, sorted by their names.
    pub(crate) fn of(nodes: &[Node]) -> Nodes {
        Nodes((!nodes.is_empty()).then(|| Box::new(nodes.to_vec())))
    }

    /// Bytes that they take beside their own size.
    pub fn bytes(&self) -> usize {
        self.iter().map(|node| size_of::<Node>() + node.bytes()).sum()
    }

    /// All of them, sorted by their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().flat_map(|nodes| nodes.iter())
    }

    /// The node of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.iter().find(|node| *node.name == *name)
    }

    /// A node was created, configured or removed.
    pub(crate) fn change(&mut self, change: &NodeChange) {
        let named = |node: &Option<Node>| node.as_ref().map(|node| node.name.clone());
        let Some(name) = named(&change.was).or(named(&change.is)) else { return };
        let others = self.iter().filter(|node| node.name != name).cloned();
        let mut nodes: Vec<Node> = others.chain(change.is.clone()).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        *self = Nodes::of(&nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_nodes_takes_eight_bytes() {
        assert_eq!((size_of::<Nodes>(), Nodes::default().bytes()), (8, 0));
    }
}
