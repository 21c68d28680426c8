"""A node under load that is killed, restarted, upgraded and cut off at random moments, and a book of what was promised and
what was given.

``python -m kills --help`` says how to run it. Everything is seen from outside: what the HTTP API answered, what each device
read from its socket.
"""
