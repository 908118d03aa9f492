"""amqtt as a process: `python -m benchmarks.amqtt_server PORT`.

amqtt 0.12 forgets a message that was sent and not acknowledged when its client goes away, or after five seconds; MQTT 3.1.1
(section 4.4) has it sent again when the client comes back. And a message that is published while a client comes back
overtakes those that were kept for it; section 4.6 has them sent in order. The methods that decide this are replaced here.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from amqtt.broker import Broker, RetainedApplicationMessage
from amqtt.mqtt.protocol.handler import ProtocolHandler
from amqtt.session import OUTGOING

_publish = ProtocolHandler.mqtt_publish
_flow = ProtocolHandler._handle_qos1_message_flow


async def _kept(self: Any, message: Any) -> None:
    """Send, and forget the message when it is acknowledged, not before."""
    if message.direction != OUTGOING:
        await _flow(self, message)
        return
    session = self.session
    session.inflight_out[message.packet_id] = message
    message.publish_packet = message.build_publish_packet(dup=message.publish_packet is not None)
    waiter: asyncio.Future[Any] = asyncio.Future()
    self._puback_waiters[message.packet_id] = waiter
    await self._send_packet(message.publish_packet)
    message.puback_packet = await waiter
    self._puback_waiters.pop(message.packet_id, None)
    session.inflight_out.pop(message.packet_id, None)


async def _again(self: Any) -> None:
    """What was not acknowledged is sent again, oldest first, then what was kept, without waiting for the answers."""
    kept = self.session.retained_messages
    flows = [self._handle_message_flow(message) for message in self.session.inflight_out.values()]
    while not kept.empty():
        message = kept.get_nowait()
        flows.append(_publish(self, message.topic, message.data, message.qos, retain=True))
    for flow in flows:
        task = asyncio.ensure_future(flow)
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    self.is_level = True


async def _in_turn(self: Any, topic: str, data: Any, qos: Any, retain: bool, ack_timeout: Any = None) -> Any:
    """A message for a client that has not been sent yet what was kept for it is kept, too."""
    if self.session is not None and not getattr(self, "is_level", False) and not retain and qos == 1:
        await self.session.retained_messages.put(RetainedApplicationMessage(None, topic, data, qos))
        return None
    return await _publish(self, topic, data, qos, retain, ack_timeout)


_tasks: set[Any] = set()
ProtocolHandler._handle_qos1_message_flow = _kept
ProtocolHandler._retry_deliveries = _again
ProtocolHandler.mqtt_publish = _in_turn


async def main(port: int) -> None:
    passes = "amqtt.plugins.authentication.AnonymousAuthPlugin"
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
            "plugins": {passes: {"allow_anonymous": False}},
        }
    )
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
