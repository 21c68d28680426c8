-- Prosody as a benchmark wants it: what the scenarios need is on, what costs and is not needed is off, and nothing is
-- throttled. Names between @ are filled in by bench/servers.sh; the one among the modules is an archive, where it is measured.
daemonize = false
-- Creates the topic.
admins = { "publisher0@localhost" }
run_as_root = true
pidfile = "@WORK@/prosody.pid"
data_path = "@WORK@/prosody"
network_backend = "epoll"
network_settings = { tcp_backlog = 4096 }
interfaces = { "127.0.0.1" }
c2s_ports = { @PORT@ }
c2s_direct_tls_ports = {}
s2s_ports = {}
c2s_require_encryption = true
authentication = "internal_hashed"
password_hash = "SHA-256"
-- The default of 10,000 makes a login cost Prosody twice; the other servers here use 4,096.
default_iteration_count = 4096
allow_registration = true
min_seconds_between_registrations = 0
storage = "internal"
gc = { mode = "generational" }
modules_enabled = { @MORE@"admin_shell", "disco", "ping", "register_ibr", "roster", "saslauth", "smacks", "tls" }
modules_disabled = { "s2s", "offline" }
log = { error = "*stderr" }
ssl = { certificate = "@WORK@/peer.crt", key = "@WORK@/peer.key" }
VirtualHost "localhost"
Component "pubsub.localhost" "pubsub"
  autocreate_on_publish = false
  default_admin_affiliation = "owner"
