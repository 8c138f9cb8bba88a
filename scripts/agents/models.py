"""Scripted models on loopback, one for each protocol that an agent speaks. Each calls a tool for each request, then says a text."""

from __future__ import annotations

import http.server
import json
import threading

TEXT = "All through."
Call = tuple[str, dict]


class Model(http.server.ThreadingHTTPServer):
    """A server that answers the first requests with a call each, and the next ones with a text.

    It keeps the last request as a text, which has the results of the calls before it.
    """

    def __init__(self, calls: list[Call]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls, self.requests, self.whole = calls, 0, ""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Return the host and the port."""
        return f"127.0.0.1:{self.server_port}"

    def next_call(self, request: dict) -> Call | None:
        """Return the next call; none if all were asked for. A request without tools, such as one for a title, gets none."""
        if not request.get("tools"):
            return None
        self.requests += 1
        self.whole = json.dumps(request)
        return self.calls[self.requests - 1] if self.requests <= len(self.calls) else None

    def answer(self, path: str, request: dict) -> object:
        """Return the answer to a request: a value, or the text of a stream of events."""
        raise NotImplementedError


class Responses(Model):
    """The Responses protocol, for codex."""

    def answer(self, path: str, request: dict) -> object:
        call, number = self.next_call(request), self.requests
        if call:
            # A tool of a tool server is in a namespace.
            *namespace, name = call[0].split("/")
            ids = {"id": f"fc_{number}", "call_id": f"call_{number}"} | ({"namespace": namespace[0]} if namespace else {})
            item = {"type": "function_call", **ids, "name": name, "arguments": json.dumps(call[1])}
        else:
            content = [{"type": "output_text", "text": TEXT}]
            item = {"type": "message", "role": "assistant", "id": f"m_{number}", "content": content}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        response = {"id": f"r{number}"}
        return typed(
            [
                {"type": "response.created", "response": response},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response | {"usage": usage}},
            ]
        )


class Messages(Model):
    """The Messages protocol, for Claude Code."""

    def answer(self, path: str, request: dict) -> object:
        if "count_tokens" in path:
            return {"input_tokens": 1}
        call, number = self.next_call(request), self.requests
        if call:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
            whole = block | {"input": call[1]}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": TEXT}
            whole = block | {"text": TEXT}
        stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": request.get("model", "m"), "usage": usage}
        if not request.get("stream"):
            return message | {"content": [whole]} | stop
        start = message | {"content": [], "stop_reason": None, "stop_sequence": None}
        return typed(
            [
                {"type": "message_start", "message": start},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
                {"type": "message_stop"},
            ]
        )


class Completions(Model):
    """The chat completions protocol, for opencode."""

    def answer(self, path: str, request: dict) -> object:
        call, number = self.next_call(request), self.requests
        message: dict = {"role": "assistant"}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        else:
            message["content"] = TEXT
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        ids = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
        chunks = [
            ids | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            ids | {"choices": [end], "usage": usage},
        ]
        return "".join(f"data: {json.dumps(it)}\n\n" for it in chunks) + "data: [DONE]\n\n"


class Gemini(Model):
    """The protocol of the Gemini API, for gemini-cli."""

    def answer(self, path: str, request: dict) -> object:
        if "countTokens" in path:
            return {"totalTokens": 1}
        call = self.next_call(request if "stream" in path else {})
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": TEXT if request.get("tools") else "{}"}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
        return f"data: {json.dumps(answer)}\n\n" if "stream" in path else answer


def typed(events: list[dict]) -> str:
    """Return the text of a stream of events with their types."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of an agent."""

    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def reply(self, answer: object) -> None:
        """Send a whole answer."""
        is_stream = isinstance(answer, str)
        body = (answer if is_stream else json.dumps(answer)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:  # noqa: N802
        """Say that the server is there."""
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:  # noqa: N802
        """Answer a request for the list of models."""
        self.reply({"data": [], "object": "list", "models": []})

    def do_POST(self) -> None:  # noqa: N802
        """Answer a prompt."""
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self.reply(self.server.answer(self.path, request))
