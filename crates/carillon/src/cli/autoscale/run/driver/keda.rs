//! A page that KEDA's `metrics-api` scaler reads: KEDA commands the replicas, this says how many there are to be.

use super::{Driver, Renew};
use carillon_scale::Granted;
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `[driver]` of kind `keda`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct KedaSettings {
    /// Where the page is served.
    listen: SocketAddr,
}

/// A page with the units. It says nothing before they were decided on by data, nor while another scaler acts: KEDA, which takes what the page says
/// for what there is to be, then leaves the replicas as they are.
pub(super) struct Keda {
    /// What was decided on last; without that the minimum.
    units: u32,
    /// Whether that was decided on by data, by this scaler or the one before it.
    is_known: bool,
    served: Served,
    address: SocketAddr,
    is_told: bool,
}

/// How long a reader may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 8 << 10;

impl Keda {
    /// Serves the page from now on.
    pub(super) fn new(settings: &KedaSettings, min: u32, last: Option<u32>) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("driver.listen: {}: {error}", settings.listen);
        let listener = TcpListener::bind(settings.listen).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let served = Served::default();
        let shown = served.clone();
        // One at a time, each within its timeout: KEDA asks every few seconds.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let units = *shown.lock();
                let _ = serve(&stream, units);
            }
        });
        Ok(Self { units: last.unwrap_or(min), is_known: last.is_some(), served, address, is_told: false })
    }
}

/// What the page says.
#[derive(Clone, Default)]
struct Served(Arc<Mutex<Option<u32>>>);

impl Served {
    fn lock(&self) -> MutexGuard<'_, Option<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: &TcpStream, units: Option<u32>) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let (status, body) = match units {
        _ if !first.starts_with("GET ") => ("405 Method Not Allowed", "{}".to_owned()),
        Some(units) => ("200 OK", format!("{{\"units\":{units}}}")),
        None => {
            ("503 Service Unavailable", "{\"reason\":\"no decision of this scaler is in force\"}".to_owned())
        }
    };
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

impl Driver for Keda {
    /// What was asked for: how far KEDA is, it does not say. Of what was not asked for nothing is in force.
    fn granted(&mut self, _: Duration) -> Result<Granted, String> {
        let in_force = self.in_force().unwrap_or_default();
        Ok(Granted { in_force, ..Granted::steady(self.units) })
    }

    fn in_force(&self) -> Option<u32> {
        Some(if self.is_known { self.units } else { 0 })
    }

    fn keep(&mut self, units: u32) {
        (self.units, self.is_known) = (units, true);
        *self.served.lock() = Some(units);
    }

    /// The one that acts may have decided on more since.
    fn stand_by(&mut self) {
        self.is_known = false;
        *self.served.lock() = None;
    }

    fn take_up(&mut self) {
        if self.is_known {
            *self.served.lock() = Some(self.units);
        }
    }

    /// Without data a floor adds to what is known, and is not said instead of it: there may be more.
    fn scale(&mut self, units: u32, _: Renew<'_>) -> Result<(), String> {
        if !self.is_known {
            return Err(
                "what there is is not known, and may be more: KEDA is told nothing without data".to_owned()
            );
        }
        self.keep(units);
        Ok(())
    }

    fn notes(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.is_told, true) {
            return Vec::new();
        }
        vec![format!("serves http://{}/", self.address)]
    }
}
