//! Doing what a message asks for, as the routes of the provider do it, and what that means for its queue.

use super::Intake;
use super::message::{self, Part, Rules, What};
use crate::app::App;
use crate::auth::Granted;
use crate::problem::{Code, Problem};
use crate::provider::idempotency::Answer;
use crate::provider::{items, notifications};
use crate::values::time::now;
use axum::http::StatusCode;
use carillon_core::model::ApiKey;
use carillon_core::ports::{Pulled, Reason};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

/// What became of a message.
#[derive(Debug)]
pub(super) enum Done {
    /// All of it is committed.
    Accepted {
        /// It was before.
        known: bool,
    },
    /// It cannot be done now.
    Later(Problem),
    /// It, or a part of it, will never be done.
    Dead(Reason),
}

/// Does what a message asks for.
pub(super) async fn perform(app: &App, intake: &Intake, sender: &ApiKey, pulled: &Pulled) -> Done {
    let settings = &app.options.settings;
    let rules = Rules {
        queue: &intake.options.name,
        known_ms: app.options.traces_kept_ms,
        bytes_max: settings.body_bytes_max,
        parts_max: settings.targets_max,
        now: now(),
    };
    let parts = match message::read(pulled, rules) {
        Ok(parts) => parts,
        Err(problem) => return Done::Dead(reason(&problem)),
    };
    let domain = intake.options.domain.as_deref();
    let is_one = parts.len() == 1;
    let answers: Vec<_> = stream::iter(parts.into_iter().map(|part| one(app, sender, domain, part)))
        .buffered(settings.pending_max)
        .collect()
        .await;
    let parts = answers.into_iter().enumerate().map(|(at, answer)| match answer {
        Err(problem) if !is_one => of_one(Err(message::numbered(&problem, at + 1))),
        answer => of_one(answer),
    });
    of_all(parts)
}

/// Does a part.
async fn one(app: &App, sender: &ApiKey, domain: Option<&str>, part: Part) -> Result<Answer, Problem> {
    let Part { what, identity } = part;
    let app = app.clone();
    match what {
        What::Notification(body) => {
            notifications::send_as(app, Granted::to(sender.clone())?, domain, body, identity).await
        }
        What::Item { topic, body } => {
            items::publish_as(app, Granted::to(sender.clone())?, domain, &topic, body, identity).await
        }
    }
}

/// What the answer to a part means.
fn of_one(answer: Result<Answer, Problem>) -> Done {
    match answer {
        Err(problem) | Ok(Answer { refused: Some(problem), .. }) if may_pass(&problem) => {
            Done::Later(problem)
        }
        Err(problem) | Ok(Answer { refused: Some(problem), .. }) => Done::Dead(reason(&problem)),
        // What was refused before is refused again.
        Ok(answer) if !answer.status.is_success() || answer.status == StatusCode::MULTI_STATUS => {
            Done::Dead(remembered(&answer.body))
        }
        Ok(answer) => Done::Accepted { known: answer.known },
    }
}

/// What became of all parts is what became of the worst of them: a part that was done is known when the message comes again.
fn of_all(parts: impl Iterator<Item = Done>) -> Done {
    let worse = |one: Done, other: Done| match (one, other) {
        (later @ Done::Later(_), _) | (_, later @ Done::Later(_)) => later,
        (dead @ Done::Dead(_), _) | (_, dead @ Done::Dead(_)) => dead,
        (Done::Accepted { known: one }, Done::Accepted { known: other }) => {
            Done::Accepted { known: one && other }
        }
    };
    parts.reduce(worse).unwrap_or(Done::Accepted { known: true })
}

/// Whether the same may be done later.
fn may_pass(problem: &Problem) -> bool {
    let status = problem.status();
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || matches!(problem.code(), Code::InProgress | Code::UnknownKey | Code::ExpiredKey)
}

/// Whether the node or its store cannot do anything now.
pub(super) fn is_behind(problem: &Problem) -> bool {
    problem.status().is_server_error() && problem.code() != Code::Internal
}

fn reason(problem: &Problem) -> Reason {
    let detail = match problem.pointer() {
        Some(pointer) => format!("{pointer}: {}", problem.detail()),
        None => problem.detail().to_owned(),
    };
    Reason { code: problem.code().as_str().into(), detail: detail.into() }
}

/// Why something was refused, from the response to it.
fn remembered(body: &str) -> Reason {
    let read = serde_json::from_str::<Value>(body).unwrap_or_default();
    let refused = read["results"].as_array().into_iter().flatten().map(|result| &result["error"]);
    let problem = refused.into_iter().find(|error| error.is_object()).unwrap_or(&read);
    let text = |name: &str| problem[name].as_str().unwrap_or("refused").into();
    Reason { code: text("code"), detail: text("detail") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(done: Done) -> String {
        match done {
            Done::Accepted { known } => format!("accepted {known}"),
            Done::Later(problem) => format!("later {}", problem.code().as_str()),
            Done::Dead(reason) => format!("dead {}: {}", reason.code, reason.detail),
        }
    }

    #[test]
    fn an_answer_means_that_it_is_done_or_comes_again_or_never_will_be() {
        let answer = |status, body: &str| Answer::new(status, body.to_owned());
        let part = |problem| Answer { refused: Some(problem), ..answer(StatusCode::MULTI_STATUS, "{}") };
        let refused = || Problem::new(Code::UnknownDevice, "there is no device `a`").at("/to");
        for (said, expected) in [
            (Ok(answer(StatusCode::ACCEPTED, "{}")), "accepted false"),
            (Ok(Answer { known: true, ..answer(StatusCode::ACCEPTED, "{}") }), "accepted true"),
            (Ok(part(refused())), "dead unknown-device: /to: there is no device `a`"),
            (Ok(part(Problem::busy())), "later unavailable"),
            (Err(refused()), "dead unknown-device: /to: there is no device `a`"),
            (Err(Problem::timed_out()), "later timed-out"),
            (Err(Problem::new(Code::TooFast, "")), "later too-fast"),
            (Err(Problem::new(Code::InProgress, "")), "later in-progress"),
            (
                Ok(answer(StatusCode::NOT_FOUND, r#"{"code":"unknown-topic","detail":"no"}"#)),
                "dead unknown-topic: no",
            ),
            (
                Ok(answer(
                    StatusCode::MULTI_STATUS,
                    r#"{"results":[{"id":"1"},{"error":{"code":"c","detail":"d"}}]}"#,
                )),
                "dead c: d",
            ),
        ] {
            assert_eq!(word(of_one(said)), expected);
        }
    }

    #[test]
    fn the_worst_part_decides() {
        let accepted = |known| Done::Accepted { known };
        let dead = || Done::Dead(Reason { code: "c".into(), detail: "d".into() });
        let all = |parts: Vec<Done>| word(of_all(parts.into_iter()));
        assert_eq!(all(vec![accepted(true), accepted(true)]), "accepted true");
        assert_eq!(all(vec![accepted(true), accepted(false)]), "accepted false");
        assert_eq!(all(vec![accepted(true), dead(), accepted(true)]), "dead c: d");
        assert_eq!(all(vec![dead(), Done::Later(Problem::busy()), dead()]), "later unavailable");
    }
}
