//! What handlers take from a request, each read strictly and refused with a [`crate::problem::Problem`].

mod explain;
mod json;
mod lines;
mod members;
mod path;
mod query;
mod words;

pub(crate) use json::{Bodies, JsonBody, Optional, Raw, parse};
pub(crate) use lines::{Format, Line, LineStream, content_type};
pub(crate) use members::{Members, Patch, Wanted};
pub(crate) use path::Named;
pub(crate) use query::{DomainQuery, PageQuery, Params, cut, limit};
