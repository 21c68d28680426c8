//! TLS KeyUpdates over real sockets: those that are answered, and those that are too many.

use super::*;
use rustls::{AlertDescription, Error};

/// A client in TLS 1.3 that was greeted.
fn client(server: &Server) -> TlsClient {
    let mut tls = client_tls(connect(server.ports().c2s_tls), &[]);
    expect(&mut tls, "hello Tcp;");
    assert_eq!(tls.conn.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    tls
}

/// Sends so many KeyUpdates that ask for one in return, data behind them, all in one write; what became of the data.
fn update(tls: &mut TlsClient, count: usize) -> std::io::Result<()> {
    (0..count).for_each(|_| tls.conn.refresh_traffic_keys().unwrap());
    tls.conn.writer().write_all(b"<m/>").unwrap();
    tls.flush()?;
    let mut back = [0; 4];
    tls.read_exact(&mut back)?;
    assert_eq!(&back, b"<m/>");
    Ok(())
}

/// The client was told why; its connection is gone once it has closed its end, too, and another goes on.
fn assert_ended(server: &Server, ended: TlsClient, error: &std::io::Error, other: &mut TlsClient) {
    let alert = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    assert_eq!(alert, Some(&Error::AlertReceived(AlertDescription::UnexpectedMessage)), "{error}");
    drop(ended);
    until(server, |status| status.connections == 1);
    update(other, 1).unwrap();
}

#[test]
fn too_many_in_a_minute_end_the_connection() {
    let server = start(&options());
    let (mut tls, mut other) = (client(&server), client(&server));
    let mut answered = 0;
    let error = loop {
        match update(&mut tls, 1) {
            Ok(()) => answered += 1,
            Err(error) => break error,
        }
        // The minute of the server's clock may end meanwhile.
        assert!(answered <= 120, "without bound");
    };
    assert!(answered >= 60, "{answered}");
    assert_ended(&server, tls, &error, &mut other);
}

#[test]
fn too_many_in_a_row_end_the_connection() {
    let server = start(&options());
    let (mut tls, mut other) = (client(&server), client(&server));
    update(&mut tls, 20).unwrap();
    let error = update(&mut tls, 33).unwrap_err();
    assert_ended(&server, tls, &error, &mut other);
}
