"""Kafka, Redis Streams and MQTT as streams: readers with positions, writers, feeds, dead letters, order of partitions.

`streams.read`, `evaluate` and the command line import it. It imports the client of a broker when one is opened.
Begin with contract.py, then redis_streams.py: a further broker is a file like that and one call of `register`.
"""

from .connect import connect, is_broker, register
from .contract import BrokerAway, BrokerError, Message, Position, Reader, Record, Writer
from .feed import Batch, Feed

__all__ = [
    "Batch",
    "BrokerAway",
    "BrokerError",
    "Feed",
    "Message",
    "Position",
    "Reader",
    "Record",
    "Writer",
    "connect",
    "is_broker",
    "register",
]
