//! Connections that a trusted proxy forwards: whose they are is told by the header that comes first.

use super::EventLoop;
use crate::conn::Stage;
use crate::listen::{Refusal, Service};
use crate::machine::Machine;
use carillon_core::model::ConnId;
use carillon_wire::frame::proxy::{self, Header};
use std::net::IpAddr;

impl<M: Machine> EventLoop<M> {
    /// Reads the PROXY header in the first `len` bytes of the scratch buffer, which are all that came so far, and goes on with
    /// what follows it.
    pub(super) fn header(&mut self, id: ConnId, service: Service, len: usize) {
        let Some(conn) = self.io.conns.get_mut(id) else { return };
        let Stage::New(proxy) = conn.stage else { return };
        let input = &self.io.scratch.raw[..len];
        match proxy::read(input) {
            Ok(None) => conn.keep_record(input),
            Ok(Some(Header { client, bytes })) => {
                if self.is_announced(id, service, client.unwrap_or(proxy)) && bytes < len {
                    self.received_of_client(id, bytes, len);
                }
            }
            Err(error) => {
                // Once for all that come meanwhile, which are counted.
                if self.silent_until <= self.now.mono {
                    tracing::warn!(%proxy, %error, "a connection of a trusted proxy was refused; see listen.proxy_protocol");
                    self.silent_until = self.now.mono.plus(SILENT_MS);
                }
                self.refused(Refusal::ProxyHeader);
                self.io.drop_conn(id);
            }
        }
    }

    /// Begins the connection, which is that of this client. Whether it was admitted.
    fn is_announced(&mut self, id: ConnId, service: Service, client: IpAddr) -> bool {
        let transport = self.io.start_transport(service);
        let Some(conn) = self.io.conns.get_mut(id) else { return false };
        conn.transport = transport;
        match conn.is_from(client) {
            Ok(()) => {
                self.begin(id, service);
                true
            }
            Err(refusal) => {
                if let Some(conn) = self.io.detach(id) {
                    self.refuse(conn.socket, service, refusal);
                }
                false
            }
        }
    }
}

/// It says that a proxy sends no header, and then nothing for so long.
const SILENT_MS: u64 = 10_000;
