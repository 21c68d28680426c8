"""HAProxy in front of a node, on ports that the system chose."""

import contextlib
import shutil
import socket
import subprocess

PROGRAM = shutil.which("haproxy") or "/usr/sbin/haproxy"
TIMES = "timeout connect 10s\n  timeout client 60s\n  timeout server 60s"


class HAProxy:
    """Forwards TCP to a node's ports, with a PROXY header in front of each connection. To clients of the harness it is the server."""

    def __init__(self, server, folder, sends, ports=("c2s", "c2s_tls", "websocket", "light")):
        self.server = server
        self.log = folder / "haproxy.log"
        config = folder / "haproxy.cfg"
        with contextlib.ExitStack() as stack:
            # It inherits sockets that listen already: whoever connects before it runs waits in them.
            listening = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in ports}
            self.ports = {name: sock.getsockname()[1] for name, sock in listening.items()}
            parts = [f"defaults\n  mode tcp\n  {TIMES}"]
            for name, sock in listening.items():
                node = f"server node 127.0.0.1:{server.port(name)} {sends}"
                parts.append(f"listen {name}\n  bind fd@{sock.fileno()}\n  {node}")
            config.write_text("\n".join(parts) + "\n")
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [PROGRAM, "-db", "-f", str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[sock.fileno() for sock in listening.values()],
                )

    def port(self, name):
        return self.ports[name]

    def tls(self):
        return self.server.tls()

    def end(self):
        assert self.process.poll() is None, f"HAProxy ended:\n{self.log.read_text()}"
        self.process.terminate()
        self.process.wait()
