//! What is asked of queues and matches from outside.

use super::matchmaker::{Bounds, QueueKey};
use super::{Matches, share};
use crate::Effect;
use crate::command::{Command, MatchRequest, Outcome, QueueOutcome, QueueRefusal, QueueRequest, ReplyTo};
use crate::model::{DomainId, MatchId};
use crate::session::Cx;
use carillon_wire::frame::game::EndReason;

impl Matches {
    /// Something is asked of a queue or a match.
    pub(crate) fn command(&mut self, command: Command, reply: ReplyTo, cx: &mut Cx<'_>) {
        match command {
            Command::Queue { domain, name, request } => self.queue(domain, name, *request, reply, cx),
            Command::Match { domain, id, request } => self.ask(domain, id, request, reply, cx),
            _ => cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Unavailable }),
        }
    }

    /// Something is asked of a queue.
    fn queue(
        &mut self,
        domain: DomainId,
        name: Box<str>,
        request: QueueRequest,
        to: ReplyTo,
        cx: &mut Cx<'_>,
    ) {
        let result = self.try_queue(&(domain, name), request, cx);
        cx.out.push(Effect::Reply { to, outcome: Outcome::Queue(Box::new(result)) });
    }

    fn try_queue(
        &mut self,
        key: &QueueKey,
        request: QueueRequest,
        cx: &mut Cx<'_>,
    ) -> Result<QueueOutcome, QueueRefusal> {
        let (settings, shards) = (&cx.shard.settings.matches, cx.shard.shard_count);
        if settings.max == 0 {
            return Err(QueueRefusal::Disabled);
        }
        let bounds =
            Bounds { queues: share(settings.queues, shards), tickets: share(settings.tickets, shards) };
        let entered = match &request {
            QueueRequest::Enter { ticket } => Some(ticket.id.clone()),
            QueueRequest::Put { config } => {
                let module = config.rules.module.as_deref();
                if module.is_some_and(|module| !self.modules.has(module)) {
                    return Err(QueueRefusal::NoModule);
                }
                None
            }
            _ => None,
        };
        let figures = &mut cx.shard.counters.matches;
        let outcome = self.maker.request(key, request, cx.now, bounds, figures)?;
        let Some(id) = entered.filter(|_| self.maker.due().is_some_and(|at| at <= cx.now.mono)) else {
            return Ok(outcome);
        };
        // It may have made a match complete: then that is the answer.
        self.make(cx);
        self.tell(cx);
        let figures = &mut cx.shard.counters.matches;
        let after = self.maker.request(key, QueueRequest::Ticket { id }, cx.now, bounds, figures)?;
        Ok(match (outcome, after) {
            (QueueOutcome::Ticket { created, .. }, QueueOutcome::Ticket { ticket, .. }) => {
                QueueOutcome::Ticket { ticket, created }
            }
            (outcome, _) => outcome,
        })
    }

    /// Something is asked of a match.
    fn ask(&mut self, domain: DomainId, id: MatchId, request: MatchRequest, to: ReplyTo, cx: &mut Cx<'_>) {
        let found = self.matches.get(&id).filter(|it| it.play.queue.domain == domain);
        let outcome = match (request, found) {
            (MatchRequest::Replay, Some(it)) => Outcome::MatchReplay(Box::new(it.play.replay(None))),
            (MatchRequest::Replay, None) => match self.replays.find(domain, id) {
                Some(replay) => Outcome::MatchReplay(Box::new(replay.clone())),
                None => Outcome::Missing,
            },
            (MatchRequest::Watch, Some(it)) => match it.play.spectator_token(cx.now.unix) {
                Some((token, expires)) => Outcome::MatchToken { token, expires },
                None => Outcome::Missing,
            },
            (MatchRequest::Get | MatchRequest::End, Some(it)) => Some(it.play.view()).into(),
            (_, None) => Outcome::Missing,
        };
        if matches!((request, &outcome), (MatchRequest::End, Outcome::Match(_))) {
            self.end(id, EndReason::Shutdown, cx);
        }
        cx.out.push(Effect::Reply { to, outcome });
    }
}
