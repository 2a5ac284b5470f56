"""The protocol, with no I/O: messages and headers in, messages and a status out.

Everything here is a function of its arguments. It needs no clock, environment,
log, event loop or web framework, so it can be used under any transport.
"""
