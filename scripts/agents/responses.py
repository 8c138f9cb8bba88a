"""A scripted server of the Responses protocol on loopback, for codex: one call of a command for each request, then a text."""

from __future__ import annotations

import http.server
import json
import threading


class Responses(http.server.ThreadingHTTPServer):
    """The server. It answers the first requests with a command each, and the next ones with `done`."""

    def __init__(self, commands: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.commands, self.requests = commands, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self) -> bytes:
        """Return the events of the next answer."""
        self.requests += 1
        number = self.requests
        if number <= len(self.commands):
            arguments = json.dumps({"cmd": self.commands[number - 1]})
            names = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": "exec_command"}
            item = {"type": "function_call", **names, "arguments": arguments}
        else:
            content = [{"type": "output_text", "text": "All through."}]
            item = {"type": "message", "role": "assistant", "id": f"m_{number}", "content": content}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        response = {"id": f"r{number}"}
        events = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response | {"usage": usage}},
        ]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests of codex."""

    protocol_version = "HTTP/1.1"
    server: Responses

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def reply(self, body: bytes, kind: str) -> None:
        """Send a whole answer."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:  # noqa: N802
        """Answer a request for the list of models."""
        self.reply(b'{"data":[],"object":"list","models":[]}', "application/json")

    def do_POST(self) -> None:  # noqa: N802
        """Answer a prompt."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.reply(self.server.answer(), "text/event-stream")
