//! How a node is drained: its sessions end in slices, and are told why and where or when to come back.

use std::fmt;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::sync::Arc;

/// What sessions are told when the node is drained, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Farewell {
    /// The node goes away. All sessions end.
    #[default]
    Shutdown,
    /// Another host serves them. All sessions end.
    SeeOtherHost(OtherHost),
    /// A process follows. Sessions that can be resumed are parked; clients are told to return after `least_s` seconds and a random part of
    /// `spread_s` more.
    Restart {
        /// The least time, in seconds.
        least_s: u32,
        /// The longest time in addition, in seconds.
        spread_s: u32,
    },
}

/// A slice of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainSlice {
    /// What those who end are told.
    pub farewell: Arc<Farewell>,
    /// How many slices follow this one.
    pub slices_left: u32,
    /// How many slices there are.
    pub slices: u32,
    /// Whether there is no later one, not even for those who had something under way when it was their turn.
    pub is_last: bool,
}

/// Where clients are sent by `<see-other-host/>` (RFC 6120 §4.9.3.19): a host name or an IP address, IPv6 in brackets, with or without
/// a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHost(Box<str>);

impl OtherHost {
    /// As it is written in the stream error.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OtherHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with the text of an [`OtherHost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHost {
    /// The port is no number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// An IPv6 address has no brackets, or there is none within them.
    #[error("an IPv6 address stands in brackets: [2001:db8::1] or [2001:db8::1]:5222")]
    Ipv6,
    /// The host is neither an IP address nor a host name.
    #[error("not a host name of letters, digits, `-` and `.`, nor an IP address")]
    Name,
}

impl FromStr for OtherHost {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<OtherHost, NoHost> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(NoHost::Ipv6)?;
                address.parse::<Ipv6Addr>().map_err(|_| NoHost::Ipv6)?;
                (None, port)
            }
            None => match text.find(':') {
                Some(at) if text.parse::<Ipv6Addr>().is_err() => {
                    let (host, port) = text.split_at_checked(at).ok_or(NoHost::Name)?;
                    (Some(host), port)
                }
                Some(_) => return Err(NoHost::Ipv6),
                None => (Some(text), ""),
            },
        };
        if !port.is_empty() {
            let number = port.strip_prefix(':').filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
            number.and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0).ok_or(NoHost::Port)?;
        }
        if host.is_some_and(|host| host.parse::<Ipv4Addr>().is_err() && !is_name(host)) {
            return Err(NoHost::Name);
        }
        Ok(OtherHost(text.into()))
    }
}

/// Whether it is a host name (RFC 1123 §2.1); one of digits alone would be a wrong IPv4 address.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_of_it = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_of_it)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let labels = host.strip_suffix('.').unwrap_or(host);
    let last = labels.rsplit('.').next().unwrap_or_default();
    host.len() <= 253 && labels.split('.').all(is_label) && !last.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_taken_as_they_are_written() {
        for text in [
            "b.example.org",
            "b.example.org:5222",
            "localhost",
            "xn--bcher-kva.example.:1",
            "192.0.2.1",
            "192.0.2.1:65535",
            "[2001:db8::1]",
            "[::1]:5223",
        ] {
            assert_eq!(text.parse::<OtherHost>().as_ref().map(OtherHost::as_str), Ok(text));
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for (text, why) in [
            ("", NoHost::Name),
            (":5222", NoHost::Name),
            ("b example", NoHost::Name),
            ("b.example/x", NoHost::Name),
            ("<b/>", NoHost::Name),
            ("-b.example", NoHost::Name),
            ("b..example", NoHost::Name),
            ("1.2.3", NoHost::Name),
            ("256.1.1.1:1", NoHost::Name),
            ("bücher.example", NoHost::Name),
            ("b.example:", NoHost::Port),
            ("b.example:0", NoHost::Port),
            ("b.example:65536", NoHost::Port),
            ("b.example:+1", NoHost::Port),
            ("b.example:xmpp", NoHost::Port),
            ("2001:db8::1", NoHost::Ipv6),
            ("[2001:db8::1", NoHost::Ipv6),
            ("[b.example]:5222", NoHost::Ipv6),
            ("[::1]5222", NoHost::Port),
        ] {
            assert_eq!(text.parse::<OtherHost>(), Err(why), "{text}");
        }
        assert_eq!("a.".repeat(127).parse::<OtherHost>(), Err(NoHost::Name));
    }
}
