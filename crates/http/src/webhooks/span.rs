//! The span of a request to a webhook: it follows from the notifications that the request tells of.

use super::batch::Batch;
use super::client::Attempt;
use crate::app::App;
use crate::random;
use crate::telemetry::{Span, SpanKind, Value};
use carillon_core::model::{TraceContext, Webhook};
use std::time::SystemTime;

/// A request that is sampled, because a notification of it is.
pub(super) struct Traced {
    /// The span of the request.
    pub(super) context: TraceContext,
    /// Those of the notifications; it is below the first.
    of: Vec<TraceContext>,
    start: SystemTime,
}

impl Traced {
    /// A request with these events, if it is sampled.
    pub(super) fn begin(app: &App, batch: &Batch) -> Option<Traced> {
        let of = app.telemetry().spans_of(batch.events.iter().filter_map(|event| event.of));
        let context = TraceContext { span: random::number().max(1), ..*of.first()? };
        Some(Traced { context, of, start: SystemTime::now() })
    }

    /// The request has ended.
    pub(super) fn end(self, app: &App, webhook: &Webhook, attempt: &Attempt) {
        let Traced { context, mut of, start } = self;
        let mut attributes = vec![("carillon.webhook", Value::Number(webhook.id.0.into()))];
        let status = attempt.status.map(i64::from);
        attributes.extend(status.map(|status| ("http.response.status_code", Value::Number(status))));
        let error = match attempt.status {
            Some(200..=299) => None,
            Some(status) => Some(status.to_string().into()),
            None => Some("no answer".into()),
        };
        let parent = of.remove(0).span;
        let (end, kind) = (SystemTime::now(), SpanKind::Client);
        let name = "POST webhook".into();
        app.telemetry().export(Span {
            name,
            kind,
            context,
            parent,
            start,
            end,
            attributes,
            links: of,
            error,
        });
    }
}
