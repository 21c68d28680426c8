use super::*;
use carillon_core::model::Mono;
use std::net::IpAddr;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;

fn config(service: Service, port: u16) -> ListenConfig<'static> {
    const LOCAL: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let ports = vec![PortConfig { service, port, is_proxied: false }];
    ListenConfig { addresses: LOCAL, ports, shards: 3, backlog: 16, reuse_port: true, nodelay: true }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[test]
fn one_port_chosen_by_the_system_is_shared_by_all_shards() {
    for reuse_port in [true, false] {
        let (ports, shards) =
            bind(&ListenConfig { reuse_port, ..config(Service::StartTls, 0) }, Vec::new()).unwrap();
        assert_eq!(shards.len(), 3);
        for listeners in &shards {
            let local = listeners[0].socket.local_addr().unwrap();
            assert_eq!((local.ip(), Some(local.port())), (HERE, ports.c2s));
        }
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind((HERE, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    for reuse_port in [true, false] {
        let error =
            bind(&ListenConfig { reuse_port, ..config(Service::DirectTls, port) }, Vec::new()).unwrap_err();
        assert_eq!(error.address, (HERE, port).into());
        assert!(error.to_string().starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")), "{error}");
    }
}

#[test]
fn another_server_on_the_port_is_noticed_even_if_it_would_share() {
    let (ports, _listeners) = bind(&config(Service::StartTls, 0), Vec::new()).unwrap();
    assert!(bind(&config(Service::StartTls, ports.c2s.unwrap()), Vec::new()).is_err());
}

#[test]
fn accepted_connections_inherit_nodelay() {
    let (ports, mut shards) =
        bind(&ListenConfig { shards: 1, ..config(Service::StartTls, 0) }, Vec::new()).unwrap();
    let _client = std::net::TcpStream::connect((HERE, ports.c2s.unwrap())).unwrap();
    let mut spare = SpareDescriptor::new();
    let (socket, from) = loop {
        if let Accepted::Conn(socket, from) = shards[0][0].accept(&mut spare, Default::default()) {
            break (socket, from);
        }
    };
    assert!(socket.tcp_nodelay().unwrap());
    assert_eq!(from, HERE);
}

#[test]
fn the_node_takes_so_many_connections() {
    let admission = Arc::new(Admission::new(Bounds { connections: 2, ..Bounds::NONE }));
    let first = admission.admit(HERE, Mono(0)).unwrap();
    let _second = admission.admit(HERE, Mono(0)).unwrap();
    assert_eq!(admission.admit(HERE, Mono(0)).unwrap_err(), Refusal::Full);
    assert_eq!(admission.open(), 2);
    drop(first);
    assert!(admission.admit(HERE, Mono(0)).is_ok());
}

#[test]
fn an_address_gets_so_many_connections() {
    let admission = Arc::new(Admission::new(Bounds { connections_per_address: 2, ..Bounds::NONE }));
    let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let first = admission.admit(HERE, Mono(0)).unwrap();
    let _mapped = admission.admit(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), Mono(0)).unwrap();
    assert_eq!(admission.admit(HERE, Mono(0)).unwrap_err(), Refusal::Address);
    let _other = admission.admit(other, Mono(0)).unwrap();
    drop(first);
    let _again = admission.admit(HERE, Mono(0)).unwrap();
    assert_eq!(admission.open(), 3);
}

#[test]
fn an_ipv6_network_counts_as_one_address() {
    let admission = Arc::new(Admission::new(Bounds { connections_per_address: 1, ..Bounds::NONE }));
    let address = |net: u16, host: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, net, 0, 0, 0, host));
    let _first = admission.admit(address(1, 1), Mono(0)).unwrap();
    assert_eq!(admission.admit(address(1, 2), Mono(0)).unwrap_err(), Refusal::Address);
    assert!(admission.admit(address(2, 1), Mono(0)).is_ok());
}

#[test]
fn connections_come_no_faster_than_they_may() {
    let admission = Arc::new(Admission::new(Bounds { connects_per_second: 5, ..Bounds::NONE }));
    let at = |ms| admission.admit(HERE, Mono(ms)).map(drop);
    assert!((0..5).all(|_| at(1000).is_ok()));
    assert_eq!(at(1000), Err(Refusal::Rate));
    assert_eq!((at(1200), at(1200)), (Ok(()), Err(Refusal::Rate)));
    assert!((0..5).all(|_| at(9000).is_ok()));
    assert_eq!(admission.open(), 0);
}

#[test]
fn waiting_for_quiet_ends_with_the_last_connection() {
    let admission = Arc::new(Admission::new(Bounds::NONE));
    let permit = admission.admit(HERE, Mono(0)).unwrap();
    assert!(!admission.wait_until_empty(std::time::Duration::from_millis(1)));
    let waiter = std::thread::spawn({
        let admission = Arc::clone(&admission);
        move || admission.wait_until_empty(std::time::Duration::from_secs(60))
    });
    drop(permit);
    assert!(waiter.join().unwrap());
}
