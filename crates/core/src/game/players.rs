//! Tickets that accounts enter themselves, by IQ: the queue answers, and tells whoever entered one what becomes of it.

use super::Matches;
use super::matchmaker::{News, QueueKey};
use super::share;
use crate::command::{PendingIq, QueueRefusal};
use crate::error::StanzaError;
use crate::message::Wish;
use crate::model::{NewTicket, Seating, TicketState, TicketView};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;

impl Matches {
    /// An account asks a queue for something.
    pub(super) fn asked(
        &mut self,
        queue: &QueueKey,
        wish: Wish,
        ticket: Box<str>,
        iq: PendingIq,
        cx: &mut Cx<'_>,
    ) {
        let is_cancel = matches!(wish, Wish::Cancel);
        let done = self.wished(queue, wish, ticket, &iq, cx);
        let told = done.map(|ticket| match is_cancel {
            true => Payload::empty(),
            false => Payload::from_element(&element(&ticket)),
        });
        cx.reply(iq.reply(told.map_err(error)));
        self.tell(cx);
    }

    fn wished(
        &mut self,
        queue: &QueueKey,
        wish: Wish,
        id: Box<str>,
        iq: &PendingIq,
        cx: &mut Cx<'_>,
    ) -> Result<TicketView, QueueRefusal> {
        let settings = &cx.shard.settings.matches;
        if settings.max == 0 {
            return Err(QueueRefusal::Disabled);
        }
        let bound = share(settings.tickets, cx.shard.shard_count);
        let account = iq.from.bare();
        let figures = &mut cx.shard.counters.matches;
        match wish {
            Wish::Look => self.maker.ticket_of(queue, &account),
            Wish::Cancel => self.maker.withdraw(queue, &account, figures),
            Wish::Enter { rating, alike } => {
                let ticket = NewTicket { id, account: account.clone(), rating, alike, party: Vec::new() };
                let entered = self.maker.enter_by(queue, ticket, &iq.from, cx.now, bound, figures)?;
                if self.maker.due().is_none_or(|at| at > cx.now.mono) {
                    return Ok(entered);
                }
                // It may have made a match complete: then that is the answer.
                self.make(cx);
                self.maker.forget_news(&iq.from);
                self.maker.ticket_of(queue, &account)
            }
        }
    }

    /// Tells sessions what became of tickets that they entered. Who is not there any more finds out by asking.
    pub(super) fn tell(&mut self, cx: &mut Cx<'_>) {
        for News { queue: (domain, name), to, ticket } in self.maker.news() {
            let Some(domain) = cx.shard.domains.numbered(domain) else { continue };
            let queue = crate::model::queue_address(&name, &domain.name);
            let Ok(from) = BareJid::new(&queue) else { continue };
            let mut message = Stanza::message(MessageType::Headline).with_to(to).with_from(from.to_jid());
            message.payload = Payload::from_element(&element(&ticket));
            cx.reply(message);
        }
    }
}

/// A ticket, as its account is told of it.
fn element(view: &TicketView) -> Element {
    let NewTicket { id, rating, alike, .. } = &view.ticket;
    let state = match &view.state {
        TicketState::Waiting => "waiting",
        TicketState::Matched(_) => "matched",
        TicketState::Ended(_) => "ended",
        TicketState::Expired => "expired",
    };
    let mut ticket = Element::new("ticket", ns::MATCHES)
        .with_attr("id", &**id)
        .with_attr("state", state)
        .with_attr("rating", rating.to_string())
        .with_attr("entered", view.created.to_xmpp());
    for (name, value) in alike {
        ticket = ticket.with_child(
            Element::new("alike", ns::MATCHES).with_attr("name", &**name).with_text(value.to_string()),
        );
    }
    match &view.state {
        TicketState::Matched(seating) => ticket.with_child(seat(seating)),
        _ => ticket,
    }
}

fn seat(Seating { id, seat, accounts, token, expires, waited_ms, party: _ }: &Seating) -> Element {
    let seating = Element::new("seating", ns::MATCHES)
        .with_attr("match", id.to_string())
        .with_attr("seat", seat.to_string())
        .with_attr("token", &**token)
        .with_attr("expires", expires.to_xmpp())
        .with_attr("waited-ms", waited_ms.to_string());
    accounts.iter().fold(seating, |seating, account| {
        seating.with_child(Element::new("account", ns::MATCHES).with_attr("jid", account.as_str()))
    })
}

/// What an account is told whose wish was refused.
fn error(refusal: QueueRefusal) -> StanzaError {
    let (condition, text) = match refusal {
        QueueRefusal::NoQueue | QueueRefusal::Disabled => (Condition::ItemNotFound, "there is no such queue"),
        QueueRefusal::NoTicket => (Condition::ItemNotFound, "you have no ticket in this queue"),
        QueueRefusal::NotOpen => {
            (Condition::Forbidden, "tickets are entered in this queue by its operator, and not by players")
        }
        QueueRefusal::TooLate => (Condition::UnexpectedRequest, "the ticket has a match"),
        QueueRefusal::TooManyTickets => {
            (Condition::ResourceConstraint, "there are as many tickets as there may be; try again later")
        }
        QueueRefusal::OtherTicket
        | QueueRefusal::Present
        | QueueRefusal::PartyTooLarge
        | QueueRefusal::Twice
        | QueueRefusal::TooManyQueues
        | QueueRefusal::NoModule => (Condition::NotAcceptable, "the queue does not take this ticket"),
    };
    StanzaError::new(condition).with_text(text)
}
