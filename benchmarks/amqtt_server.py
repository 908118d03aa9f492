"""amqtt as a process: `python -m benchmarks.amqtt_server PORT`.

amqtt 0.12 forgets a message that was sent and not acknowledged when its client goes away, or after five seconds. MQTT 3.1.1
(section 4.4) has it sent again when the client comes back. The one method that decides this is replaced here.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from amqtt.broker import Broker
from amqtt.mqtt.protocol.handler import ProtocolHandler
from amqtt.session import OUTGOING

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
    """What was not acknowledged is sent again, oldest first, without waiting for the answers."""
    for message in list(self.session.inflight_out.values()):
        task = asyncio.ensure_future(self._handle_message_flow(message))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        await asyncio.sleep(0)


_tasks: set[Any] = set()
ProtocolHandler._handle_qos1_message_flow = _kept
ProtocolHandler._retry_deliveries = _again


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
