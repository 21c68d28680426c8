"""What the tests stand on: a server in a temporary folder, and the clients that talk to it.

- ``server``: one process of the real binary on free ports.
- ``api``: the HTTP API, and receipts as Server-Sent Events.
- ``peer``: slixmpp, an XMPP client of another house.
- ``raw``: a stream by hand, for what no well-behaved client would send; ``websocket`` the same over WebSocket.
- ``follower``: a session that follows topics, of which a test can have many.
- ``scram``: the client's side of SCRAM with channel binding, which slixmpp cannot do.
- ``inbox``: what came in, and waiting for more of it with a deadline.
"""
