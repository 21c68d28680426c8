"""What of tlsfuzzer is for this server, how its scripts are told what the server does, and what goes otherwise for a reason."""

NO_CLIENTS = "clients are asked for no certificate here"
TLS_1_2 = "TLS 1.2 without ECDHE, which the conversation asks for, is not offered"
TOO_LARGE = "a ClientHello of more than 64 KiB is refused, or closed upon"
LATE = "the alert comes after ServerHello, when rustls looks for a signature that both have"
OTHER_ALERT = "the connection ends with another alert"
NO_ALERT = "the connection ends, and the alert does not always arrive before that"

# Scripts about what the server does not do.
LEFT_OUT = {
    "certificate-request": NO_CLIENTS,
    "certificate-verify": NO_CLIENTS,
    "client-certificate-compression": NO_CLIENTS,
    "ecdsa-brainpool-in-certificate-verify": NO_CLIENTS,
    "ecdsa-in-certificate-verify": NO_CLIENTS,
    "eddsa-in-certificate-verify": NO_CLIENTS,
    "mldsa-in-certificate-verify": NO_CLIENTS,
    "post-handshake-auth": NO_CLIENTS,
    "ecdhe-brainpool-curves": "no curve of Brainpool is offered",
    "ffdhe-groups": "no group of finite fields is offered",
    "ffdhe-sanity": "no group of finite fields is offered",
    "lengths": "it is for servers that echo what they are sent",
    "minerva": "it measures the time of signatures",
    "non-support": "it is for servers without TLS 1.3",
    "obsolete-curves": "it wants a ClientHello refused that names an obsolete curve beside one that is offered",
    "psk_dhe_ke": "no keys are shared beforehand",
    "psk_ke": "no keys are shared beforehand",
    "rsapss-signatures": "it wants a certificate with a key of RSASSA-PSS",
}

# Scripts that want a certificate of ECDSA.
ECDSA = {"ecdsa-support", "eddsa"}

# By script.
ARGUMENTS = {
    "version-negotiation": ["-d", "-C", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
    "mlkem": ["--kems", "x25519mlkem768"],
}

# Conversations that may go otherwise than the script has it, as regular expressions, by script; each with its reason.
EXPECTED = {
    "0rtt-garbage": {
        "TLS 1.2": TLS_1_2,
        "invalid 0-RTT": "no ticket allows early data, so none is passed over: it is a record that cannot be opened",
    },
    "certificate-compression": {
        "zlib": "certificates are not compressed",
        "duplicated algos": "a list with an algorithm twice is refused",
        "TLS-1.2": TLS_1_2,
    },
    "connection-abort": {"After NewSessionTicket": "the answer comes where the script waits for one more ticket"},
    "crfg-curves": {"x448": "X448 is not offered", "empty x25519": OTHER_ALERT},
    "ecdhe-curves": {"secp521r1|x448": "neither is offered"},
    "ecdsa-support": {"sha224|sha1": LATE, "brainpool|secp384r1|secp521r1": "the certificate has a key of P-256"},
    "eddsa": {"ed25519|ed448": "the certificate has a key of P-256", "ecdsa": LATE},
    "empty-alert": {"empty alert": OTHER_ALERT},
    "finished": {"padding|truncation": OTHER_ALERT},
    "finished-plaintext": {"Unencrypted": OTHER_ALERT},
    "keyshare-omitted": {"key_share extension omitted": OTHER_ALERT},
    "keyupdate": {"appdata between": NO_ALERT},
    "keyupdate-from-server": {"KeyUpdate msg from server": "no request has the server change its keys"},
    "large-number-of-extensions": {"unassigned extensions": TOO_LARGE},
    "legacy-version": {"version": "`supported_versions` decides alone (RFC 8446 §4.2.1)"},
    "multiple-ccs-messages": {"CCS": "in the handshake each is dropped (RFC 8446 §5), and it goes on"},
    "no-unknown-groups": {"between 4356 and 4611": "X25519MLKEM768, which is offered, is one of these"},
    "pkcs-signature": {"rsa_pkcs1": LATE},
    "record-layer-limits": {
        "Finished": OTHER_ALERT,
        "too big ciphertext": OTHER_ALERT,
        "too big ClientHello": "a plaintext record may be longer before the handshake is over",
    },
    "rsa-signatures": {"rsa_pss_pss": LATE},
    "dhe-shared-secret-padding": {"ffdhe|x448|secp521r1": "none of these groups is offered"},
    "serverhello-random": {"ffdhe|x448|secp521r1": "none of these groups is offered", "1.2": TLS_1_2},
    "session-resumption": {"TLS 1.2": TLS_1_2, "PSK_ONLY": "tickets are for keys with (EC)DHE alone"},
    "shuffled-extentions": {
        "HRR": "a second ClientHello may have its extensions in another order",
        "unassigned": TOO_LARGE,
    },
    "signature-algorithms": {"32715|23752": TOO_LARGE, "only legacy sigalgs": LATE},
    "symetric-ciphers": {"CCM": "no suite with CCM is offered"},
    "unrecognised-groups": {
        "unknown": "the group that the conversation asks for is not offered, or its ClientHello is too large"
    },
    "version-negotiation": {"1.1|1.0|SSL": "only TLS 1.2 and 1.3 are offered"},
    "zero-content-type": {"zero content type": NO_ALERT},
    "zero-length-data": {"interleaved in handshake": NO_ALERT},
}
