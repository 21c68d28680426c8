"""What of tlsfuzzer is for this server, how its scripts are told what the server does, and what goes otherwise for a reason."""

# Scripts about what the server does not do.
LEFT_OUT = {}

# Scripts that want a certificate of ECDSA.
ECDSA = {"ecdsa-support", "ecdsa-in-certificate-verify", "eddsa"}

# By script, or by script and port.
ARGUMENTS = {}

# Conversations that go otherwise than the script has it, by script, or by script and port; each with its reason.
EXPECTED = {}
