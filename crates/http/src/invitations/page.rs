//! The page of an invitation: what it is for, and the URI that opens it in a client. Without script, and without anything from elsewhere.

use crate::app::App;
use crate::links::page::{escaped, page};
use crate::problem::Problem;
use crate::values::time::now;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use carillon_core::model::{Invitation, TokenHash};
use carillon_core::ports::store::invitations;

/// Bytes of a token that is looked for.
const TOKEN_BYTES_MAX: usize = 256;

/// The page of an invitation, for whoever has its token.
pub(crate) async fn show(State(app): State<App>, Path((domain, token)): Path<(String, String)>) -> Response {
    let settings = &app.options.core.invitations;
    if !settings.enabled || settings.url.is_empty() {
        return gone();
    }
    match find(&app, &domain, &token).await {
        Ok(Some((domain, invitation))) => shown(&domain, &invitation, &token),
        Ok(None) => gone(),
        Err(problem) => problem.into_response(),
    }
}

/// The invitation with this token, if it can be used, and the name of its domain.
async fn find(app: &App, domain: &str, token: &str) -> Result<Option<(String, Invitation)>, Problem> {
    let Some(domain) = app.domain(domain).filter(|_| token.len() <= TOKEN_BYTES_MAX) else { return Ok(None) };
    let asked = invitations::Invitation { domain: domain.id, hash: TokenHash::of(token) };
    let found = app.ask(asked).await?.filter(|found| found.is_usable(now()));
    Ok(found.map(|found| (domain.name.to_string(), *found)))
}

fn shown(domain: &str, invitation: &Invitation, token: &str) -> Response {
    let uri = escaped(&invitation.uri(domain, token));
    let (host, token) = (escaped(domain), escaped(token));
    let title = match &invitation.inviter {
        Some(inviter) => format!("{} invites you to chat", escaped(inviter)),
        None => format!("You are invited to {host}"),
    };
    let what = match (invitation.registers, &invitation.local) {
        (true, Some(local)) => {
            format!("Your account will be <b>{}@{host}</b>: you choose the password.", escaped(local))
        }
        (true, None) => format!("You get an account on <b>{host}</b>: you choose its name and password."),
        (false, _) => "Open it in your chat app to add each other as contacts.".to_owned(),
    };
    let body = format!(
        "<h1>{title}</h1>\n<p>{what}</p>\n\
         <p><a class=\"button\" href=\"{uri}\">Open in your chat app</a></p>\n\
         <p>Nothing happens? Install an app that speaks XMPP, come back to this page, and open it again. Some apps ask for the \
         server and the code of the invitation instead:</p>\n\
         <p>Server<br><b class=\"to\">{host}</b></p>\n<p>Code<br><b class=\"to code\">{token}</b></p>\n\
         <p class=\"note\">Keep this page to yourself: whoever has its address can use the invitation. It is valid until {} UTC.</p>",
        &invitation.expires.to_xmpp()[..16].replace('T', " ")
    );
    page(&title, &body, StatusCode::OK)
}

fn gone() -> Response {
    let title = "This invitation cannot be used";
    let text =
        "It has expired, was used or revoked, or its address was not copied as a whole. Ask for a new one.";
    page(title, &format!("<h1>{title}</h1>\n<p>{text}</p>"), StatusCode::NOT_FOUND)
}
