"""The self-signed certificate: whom it is for, and when it is made anew. Certificates for further hosts."""

import asyncio
import hashlib
import os
import ssl
import subprocess

import pytest

from harness.inbox import deadline
from harness.server import Server


async def reach(server, address, name):
    """Connects with TLS to an address, as a client that trusts the certificate for this name."""
    async with deadline(f"TLS with {name}"):
        _, writer = await asyncio.open_connection(
            address, server.port("c2s_tls"), ssl=server.tls(), server_hostname=name
        )
        writer.close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
async def test_it_is_for_this_machine_by_name_and_address(server, name):
    await reach(server, "127.0.0.1", name)


async def test_it_is_for_the_addresses_listened_on(tmp_path):
    first = Server(tmp_path)
    made = first.certificate.read_bytes()
    first.end()
    again = Server(tmp_path)
    assert again.certificate.read_bytes() == made, "it is kept while it fits"
    again.end()
    moved = Server(tmp_path, listen__address='["127.0.0.1", "127.0.0.2"]', listen__host="push.example")
    assert moved.certificate.read_bytes() != made
    for name in ("127.0.0.2", "127.0.0.1", "push.example", "localhost"):
        await reach(moved, "127.0.0.2", name)
    moved.end()


def issue(folder, *names):
    """Makes a certificate for these hosts, as a program that renews them does: each file is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / "new.key", folder / "new.crt"]
    names_of = ",".join(f"DNS:{name}" for name in names)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", made[0]]
    subject = ["-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={names_of}", "-days", "30", "-out", made[1]]
    subprocess.run(["openssl", "req", "-x509", *key, *subject], check=True, capture_output=True)
    os.replace(made[0], folder / "privkey.pem")
    os.replace(made[1], folder / "fullchain.pem")
    return fingerprint((folder / "fullchain.pem").read_text())


def fingerprint(pem):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


async def shown(server, host, port="c2s_tls"):
    """The fingerprint of the certificate that a client is shown who asks for this host."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with deadline(f"TLS with {host}"):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port(port), ssl=context, server_hostname=host)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    return hashlib.sha256(der).hexdigest()


async def until(server, expected):
    """Asks again and again, until each host is shown the certificate that is expected."""
    async with deadline(f"certificates of {', '.join(expected)}"):
        while {host: await shown(server, host) for host in expected} != expected:
            pass


async def test_each_host_is_shown_its_own_and_a_renewed_one_without_a_signal(tmp_path):
    live = tmp_path / "live"
    one, many = issue(live / "one.example", "one.example"), issue(live / "many", "two.example", "*.three.example")
    (live / "README").write_text("what is no folder is left alone")
    server = Server(tmp_path, tls__certificates=str(live), tls__watch_ms=100, https__port=0)
    own = fingerprint(server.certificate.read_text())
    expected = {"one.example": one, "ONE.example": one, "two.example": many, "a.three.example": many}
    expected |= {"localhost": own, "four.example": own, "three.example": own, None: own, "a.b.three.example": own}
    for host, certificate in expected.items():
        # Without a name to ask for, Python asks by none where it is given an address.
        assert await shown(server, host or "127.0.0.1") == certificate, host
    assert await shown(server, "two.example", "https") == many
    renewed = issue(live / "one.example", "one.example")
    await until(server, {"one.example": renewed})
    # A key that does not fit changes nothing.
    (live / "many" / "privkey.pem").write_text((live / "one.example" / "privkey.pem").read_text())
    async with deadline("the error"):
        while "live/many/fullchain.pem: certificate and key cannot be used" not in server.log.read_text():
            await shown(server, "two.example")
    assert await shown(server, "two.example") == many
    added = issue(live / "new", "four.example")
    many = issue(live / "many", "two.example")
    await until(server, {"four.example": added, "two.example": many})
    # While one of the two files is new, too.
    server.end(expected=["the certificates were not reloaded"])
