//! Values as they stand in requests and answers: each is read strictly and written in one form.
//!
//! - [`jids`], [`text`] and [`time`] are JIDs, texts and times.
//! - [`payload`] is what a notification or an item carries.
//! - [`schema`] is how the OpenAPI document describes the core's own types.

pub(crate) mod jids;
pub(crate) mod payload;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod time;
