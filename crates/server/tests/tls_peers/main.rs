//! The TLS module against other implementations as its peers: rustls, OpenSSL, Python.

mod handshake;
mod openssl;
mod records;
mod settings;
mod support;
