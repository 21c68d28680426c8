//! Where this server's own requests may go.
//!
//! - [`address`]: the addresses behind a host that others name, such as the receiver of a webhook.
//! - [`origin`]: a service that the operator names, and that is shown credentials.

pub(crate) mod address;
pub(crate) mod origin;
