//! Telling the asker of an operation on a topic its outcome.

use crate::Effect;
use crate::command::{Asker, Outcome, Refusal, TopicOutcome};
use crate::message::ShardMessage;
use crate::session::Cx;

impl Asker {
    /// Tells the asker the outcome.
    pub(super) fn answer(self, name: &str, result: Result<TopicOutcome, Refusal>, cx: &mut Cx<'_>) {
        match self {
            Asker::Iq(iq) => {
                if let Some(answer) = cx.pipeline.topic_answer {
                    answer(*iq, name, result, cx);
                }
            }
            Asker::Command(to) => {
                let outcome = result.map_or_else(Refusal::outcome, |outcome| Outcome::Topic(Ok(outcome)));
                cx.out.push(Effect::Reply { to, outcome });
            }
            Asker::Light(place) => cx.post(place, ShardMessage::Listening { name: name.into(), result }),
        }
    }
}
