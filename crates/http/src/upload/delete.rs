//! `DELETE`: whoever has a key with scope `admin` for the domain removes a file.

use super::find;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::problem::Problem;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use carillon_core::ports::store::uploads::DeleteUpload;

pub(super) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Path((token, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (domain, id, _) = find(&app, &token, &name).await?;
    key.reach(&app, &app.domain_name(domain))?;
    app.ask(DeleteUpload { domain, id }).await?;
    Ok(StatusCode::NO_CONTENT)
}
