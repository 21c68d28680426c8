//! Notifications: sent to one or many, followed to their end, taken back.

mod batch;
mod body;
mod elsewhere;
mod list;
mod send;
mod submit;
mod targets;
mod trace;
mod window;

pub(crate) use batch::{__path_send_batch, send_batch};
pub(crate) use body::NotificationBody;
pub(crate) use elsewhere::Elsewhere;
pub(crate) use list::{__path_list, list, read_states};
pub(crate) use send::{__path_send, send, send_as};
pub(crate) use submit::{SendResult, sent, unknown_device};
pub(crate) use trace::{__path_cancel, __path_trace, NotificationView, cancel, trace};
