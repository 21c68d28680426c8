//! What looks at a request before any route does: hosts of links get links and nothing else, the host of files gets files, all others the API.

use super::hosts::{At, name_of};
use super::redirect;
use crate::app::App;
use crate::auth::Shown;
use crate::auth::acts::Peer;
use axum::Router;
use axum::body::HttpBody;
use axum::http::Request;
use axum::response::Response;
use bytes::Bytes;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;

/// The API, the links and the files of a node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Front {
    app: App,
    api: Router,
    links: Router,
    files: Router,
    peer: Option<IpAddr>,
    shown: Shown,
    /// Whether hosts of links and of files have routes of their own.
    has_hosts: bool,
}

/// An answer that is there already, or that a route is to give.
pub(crate) enum Answering<F> {
    /// It is there until it is taken.
    AtOnce(Option<Response>),
    /// A route gives it.
    Later(F),
}

const FORWARDED_FOR: &str = "x-forwarded-for";

impl Front {
    /// Serves `api`, on hosts of links `links`, and on the host of files `files`.
    pub(crate) fn new(app: App, api: Router, links: Router, files: Router) -> Front {
        Front { app, api, links, files, peer: None, shown: Shown::default(), has_hosts: true }
    }

    /// Serves these routes on every host.
    pub(crate) fn alone(app: App, routes: Router) -> Front {
        Front { has_hosts: false, ..Front::new(app, routes, Router::new(), Router::new()) }
    }

    /// The same for a connection from this address.
    pub(crate) fn of_peer(&self, peer: Option<IpAddr>) -> Front {
        Front { peer, ..self.clone() }
    }

    /// The same for a client that showed a certificate.
    pub(crate) fn of_client(self, shown: Shown) -> Front {
        Front { shown, ..self }
    }
}

impl<B> Service<Request<B>> for Front
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering<<Router as Service<Request<B>>>::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Routers are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(Peer(self.peer));
        if !self.shown.0.is_empty() {
            request.extensions_mut().insert(self.shown.clone());
        }
        if !self.has_hosts {
            return Answering::Later(self.api.call(request));
        }
        let uploads = self.app.uploads();
        if uploads.are_on() && uploads.is_for(name_of(request.uri(), request.headers())) {
            return Answering::Later(self.files.call(request));
        }
        let Some(host) = self.app.links().host(request.uri(), request.headers()) else {
            return Answering::Later(self.api.call(request));
        };
        let (method, path) = (request.method(), request.uri().path());
        if let Some(response) = redirect::at_once(&self.app, host, method, path, request.headers()) {
            return Answering::AtOnce(Some(response));
        }
        // Whoever is asked without a socket, as in a test, has this machine for a peer.
        let peer = self.peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let fields = request.headers().get_all(FORWARDED_FOR).iter();
        let forwarded = fields.map(|value| value.to_str().unwrap_or_default());
        let client = self.app.options.trusted_proxies.client(peer, forwarded).unwrap_or(peer);
        let at = At { host: host.clone(), client };
        request.extensions_mut().insert(at);
        Answering::Later(self.links.call(request))
    }
}

impl<F: Future<Output = Result<Response, Infallible>> + Unpin> Future for Answering<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answering::AtOnce(response) => {
                Poll::Ready(Ok(response.take().expect("a future is not asked again after it has ended")))
            }
            Answering::Later(route) => Pin::new(route).poll(cx),
        }
    }
}
