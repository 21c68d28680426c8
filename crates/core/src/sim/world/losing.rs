//! What nodes tell each other of topics is lost.

use super::World;
use crate::Input;
use crate::message::ShardMessage;
use crate::model::NodeId;
use crate::ports::{Computed, Directory};
use std::sync::Arc;

impl World {
    /// The pairs of shards of which one has something published for the other, each as one number.
    pub fn publications(&self) -> Vec<usize> {
        let has_any = |queue: &usize| self.posts[*queue].iter().any(is_publication);
        (0..self.posts.len()).filter(has_any).collect()
    }

    /// Of what was published one shard never hears from the other what is on its way now, but for the oldest `kept`. Returns which shard that is.
    pub fn lose_publications(&mut self, queue: usize, kept: usize) -> usize {
        let mut came = 0;
        self.posts[queue].retain(|input| {
            came += usize::from(is_publication(input));
            !is_publication(input) || came <= kept
        });
        self.trace.note(format_args!("lost between {queue}, but for {kept}"));
        queue % self.shards.len()
    }

    /// The homes of topics leave this node, or are on all nodes again. The shards hear of it one after the other.
    pub fn move_topics(&mut self, from: Option<usize>) {
        let all = self.nodes();
        let leaving: Vec<NodeId> = from.map(|node| all[node]).into_iter().collect();
        let stay: Vec<NodeId> = all.into_iter().filter(|node| !leaving.contains(node)).collect();
        for shard in 0..self.shards.len() {
            let own = self.place(shard).node;
            let directory: Arc<dyn Directory> =
                Arc::new(Computed::with_leaving(&stay, &leaving, own, self.plan.shards));
            self.post(0, shard, Input::Directory(directory));
        }
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        usize::from(self.plan.nodes)
    }

    /// A shard hears that something was lost.
    pub fn tell_lost(&mut self, shard: usize) {
        self.give(shard, Input::RecordsLost);
    }
}

fn is_publication(input: &Input<'_>) -> bool {
    matches!(input, Input::Message(ShardMessage::Publication(_)))
}
