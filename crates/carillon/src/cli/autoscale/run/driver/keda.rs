//! A page that KEDA's `metrics-api` scaler reads: KEDA commands the replicas, this says how many there are to be.

use super::Driver;
use carillon_scale::Granted;
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// `[driver]` of kind `keda`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct KedaSettings {
    /// Where the page is served.
    listen: SocketAddr,
}

/// A page with the units.
pub(super) struct Keda {
    units: Arc<AtomicU32>,
    address: SocketAddr,
    is_told: bool,
}

/// How long a reader may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 8 << 10;

impl Keda {
    /// Serves the page from now on.
    pub(super) fn new(settings: &KedaSettings, units: u32) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("driver.listen: {}: {error}", settings.listen);
        let listener = TcpListener::bind(settings.listen).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let units = Arc::new(AtomicU32::new(units));
        let served = Arc::clone(&units);
        // One at a time, each within its timeout: KEDA asks every few seconds.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(&stream, served.load(Ordering::Relaxed));
            }
        });
        Ok(Self { units, address, is_told: false })
    }
}

fn serve(stream: &TcpStream, units: u32) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let (status, body) = match first.starts_with("GET ") {
        true => ("200 OK", format!("{{\"units\":{units}}}")),
        false => ("405 Method Not Allowed", "{}".to_owned()),
    };
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

impl Driver for Keda {
    /// What was asked for: how far KEDA is, it does not say.
    fn granted(&mut self, _: Duration) -> Result<Granted, String> {
        Ok(Granted::steady(self.units.load(Ordering::Relaxed)))
    }

    fn scale(&mut self, units: u32) -> Result<(), String> {
        self.units.store(units, Ordering::Relaxed);
        Ok(())
    }

    fn notes(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.is_told, true) {
            return Vec::new();
        }
        vec![format!("serves http://{}/", self.address)]
    }
}
