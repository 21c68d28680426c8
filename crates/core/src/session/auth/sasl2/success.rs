//! `<success/>`: at once, or with the resource where one is bound inline.

use super::bind;
use crate::connection::{Client, Io};
use crate::sasl::{Failure, Inline};
use crate::session::auth::greeting::{Greeting, Success};
use crate::session::auth::proven::Proved;
use crate::session::auth::{Authenticated, Binding};
use crate::session::{Cx, Loading, Resuming, Session};

/// Tells the client of its success: at once, or with the resource if it asks for one inline.
pub(in crate::session::auth) fn succeed(
    mut client: Client,
    inline: Inline,
    mut proved: Proved,
    cx: &mut Cx<'_>,
) -> Session {
    let hooks = &cx.pipeline.success;
    let added = hooks.iter().filter_map(|hook| hook(&mut proved, &inline, &client.protection, cx)).collect();
    let success = Success { inline, data: proved.data.take(), added };
    let authenticated = proved.authenticated(&mut client, cx);
    let io = client.io;
    // XEP-0198 §9.2: what a client wants to resume comes before what it wants to bind otherwise.
    match cx.pipeline.resumption.and_then(|handler| (handler.inline)(&success.inline)) {
        None => success.go_on(io, authenticated, cx),
        Some(Err(failed)) => success.with(failed).go_on(io, authenticated, cx),
        Some(Ok(resume)) => Session::Resuming(Box::new(Resuming {
            io,
            authenticated,
            resume,
            success: Some(success),
            until: None,
        })),
    }
}

impl Success {
    /// Binds a resource if the client asks for that inline; else it is told of its success, and may bind one.
    pub(crate) fn go_on(self, io: Io, authenticated: Authenticated, cx: &mut Cx<'_>) -> Session {
        match self.inline.bind().map(|bind| bind::resource(&authenticated, bind, self.inline.agent(), cx)) {
            None => {
                io.send_element(&self.element(authenticated.jid().as_str()), cx);
                Binding::offer(io, authenticated, cx)
            }
            Some(Ok(jid)) => Loading::begin(io, authenticated, jid, Greeting::Success(self), cx),
            Some(Err(_)) => self.refuse(io, Failure::MalformedRequest, cx),
        }
    }
}
