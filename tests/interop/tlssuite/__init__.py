"""tlsfuzzer's scripts for TLS 1.3 against a node."""
