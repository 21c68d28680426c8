# Starts and stops the servers of a benchmark, and runs scenarios against the one that runs: sourced by bench/compare and
# bench/own, with `out` and the current folder set. Needs release builds.
# shellcheck shell=bash

bin=${CARGO_TARGET_DIR:-target}/release
password=pw
work=$(mktemp -d)
chmod 755 "$work"
pid=
# Carillon and the load tester raise their own; ejabberd and Prosody take what they are given.
ulimit -n "$(ulimit -Hn)"

say() { echo "== $*"; }
# Free on every address: what is left of a storm of connections from all of 127.0.0.0/8 holds thousands of ports.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("0.0.0.0", 0)); print(s.getsockname()[1])'; }
field() { sed -E "s/.*\"$1\":([0-9]+).*/\1/" "$work/ready"; }
await() { # TEST…: until it succeeds, half a minute at most
    for _ in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "bench/compare: the server is not there after half a minute" >&2
    return 1
}
connects() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
package() { command -v "$1" >/dev/null || apt-get install -y --no-install-recommends "$2" >"$work/apt" 2>&1; }

# With $chat, a server has rosters, an archive, and rooms with one. Each start_… sets pid (what is measured), address, and more for the load tester.
start_carillon() { # OPTION…; its data in $data, if that is set
    local folder=$work/${data:-carillon}
    rm -f "$work/ready"
    "$bin/carillon" serve --ready-file "$work/ready" --set data_dir="$folder" --set c2s.port=0 --set c2s_tls.port=0 \
        --set websocket.port=0 --set http.port=0 --set limits.profile=benchmark --set registration.in_band=true \
        --set log.level=warn ${chat:+--set archive.enabled=true} "$@" &
    pid=$!
    await test -f "$work/ready"
    address=127.0.0.1:$(field c2s)
    more=(--mechanism SCRAM-SHA-256 --http "http://127.0.0.1:$(field http)" --key "$(cat "$folder/admin.key")")
    # What the start itself took is given back within two seconds: counted as memory from before the first session it would hide what sessions take.
    sleep 3
}
start_floor() {
    rm -f "$work/ready"
    "$bin/carillon-floor" --ready-file "$work/ready" &
    pid=$!
    await test -f "$work/ready"
    address=127.0.0.1:$(field c2s)
    more=(--mechanism PLAIN --sessions-command "ss -Htn state established sport = :$(field c2s) | wc -l")
}
# Erlang's port mapper stays when its nodes are gone: this one is ours, and ends with us. Its port is chosen when it is needed:
# the storms before it would have taken it.
export ERL_EPMD_PORT=
# As its own user, but not by way of su, which would leave it 1,024 descriptors.
ejabberd() { setpriv --reuid=ejabberd --regid=ejabberd --clear-groups env HOME="$work/ejabberd" ejabberdctl -n bench@localhost -d "$work/ejabberd" -s "$work/ejabberd/spool" \
    -l "$work/ejabberd/logs" "$@"; }
start_ejabberd() {
    package ejabberdctl ejabberd
    local port api
    port=$(free_port) api=$(free_port)
    ERL_EPMD_PORT=${ERL_EPMD_PORT:-$(free_port)}
    local extra=
    [ -z "${chat:-}" ] || extra=$(sed -z 's/\n/\\n/g' bench/peers/ejabberd-chat.yml)
    mkdir -p "$work"/ejabberd/{spool,logs}
    sed "s|@WORK@|$work|g; s|@PORT@|$port|; s|@API_PORT@|$api|; s|@MORE@|$extra|" bench/peers/ejabberd.yml >"$work/ejabberd/ejabberd.yml"
    printf 'ERL_MAX_PORTS=20000\nINET_DIST_INTERFACE=127.0.0.1\n' >"$work/ejabberd/ejabberdctl.cfg"
    cp /etc/ejabberd/inetrc "$work/ejabberd/" 2>/dev/null || true
    chown -R ejabberd "$work/ejabberd"
    ejabberd foreground >"$work/ejabberd.log" 2>&1 &
    await connects "$port"
    pid=$(pgrep -f 'beam.smp.*sname bench@localhost' | head -1)
    address=127.0.0.1:$port
    # Its SCRAM-SHA-256-PLUS refuses the binding of TLS 1.3 (tls-exporter).
    more=(--mechanism SCRAM-SHA-256 --sessions-command "curl -s -X POST -d '{}' http://127.0.0.1:$api/api/connected_users_number | tr -dc 0-9")
}
start_prosody() {
    package prosody prosody
    local port
    port=$(free_port)
    local extra=
    [ -z "${chat:-}" ] || extra='"mam", '
    mkdir -p "$work/prosody"
    sed "s|@WORK@|$work|g; s|@PORT@|$port|; s|@MORE@|$extra|" bench/peers/prosody.cfg.lua >"$work/prosody.cfg.lua"
    [ -z "${chat:-}" ] || cat bench/peers/prosody-chat.cfg.lua >>"$work/prosody.cfg.lua"
    prosody --config "$work/prosody.cfg.lua" >"$work/prosody.log" 2>&1 &
    pid=$!
    await connects "$port"
    address=127.0.0.1:$port
    more=(--mechanism SCRAM-SHA-256 --sessions-command "prosodyctl --config $work/prosody.cfg.lua shell 'c2s:count()' | tr -dc '0-9\n' | grep . | tail -1")
}
stop() {
    [ -n "$pid" ] || return 0
    kill "$pid" 2>/dev/null || true
    # A peer may be the child of its own starter: wait for the process, whoever its parent is. One that does not come to its
    # end within half a minute, as Prosody did not once after it lost 15,000 sessions, is ended.
    for tenth in $(seq 301); do
        kill -0 "$pid" 2>/dev/null || break
        [ "$tenth" -ne 300 ] || kill -KILL "$pid" 2>/dev/null || true
        sleep 0.1
    done
    wait
    pid=
}
trap 'stop; [ -z "$ERL_EPMD_PORT" ] || epmd -kill >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

load() { # SCENARIO REPORT OPTION…
    local scenario=$1 report=$2
    shift 2
    [ -f "bench/scenarios/$scenario.toml" ] && scenario=bench/scenarios/$scenario.toml
    "$bin/carillon-load" run "$scenario" --target "$address" --domain localhost --password $password \
        --publisher publisher0 --key-cache "$work/keys" --server-pid "$pid" "${more[@]}" --report "$report" "$@" >"${report%.json}.txt" 2>&1
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/peer.key" -out "$work/peer.crt" 2>/dev/null
cat "$work/peer.crt" "$work/peer.key" >"$work/peer.pem"
chmod 644 "$work"/peer.*
